"""``emulate``: a robot of emulated servos and simulated physics behind a serial port that any driver can open.

Everything is as on the real bus, byte for byte and in real time, but that nobody can be hurt. The port is a link with a
fixed name; the head's true pose is sent as UDP JSON, as motion capture would (``--pose udp_json``). What a person
would see of a wiggle is printed. Lines on standard input are what the world does to the robot: ``help`` lists them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import select
import signal
import socket
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.hardware.calibration import Calibration, load_calibration, straight_chain
from snake_gym.hardware.clock import MonotonicClock
from snake_gym.hardware.commands.calibrate import table
from snake_gym.hardware.commands.option_parser import PROGRAM
from snake_gym.hardware.commands.options import add_settings, read_settings
from snake_gym.hardware.connection import emulate
from snake_gym.hardware.emulated_port import EmulatedPort
from snake_gym.hardware.run_config import robot_of
from snake_gym.hardware.servo_emulator import EmulatedBus, EmulatedServo

_POSE_HZ = 50.0
_SEEN_RAD = math.radians(2.0)
"""A joint that bends by so much while all others rest is worth a line."""
_WORLD = """dead N, alive N        servo N dies, comes back
hot N T                servo N has T degrees C
jam N, free N          joint N is blocked, moves again
bend N DEG             a hand bends limp joint N to DEG degrees (straight: bend 0 0)
unplug, plug           the cable is pulled, put back
blind, see             the pose source loses the robot, finds it again
state                  angles and torque
quit"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_settings(parser, pose=False)
    parser.add_argument(
        "--link", metavar="FILE", help="name of the serial port (default: snake-bus in a temporary folder)"
    )
    parser.add_argument(
        "--mounting", type=int, metavar="SEED", help="servos put on at random, as by hand: calibrate them"
    )
    parser.add_argument("--single", action="store_true", help="one loose servo, new from the factory (id 1)")
    parser.add_argument(
        "--pose-port", type=int, default=47800, help="UDP port for the true pose; 0: none (%(default)s)"
    )
    parser.add_argument("--seconds", type=float, help="end after so long; default: at Ctrl-C")


def default_link() -> Path:
    """Where the emulated port of this user is."""
    return Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / "snake-bus"


def mounted_at_random(calibration: Calibration, seed: int) -> Calibration:
    """The same joints with horns put on anyhow, some servos the other way round."""
    rng = np.random.default_rng(seed)
    joints = tuple(
        replace(joint, zero_steps=int(rng.integers(0, 4096)), direction=int(rng.choice([-1, 1])))
        for joint in calibration.joints
    )
    return replace(calibration, joints=joints)


def run(options: argparse.Namespace) -> int:
    config = read_settings(options)
    spec = robot_of(config)
    if options.single:
        bus = EmulatedBus(
            [EmulatedServo(1, config.connection.servo_model)], clock=MonotonicClock(), baud=config.connection.baud
        )
        mounting = None
    else:
        told = config.connection.calibration
        model = config.connection.servo_model
        mounting = (
            straight_chain(range(1, spec.n_links), spec.joint_limit_rad, model)
            if told is None
            else load_calibration(told)
        )
        if options.mounting is not None:
            mounting = mounted_at_random(mounting, options.mounting)
        bus = emulate(config.connection, spec, mounting, MonotonicClock())
    link = Path(options.link or default_link())
    if link.exists() and not link.is_symlink():
        raise ConfigError(f"--link is {str(link)!r}, which is no link; expected a free name")
    with _port(bus, link) as port:
        print(f"{'one servo' if mounting is None else spec.name} on {port.port}", flush=True)
        if mounting is not None:
            print(table(mounting) if options.mounting is not None else f"servos {mounting.joints[0].servo_id} to "
                  f"{mounting.joints[-1].servo_id}, straight at {mounting.joints[0].zero_steps}")  # fmt: skip
            if options.pose_port:
                print(f"true pose to UDP port {options.pose_port}: --pose udp_json")
        example = f"{PROGRAM} scan --port {port.port}"
        print(f"try: {example}\nlines on standard input are what the world does (help)", flush=True)
        World(port, mounting is not None, options.pose_port).live(options.seconds)
    return 0


def _port(bus: EmulatedBus, link: Path) -> EmulatedPort:
    try:
        return EmulatedPort(bus, link)
    except ConfigError as error:
        raise ConfigError(f"--link: {error}") from None
    except OSError as error:
        raise ConfigError(f"--link is {str(link)!r}: {error.strerror or error}") from None


