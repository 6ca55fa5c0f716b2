"""Connection to a robot that can be moved, made from settings: port, servos, guard and pose source.

``port`` is a device such as ``/dev/ttyUSB0``, or an emulated robot: ``pty``, servos on a pseudo terminal of this
machine in real time, under the guard like real ones; ``memory``, servos in this process on a clock that runs as fast as
the processor allows. An emulated robot is moved by the project's physics, from the shape and place of ``emulated``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, get_args

from pydantic import Field

from snake_gym.config import ConfigError, Settings, choose
from snake_gym.config.settings import Count, NonNegative, Positive, Share
from snake_gym.hardware.bus.bus import BusPort
from snake_gym.hardware.bus.clock import Clock, MonotonicClock
from snake_gym.hardware.bus.family import OUR_BUS, find_family
from snake_gym.hardware.bus.servo_bus import ServoBus, wire_times
from snake_gym.hardware.calibration.calibration import Calibration, load_calibration, straight_chain
from snake_gym.hardware.guard.checks import SafetyLimits
from snake_gym.hardware.guard.client import Body, GuardedBody
from snake_gym.hardware.guard.cycle_time import too_short
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.guard.servo_body import ServoBody
from snake_gym.hardware.pose.dead_reckoning import DeadReckoning
from snake_gym.hardware.pose.source import EmulatedPose, PoseSource
from snake_gym.hardware.pose.udp_json import UdpJson
from snake_gym.spatial.spec import AnyRobot, SpatialSpec

if TYPE_CHECKING:
    from snake_gym.emulator.bus import EmulatedBus

EMULATED = ("memory", "pty")
PoseKind = Literal["truth", "dead_reckoning", "udp_json", "april_tags"]


class PoseConfig(Settings):
    """Source of the head's pose."""

    kind: PoseKind = "truth"
    """Source of ``snake_gym.hardware.pose``; truth: the plant of an emulated robot."""
    start_xy_m: tuple[float, float] = (0.0, 0.0)
    """Place of the head at the start, for dead_reckoning."""
    start_angle_rad: float = 0.0
    host: str = "127.0.0.1"
    """Address where udp_json listens."""
    udp_port: Annotated[int, Field(ge=0, le=65535)] = 47800
    stale_s: Positive = 0.5
    """Age beyond which a pose is not valid."""
    camera: str | None = None
    """YAML file with camera and tags, for april_tags."""


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
    solid: bool = True
    """False: links pass through each other, as in the simulated envs, where they would stop each other (not with a
    ``plant`` of your own)."""
    lost: Share = 0.0
    """Probability of a lost packet."""
    corrupted: Share = 0.0
    """Probability of a spoiled packet."""
    command_delay_s: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Time by which servos act late on their goals."""
    angle_noise_rad: NonNegative = 0.0
    """Standard deviation of the angles that servos tell."""
    rate_noise_rad_s: NonNegative = 0.0
    """Standard deviation of the rates that servos tell."""
    pose_delay_s: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Age of the poses that are told; with ``pose.kind: truth`` and from ``emulate``."""
    position_noise_m: NonNegative = 0.0
    """Standard deviation of the places that are told, along each axis."""
    heading_noise_rad: NonNegative = 0.0
    """Standard deviation of the directions that are told."""
    seed: Count = 0
    """Seed of faults and noise."""

    def pose_source(self, look: Callable[[], tuple[float, ...]]) -> EmulatedPose:
        """Return the source that tells what ``look`` sees: (x, y) [m] and direction [rad] of the head."""
        return EmulatedPose(look, self.pose_delay_s, self.position_noise_m, self.heading_noise_rad, self.seed)


class ConnectionConfig(Settings):
    """Settings of the connection to the robot."""

    port: str = "memory"
    """Serial device, ``pty`` or ``memory``."""
    baud: int = 1_000_000
    family: str = "feetech"
    """Servo family: the name of a known one, or ``module:NAME``."""
    calibration: str | None = None
    """File that calibrate wrote; None: servos 1, 2, ... from the tail, straight at mid-range (emulated robots only)."""
    servo_model: str = "STS3215"
    """Model of emulated servos without a calibration file."""
    period_s: Positive = 0.02
    """Period of a bus cycle: a reading and the goals of all servos have to fit."""
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

    def stop(self) -> EmergencyStop:
        """Return the emergency stop that the robot obeys."""
        return EmergencyStop(None if self.latch is None else Path(self.latch))


class Connected(NamedTuple):
    """Robot that can be moved."""

    body: Body
    pose: PoseSource
    emulated: EmulatedBus | None
    close: Callable[[], None]


