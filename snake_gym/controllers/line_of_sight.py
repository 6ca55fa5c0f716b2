r"""Line-of-sight guidance: a path becomes a moving target, which every controller that steers can go to.

Model (Fossen, Handbook of Marine Craft Hydrodynamics and Motion Control, 2011, as used by haghshenas2022, section 3):
the heading wanted is the path's direction minus ``atan(cross-track error / look-ahead)``, the direction from the
robot to the point ``lookahead_m`` ahead of the place on the path nearest to it: along the path's tangent there
(``ahead: tangent``, the law as published) or along the path itself (``ahead: path``, which begins to turn before a
corner and equals the law on straight pieces). The target is that point, and the ``Goal`` stays what it is.

Paths are polylines in the world frame, the same for all W robots; the nearest place is looked for near the last one, so
that a path may cross itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import ArrayLike

from snake_gym.config import Range, Settings
from snake_gym.controllers.base import ControllerState
from snake_gym.robot.measurement import Goal
from snake_gym.robot.spec import FloatArray


class Path:
    """A polyline followed by arc length.

    Args:
        points_xy: (P, 2) [m] world frame, P >= 2; neighbours must differ.
        closed: the last point is joined to the first; arc lengths then go round and round.
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
        """Place on the path nearest to each point: arc length (W,) [m] and cross-track error (W,) [m], left positive.

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
        """Points (W, 2) [m] at arc lengths (W,) [m]; beyond the ends of an open path: straight on."""
        arc = np.mod(arc_m, self.length_m) if self.closed else arc_m
        piece = self._piece(arc)
        return self.points_xy[piece] + (arc - self._begin[piece])[:, None] * self._direction[piece]

    def tangent(self, arc_m: FloatArray) -> FloatArray:
        """Direction (W, 2) of the path at arc lengths (W,) [m]."""
        return self._direction[self._piece(np.mod(arc_m, self.length_m) if self.closed else arc_m)]

    def _piece(self, arc: FloatArray) -> np.ndarray:
        return np.clip(np.searchsorted(self._begin, arc, side="right") - 1, 0, len(self._begin) - 1)


def circle(centre_xy: tuple[float, float], radius_m: float, start_xy: tuple[float, float], n_points: int = 720) -> Path:
    """A circle, counter-clockwise, as a closed polyline that begins where it is nearest to ``start_xy``."""
    first = math.atan2(start_xy[1] - centre_xy[1], start_xy[0] - centre_xy[0])
    angle = first + np.linspace(0.0, 2.0 * math.pi, n_points, endpoint=False)
    return Path(np.array(centre_xy) + radius_m * np.stack([np.cos(angle), np.sin(angle)], axis=1), closed=True)


@dataclass(frozen=True)
class LineOfSightConfig(Settings):
    """How a path is followed."""

    lookahead_m: Annotated[float, Range(1e-6, 1e6)] = 1.5
    """Distance from the nearest place to the target [m]; haghshenas2022: 2.5 robot lengths."""
    ahead: Literal["tangent", "path"] = "tangent"
    """Whether the target lies ahead along the tangent at the nearest place, or along the path."""


class LineOfSight:
    """Turns the place of W robots into goals on a path. State: ``arc_m`` (W,) nearest arc length, NaN at the start."""

    def __init__(self, path: Path, config: LineOfSightConfig | None = None) -> None:
        self.path = path
        self.config = LineOfSightConfig() if config is None else config

    def initial_state(self, n_worlds: int) -> ControllerState:
        """No place known yet: the nearest one on the whole path is where it begins."""
        return {"arc_m": np.full(n_worlds, np.nan), "cross_track_m": np.zeros(n_worlds)}

    def goal(self, point_xy: FloatArray, state: ControllerState) -> Goal:
        """The target for robots whose tracked points are at (W, 2) [m], world frame; advances ``state`` in place.

        Inactive at the end of an open path.
        """
        ahead = self.config.lookahead_m
        arc, cross = self.path.nearest(point_xy, state["arc_m"], ahead)
        state["arc_m"][:], state["cross_track_m"][:] = arc, cross
        if self.config.ahead == "path":
            target = self.path.place(arc + ahead)
        else:
            target = self.path.place(arc) + ahead * self.path.tangent(arc)
        return Goal(target, np.full(len(arc), True) if self.path.closed else arc < self.path.length_m)