class World:
    """What happens around the emulated robot."""

    def __init__(self, port: EmulatedPort, has_physics: bool, pose_port: int) -> None:
        self._port, self._bus = port, port.bus
        self._physics, self._pose_port = has_physics, pose_port if has_physics else 0
        self._blind = False
        self._ends = threading.Event()
        self._seen = np.array(self._bus.plant.joint_angle())

    def live(self, seconds: float | None) -> None:
        """Until the time is over, somebody says quit, or a signal comes."""

        def end(number: int, frame: FrameType | None) -> None:
            self._ends.set()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(ValueError):  # not the main thread
                signal.signal(number, end)
        give_up = math.inf if seconds is None else time.monotonic() + seconds
        out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        listening = [sys.stdin] if sys.stdin is not None else []
        with out:
            while not self._ends.is_set() and time.monotonic() < give_up:
                readable: list[Any] = []
                with contextlib.suppress(InterruptedError, ValueError):
                    readable, _, _ = select.select(listening, [], [], 1.0 / _POSE_HZ)
                if readable:
                    line = sys.stdin.readline()
                    if not line:
                        listening = []
                    elif line.strip():
                        print(self.obey(line.split()), flush=True)
                if self._pose_port and not self._blind and not self._bus.unplugged:
                    with contextlib.suppress(OSError):
                        out.sendto(json.dumps(self._pose()).encode(), ("127.0.0.1", self._pose_port))
                self._watch()

    def obey(self, words: list[str]) -> str:
        """Do what a line says; what to answer."""
        try:
            return self._do(words[0], [float(word) for word in words[1:]])
        except (ValueError, IndexError, StopIteration):
            return f"{' '.join(words)}? expected one of\n{_WORLD}"

    def _do(self, what: str, numbers: list[float]) -> str:
        bus = self._bus
        with bus.lock:
            if what in ("dead", "alive"):
                bus.servo(int(numbers[0])).dead = what == "dead"
            elif what == "hot":
                bus.servo(int(numbers[0])).temperature_c = numbers[1]
            elif what in ("jam", "free"):
                self._jam(int(numbers[0]) - 1, what == "jam")
            elif what == "bend":
                self._bend(int(numbers[0]) - 1, math.radians(numbers[1]))
            elif what == "state":
                angles = " ".join(f"{math.degrees(angle):+.0f}" for angle in bus.plant.joint_angle())
                return f"joints [deg]: {angles}; torque on: {sum(servo.torque_on for servo in bus.servos)}"
            elif what in ("blind", "see"):
                self._blind = what == "blind"
            elif what == "help":
                return _WORLD
            elif what not in ("unplug", "plug", "quit"):
                raise ValueError(what)
        if what == "unplug":
            self._port.unplug()
        elif what == "plug":
            self._port.plug()
        elif what == "quit":
            self._ends.set()
        return "done"

    def _jam(self, joint: int, is_jammed: bool) -> None:
        plant: Any = self._bus.plant
        if self._physics:
            plant.jam(joint, is_jammed)
        else:
            plant.blocked[joint] = is_jammed

    def _bend(self, joint: int, angle_rad: float) -> None:
        """Joint -1: all of them, straight."""
        if not self._physics:
            raise ValueError("bend")
        plant: Any = self._bus.plant
        shape = np.zeros_like(plant.joint_angle()) if joint < 0 else np.array(plant.joint_angle())
        if joint >= 0:
            shape[joint] = angle_rad
        plant.bend(shape)

    def _pose(self) -> dict[str, float]:
        with self._bus.lock:
            state = self._bus.plant.robot.state  # type: ignore[attr-defined]
            x, y = state.head_xy[0].tolist()
            angle = float(state.link_angle[0, -1])
        return {"x_m": x, "y_m": y, "angle_rad": angle, "stamp_s": time.monotonic()}

    def _watch(self) -> None:
        """Say what a person would see of a wiggle: one joint that bends while all others rest."""
        with self._bus.lock:
            now = np.array(self._bus.plant.joint_angle())
        moved = np.abs(now - self._seen) > _SEEN_RAD
        if moved.sum() == 1:
            joint = int(np.flatnonzero(moved)[0])
            side = "right" if now[joint] > 0.0 else "left"
            print(f"joint {joint + 1} is bent to the {side}, {abs(math.degrees(now[joint])):.0f} degrees", flush=True)
        if moved.any():
            self._seen = now
