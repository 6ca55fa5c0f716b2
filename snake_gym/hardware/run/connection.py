"""From settings to a robot that can be moved: port, servos, guard and pose source.

``port`` is a device such as ``/dev/ttyUSB0``, or an emulated robot: ``pty``, servos on a pseudo terminal of this
machine in real time, under the guard like real ones; ``memory``, servos in this process on a clock that runs as fast as
the processor allows. An emulated robot is moved by the project's physics, from the shape and place of ``emulated``.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np

from snake_gym.config import ConfigError, choose
from snake_gym.hardware.bus.clock import Clock, MonotonicClock
from snake_gym.hardware.bus.registers import BAUD_RATES
from snake_gym.hardware.bus.servo_bus import FeetechBus
from snake_gym.hardware.bus.transport import PortGone, SerialTransport
from snake_gym.hardware.calibration.calibration import Calibration, load_calibration, straight_chain
from snake_gym.hardware.emulator.bus import EmulatedBus, EmulatedServo, WireFaults
from snake_gym.hardware.pose.dead_reckoning import DeadReckoning
from snake_gym.hardware.pose.serial_imu import SerialImu
from snake_gym.hardware.pose.source import EmulatedPose, PoseSource
from snake_gym.hardware.pose.udp_json import UdpJson
from snake_gym.hardware.safety import guard as scheduling
from snake_gym.hardware.safety.body import Body
from snake_gym.hardware.safety.checks import SafetyLimits
from snake_gym.hardware.safety.cycle_time import too_short
from snake_gym.hardware.safety.emergency_stop import EmergencyStop
from snake_gym.hardware.safety.guarded_body import GuardedBody
from snake_gym.hardware.safety.servo_body import ServoBody, WatchedBody
from snake_gym.hardware.safety.torque_off import TorqueWatch
from snake_gym.robot.spec import RobotSpec

EMULATED = ("memory", "pty")
PoseKind = Literal["truth", "dead_reckoning", "serial_imu", "udp_json", "april_tags"]


@dataclass(frozen=True)
class PoseConfig:
    """Where the head's pose comes from."""

    kind: PoseKind = "truth"
    """truth: of an emulated robot; else a source of ``snake_gym.hardware.pose``."""
    start_xy_m: tuple[float, float] = (0.0, 0.0)
    """Where the head is at first, for dead_reckoning and serial_imu."""
    start_angle_rad: float = 0.0
    host: str = "127.0.0.1"
    """udp_json: where to listen."""
    udp_port: int = 47800
    imu_port: str = "/dev/ttyUSB1"
    imu_direction: int = -1
    """serial_imu: -1 where its yaw grows clockwise seen from above."""
    stale_s: float = 0.5
    """An older pose is not valid."""
    camera: str | None = None
    """april_tags: YAML file with camera and tags."""


@dataclass(frozen=True)
class EmulatedConfig:
    """The emulated robot."""

    joint_angle_rad: tuple[float, ...] = ()
    """Shape at the start; empty: straight."""
    head_angle_rad: float = 0.0
    point_xy_m: tuple[float, float] = (0.0, 0.0)
    """Where the head is at the start."""
    lost: float = 0.0
    """Probability of a lost packet."""
    corrupted: float = 0.0
    """Probability of a spoiled packet."""
    seed: int = 0
    """Of what happens on the wire."""


@dataclass(frozen=True)
class ConnectionConfig:
    """How to get at the robot."""

    port: str = "memory"
    """A serial device, ``pty`` or ``memory``."""
    baud: int = 1_000_000
    calibration: str | None = None
    """File that calibrate wrote; None: servos 1, 2, ... from the tail, straight at 2048 (emulated robots only)."""
    servo_model: str = "STS3215"
    """Of emulated servos without a calibration file."""
    period_s: float = 0.02
    """Of a bus cycle: a reading and the goals of all servos have to fit."""
    guarded: bool = True
    """The port belongs to a guard process (not with ``memory``)."""
    priority: int = 10
    """Real-time priority of the guard process, 1 to 99, where the system allows it; 0: none."""
    latch: str | None = None
    """File of the emergency stop; None: this machine's default."""
    pose: PoseConfig = field(default_factory=PoseConfig)
    emulated: EmulatedConfig = field(default_factory=EmulatedConfig)

    def __post_init__(self) -> None:
        if self.baud not in BAUD_RATES:
            near = min(BAUD_RATES, key=lambda rate: abs(rate - self.baud))
            raise ValueError(f"connection.baud is {self.baud}; expected one of {BAUD_RATES} (nearest: {near})")
        if not (math.isfinite(self.period_s) and self.period_s > 0.0):
            raise ValueError(f"connection.period_s is {self.period_s:g}; expected finite and > 0")
        if not scheduling.NONE <= self.priority <= scheduling.HIGHEST:
            raise ValueError(f"connection.priority is {self.priority}; expected 0 to {scheduling.HIGHEST}")


class Connected(NamedTuple):
    """A robot that can be moved."""

    body: Body
    pose: PoseSource
    emulated: EmulatedBus | None
    close: Callable[[], None]


