"""Pose source that loses the robot now and then: the last valid pose is repeated, and told to be invalid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import Settings
from snake_gym.config.settings import Limit, Positive
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.faults import check_spreads, ends
from snake_gym.simulation.streams import RandomStreams

_SLACK_S = 1e-9


@dataclass(frozen=True)
class PoseLossConfig(Settings):
    """Losses of the pose. Each number may be a range [low, high], from which it is drawn for each loss."""

    gap_s: Limit | tuple[Positive, Positive] = math.inf
    """Time with a pose before each loss; inf: none is lost."""
    duration_s: Positive | tuple[Positive, Positive] = 0.5
    """Time that a loss lasts."""

    def check(self) -> None:
        """Raise ValueError for a range that is none."""
        check_spreads(self)

    @property
    def any(self) -> bool:
        """Whether a pose may be lost."""
        return ends(self.gap_s)[0] < math.inf


class PoseLoss:
    """Losses of the poses of W worlds."""

    def __init__(self, config: PoseLossConfig, n_worlds: int) -> None:
        self.config = config
        self.begin_s: FloatArray = np.full(n_worlds, np.inf)
        """Begin and end of the present or next loss (W,) [s]."""
        self.end_s: FloatArray = np.full(n_worlds, np.inf)
        self.last: FloatArray = np.full((n_worlds, 3), np.nan)
        """Last valid pose (W, 3) [x, y, angle]; nan: none yet."""
        self.streams = RandomStreams("pose_loss", n_worlds)

    def begin(self, seeds: NDArray[np.int64], episodes: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """Draw the first losses of new episodes of the worlds ``rows``; arguments as of RandomStreams."""
        if not self.config.any:
            return
        self.streams.begin(seeds, episodes, rows)
        self.last[rows] = np.nan
        self._draw(np.zeros(rows.size), rows)

    def _draw(self, now_s: FloatArray, rows: NDArray[np.int64]) -> None:
        """Draw the next losses, after ``now_s`` (M,) [s]."""
        u = self.streams.uniform(2, rows)
        gap, duration = (
            low + u[:, i] * (high - low)
            for i, (low, high) in enumerate((ends(self.config.gap_s), ends(self.config.duration_s)))
        )
        self.begin_s[rows] = now_s + gap
        self.end_s[rows] = now_s + gap + duration

    def read(
        self, head_xy: FloatArray, head_angle: FloatArray, time_s: FloatArray, rows: Any = slice(None)
    ) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        """Poses (M, 2) [m], (M,) [rad] and validity (M,) in the worlds ``rows`` at ``time_s`` (M,) [s]."""
        ids = np.arange(self.begin_s.size)[rows]
        time = time_s + _SLACK_S
        while (over := time >= self.end_s[ids]).any():
            self._draw(self.end_s[ids[over]], ids[over])
        pose = np.column_stack([head_xy, head_angle])
        lost = (time >= self.begin_s[ids]) & ~np.isnan(self.last[ids, 0])
        pose[lost] = self.last[ids[lost]]
        self.last[ids] = pose
        return pose[:, :2].copy(), pose[:, 2].copy(), ~lost

    def state_arrays(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the arrays that later poses depend on, not copies, by names that begin with ``name``."""
        own = {"begin_s": self.begin_s, "end_s": self.end_s, "last": self.last}
        return {f"{name}/{key}": values for key, values in own.items()} | self.streams.state_arrays(name)
