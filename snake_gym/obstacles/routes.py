"""What is done with a route once it is found: proved, and written as a fixed number of points."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numba import njit
from numpy.typing import NDArray

from snake_gym.config import ConfigError
from snake_gym.obstacles.passage import segment_gap

FloatArray = NDArray[np.float64]


def clearance_of_route(route: FloatArray, features: FloatArray) -> float:
    """Smallest distance [m] between the polyline ``route`` (v, 2) and the features (k, 6); inf without features."""
    gaps = [np.inf]
    for a, b in pairwise(route):
        gaps += [segment_gap(*a, *b, feature) for feature in features]
    return float(min(gaps))


def spread_points(route: FloatArray, n_points: int) -> FloatArray:
    """``route`` (v, 2) with points added on its longest pieces, (n_points, 2): the same polyline, its corners kept."""
    if len(route) > n_points:
        raise ConfigError(f"the route has {len(route)} corners; expected at most {n_points} (field.route_points)")
    points = np.empty((n_points, 2))
    _spread_points(route, points)
    return points


@njit(cache=True, error_model="numpy")
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
