"""Polylines of W worlds, followed by arc length."""

from __future__ import annotations

from typing import Any

import numpy as np

from snake_gym.obstacles.route_following import nearest_places
from snake_gym.robot.spec import FloatArray


class Routes:
    """One polyline of R points for each of W worlds; points may coincide."""

    def __init__(self, n_worlds: int, n_points: int) -> None:
        self.xy: FloatArray = np.zeros((n_worlds, n_points, 2))
        """(W, R, 2) [m] the points; after writing to it, call ``restored``."""
        self._piece: FloatArray = np.zeros((n_worlds, n_points - 1, 5))
        """Start, direction and length of the pieces."""
        self._begin: FloatArray = np.zeros((n_worlds, n_points - 1))
        self.length_m: FloatArray = np.zeros(n_worlds)
        """(W,) [m] whole length."""
        self._rows = np.arange(n_worlds)

    def restored(self, rows: Any = slice(None)) -> None:
        """Make lengths and directions follow from the points of worlds ``rows``."""
        step = np.diff(self.xy[rows], axis=1)
        length = np.hypot(step[..., 0], step[..., 1])
        end = np.cumsum(length, axis=1)
        self._piece[rows, :, :2] = self.xy[rows, :-1]
        self._piece[rows, :, 2:4] = step / np.where(length > 0.0, length, 1.0)[..., None]
        self._piece[rows, :, 4] = length
        self._begin[rows] = end - length
        self.length_m[rows] = end[:, -1]

    def nearest(self, point_xy: FloatArray, last_m: FloatArray, reach_m: float, rows: Any = slice(None)) -> FloatArray:
        """Arc length (M,) [m] of the place nearest to each point.

        Args:
            point_xy: (M, 2) [m].
            last_m: (M,) [m] only places within ``reach_m`` of this arc length count, so that a route that comes near
                itself is not left for its later part.
            rows: the M worlds.
        """
        return nearest_places(self._piece[rows], self._begin[rows], point_xy, last_m, reach_m)

    def place(self, arc_m: FloatArray, rows: Any = slice(None)) -> FloatArray:
        """Points (M, 2) [m] at the arc lengths (M,) [m] of worlds ``rows``; beyond the ends: the ends."""
        worlds = self._rows[rows]
        arc = np.clip(arc_m, 0.0, self.length_m[worlds])
        at = np.maximum((self._begin[rows] <= arc[:, None]).sum(axis=1) - 1, 0)
        piece = self._piece[worlds, at]
        rest = np.minimum(arc - self._begin[worlds, at], piece[:, 4])
        return piece[:, :2] + rest[:, None] * piece[:, 2:4]
