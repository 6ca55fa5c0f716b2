"""The pose of an emulated robot: what its plant says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from snake_gym.hardware.pose.source import PoseSample
from snake_gym.robot.spec import FloatArray


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
