"""Sources of a real robot's pose: one interface, with a stamp and a validity."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from snake_gym.robot.spec import FloatArray


class PoseSample(NamedTuple):
    """Pose of the head link."""

    xy_w: FloatArray
    """(2,) [m] centre of the head link, world frame."""
    angle: float
    """Direction of the head link, world frame [rad]."""
    stamp_s: float
    """Time at which the pose was true, on the clock of ``read`` [s]."""
    valid: bool
    """False if the source has lost the robot; the pose is then the last valid one."""
    z_w: float | None = None
    """Height of the middle of the head [m]; None: the source does not tell."""
    up_h: FloatArray | None = None
    """(3,) direction of the vertical in the base frame of a spatial robot; None: the source does not tell."""


NO_POSE = PoseSample(np.zeros(2), 0.0, -math.inf, False)
"""Value before the first pose."""


class PoseSource:
    """Source of the head link's pose (centre, direction), world frame: a sensor or anything in its place.

    Events in the world (a tag out of sight, a lost packet, a pulled cable) never raise: the source repeats the last
    pose, marked as not valid.
    """

    @property
    def trouble(self) -> str:
        """Reason for a missing pose, for people; empty: none is known."""
        return ""

    def follow(self, joint_angle: FloatArray, joint_rate: FloatArray, stamp_s: float) -> None:
        """Take joint angles (J,) [rad] and rates (J,) [rad/s] at ``stamp_s`` [s]. Most sources ignore them."""

    def read(self, now_s: float) -> PoseSample:
        """Return the newest pose at the time ``now_s`` [s] (monotonic clock), without waiting."""
        raise NotImplementedError

    def close(self) -> None:
        """Free the source's resources; may be called twice."""
