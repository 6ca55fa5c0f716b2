"""Connection to a robot that can be moved, made from settings: port, servos, guard and pose source.

``port`` is a device such as ``/dev/ttyUSB0``, or an emulated robot: ``pty``, servos on a pseudo terminal of this
machine in real time, under the guard like real ones; ``memory``, servos in this process on a clock that runs as fast as
the processor allows. An emulated robot is moved by the project's physics, from the shape and place of ``emulated``.
``body`` names joints of the user's own instead of a port.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import field
from importlib import import_module
from typing import Annotated, Any, NamedTuple, cast

import numpy as np
from pydantic import Field

from snake_gym.config import ConfigError, Settings, choose
from snake_gym.config.settings import Count, NonNegative, Positive, Share
from snake_gym.hardware.bus.bus import BusPort
from snake_gym.hardware.bus.clock import MonotonicClock
from snake_gym.hardware.bus.family import find_family
from snake_gym.hardware.bus.servo_bus import ServoBus
from snake_gym.hardware.calibration.calibration import Calibration, load_calibration, straight_chain
from snake_gym.hardware.guard.checks import SafetyLimits
from snake_gym.hardware.guard.client import Body, GuardedBody
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.guard.own_body import OwnBody
from snake_gym.hardware.guard.servo_body import ServoBody
from snake_gym.hardware.pose.dead_reckoning import DeadReckoning
from snake_gym.hardware.pose.source import PoseSource
from snake_gym.hardware.pose.udp_json import UdpJson
from snake_gym.plugins import load_object
from snake_gym.robot.chain import ChainSpec
from snake_gym.robot.spec import RobotSpec

EMULATED = ("memory", "pty")
"""Ports of robots that are emulated in this process."""
POSE_KINDS = ("truth", "dead_reckoning", "udp_json", "april_tags")


class PoseConfig(Settings):
    """Source of the head's pose."""

    kind: str = "truth"
    """truth, of an emulated robot's plant; dead_reckoning, udp_json or april_tags; or ``module:NAME`` of a source of
    your own."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """Arguments of a source of your own, made as ``NAME(robot, **arguments)``."""
    host: str = "127.0.0.1"
    """Address where udp_json listens."""
    udp_port: Annotated[int, Field(ge=0, le=65535)] = 47800
    stale_s: Positive = 0.5
    """Age beyond which a pose is not valid."""
    camera: str | None = None
    """YAML file with camera and tags, for april_tags."""

    def check(self) -> None:
        if ":" not in self.kind:
            choose(self.kind, (*POSE_KINDS, "module:NAME"), "kind")
        if self.kind == "april_tags" and self.camera is None:
            raise ValueError("camera is missing; expected a YAML file with camera and tags")


class EmulatedConfig(Settings):
    """Settings of the emulated robot."""

    joint_angle_rad: tuple[float, ...] = ()
    """Shape at the start; empty: straight."""
    head_angle_rad: float = 0.0
    point_xy_m: tuple[float, float] = (0.0, 0.0)
    """Place of the head at the start."""
    plant: str | None = None
    """Robot behind the servos: None, the project's physics, or ``module:NAME`` of a class that is made as
    ``simulation.servo_plant.RobotPlant`` is, from (robot, shape, head's angle, head's place)."""
    lost: Share = 0.0
    """Probability of a lost packet."""
    command_delay_s: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Time by which servos act late on their goals."""
    angle_noise_rad: NonNegative = 0.0
    """Standard deviation of the measured angles."""
    rate_noise_rad_s: NonNegative = 0.0
    """Standard deviation of the measured rates."""
    pose_delay_s: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Age of the poses, with ``pose.kind: truth`` and from ``emulate``."""
    position_noise_m: NonNegative = 0.0
    """Standard deviation of the places, along each axis."""
    heading_noise_rad: NonNegative = 0.0
    """Standard deviation of the directions."""
    seed: Count = 0
    """Seed of faults and noise."""


class ConnectionConfig(Settings):
    """Settings of the connection to the robot."""

    port: str = "memory"
    """Serial device, ``pty`` or ``memory``."""
    baud: int = 1_000_000
    body: str | None = None
    """Joints of your own in place of a port: ``module:NAME`` of a class of ``guard.own_body.Joints``; None: servos."""
    body_arguments: dict[str, Any] = field(default_factory=dict)
    """Arguments of ``body``, made as ``NAME(robot, **body_arguments)``."""
    family: str = "feetech"
    """Servo family: the name of a known one, or ``module:NAME``."""
    calibration: str | None = None
    """File that calibrate wrote; None: servos 1, 2, ... from the tail, straight at mid-range (emulated robots only)."""
    servo_model: str = "STS3215"
    """Model of emulated servos without a calibration file."""
    period_s: Positive = 0.02
    """Period of a bus cycle: a reading and the goals of all servos have to fit."""
    latency_s: Positive | None = None
    """Longest delay of an answer by adapter and system; None: as measured."""
    priority: Annotated[int, Field(ge=0, le=99)] = 10
    """Real-time priority of the guard process, where the system allows it; 0: none."""
    latch: str | None = None
    """File of the emergency stop; None: this user's default."""
    heartbeat: str | None = None
    """Serial device of a board that takes the servos' supply away where nobody is in charge; None: there is none."""
    pose: PoseConfig = field(default_factory=PoseConfig)
    emulated: EmulatedConfig = field(default_factory=EmulatedConfig)

    def check(self) -> None:
        choose(str(self.baud), map(str, find_family(self.family).baud_rates), "baud")
        if self.heartbeat is not None and self.port == "memory":
            raise ValueError("heartbeat is set, but port is 'memory', which has no supply; expected a device, or pty")

    @property
    def place(self) -> str:
        """What is connected, for people."""
        return self.body or self.port + (" (emulated)" if self.port in EMULATED else "")

    def stop(self) -> EmergencyStop:
        """Return the emergency stop that the robot obeys."""
        return EmergencyStop(self.latch)


