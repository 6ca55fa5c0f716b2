"""Shapes of obstacles, and their conversion into features.

A feature is the set of points within ``radius`` of the segment ``start + u axis, 0 <= u <= length``, written as a row
``[start_x, start_y, axis_x, axis_y, length, radius]`` [m] with an axis of length 1. A circle is one feature of length
0, a capsule or a wall is one feature, a convex polygon is its edges (each with both its corners) with radius 0. All
shapes of one call are in one frame, which is the frame of the features.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated

import numpy as np
from pydantic import Field

from snake_gym.config import Settings
from snake_gym.config.settings import NonNegative, Positive
from snake_gym.physics.state import FloatArray

FEATURE_SIZE, LENGTH = 6, 4
"""Columns of a feature, and that of its length."""


class Circle(Settings):
    """Round peg, post or tree."""

    x_m: float
    """x coordinate of the centre."""
    y_m: float
    """y coordinate of the centre."""
    radius_m: Positive
    """Radius."""


class Capsule(Settings):
    """All points within ``radius_m`` of a segment: a log, a wall with round ends, or one without thickness."""

    x0_m: float
    """x coordinate of the segment's begin."""
    y0_m: float
    """y coordinate of the segment's begin."""
    x1_m: float
    """x coordinate of its end."""
    y1_m: float
    """y coordinate of its end."""
    radius_m: NonNegative = 0.0
    """Distance from the segment to the surface; 0: a wall without thickness, solid from both sides."""

    def check(self) -> None:
        if self.radius_m == 0.0 and (self.x0_m, self.y0_m) == (self.x1_m, self.y1_m):
            raise ValueError(f"wall from and to [{self.x0_m:g}, {self.y0_m:g}]; expected two different ends")


class Polygon(Settings):
    """Convex polygon; corners in order, either way round."""

    points: Annotated[tuple[tuple[float, float], ...], Field(min_length=3)]
    """Corners [x, y] [m] in order."""

    def check(self) -> None:
        corners = np.array(self.points, dtype=np.float64)
        edges = np.roll(corners, -1, axis=0) - corners
        following = np.roll(edges, -1, axis=0)
        cross = edges[:, 0] * following[:, 1] - edges[:, 1] * following[:, 0]
        turns = np.arctan2(cross, (edges * following).sum(axis=1))
        # At every corner the same way, and once round in all; an edge of length 0 turns nowhere.
        is_convex = np.abs(np.sign(turns).sum()) == len(corners)
        if not is_convex or np.abs(turns).min() < 1e-9 or abs(turns.sum()) > 3.0 * math.pi:
            raise ValueError(
                f"points is {list(self.points)}; expected the corners [x, y] of a convex polygon in order, once round"
            )

    def contains(self, x_m: float, y_m: float) -> bool:
        """Return True if a point lies inside."""
        corners = np.array(self.points)
        edges = np.roll(corners, -1, axis=0) - corners
        side = edges[:, 0] * (y_m - corners[:, 1]) - edges[:, 1] * (x_m - corners[:, 0])
        return bool((side > 0.0).all() or (side < 0.0).all())


Shape = Circle | Capsule | Polygon


def segment(x0: float, y0: float, x1: float, y1: float, radius: float) -> tuple[float, ...]:
    """Return the feature around the segment from (x0, y0) to (x1, y1) [m]; a disc if both are the same point."""
    length = math.hypot(x1 - x0, y1 - y0)
    if length == 0.0:
        return (x0, y0, 1.0, 0.0, 0.0, radius)
    return (x0, y0, (x1 - x0) / length, (y1 - y0) / length, length, radius)


def features(shapes: Shape | Iterable[Shape]) -> FloatArray:
    """Return the features (k, 6) [m] of one shape or several, in the shapes' own frame."""
    rows: list[tuple[float, ...]] = []
    for shape in [shapes] if isinstance(shapes, Shape) else shapes:
        if isinstance(shape, Circle):
            rows.append(segment(shape.x_m, shape.y_m, shape.x_m, shape.y_m, shape.radius_m))
        elif isinstance(shape, Capsule):
            rows.append(segment(shape.x0_m, shape.y0_m, shape.x1_m, shape.y1_m, shape.radius_m))
        else:
            corners = zip(shape.points, (*shape.points[1:], shape.points[0]), strict=True)
            rows += [segment(*a, *b, 0.0) for a, b in corners]
    return np.array(rows, dtype=np.float64).reshape(-1, FEATURE_SIZE)
