"""Emulated servos with a robot behind them: the project's physics, or a plant of the user's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.emulator.bus import EmulatedBus, ServoPlant, WireFaults
from snake_gym.emulator.servo import Imprecision
from snake_gym.emulator.x_servo import emulated_servo
from snake_gym.hardware.bus.clock import Clock
from snake_gym.hardware.bus.family import OUR_BUS
from snake_gym.hardware.calibration.calibration import Calibration
from snake_gym.hardware.robot.connection import ConnectionConfig
from snake_gym.plugins import load_object
from snake_gym.robot.chain import ChainSpec

_BEYOND_LIMIT_RAD = 0.1
"""Distance of the mechanical stops beyond the joint limits, for a robot that names none [rad]."""


def emulate(config: ConnectionConfig, spec: ChainSpec, calibration: Calibration, clock: Clock | None) -> EmulatedBus:
    """Return emulated servos as calibrated, with their robot; ``clock`` None: a virtual one. Raises ConfigError."""
    emulated = config.emulated
    if calibration.family.bus != OUR_BUS:
        raise ConfigError(
            f"servos of family {calibration.family.name} cannot be emulated; expected one without a bus of its own"
        )
    if spec.actuator.kind == "position" and not np.isfinite(spec.joints("joint_stop_rad")).all():
        spec = replace(spec, joint_stop_rad=spec.joint_limit_rad + _BEYOND_LIMIT_RAD)  # type: ignore[call-arg]  # all have it
    shape = np.array(emulated.joint_angle_rad) if emulated.joint_angle_rad else None
    if shape is not None and shape.shape != (spec.n_joints,):
        raise ConfigError(f"connection.emulated.joint_angle_rad has {shape.size} numbers; expected {spec.n_joints}")
    make = load_object(emulated.plant or spec.servo_plant(), "connection.emulated.plant")
    try:
        plant: ServoPlant = make(spec, shape, emulated.head_angle_rad, emulated.point_xy_m)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if clock is not None:
        # The first step compiles the physics, which takes seconds: done before the servos' time runs.
        one = np.ones(spec.n_joints)
        plant.advance(0.002, plant.joint_angle().copy(), one > 0.0, one, one)
    noise = emulated.command_delay_s, emulated.angle_noise_rad, emulated.rate_noise_rad_s
    servos = []
    for joint, stop_rad in zip(calibration.joints, spec.joints("joint_stop_rad"), strict=True):
        held = joint.held or {}
        stored = {**held, "baud_rate": calibration.family.baud_rates.index(config.baud)}
        servos.append(emulated_servo(joint.servo_id, calibration.model, None, joint.direction, stored))
        offset = servos[-1].offset_sign * held.get("homing_offset", 0)
        servos[-1].zero_steps = joint.zero_steps - offset
        servos[-1].stop_rad = float(stop_rad)
        servos[-1].imprecision = Imprecision(*noise, emulated.seed + joint.servo_id)
    faults = WireFaults(lost=emulated.lost, seed=emulated.seed)
    return EmulatedBus(servos, plant, clock, faults, config.baud)
