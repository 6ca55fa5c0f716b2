"""Data of a servo chain for the control loop: joint references in, samples out.

Joint angles are phi_i = theta_i - theta_{i+1} [rad], joint 1 at the tail; ``calibration`` converts servo counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from snake_gym.hardware.bus.bus import BlockRead
from snake_gym.hardware.bus.family import ServoError
from snake_gym.hardware.calibration.calibration import Calibration
from snake_gym.hardware.guard.checks import BoolArray, ServoHealth
from snake_gym.robot.spec import FloatArray


class BringUpError(RuntimeError):
    """Refusal to move the robot; the message has one line for each reason."""


class BodySample(NamedTuple):
    """Latest readings and references of a servo chain."""

    joint_angle: FloatArray
    """(J,) [rad]; the last known angle of a joint that does not answer."""
    joint_rate: FloatArray
    """(J,) [rad/s]; 0 for a joint that does not answer."""
    stamp_s: float
    """Time of the reading [s]."""
    cycle_s: float
    """Time when the last bus cycle began [s]; later than ``stamp_s`` if no servo answered in it."""
    reference: FloatArray
    """(J,) [rad] references after all clamps, as last sent to the servos."""
    clamped: BoolArray
    """(J,) True where that is not what was wanted."""
    lost: BoolArray
    """(J,) joints that no longer answer."""
    health: ServoHealth

    @classmethod
    def of(cls, message: Sequence[Any]) -> BodySample:
        """Return the sample that was sent in a message of the guard."""
        *own, health = message
        columns = [np.array(one) if isinstance(one, list) else one for one in own]
        return cls._make([*columns, ServoHealth(*map(np.array, health))])


class ServoReadings:
    """Latest readings of J joints."""

    def __init__(self, calibration: Calibration) -> None:
        n = len(calibration.joints)
        self._calibration = calibration
        self.angle, self.rate, self.steps = np.zeros((3, n))
        """(J,) [rad], [rad/s] and counts; last values, at rest, of a servo that is silent or has a broken encoder."""
        self.stamp_s = -math.inf
        """Time of the last answer of any servo [s]."""
        self.health = ServoHealth(np.zeros(n, bool), np.zeros(n, np.uint8), *np.full((5, n), np.nan))

    def take(self, read: BlockRead) -> None:
        """Store a reading of ``family.READING``."""
        ids, calibration = self._calibration.ids, self._calibration
        found = [read.values[one] for one in ids]

        def column(name: str, scale: float) -> FloatArray:
            return np.array(
                [math.nan if one is None else one.get(f"present_{name}", math.nan) * scale for one in found]
            )

        answered = np.array([one is not None for one in found])
        error = np.array([read.errors.get(one, 0) for one in ids], np.uint8)
        seen = answered & (error & ServoError.ENCODER == 0)
        position, rate = column("position", 1.0), calibration.rates(column("speed", 1.0))
        self.steps = np.where(seen, position, self.steps)
        self.angle = np.where(seen, calibration.angles(position), self.angle)
        self.rate = np.where(seen, rate, 0.0)
        scales = {one.name: one.encoding.scale for one in calibration.family.registers}
        scaled = ("load", "temperature", "voltage", "current")
        measured = (column(name, scales.get(f"present_{name}", 1.0)) for name in scaled)
        self.health = ServoHealth(answered, error, rate, *measured)
        if answered.any():
            self.stamp_s = read.stamp_s
