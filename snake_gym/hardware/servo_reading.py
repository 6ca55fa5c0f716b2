"""What a reading of all servos says about the joints: counts become radians, shares, degrees, volts and amperes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from snake_gym.hardware.calibration import Calibration
from snake_gym.hardware.registers import BY_NAME
from snake_gym.hardware.safety import ServoHealth
from snake_gym.hardware.servo_bus import BlockRead
from snake_gym.robot.spec import FloatArray

FIRST, LAST = "present_position", "present_current"
"""Registers of the block that is read."""


class ServoReading(NamedTuple):
    """One reading of J joints; NaN where a servo did not answer."""

    steps: FloatArray
    """(J,) present positions as the servos count them."""
    angle: FloatArray
    """(J,) [rad]."""
    health: ServoHealth


def interpret(read: BlockRead, calibration: Calibration) -> ServoReading:
    """The joints in a reading from FIRST to LAST."""
    values = [read.values[one] for one in calibration.ids]

    def column(name: str) -> FloatArray:
        return np.array([math.nan if one is None else float(one[name]) for one in values])

    measured = [
        column(name) * BY_NAME[name].encoding.scale
        for name in ("present_load", "present_temperature", "present_voltage", "present_current")
    ]
    answered = np.array([one is not None for one in values])
    error = np.array([read.errors.get(one, 0) for one in calibration.ids], np.uint8)
    steps = column("present_position")
    health = ServoHealth(answered, error, calibration.rates(column("present_speed")), *measured)
    return ServoReading(steps, calibration.angles(steps), health)
