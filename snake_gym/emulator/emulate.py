"""Command ``emulate``: emulated servos and simulated physics behind a serial port that any driver can open.

The bus behaves like the real one, byte for byte and in real time. The port is a link with a fixed name; the head's true
pose is sent as UDP JSON, as motion capture would (``--pose udp_json``). The command prints what a person would see of a
wiggle. Lines on standard input are events that happen to the robot: ``help`` lists them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shlex
import signal
import socket
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.emulator.bus import EmulatedBus
from snake_gym.emulator.port import EmulatedPort
from snake_gym.emulator.pose import EmulatedPose, pose_of
from snake_gym.emulator.robot import emulate
from snake_gym.emulator.servo import EmulatedServo
from snake_gym.hardware.bus.clock import MonotonicClock
from snake_gym.hardware.bus.family import find_family
from snake_gym.hardware.calibration.calibration import Calibration, load_calibration, straight_chain
from snake_gym.hardware.commands import PROGRAM
from snake_gym.hardware.commands.calibrate import TypedLines, table
from snake_gym.hardware.commands.options import ENDING, add_settings, read_settings
from snake_gym.hardware.robot.key_watch import standard_input
from snake_gym.hardware.robot.run_config import robot_of
from snake_gym.robot.chain import ChainSpec
from snake_gym.robot.spec import FloatArray

_TURNS_HZ = 50.0
"""Rate at which poses are sent and wiggles are looked at."""
_SEEN_RAD = math.radians(1.0)
"""Least motion of a joint that a person sees."""
_HAND_RAD_S = 2.0
"""Speed of a hand, slow enough for servos to be read on the way."""
_HAND_TURNS = 25
"""Turns for which a hand holds a joint that it has bent: half a second."""
_WORLD = """dead N, alive N        servo N dies, comes back
hot N T                servo N has T degrees C
jam N, free N          the joint of servo N is held where it is (its motor stalls), moves again
lift, lower            a spatial robot is held up, free of the ground, put down
bend N DEG             a hand bends limp joint N to DEG degrees, then to those of the next bend (all straight: bend 0 0)
unplug, plug           the cable is pulled, put back
blind, see             the pose source loses the robot, finds it again
state                  angles and torque
quit"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_settings(parser)
    add = parser.add_argument
    add("--link", metavar="FILE", help="name of the serial port (default: snake-bus in a temporary folder)")
    add("--mounting", type=int, metavar="SEED", help="servos put on at random, as by hand: calibrate them")
    add("--single", action="store_true", help="one loose servo, new from the factory (id 1)")
    add("--pose-port", type=int, default=47800, help="UDP port for the true pose; 0: none (%(default)s)")


def mounted_at_random(calibration: Calibration, seed: int) -> Calibration:
    """Return the same joints with horns put on at random, and some servos the other way round."""
    rng = np.random.default_rng(seed)
    joints = tuple(
        replace(joint, zero_steps=int(rng.integers(0, calibration.steps_per_turn)), direction=int(rng.choice([-1, 1])))
        for joint in calibration.joints
    )
    return replace(calibration, joints=joints)


def run(options: argparse.Namespace) -> int:
    port = getattr(options, "connection.port")
    if port is not None:
        raise ConfigError(f"--port is {port!r}; the port of an emulated robot is named by --link")
    if options.mounting is not None and options.mounting < 0:
        raise ConfigError(f"--mounting is {options.mounting}; expected a seed >= 0")
    if not 0 <= options.pose_port <= 65535:
        raise ConfigError(f"--pose-port is {options.pose_port}; expected 1 to 65535, or 0 for none")
    config = read_settings(options)
    connection, spec = config.connection, None if options.single else robot_of(config)
    rates = find_family(connection.family).baud_rates
    said = "one servo"
    if spec is None:
        servo = EmulatedServo(1, connection.servo_model, settings={"baud_rate": rates.index(connection.baud)})
        bus = EmulatedBus([servo], clock=MonotonicClock(), baud=connection.baud)
    else:
        mounting = straight_chain(range(1, spec.n_links), spec.joint_limit_rad, connection.servo_model)
        if options.mounting is not None:
            mounting = mounted_at_random(mounting, options.mounting)
        elif connection.calibration is not None:
            mounting = load_calibration(connection.calibration)
        print("physics are made ready; the first time takes up to a minute", flush=True)
        bus, said = emulate(connection, spec, mounting, MonotonicClock()), f"{table(mounting)}\n{spec.name}"
    folder = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    with EmulatedPort(bus, options.link or Path(folder) / "snake-bus") as port:
        world = World(port, spec, pose_of(bus, connection.emulated), options.pose_port)
        pose_said = (
            f", true pose on UDP port {options.pose_port}: --pose udp_json" if options.pose_port and spec else ""
        )
        print(f"{said} on {port.port}{pose_said}")
        example = f"{PROGRAM} scan --port {shlex.quote(port.port)}"
        example += "" if connection.baud == rates[0] else f" --baud {connection.baud}"
        print(f"try: {example}\nlines on standard input are what the world does (help)", flush=True)
        world.live()
    return 0