Emulate = Callable[[ConnectionConfig, AnyRobot, Calibration, Clock | None], "EmulatedBus"]
"""Function that makes emulated servos with their robot (``commands.emulated_robot``); clock None: a virtual one."""


def connect(config: ConnectionConfig, limits: SafetyLimits, spec: AnyRobot, emulate: Emulate) -> Connected:
    """Open the connection that the settings name. Raises ConfigError for errors that the user can correct."""
    calibration = _calibration(config, spec).within(spec.joint_limit_rad)
    limits = limits.of_model(calibration.model)
    if limits.max_lost_joints >= max(spec.n_joints, SafetyLimits.max_lost_joints + 1):
        raise ConfigError(
            f"safety.max_lost_joints is {limits.max_lost_joints}; expected fewer than the {spec.n_joints} joints of "
            f"{spec.name}"
        )
    if calibration.family.bus == OUR_BUS:
        cycle = wire_times(spec.n_joints, config.baud, calibration.family)
        complaint = too_short(config.period_s, spec.n_joints, config.baud, cycle)
        if complaint is not None:
            raise ConfigError(complaint)
    if config.period_s > spec.control_dt_s:
        expected = f"expected <= {spec.control_dt_s:g}, the control period of {spec.name}"
        raise ConfigError(f"connection.period_s is {config.period_s:g}; {expected}")
    speed, stop = spec.joints("actuator.speed_limit_rad_s"), config.stop()
    emulated, in_memory = None, config.port == "memory"
    with contextlib.ExitStack() as opened:
        port = BusPort(config.port, config.baud, calibration.family)
        if config.port in EMULATED:
            emulated = emulate(config, spec, calibration, None if in_memory else MonotonicClock())
        if emulated is not None and not in_memory:
            from snake_gym.emulator.port import EmulatedPort

            terminal = EmulatedPort(emulated)
            opened.callback(terminal.close)
            port = port._replace(device=terminal.port)
        pose = make_pose(config, spec, emulated)
        opened.callback(pose.close)
        body: Body
        if in_memory and emulated is not None:
            host = emulated.host_transport
            bus = ServoBus(host(), config.baud, emulated.clock, reopen=host, family=port.family)
            body = ServoBody(bus, calibration, limits, config.period_s, speed, stop)
        else:
            latch, priority = stop.latch, config.priority
            body = GuardedBody(port, calibration, limits, config.period_s, speed, latch, priority, config.heartbeat)
        opened.callback(body.close)
        return Connected(body, pose, emulated, opened.pop_all().close)
    raise AssertionError("the block above returns or raises")  # pragma: no cover


def make_pose(connection: ConnectionConfig, spec: AnyRobot, emulated: EmulatedBus | None) -> PoseSource:
    """Return the pose source that the settings name."""
    config = connection.pose
    kind = choose(config.kind, get_args(PoseKind), "pose.kind")
    if kind == "truth":
        if emulated is None:
            raise ConfigError(
                "pose.kind is 'truth', which only a robot that is emulated in this process tells; expected --pose and "
                f"one of {', '.join(get_args(PoseKind)[1:])} (for a robot of `emulate`: --pose udp_json)"
            )
        bus = emulated

        def look() -> tuple[float, ...]:
            with bus.lock:
                bus.advance_to(bus.clock.now())
                return bus.plant.head_pose()

        return connection.emulated.pose_source(look)
    if kind == "udp_json":
        return UdpJson(config.host, config.udp_port, config.stale_s)
    if kind == "april_tags":
        from snake_gym.hardware.pose.april_tags import open_camera

        return open_camera(config.camera, config.stale_s)
    if isinstance(spec, SpatialSpec):
        raise ConfigError(f"pose.kind is {kind!r}, which knows planar robots; expected udp_json or april_tags")
    return DeadReckoning(spec, config.start_xy_m, config.start_angle_rad)


def _calibration(config: ConnectionConfig, spec: AnyRobot) -> Calibration:
    if config.calibration is not None:
        calibration = load_calibration(config.calibration)
    elif config.port in EMULATED:
        calibration = straight_chain(range(1, spec.n_links), spec.joint_limit_rad, config.servo_model)
    else:
        raise ConfigError("connection.calibration is missing; make it: python -m snake_gym.hardware calibrate")
    check_joints(calibration, spec)
    if calibration.family != find_family(config.family):
        raise ConfigError(
            f"connection.family is {config.family!r}, but {calibration.model} servos are of {calibration.family.name!r}"
        )
    return calibration


def check_joints(calibration: Calibration, spec: AnyRobot) -> None:
    """Raise ConfigError unless the calibration has the robot's joints."""
    if len(calibration.joints) != spec.n_joints:
        raise ConfigError(
            f"the calibration has {len(calibration.joints)} joints; expected {spec.n_joints} ({spec.name})"
        )
