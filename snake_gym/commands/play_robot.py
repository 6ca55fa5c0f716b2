"""Command ``play`` for a robot on a port: keys or a gamepad ask for pace, steering, gait and the emergency stop.

snake-gym play --port memory                               emulated servos and bus, in this process
snake-gym play cc cpg --port pty                           with the guard process, as on a real one
snake-gym play --config configs/hardware/sts3215.yaml      the robot on the desk
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections import deque
from typing import Any

import numpy as np

from snake_gym.commands.keys import DRIVING, Key, panel, press
from snake_gym.config import ConfigError, OptionParser, prepare_file, run_program, write_atomic
from snake_gym.controllers.driving import DrivenGaits, DrivenModes
from snake_gym.hardware.commands.options import add_settings, read_settings
from snake_gym.hardware.commands.run import add_run_options, drive
from snake_gym.hardware.guard.body import BodySample
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.robot.connection import EMULATED
from snake_gym.hardware.robot.driving import LetGo, plan_driving
from snake_gym.hardware.robot.robot_loop import RobotLoop
from snake_gym.render.frames import Picture, ends_of
from snake_gym.render.helm import NEXT_BUTTON, STOP_BUTTON, Gamepad, Helm
from snake_gym.render.robot_window import FPS, RobotWindow
from snake_gym.robot.measurement import Measurement, link_angles
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.fault_kinds import FAULT_KINDS

LONGEST_S = 3600.0
"""Longest drive, unless ``--time`` says otherwise."""
_TRAIL = 400
"""Control steps of which the trail shows the head."""


def main(argv: list[str] | None = None) -> int:
    """Open the window and drive until it is closed. Raises ConfigError for what the user has to correct."""
    text = str(__doc__)
    parser = OptionParser(prog="snake-gym play", description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "gait",
        nargs="*",
        help="controllers (cc, sjc, cpg, ...) or tuned YAML files (default: those tuned for the robot); of a "
        "spatial robot its modes (default: SWL, then the others)",
    )
    add_settings(parser)
    add_run_options(parser, LONGEST_S)
    parser.add_argument("--screenshot", metavar="FILE", help="write the last picture as a PNG")
    options = parser.parse_args(argv)
    if options.screenshot is not None:
        prepare_file(options.screenshot, "--screenshot")
    own = vars(options)
    own["time_limit_s"] = own["time_limit_s"] or LONGEST_S
    no_pose_given = own["connection.pose.kind"] is None and options.config is None
    if no_pose_given and own["connection.port"] not in (None, *EMULATED):
        own["connection.pose.kind"] = "dead_reckoning"  # enough to draw it; gaits are steered relative to the robot
    config = read_settings(options)
    plan, gaits = plan_driving(config, options.gait)
    drivers = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    if not (any(map(os.environ.get, drivers)) or sys.stdin.isatty()):
        raise ConfigError("there is neither a display nor a terminal, so no key would reach the robot")
    spec, port = plan.contract.decoder.spec, config.connection.port
    window = RobotWindow(spec, f"{spec.name} on {port}", PANEL)
    try:
        driver = WindowDriver(window, gaits, f"{spec.name} on {port}", in_real_time=port != "memory")
        code = drive(config, plan, options.log, driver)
        if options.screenshot is not None:
            write_atomic(options.screenshot, window.png())
    finally:
        window.close()
    return code


class WindowDriver:
    """Driver at a window; ``in_real_time`` False: the robot's clock runs as fast as the processor, and is held back."""

    def __init__(
        self, window: RobotWindow, gaits: DrivenGaits | DrivenModes, title: str, in_real_time: bool = True
    ) -> None:
        self.window, self.helm, self._title = window, Helm(gaits.names), title
        self.pad = Gamepad(window.pygame, self.helm)
        window.message = "H: keys"
        self._in_real_time = in_real_time
        self._next_s = -math.inf
        self._lead_s: float | None = None
        self._trail: deque[FloatArray] = deque(maxlen=_TRAIL)
        self._head = np.zeros(3)
        self._loop: RobotLoop | None = None
        self._stop: EmergencyStop | None = None

    def take(self, loop: RobotLoop, stop: EmergencyStop) -> None:
        """Begin to drive ``loop`` with the emergency stop ``stop``."""
        self._loop, self._stop = loop, stop
        n = loop.spec.n_links  # the first picture takes long: it is drawn while nothing moves
        at_rest = ends_of(loop.spec, np.zeros(n), np.zeros(2))
        self.window.show_picture(Picture(at_rest, text=[self._title, "coming up"]))

    def look(self, sample: BodySample) -> None:
        """Do what keys and gamepad ask for, and show the robot. Raises LetGo."""
        pygame = self.window.pygame
        try:
            for event in pygame.event.get():
                self.handle(event)
            begun_s = time.monotonic()
            if begun_s >= self._next_s:
                self._show(sample)
                # On a slow computer pictures wait for commands, not the other way round.
                self._next_s = begun_s + max(1.0 / FPS, 2.0 * (time.monotonic() - begun_s))
        except pygame.error as error:
            raise LetGo(f"the window is gone ({error})", 1) from None
        if not self._in_real_time and self._loop is not None:
            lead_s = self._loop.body.clock.now() - time.monotonic()
            if self._lead_s is None or lead_s < self._lead_s:  # late: time that has passed is not made up for
                self._lead_s = lead_s
            time.sleep(lead_s - self._lead_s)

    def steer(self) -> None:
        """Hand what is asked for to the gaits."""
        if self._loop is not None:
            self.helm.write(self._loop.state)
            if self._head.any():
                self._trail.append(self._head[:2].copy())

    def handle(self, event: Any) -> None:
        """Do what an event of pygame asks for. Raises LetGo where the driver has left."""
        pygame = self.window.pygame
        if event.type == pygame.QUIT:
            raise LetGo("the window was closed", 0)
        if event.type == pygame.WINDOWFOCUSLOST and self.pad.used is None:
            self.helm.stand()
            self.window.message = "the window has lost the focus: the robot stands"
        elif event.type == pygame.KEYDOWN:
            press(KEYS, self, pygame.key.name(event.key))
        else:
            change = self.pad.handle(event)
            if change == "stop":
                self.trip("the stop button of the gamepad was pressed")
            elif change == "lost":
                raise LetGo("the gamepad is gone", 1)

    def trip(self, why: str) -> None:
        """Trip the emergency stop: the owner of the port sees it in the next bus cycle."""
        if self._stop is not None:
            self._stop.trip(why)
        self.window.message = f"EMERGENCY STOP: {why}"

    def leave(self) -> None:
        """End the run, torque off."""
        raise LetGo("the driver has left", 0)

    def _show(self, sample: BodySample) -> None:
        loop = self._loop
        if loop is None:
            return
        pose = loop.pose.read(loop.body.clock.now()) if loop.measurement is not None else None
        if pose is not None and pose.valid:
            self._head = np.array([*pose.xy_w, pose.angle])
        seen = Measurement(
            sample.joint_angle[None], sample.joint_rate[None], self._head[None, :2], self._head[2:], np.ones(1, bool),
            self._head[None, :2],
        )  # fmt: skip
        up_h, z_w = (None, None) if pose is None else (pose.up_h, pose.z_w)
        seen = loop.spec.locate(seen, up_h, z_w)
        ends_xy = loop.spec.ends_xy(seen)
        head_xy = self._head[:2]
        failed = np.where(sample.lost, FAULT_KINDS["silent"].code, 0)
        trail = np.array([*self._trail, head_xy])
        ends = ends_of(loop.spec, link_angles(seen)[0], head_xy) if ends_xy is None else ends_xy
        picture = Picture(ends, trail_xy=trail, failed=failed, text=self._text(loop, sample))
        self.window.show_picture(picture)

    def _text(self, loop: RobotLoop, sample: BodySample) -> list[str]:
        load, hot = np.abs(sample.health.load), sample.health.temperature_c
        lines = [self._title, self.helm.text(), f"{loop.course.progress_m:.2f} m from the start"]
        if np.isfinite(load).any():
            worst = int(np.nanargmax(load))
            lines.append(f"load {100 * load[worst]:.0f} % (joint {worst + 1})   {np.nanmax(hot):.0f} C")
        if loop.measurement is None:
            lines.append("coming up")
        return [*lines, "SPACE: EMERGENCY STOP"]


KEYS = (
    Key(("space", "q"), "Space, Q", "emergency stop: torque off, latched until `estop --clear`",
        lambda driver, name: driver.trip(f"the key {name} was pressed")),
    *DRIVING,
    Key(("c",), "C", "straight on", lambda driver, _: driver.helm.straight()),
    Key(("0", "backspace"), "0, Backspace", "stand", lambda driver, _: driver.helm.stand()),
    Key(tuple("123456789"), "1 ... 9", "gait by its number", lambda driver, name: driver.helm.choose(int(name))),
    Key(("escape",), "Esc", "end: torque off", lambda driver, _: driver.leave()),
)  # fmt: skip
"""All keys: what they do, the panel on the screen and the page of the documentation follow from this table."""
PANEL = panel(KEYS, (
    ("left stick", "up and down: pace, 0 when released; left and right: steer"),
    (f"button {'ABXY'[NEXT_BUTTON]}", "next gait"),
    (f"button {'ABXY'[STOP_BUTTON]}", "emergency stop"),
))  # fmt: skip


if __name__ == "__main__":
    run_program(main)
