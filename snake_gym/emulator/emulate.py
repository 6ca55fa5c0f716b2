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
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.emulator.bus import EmulatedBus
from snake_gym.emulator.port import EmulatedPort
from snake_gym.emulator.robot import emulate
from snake_gym.emulator.servo import EmulatedServo
from snake_gym.hardware.bus.clock import MonotonicClock
from snake_gym.hardware.bus.family import find_family
from snake_gym.hardware.calibration.calibration import Calibration, load_calibration, straight_chain
from snake_gym.hardware.commands import PROGRAM
from snake_gym.hardware.commands.calibrate import TypedLines, table
from snake_gym.hardware.commands.options import ENDING, add_settings, read_settings
from snake_gym.hardware.pose.source import EmulatedPose
from snake_gym.hardware.robot.key_watch import standard_input
from snake_gym.hardware.robot.run_config import robot_of
from snake_gym.spatial.spec import SpatialSpec

_POSE_HZ = 50.0
_LAST_PORT = 65535
"""Largest number of a UDP port."""
_SEEN_RAD = math.radians(2.0)
"""Smallest bend that is reported when one joint bends while all others are limp."""
_BACK_RAD = math.radians(1.0)
"""Distance from its start within which a joint has come back."""
_SEEN_AFTER_S = 0.1
"""Time without further bending after which a joint is at its far end."""
_HAND_RAD_S = 2.0
"""Speed at which a hand bends a joint, slow enough for a reader of the servos to follow."""
_HAND_TURNS = 25
"""Turns of the loop for which a hand holds a joint that it has bent: half a second."""
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
    add_settings(parser, pose=False)
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
    if options.port is not None:
        raise ConfigError(f"--port is {options.port!r}; the port of an emulated robot is named by --link")
    if options.mounting is not None and options.mounting < 0:
        raise ConfigError(f"--mounting is {options.mounting}; expected a seed >= 0")
    if not 0 <= options.pose_port <= _LAST_PORT:
        raise ConfigError(f"--pose-port is {options.pose_port}; expected 1 to {_LAST_PORT}, or 0 for none")
    config = read_settings(options)
    connection, spec = config.connection, robot_of(config)
    rates, mounting = find_family(connection.family).baud_rates, None
    if options.single:
        servo = EmulatedServo(1, connection.servo_model, settings={"baud_rate": rates.index(connection.baud)})
        bus = EmulatedBus([servo], clock=MonotonicClock(), baud=connection.baud)
    else:
        if options.mounting is None and connection.calibration is not None:
            mounting = load_calibration(connection.calibration)
        else:
            mounting = straight_chain(range(1, spec.n_links), spec.joint_limit_rad, connection.servo_model)
        if options.mounting is not None:
            mounting = mounted_at_random(mounting, options.mounting)
        print("physics are made ready; the first time takes up to a minute", flush=True)
        bus = emulate(connection, spec, mounting, MonotonicClock())
    folder = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    link = Path(options.link or Path(folder) / "snake-bus")
    if link.exists() and not link.is_symlink():
        raise ConfigError(f"--link is {str(link)!r}, which is no link; expected a free name")
    with _port(bus, link) as port:
        pose = connection.emulated.pose_source(lambda: bus.plant.head_pose())
        world = World(port, None if mounting is None else spec.joint_limit_rad, pose, options.pose_port)
        print(f"{'one servo' if mounting is None else spec.name} on {port.port}", flush=True)
        if mounting is not None:
            print(table(mounting) if options.mounting is not None else f"servos {mounting.joints[0].servo_id} to "
                  f"{mounting.joints[-1].servo_id}, straight at {mounting.joints[0].zero_steps}")  # fmt: skip
            if options.pose_port:
                print(f"true pose to UDP port {options.pose_port}: --pose udp_json")
        example = f"{PROGRAM} scan --port {shlex.quote(port.port)}"
        example += "" if connection.baud == rates[0] else f" --baud {connection.baud}"
        print(f"try: {example}\nlines on standard input are what the world does (help)", flush=True)
        world.live()
    return 0


def _port(bus: EmulatedBus, link: Path) -> EmulatedPort:
    try:
        return EmulatedPort(bus, link)
    except ConfigError as error:
        raise ConfigError(f"--link: {error}") from None
    except OSError as error:
        raise ConfigError(f"--link is {str(link)!r}: {error.strerror or error}") from None


