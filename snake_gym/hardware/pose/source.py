"""Where a real robot's pose comes from: one interface, with a stamp and a validity."""

from __future__ import annotations

import math
from collections.abc import Callable
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
    """Time when it was true, on the clock of ``read`` [s]."""
    valid: bool
    """False: the source has lost the robot; the pose is the last valid one."""


NO_POSE = PoseSample(np.zeros(2), 0.0, -math.inf, False)
"""Before the first pose."""


class PoseSource:
    """Pose of the head link (centre, direction), world frame, from a sensor or anything in its place.

    It never raises for what the world does to it (a tag out of sight, a lost packet, a pulled cable): it says that the
    pose is not valid, and repeats the last one.
    """

    @property
    def trouble(self) -> str:
        """Why there is no pose, for people; empty: nothing is wrong, or nobody knows."""
        return ""

    def follow(self, joint_angle: FloatArray, joint_rate: FloatArray, stamp_s: float) -> None:
        """What the joints do: angles (J,) [rad] and rates (J,) [rad/s] at ``stamp_s`` [s]. Most sources ignore it."""

    def read(self, now_s: float) -> PoseSample:
        """The newest pose at the time ``now_s`` [s] (monotonic clock); returns at once."""
        raise NotImplementedError

    def close(self) -> None:
        """Free what the source holds; may be called twice."""


class EmulatedPose(PoseSource):
    """The truth; ``look`` gives (x [m], y [m], angle [rad]) of the head link now."""

    def __init__(self, look: Callable[[], tuple[float, float, float]]) -> None:
        self._look = look
        self.lost = False
        """Set it and the source has lost the robot."""
        self._last = NO_POSE._replace(stamp_s=0.0)

    def read(self, now_s: float) -> PoseSample:
        if self.lost:
            self._last = self._last._replace(valid=False)
        else:
            x, y, angle = self._look()
            self._last = PoseSample(np.array([x, y]), angle, now_s, True)
        return self._last
