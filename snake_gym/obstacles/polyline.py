"""Polylines followed by arc length: one for all worlds (``Path``), or one for each (``Routes``).

All coordinates are in one frame, such as the world's. Lengths [m].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from snake_gym.compilation import cached_njit
from snake_gym.config import ConfigError
from snake_gym.physics.state import FloatArray


class Path:
    """Polyline through ``points_xy`` (P, 2) [m], P >= 2, neighbours different, followed by arc length.

    ``closed``: the last point is joined to the first; arc lengths then go on over the rounds.
    """

    def __init__(self, points_xy: ArrayLike, closed: bool = False) -> None:
        points = np.asarray(points_xy, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 2 or len(points) < 2 or not np.isfinite(points).all():
            raise ValueError(f"points_xy has shape {points.shape}; expected (P, 2) finite numbers, P >= 2")
        self.closed = closed
        self.points_xy: FloatArray = np.concatenate([points, points[:1]]) if closed else points
        step = np.diff(self.points_xy, axis=0)
        self._length = np.hypot(step[:, 0], step[:, 1])
        if not (self._length > 0.0).all():
            i = int(np.argmin(self._length))
            raise ValueError(f"points_xy[{i}] is {points[i].tolist()}, as the next one; expected different neighbours")
        self._direction = step / self._length[:, None]
        self._begin = np.concatenate([[0.0], np.cumsum(self._length)[:-1]])
        self.length_m = float(self._length.sum())

    def nearest(self, point_xy: FloatArray, last_m: FloatArray, reach_m: float) -> tuple[FloatArray, FloatArray]:
        """Return arc length (W,) [m] and cross-track error (W,) [m], left positive, of the path's nearest place.

        Only places within ``reach_m`` of the arc length ``last_m`` (W,) count; where that is NaN, the whole path.
        On a closed path the arc length goes on over the rounds.
        """
        gap = point_xy[:, None, :] - self.points_xy[None, :-1]
        along = np.clip((gap * self._direction).sum(axis=-1), 0.0, self._length)
        rest = gap - along[..., None] * self._direction
        distance = np.hypot(rest[..., 0], rest[..., 1])
        arc = self._begin + along
        if self.closed:
            turns = np.round((np.nan_to_num(last_m)[:, None] - arc) / self.length_m)
            arc = arc + turns * self.length_m
        far = np.abs(arc - last_m[:, None]) > reach_m + self._length
        best = np.argmin(np.where(far, np.inf, distance), axis=1)
        row = np.arange(len(best))
        side = self._direction[best, 0] * rest[row, best, 1] - self._direction[best, 1] * rest[row, best, 0]
        return arc[row, best], np.copysign(distance[row, best], side)

    def place(self, arc_m: FloatArray) -> FloatArray:
        """Return the points (W, 2) [m] at arc lengths (W,) [m]; an open path goes straight on beyond its ends."""
        arc = np.mod(arc_m, self.length_m) if self.closed else arc_m
        piece = self._piece(arc)
        return self.points_xy[piece] + (arc - self._begin[piece])[:, None] * self._direction[piece]

    def tangent(self, arc_m: FloatArray) -> FloatArray:
        """Return the direction (W, 2) of the path at arc lengths (W,) [m]."""
        return self._direction[self._piece(np.mod(arc_m, self.length_m) if self.closed else arc_m)]

    def _piece(self, arc: FloatArray) -> np.ndarray:
        return np.clip(np.searchsorted(self._begin, arc, side="right") - 1, 0, len(self._begin) - 1)


def circle(centre_xy: tuple[float, float], radius_m: float, start_xy: tuple[float, float], n_points: int = 720) -> Path:
    """Return a circle, counter-clockwise, as a closed polyline that begins where it is nearest to ``start_xy``."""
    first = math.atan2(start_xy[1] - centre_xy[1], start_xy[0] - centre_xy[0])
    angle = first + np.linspace(0.0, 2.0 * math.pi, n_points, endpoint=False)
    return Path(np.array(centre_xy) + radius_m * np.stack([np.cos(angle), np.sin(angle)], axis=1), closed=True)


class Routes:
    """Polylines of R points, one for each of W worlds; points may coincide."""

    def __init__(self, n_worlds: int, n_points: int) -> None:
        self.xy: FloatArray = np.zeros((n_worlds, n_points, 2))
        """Points (W, R, 2) [m]; call ``restored`` after a change."""
        self._piece: FloatArray = np.zeros((n_worlds, n_points - 1, 5))
        """Start x and y, direction x and y, length of each piece (W, R - 1, 5) [m]."""
        self._begin: FloatArray = np.zeros((n_worlds, n_points - 1))
        """Arc length at the begin of each piece (W, R - 1) [m]."""
        self.length_m: FloatArray = np.zeros(n_worlds)
        """Whole length (W,) [m]."""

    def restored(self, rows: Any = slice(None)) -> None:
        """Compute lengths and directions anew from the points of worlds ``rows``."""
        xy = self.xy[rows]
        step = xy[:, 1:] - xy[:, :-1]
        length = np.hypot(step[..., 0], step[..., 1])[..., None]
        end = np.cumsum(length[..., 0], axis=1)
        self._piece[rows] = np.concatenate([xy[:, :-1], step / np.where(length > 0.0, length, 1.0), length], axis=2)
        self._begin[rows] = end - length[..., 0]
        self.length_m[rows] = end[:, -1]

    def nearest(
        self,
        point_xy: FloatArray,
        last_m: FloatArray,
        reach_m: float,
        rows: Any = slice(None),
        most_m: float = math.inf,
    ) -> FloatArray:
        """Return the arc length (M,) [m] of the place nearest to each point (M, 2) [m] of worlds ``rows``.

        Only places within ``reach_m`` of the arc length ``last_m`` (M,) count, so that a route that comes near itself
        is not left for its later part, and none beyond ``most_m``; of several that are equally near, the first counts.
        """
        found = np.empty(last_m.size)
        _find_nearest(self._piece[rows], self._begin[rows], point_xy, last_m, float(reach_m), float(most_m), found)
        return found

    def place(self, arc_m: FloatArray, rows: Any = slice(None)) -> FloatArray:
        """Return the points (M, 2) [m] at arc lengths (M,) [m] of worlds ``rows``; beyond the ends: the ends."""
        piece, rest = self._find(arc_m, rows)
        return piece[:, :2] + np.minimum(rest, piece[:, 4])[:, None] * piece[:, 2:4]

    def tangent(self, arc_m: FloatArray, rows: Any = slice(None)) -> FloatArray:
        """Return the routes' directions (M, 2) at arc lengths (M,) [m] of worlds ``rows``."""
        return self._find(arc_m, rows)[0][:, 2:4]

    def _find(self, arc_m: FloatArray, rows: Any) -> tuple[FloatArray, FloatArray]:
        """Return the pieces (M, 5) at arc lengths (M,) [m], and the arc lengths from their starts."""
        begin, arc = self._begin[rows], np.clip(arc_m, 0.0, self.length_m[rows])
        at = np.arange(arc.size), _find_pieces(begin, arc)
        return self._piece[rows][at], arc - begin[at]


