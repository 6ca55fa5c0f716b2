"""Where a real robot's pose comes from: one interface, with a stamp and a validity.

A source gives the pose of the head link (centre, direction), world frame. It never raises for what the world does to
it (a tag out of sight, a lost packet, a pulled cable): it says that the pose is not valid, and repeats the last one.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.robot.spec import FloatArray


class PoseSample(NamedTuple):
    """Pose of the head link."""

    xy_w: FloatArray
    """(2,) [m] centre of the head link, world frame."""
    angle: float
    """[rad] direction of the head link, world frame."""
    stamp_s: float
    """[s] when it was true, on the clock of ``read``."""
    valid: bool
    """False: the source has lost the robot; the pose is the last valid one."""


class PoseSource(Protocol):
    """A sensor, or anything in its place."""

    @property
    def trouble(self) -> str:
        """Why there is no pose, for people; empty: nothing is wrong, or nobody knows."""
        ...

    def follow(self, joint_angle: FloatArray, joint_rate: FloatArray, stamp_s: float) -> None:
        """What the joints do: angles (J,) [rad] and rates (J,) [rad/s] at ``stamp_s`` [s]. Most sources ignore it."""
        ...

    def read(self, now_s: float) -> PoseSample:
        """The newest pose at the time ``now_s`` [s] (monotonic clock); returns at once."""
        ...

    def close(self) -> None:
        """Free what the source holds; may be called twice."""
        ...


NO_POSE = PoseSample(np.zeros(2), 0.0, -math.inf, False)
"""Before the first pose."""


class EmulatedPose:
    """A ``PoseSource`` that knows the truth.

    Args:
        look: gives (x [m], y [m], angle [rad]) of the head link now.
    """

    trouble = ""
    """``lost`` is no trouble of the source's own."""

    def __init__(self, look: Callable[[], tuple[float, float, float]]) -> None:
        self._look = look
        self.lost = False
        """Set it and the source has lost the robot."""
        self._last = PoseSample(np.zeros(2), 0.0, 0.0, False)

    def follow(self, joint_angle: FloatArray, joint_rate: FloatArray, stamp_s: float) -> None:
        """The plant knows."""

    def read(self, now_s: float) -> PoseSample:
        if self.lost:
            self._last = self._last._replace(valid=False)
        else:
            x, y, angle = self._look()
            self._last = PoseSample(np.array([x, y]), angle, now_s, True)
        return self._last

    def close(self) -> None:
        """Nothing is held."""


class ReplayPose:
    """A ``PoseSource``; its first pose is given at the first ``read``.

    Args:
        time_s: (K,) [s] increasing.
        xy_w: (K, 2) [m].
        angle: (K,) [rad].
        valid: (K,) whether the robot was seen; None: always.
    """

    trouble = ""
    """A log says no more."""

    def __init__(
        self,
        time_s: Sequence[float] | FloatArray,
        xy_w: FloatArray,
        angle: FloatArray,
        valid: Sequence[bool] | None = None,
    ) -> None:
        self._time = np.asarray(time_s, dtype=np.float64)
        self._xy, self._angle = np.asarray(xy_w, dtype=np.float64), np.asarray(angle, dtype=np.float64)
        n = self._time.size
        if n == 0 or self._xy.shape != (n, 2) or self._angle.shape != (n,) or (np.diff(self._time) <= 0.0).any():
            raise ConfigError(
                f"a log of {n} poses cannot be replayed; expected increasing times, (K, 2) and (K,) poses"
            )
        self._valid = np.ones(n, bool) if valid is None else np.asarray(valid, dtype=bool)
        self._begun_s: float | None = None
        self._last = NO_POSE

    def follow(self, joint_angle: FloatArray, joint_rate: FloatArray, stamp_s: float) -> None:
        """The log knows."""

    def read(self, now_s: float) -> PoseSample:
        if self._begun_s is None:
            self._begun_s = now_s
        at = bisect.bisect_right(self._time.tolist(), now_s - self._begun_s + self._time[0]) - 1
        ended = at == self._time.size - 1 and now_s - self._begun_s > self._time[-1] - self._time[0] + 1.0
        if ended or not self._valid[at]:
            self._last = self._last._replace(valid=False)
        else:
            stamp = self._begun_s + float(self._time[at] - self._time[0])
            self._last = PoseSample(self._xy[at].copy(), float(self._angle[at]), stamp, True)
        return self._last

    def close(self) -> None:
        """Nothing is held."""
