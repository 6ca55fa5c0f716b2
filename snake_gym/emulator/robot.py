"""Emulated servos with the robot behind them, the project's physics or another; both are loaded when it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.hardware.bus.clock import Clock, MonotonicClock
from snake_gym.hardware.bus.family import OUR_BUS
from snake_gym.hardware.calibration.calibration import Calibration
from snake_gym.hardware.pose.source import PoseSource
from snake_gym.hardware.robot.connection import ConnectionConfig
from snake_gym.plugins import load_object
from snake_gym.robot.chain import ChainSpec

if TYPE_CHECKING:
    from snake_gym.emulator.bus import EmulatedBus, ServoPlant

_BEYOND_LIMIT_RAD = 0.1
"""Distance of the mechanical stops beyond the joint limits, for a robot that names none [rad]."""


def emulate(config: ConnectionConfig, spec: ChainSpec, calibration: Calibration, clock: Clock | None) -> EmulatedBus:
    """Return emulated servos as calibrated, with their robot; ``clock`` None: a virtual one. Raises ConfigError."""
    from snake_gym.emulator.bus import EmulatedBus, WireFaults
    from snake_gym.emulator.servo import EmulatedServo, Imprecision

    told = config.emulated
    if calibration.family.bus != OUR_BUS:
        raise ConfigError(f"servos of family {calibration.family.name} cannot be emulated; expected Feetech's packets")
    if spec.actuator.kind == "position" and not np.isfinite(spec.joints("joint_stop_rad")).all():
        spec = spec.with_stops(spec.joint_limit_rad + _BEYOND_LIMIT_RAD)
    shape = np.array(told.joint_angle_rad) if told.joint_angle_rad else None
    if shape is not None and shape.shape != (spec.n_joints,):
        raise ConfigError(f"connection.emulated.joint_angle_rad has {shape.size} numbers; expected {spec.n_joints}")
    make = load_object(told.plant or spec.servo_plant(), "connection.emulated.plant")
    try:
        plant: ServoPlant = make(spec, shape, told.head_angle_rad, told.point_xy_m)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if told.plant is None and hasattr(plant, "is_solid"):
        plant.is_solid = told.solid
    if clock is not None:
        # The first step compiles the physics, which takes seconds: done before the servos' time runs.
        one = np.ones(spec.n_joints)
        plant.advance(0.002, plant.joint_angle().copy(), one > 0.0, one, one)
    servos = []
    for joint, stop_rad in zip(calibration.joints, spec.joints("joint_stop_rad"), strict=True):
        held = joint.held or {}
        zero = joint.zero_steps + held.get("homing_offset", 0)
        stored = {**held, "baud_rate": calibration.family.baud_rates.index(config.baud)}
        servos.append(EmulatedServo(joint.servo_id, calibration.model, zero, joint.direction, stored))
        servos[-1].stop_rad = float(stop_rad)
        servos[-1].imprecision = Imprecision(
            told.command_delay_s, told.angle_noise_rad, told.rate_noise_rad_s, told.seed + joint.servo_id
        )
    faults = WireFaults(lost=told.lost, corrupted=told.corrupted, seed=told.seed)
    return EmulatedBus(servos, plant, clock, faults, config.baud)


class EmulatedRobot:
    """Emulated robot in this process, behind the port ``memory`` or ``pty`` of a connection. Raises ConfigError."""

    def __init__(self, config: ConnectionConfig, spec: ChainSpec, calibration: Calibration) -> None:
        from snake_gym.emulator.port import EmulatedPort

        is_terminal = config.port == "pty"
        self.bus = emulate(config, spec, calibration, MonotonicClock() if is_terminal else None)
        self._config = config.emulated
        self._terminal = EmulatedPort(self.bus) if is_terminal else None

    @property
    def device(self) -> str | None:
        """Serial device that a driver opens; None: the servos are in memory."""
        return None if self._terminal is None else self._terminal.port

    def pose(self) -> PoseSource:
        """Return the source of its pose."""
        from snake_gym.emulator.pose import pose_of

        return pose_of(self.bus, self._config)

    def close(self) -> None:
        """Remove the device."""
        if self._terminal is not None:
            self._terminal.close()