class WiggleWatch:
    """What a person sees of a wiggle: to which side the only joint with torque bends, as soon as it moves."""

    def __init__(self, spec: ChainSpec) -> None:
        self._axes = spec.axes()
        self._rest = np.zeros(spec.n_joints)
        self._moving: int | None = None
        self._told = False

    def see(self, joint_angle: FloatArray, has_torque: Sequence[bool]) -> str | None:
        """Return what is seen first at angles (J,) [rad]: a line for people, once a wiggle."""
        on = [joint for joint, one in enumerate(has_torque) if one]
        moving = on[0] if len(on) == 1 else None
        if moving is None:
            self._rest = np.array(joint_angle)
        if moving != self._moving:
            self._moving, self._told = moving, False
        way = 0.0 if moving is None or self._told else float(joint_angle[moving] - self._rest[moving])
        if moving is None or abs(way) < _SEEN_RAD:
            return None
        self._told = True
        if self._axes[moving] == "pitch":
            return f"joint {moving + 1} bends: what lies behind it goes {'lower' if way > 0.0 else 'higher'}"
        return f"joint {moving + 1} bends to the {'right' if way > 0.0 else 'left'}"


class World:
    """Events around the emulated robot: typed commands, hands that bend joints, and poses that are sent.

    Args:
        spec: the robot; None: one loose servo, without pose and hands.
    """

    def __init__(self, port: EmulatedPort, spec: ChainSpec | None, pose: EmulatedPose, pose_port: int) -> None:
        self._port, self._bus, self._pose_source = port, port.bus, pose
        self._most_rad, self._pose_port = 0.0 if spec is None else spec.joint_limit_rad, pose_port if spec else 0
        self._watch = None if spec is None else WiggleWatch(spec)
        self._blind = False
        self._ends = False  # a plain flag, since a signal handler sets it
        for number in ENDING:
            with contextlib.suppress(ValueError):  # not the main thread
                signal.signal(number, lambda *_: setattr(self, "_ends", True))
        self._hand: list[deque[float]] = [deque() for _ in self._bus.servos]  # goals [rad], one a turn of the loop

    def live(self) -> None:
        """Run until somebody says quit, or a signal comes."""
        source, turn_s = standard_input(), 1.0 / _TURNS_HZ
        lines = None if source < 0 else TypedLines(source)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            while not self._ends:
                line = None
                try:
                    if lines is None:
                        time.sleep(turn_s)
                    else:
                        line = lines.next(turn_s)
                except (EOFError, OSError):  # end of the input
                    lines = None
                if line is not None and line.strip():
                    print(self.obey(line.split()), flush=True)
                with self._bus.lock:
                    self._move_hand()
                    pose, angle = self._pose(), np.array(self._bus.plant.joint_angle())
                    seen = self._watch and self._watch.see(angle, [servo.torque_on for servo in self._bus.servos])
                if seen:
                    print(seen, flush=True)
                if self._pose_port and not self._blind and not self._bus.unplugged:
                    with contextlib.suppress(OSError):
                        out.sendto(json.dumps(pose).encode(), ("127.0.0.1", self._pose_port))

    def obey(self, words: list[str]) -> str:
        """Do what a typed line says. Return the answer."""
        try:
            if words[0] in ("unplug", "plug"):  # not under the lock, which the port's own thread takes
                (self._port.unplug if words[0] == "unplug" else self._port.plug)()
                return "done"
            with self._bus.lock:
                return self._do(words[0], [float(word) for word in words[1:]])
        except (ValueError, IndexError, StopIteration):
            return f"{' '.join(words)}? expected one of\n{_WORLD}"

    def _do(self, what: str, numbers: list[float]) -> str:
        bus = self._bus
        match what:
            case "help":
                return _WORLD
            case "state":
                angles = " ".join(f"{math.degrees(angle):+.0f}" for angle in bus.plant.joint_angle())
                return f"joints [deg]: {angles}; torque on: {sum(servo.torque_on for servo in bus.servos)}"
            case "dead" | "alive":
                bus.servo(int(numbers[0])).dead = what == "dead"
            case "hot":
                bus.servo(int(numbers[0])).temperature_c = numbers[1]
            case "jam" | "free":
                bus.jam(int(numbers[0]), what == "jam")
            case "bend":
                self._bend(int(numbers[0]) - 1, math.radians(numbers[1]))
            case "lift" | "lower":
                if not hasattr(bus.plant, "lift"):
                    return f"{what}: only spatial robots are lifted"
                bus.plant.lift(what == "lift")
            case "blind" | "see":
                self._blind = what == "blind"
            case "quit":
                self._ends = True
            case _:
                raise ValueError(what)
        return "done"

    def _bend(self, joint: int, angle_rad: float) -> None:
        """Let a hand bend a joint (from 0) to ``angle_rad``; joint -1: all of them, straight."""
        if not math.isfinite(angle_rad):
            raise ValueError("bend")
        goal = 0.0 if joint < 0 else min(max(angle_rad, -self._most_rad), self._most_rad)
        for hand in self._hand if joint < 0 else [self._hand[joint]]:
            hand.extend([goal] * _HAND_TURNS)

    def _move_hand(self) -> None:
        """Bend the joints that a hand is at by one turn of the loop; it lets go of servos that have torque."""
        if not any(self._hand):
            return
        step_rad = _HAND_RAD_S / _TURNS_HZ
        shape = np.array(self._bus.plant.joint_angle())
        for joint, (hand, servo) in enumerate(zip(self._hand, self._bus.servos, strict=True)):
            if servo.torque_on:
                hand.clear()
            elif hand:
                way = hand[0] - shape[joint]
                shape[joint] += min(max(way, -step_rad), step_rad)
                if abs(way) <= step_rad:
                    hand.popleft()
        self._bus.plant.bend(shape)

    def _pose(self) -> dict[str, Any]:
        pose = self._pose_source.read(time.monotonic())
        x, y = pose.xy_w.tolist()
        in_space = {} if pose.up_h is None else {"z_m": pose.z_w, "up": pose.up_h.tolist()}
        return {"x_m": x, "y_m": y, "angle_rad": pose.angle, "stamp_s": pose.stamp_s, **in_space}
