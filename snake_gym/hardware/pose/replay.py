"""Poses from a log of an earlier run, played at the pace at which they were recorded."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.hardware.pose.source import NO_POSE, PoseSample
from snake_gym.robot.spec import FloatArray


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
