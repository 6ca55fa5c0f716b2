"""Polylines of W worlds, followed by arc length: array operations for all worlds at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from snake_gym.robot.spec import FloatArray


class Routes:
    """One polyline of R points for each of W worlds; points may coincide."""

    def __init__(self, n_worlds: int, n_points: int) -> None:
        self.xy: FloatArray = np.zeros((n_worlds, n_points, 2))
        """(W, R, 2) [m] the points; after writing to it, call ``restored``."""
        pieces = (n_worlds, n_points - 1)
        self._axis_x, self._axis_y = np.zeros(pieces), np.zeros(pieces)
        self._length: FloatArray = np.zeros(pieces)
        self._begin: FloatArray = np.zeros(pieces)
        self.length_m: FloatArray = np.zeros(n_worlds)
        """(W,) [m] whole length."""

    def restored(self, rows: Any = slice(None)) -> None:
        """Make lengths and directions follow from the points of worlds ``rows``."""
        step = np.diff(self.xy[rows], axis=1)
        length = np.hypot(step[..., 0], step[..., 1])
        divisor = np.where(length > 0.0, length, 1.0)
        end = np.cumsum(length, axis=1)
        self._axis_x[rows], self._axis_y[rows] = step[..., 0] / divisor, step[..., 1] / divisor
        self._length[rows] = length
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
        x = point_xy[:, :1] - self.xy[rows, :-1, 0]
        y = point_xy[:, 1:] - self.xy[rows, :-1, 1]
        ahead = x * self._axis_x[rows] + y * self._axis_y[rows]
        begin, length = self._begin[rows], self._length[rows]
        first = np.maximum((last_m - reach_m)[:, None] - begin, 0.0)
        final = np.minimum((last_m + reach_m)[:, None] - begin, length)
        along = np.minimum(np.maximum(ahead, first), final)
        gap2 = x * x + y * y + along * (along - 2.0 * ahead)
        gap2[first > final] = np.inf
        best = gap2.argmin(axis=1)[:, None]
        return np.take_along_axis(begin + along, best, axis=1)[:, 0]

    def place(self, arc_m: FloatArray, rows: Any = slice(None)) -> FloatArray:
        """Points (M, 2) [m] at the arc lengths (M,) [m] of worlds ``rows``; beyond the ends: the ends."""
        arc = np.clip(arc_m, 0.0, self.length_m[rows])[:, None]
        begin = self._begin[rows]
        piece = np.maximum((begin <= arc).sum(axis=1) - 1, 0)[:, None]
        rest = arc - np.take_along_axis(begin, piece, axis=1)
        rest = np.minimum(rest, np.take_along_axis(self._length[rows], piece, axis=1))
        x = np.take_along_axis(self.xy[rows, :-1, 0], piece, axis=1)
        y = np.take_along_axis(self.xy[rows, :-1, 1], piece, axis=1)
        x = x + rest * np.take_along_axis(self._axis_x[rows], piece, axis=1)
        y = y + rest * np.take_along_axis(self._axis_y[rows], piece, axis=1)
        return np.concatenate([x, y], axis=1)