class World:
    """Events around the emulated robot: typed commands, hands that bend joints, and poses that are sent.

    Args:
        most_rad: farthest angle to which a hand bends a joint; None: one loose servo, without robot and pose.
    """

    def __init__(self, port: EmulatedPort, most_rad: float | None, pose: EmulatedPose, pose_port: int) -> None:
        self._port, self._bus, self._pose_source = port, port.bus, pose
        self._most_rad, self._pose_port = most_rad, 0 if most_rad is None else pose_port
        self._blind = False
        self._ends = False  # a plain flag, since a signal handler sets it
        for number in ENDING:
            with contextlib.suppress(ValueError):  # not the main thread
                signal.signal(number, self._end)
        self._hand: list[deque[float]] = [deque() for _ in self._bus.servos]  # goals [rad], one a turn of the loop
        self._rest = np.array(self._bus.plant.joint_angle())
        self._moving: int | None = None
        self._far_rad, self._grown_s, self._told = 0.0, 0.0, False

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._ends = True

    def live(self) -> None:
        """Run until somebody says quit, or a signal comes."""
        source, turn_s = standard_input(), 1.0 / _POSE_HZ
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
                if self._pose_port and not self._blind and not self._bus.unplugged:
                    with contextlib.suppress(OSError):
                        out.sendto(json.dumps(self._pose()).encode(), ("127.0.0.1", self._pose_port))
                self._move_hand()
                self._watch()

    def obey(self, words: list[str]) -> str:
        """Do what a typed line says. Return the answer."""
        try:
            return self._do(words[0], [float(word) for word in words[1:]])
        except (ValueError, IndexError, StopIteration):
            return f"{' '.join(words)}? expected one of\n{_WORLD}"

    def _do(self, what: str, numbers: list[float]) -> str:
        if what in ("unplug", "plug"):
            (self._port.unplug if what == "unplug" else self._port.plug)()
            return "done"
        if what == "help":
            return _WORLD
        with self._bus.lock:
            if what == "state":
                angles = " ".join(f"{math.degrees(angle):+.0f}" for angle in self._bus.plant.joint_angle())
                return f"joints [deg]: {angles}; torque on: {sum(servo.torque_on for servo in self._bus.servos)}"
            if what in ("dead", "alive"):
                self._bus.servo(int(numbers[0])).dead = what == "dead"
            elif what == "hot":
                self._bus.servo(int(numbers[0])).temperature_c = numbers[1]
            elif what in ("jam", "free"):
                self._bus.jam(int(numbers[0]), what == "jam")
            elif what == "bend":
                self._bend(int(numbers[0]) - 1, math.radians(numbers[1]))
            elif what in ("lift", "lower"):
                lift = getattr(self._bus.plant, "lift", None)
                if lift is None:
                    return f"{what}: only spatial robots are lifted"
                lift(what == "lift")
            elif what in ("blind", "see"):
                self._blind = what == "blind"
            elif what == "quit":
                self._ends = True
            else:
                raise ValueError(what)
        return "done"

    def _bend(self, joint: int, angle_rad: float) -> None:
        """Let a hand bend a joint (from 0) to ``angle_rad``; joint -1: all of them, straight."""
        if self._most_rad is None or not math.isfinite(angle_rad):
            raise ValueError("bend")
        most = self._most_rad
        for hand in self._hand if joint < 0 else [self._hand[joint]]:
            hand.extend([0.0 if joint < 0 else min(max(angle_rad, -most), most)] * _HAND_TURNS)

    def _move_hand(self) -> None:
        """Bend the joints that a hand is at by one turn of the loop; it lets go of servos that have torque."""
        if not any(self._hand):
            return
        plant = self._bus.plant
        step_rad = _HAND_RAD_S / _POSE_HZ
        with self._bus.lock:
            shape = np.array(plant.joint_angle())
            for joint, (hand, servo) in enumerate(zip(self._hand, self._bus.servos, strict=True)):
                if servo.torque_on:
                    hand.clear()
                elif hand:
                    way = hand[0] - shape[joint]
                    shape[joint] += min(max(way, -step_rad), step_rad)
                    if abs(way) <= step_rad:
                        hand.popleft()
            plant.bend(shape)

    def _pose(self) -> dict[str, Any]:
        with self._bus.lock:
            pose = self._pose_source.read(time.monotonic())
        x, y = pose.xy_w.tolist()
        in_space = {} if pose.up_h is None else {"z_m": pose.z_w, "up": pose.up_h.tolist()}
        return {"x_m": x, "y_m": y, "angle_rad": pose.angle, "stamp_s": pose.stamp_s, **in_space}

    def _watch(self) -> None:
        """Print what a person would see of a wiggle, at its far end: one joint that bends while all others are limp."""
        with self._bus.lock:
            now = np.array(self._bus.plant.joint_angle())
            on = [joint for joint, servo in enumerate(self._bus.servos) if servo.torque_on]
        if len(on) != 1 or (self._moving is not None and on[0] != self._moving):
            self._tell_far_end()
            self._rest, self._moving = now, None
            return
        self._moving = on[0]
        way = float(now[on[0]] - self._rest[on[0]])
        if abs(way) < _BACK_RAD:
            self._tell_far_end()
        elif abs(way) > abs(self._far_rad):
            self._far_rad, self._grown_s = way, time.monotonic()
        elif time.monotonic() - self._grown_s >= _SEEN_AFTER_S:
            self._tell_far_end(keep=True)

    def _tell_far_end(self, keep: bool = False) -> None:
        """Print how far the joint has bent, once a wiggle; ``keep``: it may still be there."""
        if self._moving is not None and not self._told and abs(self._far_rad) >= _SEEN_RAD:
            spec = getattr(self._bus.plant, "spec", None)
            positive, degrees = self._far_rad > 0.0, abs(math.degrees(self._far_rad))
            told = f"is bent to the {'right' if positive else 'left'}"
            if isinstance(spec, SpatialSpec) and spec.axes()[self._moving] == "pitch":
                told = f"is bent: what lies behind it is {'lower' if positive else 'higher'}"
            print(f"joint {self._moving + 1} {told}, {degrees:.0f} degrees", flush=True)
            self._told = True
        if not keep:
            self._far_rad, self._told = 0.0, False
