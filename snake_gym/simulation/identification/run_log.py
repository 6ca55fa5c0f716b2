"""A logged run of a robot, simulated or real: what was commanded and what was measured, at a fixed period.

Sample 0 is the first measurement; command k is held from sample k to sample k + 1. The run begins at rest: the mean of
the first ``n_rest`` samples gives the starting pose, so that one noisy reading does not turn the whole path.
Frames as in ``robot.measurement``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.robot.spec import FloatArray


@dataclass(frozen=True, eq=False)
class RunLog:
    """One run of T control periods with J joints."""

    period_s: float
    reference_rad: FloatArray
    """(T, J) joint references."""
    joint_angle_rad: FloatArray
    """(T + 1, J) encoders; NaN where an encoder says nothing (the potentiometer of a servo without power)."""
    head_xy_m: FloatArray
    """(T + 1, 2) centre of the head link, world frame; NaN while the pose source has lost it."""
    head_angle_rad: FloatArray
    """(T + 1,) orientation of the head link, world frame."""
    free_joints: tuple[int, ...] = ()
    """Joints without power, numbered from 1 at the tail."""
    n_rest: int = 1
    """Samples at the start during which the robot lay still."""
    torque_share: float = 1.0
    """Share of the actuators' torque limit that this run was held to."""

    def __post_init__(self) -> None:
        n_periods, n_joints = self.reference_rad.shape
        shapes = {"joint_angle_rad": (n_joints,), "head_xy_m": (2,), "head_angle_rad": ()}
        for name, rest in shapes.items():
            shape = getattr(self, name).shape
            if shape != (n_periods + 1, *rest):
                raise ConfigError(f"log: {name} has shape {shape}; expected {(n_periods + 1, *rest)}")

    @property
    def n_periods(self) -> int:
        """Number of control periods, T."""
        return self.reference_rad.shape[0]

    def start(self) -> tuple[FloatArray, FloatArray, float]:
        """Joint angles (J,) [rad], head position (2,) [m] and head angle [rad] at rest.

        A joint without a reading starts where its reference is: it had power until then.
        """
        still = slice(0, self.n_rest)
        seen = np.isfinite(self.joint_angle_rad[still])
        total = np.where(seen, self.joint_angle_rad[still], 0.0).sum(axis=0)
        joints = np.where(seen.any(axis=0), total / np.maximum(seen.sum(axis=0), 1), self.reference_rad[0])
        position, heading = self.head_xy_m[still], self.head_angle_rad[still]
        known = np.isfinite(position).all(axis=1) & np.isfinite(heading)
        if not known.any():
            raise ConfigError("log: no pose among the samples at rest; expected at least one")
        return joints, position[known].mean(axis=0), float(heading[known].mean())