def connect(config: ConnectionConfig, limits: SafetyLimits, spec: RobotSpec) -> Connected:
    """Open what the settings name. Raises ConfigError for what the user has to correct."""
    calibration = _calibration(config, spec)
    _check_period(config, spec)
    closing: list[Callable[[], None]] = []
    emulated, port = None, config.port
    clock: Clock = MonotonicClock()
    if port in EMULATED:
        emulated = emulate(config, spec, calibration, None if port == "memory" else clock)
        clock = emulated.clock
        if port == "pty":
            from snake_gym.hardware.emulator.port import EmulatedPort

            terminal = EmulatedPort(emulated)
            closing.append(terminal.close)
            port = terminal.port
    speed = spec.joints("actuator.speed_limit_rad_s")
    latch = Path(config.latch) if config.latch is not None else None
    try:
        pose = make_pose(config.pose, spec, emulated)
        closing.append(pose.close)
        body: Body
        if config.guarded and config.port != "memory":
            body = GuardedBody(port, config.baud, calibration, limits, config.period_s, speed, latch, config.priority)
            closing.append(body.close)
        else:
            stop, bus = EmergencyStop(latch), _open_bus(config, port, emulated, clock)
            closing.append(bus.close)
            settings = (bus, calibration, limits, clock, config.period_s, speed, stop)
            if config.port == "memory":
                body = ServoBody(*settings)
            else:
                watcher = watch(port, config.baud, calibration.ids, stop, "run")
                closing.insert(0, watcher.close)
                body = WatchedBody(*settings, trouble=watcher.trouble)
            closing.append(body.close)
    except BaseException:
        for one in reversed(closing):
            one()
        raise

    def close() -> None:
        with contextlib.ExitStack() as rest:  # each of them, whatever becomes of the others
            for one in closing:
                rest.callback(one)

    return Connected(body, pose, emulated, close)


def watch(port: str, baud: int, ids: Sequence[int], stop: EmergencyStop, what: str) -> TorqueWatch:
    """A process that switches the torque off if this one dies. Raises ConfigError: it does not start."""
    try:
        return TorqueWatch(port, baud, ids, stop, what)
    except OSError as error:
        raise ConfigError(f"nothing is moved, since nobody would switch the torque off: {error}") from None


def emulate(config: ConnectionConfig, spec: RobotSpec, calibration: Calibration, clock: Clock | None) -> EmulatedBus:
    """Emulated servos as calibrated, behind them the robot on the project's physics; ``clock`` None: a virtual one."""
    from snake_gym.simulation.servo_plant import PhysicsPlant

    told = config.emulated
    shape = np.array(told.joint_angle_rad) if told.joint_angle_rad else None
    if shape is not None and shape.shape != (spec.n_joints,):
        raise ConfigError(f"connection.emulated.joint_angle_rad has {shape.size} numbers; expected {spec.n_joints}")
    try:
        plant = PhysicsPlant(spec, shape, told.head_angle_rad, told.point_xy_m)
        faults = WireFaults(lost=told.lost, corrupted=told.corrupted, seed=told.seed)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if clock is not None:
        # The first step compiles the physics, which takes seconds: not once the servos' time runs.
        one = np.ones(spec.n_joints)
        plant.advance(0.002, plant.joint_angle().copy(), one > 0.0, one, one)
    servos = []
    for joint in calibration.joints:
        held = {} if joint.held is None else asdict(joint.held)
        zero = joint.zero_steps + held.get("homing_offset", 0)
        stored = {**held, "baud_rate": BAUD_RATES.index(config.baud)}
        servos.append(EmulatedServo(joint.servo_id, calibration.model, zero, joint.direction, stored))
    return EmulatedBus(servos, plant, clock, faults, config.baud)


def make_pose(config: PoseConfig, spec: RobotSpec, emulated: EmulatedBus | None) -> PoseSource:
    """The pose source that the settings name."""
    kind = choose(config.kind, get_args(PoseKind), "pose.kind")
    if kind == "truth":
        if emulated is None:
            others = ", ".join(other for other in get_args(PoseKind) if other != kind)
            raise ConfigError(
                "pose.kind is 'truth', which only a robot that is emulated in this process tells; "
                f"expected --pose and one of {others} (for a robot of `emulate`: --pose udp_json)"
            )
        return EmulatedPose(lambda: _true_pose(emulated))
    if kind == "udp_json":
        return UdpJson(config.host, config.udp_port, config.stale_s)
    if kind == "april_tags":
        from snake_gym.hardware.pose.april_tags import open_camera

        return open_camera(config.camera, config.stale_s)
    reckoning = DeadReckoning(spec, config.start_xy_m, config.start_angle_rad)
    if kind == "dead_reckoning":
        return reckoning
    try:
        return SerialImu(SerialTransport(config.imu_port, 115_200), reckoning, config.stale_s, config.imu_direction)
    except PortGone as error:
        raise ConfigError(f"pose.imu_port: {error}") from None


def _calibration(config: ConnectionConfig, spec: RobotSpec) -> Calibration:
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
    return calibration


def _check_period(config: ConnectionConfig, spec: RobotSpec) -> None:
    complaint = too_short(config.period_s, spec.n_joints, config.baud)
    if complaint is not None:
        raise ConfigError(complaint)
    if config.period_s > spec.control_dt_s:
        raise ConfigError(
            f"connection.period_s is {config.period_s:g}; expected <= {spec.control_dt_s:g}, "
            f"the control period of {spec.name}"
        )


def _open_bus(config: ConnectionConfig, port: str, emulated: EmulatedBus | None, clock: Clock) -> FeetechBus:
    if emulated is not None and config.port == "memory":
        return FeetechBus(emulated.host_transport(), config.baud, clock, reopen=emulated.host_transport)
    try:
        transport = SerialTransport(port, config.baud)
    except PortGone as error:
        raise ConfigError(f"connection.port: {error}") from None
    return FeetechBus(transport, config.baud, clock, reopen=lambda: SerialTransport(port, config.baud))


def _true_pose(emulated: EmulatedBus) -> tuple[float, float, float]:
    with emulated.lock:
        emulated.advance_to(emulated.clock.now())
        state = emulated.plant.robot.state  # type: ignore[attr-defined]
        return float(state.head_xy[0, 0]), float(state.head_xy[0, 1]), float(state.link_angle[0, -1])