@cached_njit(nogil=True)
def _find_pieces(begin, arc):  # type: ignore[no-untyped-def]
    """Return the last piece (M,) of each route that begins at or before the arc length."""
    at = np.zeros(arc.size, np.int64)
    for w in range(arc.size):
        for i in range(1, begin.shape[1]):
            at[w] += begin[w, i] <= arc[w]
    return at


@cached_njit(nogil=True)
def _find_nearest(piece, begin, point, last, reach, most, found):  # type: ignore[no-untyped-def]
    """Find the nearest foot of a perpendicular on a piece, moved into the piece and the window of arc lengths."""
    for w in range(last.size):
        low, high = last[w] - reach, min(last[w] + reach, most)
        best, found[w] = np.inf, last[w]
        for i in range(begin.shape[1]):
            length = piece[w, i, 4]
            if begin[w, i] + length < low:
                continue
            if begin[w, i] > high:
                break
            x, y = point[w, 0] - piece[w, i, 0], point[w, 1] - piece[w, i, 1]
            along = x * piece[w, i, 2] + y * piece[w, i, 3]
            along = min(max(along, 0.0, low - begin[w, i]), length, high - begin[w, i])
            x, y = x - along * piece[w, i, 2], y - along * piece[w, i, 3]
            gap2 = x * x + y * y
            if gap2 < best:
                best, found[w] = gap2, begin[w, i] + along


def spread_points(route: FloatArray, n_points: int) -> FloatArray:
    """Return ``route`` (v, 2) with points added on its longest pieces (n_points, 2); corners and polyline stay."""
    if len(route) > n_points:
        raise ConfigError(f"the route has {len(route)} corners; expected at most {n_points} (field.route_points)")
    points = np.empty((n_points, 2))
    _spread_points(route, points)
    return points


@cached_njit()
def _spread_points(route, points):  # type: ignore[no-untyped-def]
    pieces = np.ones(len(route) - 1, np.int64)
    length = np.hypot(route[1:, 0] - route[:-1, 0], route[1:, 1] - route[:-1, 1])
    for _ in range(len(points) - len(route)):
        pieces[np.argmax(length / pieces)] += 1
    n = 0
    for i in range(len(pieces)):
        for j in range(pieces[i]):
            points[n] = route[i] + (route[i + 1] - route[i]) * (j / pieces[i])
            n += 1
    points[n] = route[-1]
