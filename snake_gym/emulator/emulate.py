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
import select
import shlex
import signal
import socket
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.emulator.port import EmulatedPort
from snake_gym.emulator.pose import EmulatedPose
from snake_gym.emulator.robot import emulate
from snake_gym.hardware.bus.clock import MonotonicClock
from snake_gym.hardware.calibration.calibration import Calibration, load_calibration, straight_chain
from snake_gym.hardware.commands import PROGRAM
from snake_gym.hardware.commands.calibrate import table
from snake_gym.hardware.commands.options import ENDING, add_settings, read_settings
from snake_gym.hardware.robot.key_watch import standard_input
from snake_gym.hardware.robot.run_config import robot_of
from snake_gym.robot.chain import ChainSpec
from snake_gym.robot.spec import FloatArray

_TURN_S = 0.02
"""Time between two poses that are sent, and two looks at wiggles [s]."""
_SEEN_RAD = math.radians(1.0)
"""Least motion of a joint that a person sees."""
_HAND_RAD_S = 2.0
"""Speed of a hand, slow enough for servos to be read on the way."""
_HELD_TURNS = 25
"""Turns for which a hand holds a bent joint."""
_WORLD = """dead N, alive N        servo N dies, comes back
hot N T                servo N has T degrees C
jam N, free N          the joint of servo N is held where it is (its motor stalls), moves again
lift, lower            a spatial robot is held up, free of the ground, put down
bend N DEG             a hand bends limp joint N to DEG degrees and holds it for half a second (all straight: bend 0 0)
unplug, plug           the cable is pulled, put back
blind, see             the pose source loses the robot, finds it again
state                  angles and torque
quit"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_settings(parser)
    add = parser.add_argument
    add("--link", metavar="FILE", help="name of the serial port (default: snake-bus in a temporary folder)")
    add("--mounting", type=int, metavar="SEED", help="servos put on at random, as by hand: calibrate them")
    add("--pose-port", dest="connection.pose.udp_port", type=int, help="UDP port for the true pose; 0: none (47800)")


def mounted_at_random(calibration: Calibration, seed: int) -> Calibration:
    """Return the same joints with horns put on at random (within 45 degrees of the middle, for servos that cannot be
    recentred), and some servos the other way round."""
    rng, turn = np.random.default_rng(seed), calibration.steps_per_turn
    low, high = (0, turn) if calibration.family.recentre_code is not None else (3 * turn // 8, 5 * turn // 8)
    joints = tuple(
        replace(joint, zero_steps=int(rng.integers(low, high)), direction=int(rng.choice([-1, 1])))
        for joint in calibration.joints
    )
    return replace(calibration, joints=joints)


def run(options: argparse.Namespace) -> int:
    port = getattr(options, "connection.port")
    if port is not None:
        raise ConfigError(f"--port is {port!r}; the port of an emulated robot is named by --link")
    if options.mounting is not None and options.mounting < 0:
        raise ConfigError(f"--mounting is {options.mounting}; expected a seed >= 0")
    config = read_settings(options)
    connection, spec = config.connection, robot_of(config)
    mounting = straight_chain(range(1, spec.n_links), spec.joint_limit_rad, connection.servo_model)
    if options.mounting is not None:
        mounting = mounted_at_random(mounting, options.mounting)
    elif connection.calibration is not None:
        mounting = load_calibration(connection.calibration)
    print("physics are made ready; the first time takes up to a minute", flush=True)
    bus = emulate(connection, spec, mounting, MonotonicClock())
    folder = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    with EmulatedPort(bus, options.link or Path(folder) / "snake-bus") as port:
        pose_port = connection.pose.udp_port
        world = World(port, spec, EmulatedPose(bus, connection.emulated), pose_port)
        pose = f", true pose on UDP port {pose_port}: --pose udp_json" if pose_port else ""
        print(f"{table(mounting)}\n{spec.name} on {port.port}{pose}")
        family = mounting.family.name
        example = f"{PROGRAM} scan --port {shlex.quote(port.port)} --baud {connection.baud} --family {family}"
        print(f"try: {example}\nlines on standard input are what the world does (help)", flush=True)
        world.live()
    return 0


class WiggleWatch:
    """What a person sees of a wiggle: to which side the only joint with torque bends, as soon as it moves."""

    def __init__(self, spec: ChainSpec) -> None:
        self._axes = spec.axes()
        self._rest = np.zeros(spec.n_joints)
        self._seen: int | None = None
        """Joint of which the side has been said already."""

    def see(self, joint_angle: FloatArray, has_torque: Sequence[bool]) -> str | None:
        """Return what is seen first at angles (J,) [rad]: a line for people, once a wiggle."""
        on = np.flatnonzero(has_torque)
        if on.size != 1:
            self._rest, self._seen = np.array(joint_angle), None
            return None
        moving = int(on[0])
        way = float(joint_angle[moving] - self._rest[moving])
        if moving == self._seen or abs(way) < _SEEN_RAD:
            return None
        self._seen = moving
        if self._axes[moving] == "pitch":
            return f"joint {moving + 1} bends: what lies behind it goes {'lower' if way > 0.0 else 'higher'}"
        return f"joint {moving + 1} bends to the {'right' if way > 0.0 else 'left'}"


class World:
    """Events around the emulated robot: typed commands, hands that bend joints, and poses that are sent."""

    def __init__(self, port: EmulatedPort, spec: ChainSpec, pose: EmulatedPose, pose_port: int) -> None:
        self._port, self._bus, self._pose, self._pose_port = port, port.bus, pose, pose_port
        self._limit_rad, self._watch = spec.joint_limit_rad, WiggleWatch(spec)
        self._ends = False  # a plain flag, since a signal handler sets it
        self._typed = b""
        for number in ENDING:
            with contextlib.suppress(ValueError):  # not the main thread
                signal.signal(number, lambda *_: setattr(self, "_ends", True))
        self._out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def live(self) -> None:
        """Run until somebody says quit, or a signal comes."""
        source = [standard_input()]
        while not self._ends:
            try:
                readable, _, _ = select.select(source, [], [], _TURN_S)
                if readable and not self._hear(os.read(source[0], 1024)):
                    source = []
            except (OSError, ValueError):  # there is no input
                source = []
            self._look()
        self._out.close()

    def _hear(self, data: bytes) -> bool:
        """Obey the lines that are whole. Return False at the end of the input."""
        *lines, self._typed = (self._typed + (data or b"\n")).split(b"\n")
        for line in lines:
            if words := line.decode(errors="replace").split():
                print(self.obey(words), flush=True)
        return bool(data)

    def obey(self, words: list[str]) -> str:
        """Do what a typed line says. Return the answer."""
        try:
            return self._do(words[0], [float(word) for word in words[1:]])
        except (ValueError, IndexError, StopIteration):
            return f"{' '.join(words)}? expected one of\n{_WORLD}"

    def _do(self, what: str, numbers: list[float]) -> str:
        bus = self._bus
        match what:
            case "help":
                return _WORLD
            case "state":
                with bus.lock:
                    angles = " ".join(f"{math.degrees(angle):+.0f}" for angle in bus.plant.joint_angle())
                    return f"joints [deg]: {angles}; torque on: {sum(servo.torque_on for servo in bus.servos)}"
            case "unplug":
                self._port.unplug()
            case "plug":
                self._port.plug()
            case "dead" | "alive":
                bus.servo(int(numbers[0])).dead = what == "dead"
            case "hot":
                bus.servo(int(numbers[0])).temperature_c = numbers[1]
            case "jam" | "free":
                bus.jam(int(numbers[0]), what == "jam")
            case "bend":
                self._bend(int(numbers[0]), math.radians(numbers[1]))
            case "lift" | "lower":
                if not hasattr(bus.plant, "lift"):
                    return f"{what}: only spatial robots are lifted"
                with bus.lock:
                    bus.plant.lift(what == "lift")
            case "blind" | "see":
                self._pose.lost = what == "blind"
            case "quit":
                self._ends = True
            case _:
                raise ValueError(what)
        return "done"

    def _bend(self, number: int, angle_rad: float) -> None:
        """Let a hand bend limp joint ``number`` (from 1; 0: all of them, straight) to ``angle_rad``, and hold it."""
        servos, plant, step_rad = self._bus.servos, self._bus.plant, _HAND_RAD_S * _TURN_S
        joints = range(len(servos)) if number == 0 else [range(len(servos))[number - 1]]
        goal_rad = 0.0 if number == 0 else min(max(angle_rad, -self._limit_rad), self._limit_rad)
        with self._bus.lock:
            away_rad = np.abs(goal_rad - plant.joint_angle()[joints]).max()
        for _ in range(math.ceil(away_rad / step_rad) + _HELD_TURNS):
            with self._bus.lock:
                shape = np.array(plant.joint_angle())
                limp = [joint for joint in joints if not servos[joint].torque_on]
                shape[limp] += np.clip(goal_rad - shape[limp], -step_rad, step_rad)
                if limp:
                    plant.bend(shape)
            self._look()
            time.sleep(_TURN_S)
            if self._ends:
                break

    def _look(self) -> None:
        """Say what a person sees, and send the pose."""
        with self._bus.lock:
            pose = self._pose.read(time.monotonic())
            seen = self._watch.see(self._bus.plant.joint_angle(), [servo.torque_on for servo in self._bus.servos])
        if seen:
            print(seen, flush=True)
        if self._pose_port and pose.valid and not self._bus.unplugged:
            x, y = pose.xy_w.tolist()
            in_space = {} if pose.up_h is None else {"z_m": pose.z_w, "up": pose.up_h.tolist()}
            datagram = {"x_m": x, "y_m": y, "angle_rad": pose.angle, "stamp_s": pose.stamp_s, **in_space}
            with contextlib.suppress(OSError):
                self._out.sendto(json.dumps(datagram).encode(), ("127.0.0.1", self._pose_port))
