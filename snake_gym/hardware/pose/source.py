"""Sources of a real robot's pose: one interface, with a stamp and a validity."""

from __future__ import annotations

import math
from collections import deque
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


class EmulatedPose(PoseSource):
    """Pose of an emulated robot, as a sensor tells it: late, and off by noise.

    Args:
        look: gives the true (x [m], y [m], angle [rad]) of the head link now, and in space its height [m] and the
            vertical (3) in its frame (``ServoPlant.head_pose``).
        delay_s: age of the poses; between two looks the robot moves evenly.
        position_noise_m: standard deviation along each axis.
        heading_noise_rad: standard deviation of the direction.
        seed: seed of the noise.
    """

    def __init__(
        self,
        look: Callable[[], tuple[float, ...]],
        delay_s: float = 0.0,
        position_noise_m: float = 0.0,
        heading_noise_rad: float = 0.0,
        seed: int = 0,
    ) -> None:
        self._look, self._delay_s = look, delay_s
        self._spread = np.array([position_noise_m, position_noise_m, heading_noise_rad])
        self._rng = np.random.default_rng(seed)
        self.lost = False
        """True makes the source lose the robot."""
        self._last = NO_POSE._replace(stamp_s=0.0)
        self._seen: deque[tuple[float, FloatArray]] = deque()

    def read(self, now_s: float) -> PoseSample:
        if self.lost:
            self._last = self._last._replace(valid=False)
            return self._last
        self._seen.append((now_s, np.array(self._look())))
        at_s = max(now_s - self._delay_s, self._seen[0][0])
        while len(self._seen) > 1 and self._seen[1][0] <= at_s:
            self._seen.popleft()
        begin_s, pose = self._seen[0]
        if len(self._seen) > 1:
            end_s, following = self._seen[1]
            way = following - pose
            way[2] = math.remainder(way[2], 2.0 * math.pi)
            pose = pose + way * ((at_s - begin_s) / (end_s - begin_s))
        if self._spread.any():
            pose = pose.copy()
            pose[:3] += self._spread * self._rng.standard_normal(3)
        in_space = (float(pose[3]), pose[4:7] / np.linalg.norm(pose[4:7])) if pose.size > 3 else ()
        self._last = PoseSample(pose[:2].copy(), float(pose[2]), at_s, True, *in_space)
        return self._last
