"""Ways are found where there are any, keep the clearance, and are about as short as can be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from snake_gym.obstacles.passage import count_nodes, find_route, search_space
from snake_gym.obstacles.shapes import Capsule, Circle, FloatArray, Shape, features
from tests.obstacles.test_fields import is_connected, sampled_clearance
from tests.obstacles.test_shapes import distance

BOX = (-0.5, -1.5, 4.5, 1.5)
START, GOAL, MARGIN = (0.0, 0.0), (4.0, 0.0), np.array([0.5, 1.5])
RADIUS_M, STEP_M = 0.15, 0.06


def length(route: FloatArray) -> float:
    return float(np.hypot(*np.diff(route, axis=0).T).sum())


def search(rows: FloatArray, goal: tuple[float, float] = GOAL) -> FloatArray | None:
    space = search_space(count_nodes(BOX[2] - BOX[0], BOX[3] - BOX[1], STEP_M))
    return find_route(space, rows, RADIUS_M, STEP_M, START, goal, BOX)


def test_free_ground_is_crossed_straight() -> None:
    route = search(features([]))
    assert route is not None and route.tolist() == [list(START), list(GOAL)]


def test_the_way_round_a_disc_is_the_shortest() -> None:
    peg = Circle(2.0, 0.0, 0.35)
    route = search(features(peg))
    assert route is not None
    bend, reach = peg.radius_m + RADIUS_M, 2.0  # two tangents and the arc between them
    angle = 2.0 * math.asin(bend / reach)
    shortest = 2.0 * math.sqrt(reach**2 - bend**2) + bend * angle
    assert shortest - 1e-6 <= length(route) < 1.01 * shortest
    assert sampled_clearance(route, features(peg)) >= RADIUS_M - 1e-8


def test_a_closed_wall_is_not_crossed_and_a_gap_is_found() -> None:
    wall = features(Capsule(2.0, -1.6, 2.0, 1.6))
    assert search(wall) is None
    wide = features([Capsule(2.0, -1.6, 2.0, 0.6, 0.03), Capsule(2.0, 1.0, 2.0, 1.6, 0.03)])
    narrow = features([Capsule(2.0, -1.6, 2.0, 0.6, 0.03), Capsule(2.0, 0.94, 2.0, 1.6, 0.03)])
    route = search(wide)
    assert route is not None and sampled_clearance(route, wide) >= RADIUS_M - 1e-8
    assert np.interp(2.0, route[:, 0], route[:, 1]) == pytest.approx(0.8, abs=0.05)
    assert search(narrow) is None


def random_mess(rng: np.random.Generator) -> FloatArray:
    shapes: list[Shape] = []
    while len(shapes) < 34:
        x, y, angle, size = rng.uniform(0.2, 3.8), rng.uniform(-1.5, 1.5), rng.uniform(0.0, 3.2), rng.uniform(0.0, 0.8)
        shape = Capsule(x, y, x + size * math.cos(angle), y + size * math.sin(angle), rng.uniform(0.02, 0.1))
        if distance(features(shape), np.array([START, GOAL])).min() > 1.4 * RADIUS_M:
            shapes.append(shape)
    return features(shapes)


def test_the_search_agrees_with_a_finer_one() -> None:
    """No way is claimed that is not there; none is missed that leaves 0.81 steps on all sides."""
    rng = np.random.default_rng(0)
    found = missed = 0
    for _ in range(40):
        rows = random_mess(rng)
        route = search(rows)
        if route is None:
            missed += 1
            assert not is_connected(rows, START, GOAL, RADIUS_M + 0.81 * STEP_M + 0.001, 0.02, MARGIN)
        else:
            found += 1
            assert is_connected(rows, START, GOAL, RADIUS_M - 0.015, 0.02, MARGIN)
            assert sampled_clearance(route, rows) >= RADIUS_M - 1e-8
            assert route[0].tolist() == list(START) and route[-1].tolist() == list(GOAL)
    assert min(found, missed) > 8


def test_a_goal_between_the_nodes_is_reached() -> None:
    rows = features([Circle(2.0, 0.0, 0.3), Circle(1.0, 0.4, 0.2)])
    rng = np.random.default_rng(3)
    for _ in range(20):
        goal = (rng.uniform(2.6, 4.4), rng.uniform(-1.3, 1.3))
        route = search(rows, goal)
        assert route is not None and tuple(route[-1]) == goal