class Connected(NamedTuple):
    """Robot that can be moved."""

    body: Body
    pose: PoseSource
    emulated: Any
    """Emulated bus (``snake_gym.emulator``); None: the robot is real, or emulated elsewhere."""
    close: Callable[[], None]


def connect(config: ConnectionConfig, limits: SafetyLimits, spec: ChainSpec) -> Connected:
    """Open the connection that the settings name. Raises ConfigError for errors that the user can correct."""
    if limits.max_lost_joints >= max(spec.n_joints, SafetyLimits.max_lost_joints + 1):
        raise ConfigError(
            f"safety.max_lost_joints is {limits.max_lost_joints}; expected fewer than the {spec.n_joints} joints of "
            f"{spec.name}"
        )
    if config.period_s > spec.control_dt_s:
        expected = f"expected <= {spec.control_dt_s:g}, the control period of {spec.name}"
        raise ConfigError(f"connection.period_s is {config.period_s:g}; {expected}")
    stop, device = config.stop(), config.port
    robot: Any = None
    body: Body
    with contextlib.ExitStack() as opened:
        if config.body is not None:
            pose = make_pose(config, spec)
            opened.callback(pose.close)
            joints = load_object(config.body, "connection.body")(spec, **config.body_arguments)
            reach = np.full(spec.n_joints, spec.joint_limit_rad)
            body = OwnBody(joints, config.body, reach, limits, config.period_s, stop)
            opened.callback(body.close)
            return Connected(body, pose, None, opened.pop_all().close)
        calibration, speed = _calibration(config, spec), spec.joints("actuator.speed_limit_rad_s")
        limits = limits.of_model(calibration.model)
        if config.port in EMULATED:  # the emulator is loaded for these ports alone
            clock = MonotonicClock() if config.port == "pty" else None
            robot = import_module("snake_gym.emulator.robot").emulate(config, spec, calibration, clock)
        if config.port == "pty":
            terminal = opened.enter_context(import_module("snake_gym.emulator.port").EmulatedPort(robot))
            device = terminal.port
        pose = make_pose(config, spec, robot)
        opened.callback(pose.close)
        if config.port == "memory":
            host, family = robot.host_transport, calibration.family
            bus = ServoBus(host(), config.baud, robot.clock, reopen=host, family=family)
            body = ServoBody(bus, calibration, limits, config.period_s, speed, stop)
        else:
            port = BusPort(device, config.baud, calibration.family, config.latency_s)
            latch, priority = stop.latch, config.priority
            body = GuardedBody(port, calibration, limits, config.period_s, speed, latch, priority, config.heartbeat)
        opened.callback(body.close)
        return Connected(body, pose, robot, opened.pop_all().close)
    raise AssertionError("the block above returns or raises")  # pragma: no cover


def make_pose(connection: ConnectionConfig, spec: ChainSpec, emulated: Any = None) -> PoseSource:
    """Return the pose source that the settings name; ``emulated``: the bus that is emulated in this process."""
    config, kind = connection.pose, connection.pose.kind
    if ":" in kind:
        source: PoseSource = load_object(kind, "pose.kind")(spec, **config.arguments)
        return source
    if kind == "truth":
        if emulated is None:
            raise ConfigError(
                "pose.kind is 'truth', which only a robot that is emulated in this process tells; expected --pose and "
                f"one of {', '.join(POSE_KINDS[1:])} (for a robot of `emulate`: --pose udp_json)"
            )
        truth: PoseSource = import_module("snake_gym.emulator.pose").EmulatedPose(emulated, connection.emulated)
        return truth
    if kind == "udp_json":
        return UdpJson(config.host, config.udp_port, config.stale_s)
    if kind == "april_tags":
        from snake_gym.hardware.pose.april_tags import CameraPose, load_camera

        return CameraPose(load_camera(str(config.camera)), config.stale_s)
    if spec.in_space:
        raise ConfigError(f"pose.kind is {kind!r}, which knows planar robots; expected udp_json or april_tags")
    return DeadReckoning(cast(RobotSpec, spec))


def _calibration(config: ConnectionConfig, spec: ChainSpec) -> Calibration:
    """Return the calibration that the settings name, within the robot's joint limit. Raises ConfigError."""
    if config.calibration is not None:
        calibration = load_calibration(config.calibration)
    elif config.port in EMULATED:
        calibration = straight_chain(range(1, spec.n_links), spec.joint_limit_rad, config.servo_model)
    else:
        raise ConfigError("connection.calibration is missing; make it: python -m snake_gym.hardware calibrate")
    if len(calibration.joints) != spec.n_joints:
        raise ConfigError(
            f"the calibration has {len(calibration.joints)} joints; expected {spec.n_joints} ({spec.name})"
        )
    if calibration.family != find_family(config.family):
        raise ConfigError(
            f"connection.family is {config.family!r}, but {calibration.model} servos are of {calibration.family.name!r}"
        )
    return calibration.within(spec.joint_limit_rad)
