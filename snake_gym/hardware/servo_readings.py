"""What the servos of a chain said last, in the units of the robot: a joint that says nothing keeps its last angle."""

from __future__ import annotations

import math

import numpy as np

from snake_gym.hardware.calibration import Calibration
from snake_gym.hardware.protocol import ServoError
from snake_gym.hardware.registers import BY_NAME
from snake_gym.hardware.safety import ServoHealth
from snake_gym.hardware.servo_bus import BlockRead
from snake_gym.robot.spec import FloatArray

BLOCK = ("present_position", "present_current")
"""First and last register of what ``take`` wants to have been read."""


class ServoReadings:
    """The last readings of J joints."""

    def __init__(self, calibration: Calibration) -> None:
        n = len(calibration.joints)
        self._calibration = calibration
        self.angle: FloatArray = np.zeros(n)
        """(J,) [rad]; of a servo that is silent, or whose encoder is broken, the last one."""
        self.rate: FloatArray = np.zeros(n)
        """(J,) [rad/s]; 0 for such servos."""
        self.steps: FloatArray = np.zeros(n)
        """(J,) positions in counts of the servos."""
        self.stamp_s = -math.inf
        """[s] when somebody answered last."""
        self.health = ServoHealth(np.zeros(n, bool), np.zeros(n, np.uint8), *np.full((5, n), np.nan))

    def take(self, read: BlockRead) -> None:
        """Take note of a reading of ``BLOCK``."""
        ids, calibration = self._calibration.ids, self._calibration
        told = [read.values[one] for one in ids]

        def column(name: str, scale: float) -> FloatArray:
            return np.array([math.nan if one is None else one[f"present_{name}"] * scale for one in told])

        answered = np.array([one is not None for one in told])
        error = np.array([read.errors.get(one, 0) for one in ids], np.uint8)
        seen = answered & (error & ServoError.ENCODER == 0)
        position, rate = column("position", 1.0), calibration.rates(column("speed", 1.0))
        self.steps = np.where(seen, position, self.steps)
        self.angle = np.where(seen, calibration.angles(position), self.angle)
        self.rate = np.where(seen, rate, 0.0)
        scaled = ("load", "temperature", "voltage", "current")
        measured = (column(name, BY_NAME[f"present_{name}"].encoding.scale) for name in scaled)
        self.health = ServoHealth(answered, error, rate, *measured)
        if answered.any():
            self.stamp_s = read.stamp_s
