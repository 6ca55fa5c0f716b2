"""A servo chain as the control loop sees it: joint references in, samples out.

Joint angles are phi_i = theta_i - theta_{i+1} [rad], joint 1 at the tail; what the servos count is in ``calibration``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from snake_gym.hardware.bus.protocol import ServoError
from snake_gym.hardware.bus.servo_bus import BlockRead
from snake_gym.hardware.calibration.calibration import Calibration
from snake_gym.hardware.safety.checks import BoolArray, ServoHealth
from snake_gym.robot.spec import FloatArray

PORT_AWAY = "the port is gone"
"""News; until it is back the last reading is told again in every cycle."""


class BringUpError(RuntimeError):
    """The robot may not move: why, one line for each thing that is wrong."""


class BodySample(NamedTuple):
    """What the servos said last."""

    joint_angle: FloatArray
    """(J,) [rad]; of a joint that does not answer, the last one."""
    joint_rate: FloatArray
    """(J,) [rad/s]; 0 for a joint that does not answer."""
    stamp_s: float
    """Time when it was read [s]."""
    cycle_s: float
    """Time when the last bus cycle began [s]: later than ``stamp_s`` where nobody answered in it."""
    reference: FloatArray
    """(J,) [rad] what was really asked of the servos last."""
    clamped: BoolArray
    """(J,) where that is not what was wanted."""
    lost: BoolArray
    """(J,) joints that no longer answer."""
    health: ServoHealth


class ServoReadings:
    """The last readings of J joints."""

    def __init__(self, calibration: Calibration) -> None:
        n = len(calibration.joints)
        self._calibration = calibration
        self.angle, self.rate, self.steps = np.zeros((3, n))
        """(J,) [rad], [rad/s] and counts; of a servo that is silent or has a broken encoder the last one, at rest."""
        self.stamp_s = -math.inf
        """Time when somebody answered last [s]."""
        self.health = ServoHealth(np.zeros(n, bool), np.zeros(n, np.uint8), *np.full((5, n), np.nan))

    def take(self, read: BlockRead) -> None:
        """Take note of a reading of ``family.READING``."""
        ids, calibration = self._calibration.ids, self._calibration
        told = [read.values[one] for one in ids]

        def column(name: str, scale: float) -> FloatArray:
            return np.array([math.nan if one is None else one.get(f"present_{name}", math.nan) * scale for one in told])

        answered = np.array([one is not None for one in told])
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
