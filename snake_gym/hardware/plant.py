"""The joints behind emulated servos: what a plant has to offer, and a simple one.

The robot itself, on the project's physics, is ``snake_gym.simulation.servo_plant``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class ServoPlant(Protocol):
    """The joints behind the servos. J joints, in the order of the servos."""

    def advance(
        self,
        dt_s: float,
        target_rad: FloatArray,
        enabled: NDArray[np.bool_],
        torque_limit: FloatArray,
        speed_limit_rad_s: FloatArray,
    ) -> None:
        """Let ``dt_s`` pass under constant commands.

        Args:
            target_rad: (J,) joint angles that the motors aim at [rad].
            enabled: (J,) False: no torque, the joint is free.
            torque_limit: (J,) share of the stall torque.
            speed_limit_rad_s: (J,) [rad/s].
        """
        ...

    def joint_angle(self) -> FloatArray:
        """(J,) [rad]."""
        ...

    def joint_rate(self) -> FloatArray:
        """(J,) [rad/s]."""
        ...

    def load(self) -> FloatArray:
        """(J,) motor torque as a share of the stall torque, signed."""
        ...


class FirstOrderPlant:
    """Joints that approach their targets with a time constant, each by itself.

    Args:
        n_joints: J.
        lag_s: the time constant [s].
        joint_angle: (J,) initial angles [rad]; None: 0.
    """

    def __init__(self, n_joints: int, lag_s: float = 0.03, joint_angle: Sequence[float] | None = None) -> None:
        self.lag_s = lag_s
        self.blocked = np.zeros(n_joints, dtype=bool)
        """(J,) joints that something holds where they are."""
        self._angle = np.zeros(n_joints) if joint_angle is None else np.array(joint_angle, dtype=np.float64)
        self._rate = np.zeros(n_joints)
        self._load = np.zeros(n_joints)

    def advance(
        self,
        dt_s: float,
        target_rad: FloatArray,
        enabled: NDArray[np.bool_],
        torque_limit: FloatArray,
        speed_limit_rad_s: FloatArray,
    ) -> None:
        error = target_rad - self._angle
        moves = enabled & ~self.blocked
        limit = speed_limit_rad_s * dt_s
        step = np.where(moves, np.clip(error * -np.expm1(-dt_s / self.lag_s), -limit, limit), 0.0)
        self._angle = self._angle + step
        self._rate = step / dt_s
        # A blocked motor is at its limit from an error of 0.1 rad on; a moving one hardly loaded.
        effort = np.where(self.blocked, 10.0 * error, 0.5 * error)
        self._load = np.where(enabled, np.clip(effort, -torque_limit, torque_limit), 0.0)

    def joint_angle(self) -> FloatArray:
        return self._angle

    def joint_rate(self) -> FloatArray:
        return self._rate

    def load(self) -> FloatArray:
        return self._load
