"""Random fields: a way through for every seed, a free start, the same field for the same generator, clear errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import ndimage

from snake_gym.config import ConfigError, build
from snake_gym.obstacles.fields import DRAWS, Field, FieldConfig, FieldMaker, RobotExtent
from snake_gym.obstacles.shapes import Circle, FloatArray, Wall, distance, features

ROBOT = RobotExtent(front_m=0.73, rear_m=0.73, half_width_m=0.18, radius_m=0.03, clearance_m=0.15)
RANDOM_KINDS = ["pegboard", "forest", "corridor", "bends", "gates"]
LANE_M = 2.0 * ROBOT.clearance_m


def maker(kind: str, difficulty: float = 0.5, robot: RobotExtent = ROBOT, **settings: Any) -> FieldMaker:
    return FieldMaker(build(FieldConfig, {"kind": kind, "difficulty": difficulty, **settings}, "field"), robot)


def start_region(robot: RobotExtent, start_xy: FloatArray, heading: float) -> FloatArray:
    """Points all over the rectangle that the robot may take at the start, world frame."""
    x = np.linspace(-robot.rear_m, robot.front_m, 60)
    y = np.linspace(-robot.half_width_m, robot.half_width_m, 15)
    ahead, side = np.array([np.cos(heading), np.sin(heading)]), np.array([-np.sin(heading), np.cos(heading)])
    return start_xy + (x[:, None, None] * ahead + y[None, :, None] * side).reshape(-1, 2)


def is_connected(rows: FloatArray, start_xy: Any, goal_xy: Any, radius: float, step: float, margin: Any = 1.2) -> bool:
    """Whether a disc gets from start to goal among features: free space on a fine grid, by labelling."""
    low, high = np.minimum(start_xy, goal_xy) - margin, np.maximum(start_xy, goal_xy) + margin
    shape = np.ceil((high - low) / step).astype(int) + 1
    gap = np.full(tuple(shape), np.inf)
    for row in rows:  # only near each feature
        ends = np.array([row[:2], row[:2] + row[2:4] * row[4]])
        first = np.clip(((ends.min(0) - low - row[5] - radius) / step).astype(int), 0, shape)
        last = np.clip(((ends.max(0) - low + row[5] + radius) / step).astype(int) + 2, 0, shape)
        part = np.stack(np.mgrid[first[0] : last[0], first[1] : last[1]], axis=-1)
        near = gap[first[0] : last[0], first[1] : last[1]]
        near[:] = np.minimum(near, distance(row[None], low + part.reshape(-1, 2) * step).reshape(near.shape))
    label, _ = ndimage.label(gap >= radius, np.ones((3, 3)))
    start_at, goal_at = (label[tuple(np.round((point - low) / step).astype(int))] for point in (start_xy, goal_xy))
    return bool(start_at == goal_at != 0)


def sampled_clearance(route: FloatArray, rows: FloatArray) -> float:
    """By brute force, at points at most 1 mm apart."""
    longest_m = np.hypot(*np.diff(route, axis=0).T).max()
    pieces = np.linspace(route[:-1], route[1:], max(100, math.ceil(1e3 * longest_m) + 1))
    return float(distance(rows, pieces.reshape(-1, 2)).min())


@pytest.mark.parametrize("kind", RANDOM_KINDS)
@pytest.mark.parametrize(
    "difficulty", [0.5, 1.0, *(pytest.param(other, marks=pytest.mark.slow) for other in (0.0, 0.25, 0.75))]
)
def test_every_field_lets_the_robot_start_and_get_through(kind: str, difficulty: float) -> None:
    fields = maker(kind, difficulty)
    for seed in range(40):
        rng = np.random.default_rng([seed, 9])
        start, heading = rng.normal(size=2), rng.uniform(-np.pi, np.pi)
        field = fields.make(rng, (start[0], start[1]), heading)
        assert 0 < len(field.features) <= fields.bounds.max_features
        np.testing.assert_allclose(field.start_xy, start)
        assert field.start_heading == heading
        free = distance(field.features, start_region(ROBOT, field.start_xy, heading))
        assert free.min() >= ROBOT.clearance_m - 1e-9
        np.testing.assert_array_equal(field.route[[0, -1]], [field.start_xy, field.goal_xy])
        assert field.route.shape == (fields.route_points, 2)
        assert sampled_clearance(field.route, field.features) >= ROBOT.clearance_m - 1e-8
        if seed < 8:
            ends = field.start_xy, field.goal_xy
            assert is_connected(field.features, *ends, ROBOT.clearance_m - 0.012, 0.015)


@pytest.mark.slow
@pytest.mark.parametrize("kind", RANDOM_KINDS)
def test_robots_and_settings_of_all_sizes_get_a_passable_field(kind: str) -> None:
    rng = np.random.default_rng(RANDOM_KINDS.index(kind))
    n_made = 0
    while n_made < 400:
        size = 10.0 ** rng.uniform(-0.5, 0.7)
        radius = size * rng.uniform(0.0, 0.04)
        lane = radius + size * rng.uniform(0.02, 0.2)
        tip = 0.5 * size + radius
        robot = RobotExtent(tip, tip, lane * rng.uniform(0.8, 1.3), radius, lane)
        settings = {
            "goal_distance_m": size * rng.uniform(1.0, 8.0), "width_m": size * rng.uniform(0.5, 4.0),
            "gap_m": lane * rng.uniform(1.0, 6.0), "turn_rad": rng.uniform(0.0, 1.39),
            "obstacle_radius_m": size * rng.uniform(0.01, 0.2), "jitter": rng.random(), "walls": rng.random() < 0.7,
            "staggered": rng.random() < 0.5, "n_turns": int(rng.integers(1, 7)), "radius_spread": 0.9 * rng.random(),
        }  # fmt: skip
        chosen = {name: value for name, value in settings.items() if rng.random() < 0.3}
        try:
            fields = maker(kind, rng.random(), robot, **chosen)
        except ConfigError:
            continue
        for _ in range(5):
            field = fields.make(rng, (0.3, -2.0), rng.uniform(-4.0, 4.0))
            n_made += 1
            assert sampled_clearance(field.route, field.features) >= fields.clearance_m - 1e-8
            assert distance(field.features, start_region(robot, field.start_xy, field.start_heading)).min() > 0.0


@pytest.mark.parametrize("kind", RANDOM_KINDS)
def test_a_generator_decides_everything(kind: str) -> None:
    fields, other = maker(kind, 0.8), maker(kind, 0.8)
    first = fields.make(np.random.default_rng(4))
    for _ in range(3):
        fields.make(np.random.default_rng(5))
    again = other.make(np.random.default_rng(4))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(fields.make(np.random.default_rng(5)).features[:5], first.features[:5])
    used, counted = np.random.default_rng(4), np.random.default_rng(4)
    fields.make(used)
    counted.integers(0, 1 << 63)
    assert used.random() == counted.random(), "a field takes one number, however often it is drawn"


@pytest.mark.parametrize("kind", RANDOM_KINDS)
def test_start_and_heading_only_move_the_field(kind: str) -> None:
    fields = maker(kind)
    home = fields.make(np.random.default_rng(2))
    moved = fields.make(np.random.default_rng(2), (3.0, -1.0), 2.0)
    turn = np.array([[np.cos(2.0), np.sin(2.0)], [-np.sin(2.0), np.cos(2.0)]])
    np.testing.assert_allclose(moved.features[:, :2], home.features[:, :2] @ turn + [3.0, -1.0], atol=1e-12)
    np.testing.assert_allclose(moved.features[:, 2:4], home.features[:, 2:4] @ turn, atol=1e-12)
    np.testing.assert_array_equal(moved.features[:, 4:], home.features[:, 4:])
    np.testing.assert_allclose(moved.route, home.route @ turn + [3.0, -1.0], atol=1e-12)


def peg_gaps(field: Field) -> FloatArray:
    """Distance from surface to surface of each peg or tree and its nearest neighbour."""
    pegs = field.features[field.features[:, 4] == 0.0]
    gaps = np.hypot(*(pegs[:, None, :2] - pegs[None, :, :2]).transpose(2, 0, 1)) - pegs[:, 5] - pegs[:, None, 5]
    return (gaps + np.diag(np.full(len(pegs), np.inf))).min(axis=1)


@pytest.mark.parametrize(("difficulty", "factor"), [(0.0, 2.2), (0.5, 1.7), (1.0, 1.2)])
def test_difficulty_is_what_the_table_says(difficulty: float, factor: float) -> None:
    rng = np.random.default_rng(0)
    for staggered in (True, False):
        gaps = peg_gaps(maker("pegboard", difficulty, jitter=0.0, staggered=staggered).make(rng))
        np.testing.assert_allclose(gaps, factor * LANE_M, rtol=1e-9)
    jittered = peg_gaps(maker("pegboard", difficulty, jitter=0.3).make(rng))
    assert 0.55 * factor * LANE_M < jittered.min() < 0.98 * factor * LANE_M
    trees = [peg_gaps(maker("forest", difficulty).make(rng)).min() for _ in range(20)]
    assert min(trees) >= (1.5 - 0.75 * difficulty) * LANE_M - 1e-9
    corridor = maker("corridor", difficulty).make(rng)
    middle = corridor.route[-1] + 0.4 * (corridor.route[-8] - corridor.route[-1])
    walls = np.sort([distance(row[None], middle[None])[0] for row in corridor.features])[:2]
    assert walls.sum() == pytest.approx(factor * LANE_M, rel=1e-6)
    gates = maker("gates", difficulty, walls=False).make(rng).features
    for x in np.unique(gates[:, 0]):
        ends = gates[gates[:, 0] == x]
        low, high = sorted(y for row in ends for y in (row[1], row[1] + row[3] * row[4]))[1:3]
        assert high - low - 2.0 * ends[0, 5] == pytest.approx(factor * LANE_M, rel=1e-9)


def test_a_forest_is_as_dense_as_asked() -> None:
    fields = maker("forest", density_m2=2.0, gap_m=0.2, goal_distance_m=10.0, width_m=4.0)
    trees = fields.make(np.random.default_rng(0)).features[:-2]
    area = (10.0 - 0.73 - 0.15 - 0.21) * 4.0
    assert len(trees) == pytest.approx(2.0 * area, rel=0.05)
    assert 0.036 <= trees[:, 5].min() < 0.045 < 0.075 < trees[:, 5].max() <= 0.084


def test_where_no_way_is_left_one_is_made() -> None:
    """Pegs that stand too close for the robot everywhere: the fewest that bar the straight way are taken away."""
    fields = maker("pegboard", gap_m=0.15, jitter=0.0)
    for seed in range(5):
        field = fields.make(np.random.default_rng(seed))
        assert field.n_draws == DRAWS and 0 < field.n_removed < 0.4 * (len(field.features) + field.n_removed)
        assert sampled_clearance(field.route, field.features) >= ROBOT.clearance_m - 1e-8
        again = fields.make(np.random.default_rng(seed))
        assert np.array_equal(field.features, again.features)


SHAPES = [
    {"x_m": 1.5, "y_m": 0.1, "radius_m": 0.1},
    {"x0_m": 2.0, "y0_m": -0.9, "x1_m": 2.0, "y1_m": -0.1},
    {"x0_m": 1.0, "y0_m": 1.0, "x1_m": 3.0, "y1_m": 1.2, "radius_m": 0.05},
    {"points": [[2.2, 0.4], [2.6, 0.4], [2.4, 0.8]]},
]


def test_given_shapes_stand_where_they_are_told_to() -> None:
    fields = maker("list", shapes=SHAPES, goal_m=[3.0, 0.5])
    field = fields.make(np.random.default_rng(0), (1.0, 0.0), math.pi / 2)
    assert len(field.features) == 1 + 1 + 1 + 3 == fields.bounds.max_features
    np.testing.assert_allclose(field.features[0, :2], [1.0 - 0.1, 1.5])
    np.testing.assert_allclose(field.goal_xy, [0.5, 3.0])
    assert sampled_clearance(field.route, field.features) >= ROBOT.clearance_m - 1e-8
    assert isinstance(fields.config.shapes[0], Circle) and isinstance(fields.config.shapes[1], Wall)
    assert np.array_equal(features(fields.config.shapes)[:, 4:], field.features[:, 4:])


@pytest.mark.parametrize("kind", ["bends", "gates"])
def test_a_wide_robot_gets_as_many_turns_as_there_is_room_for(kind: str) -> None:
    walls = [len(maker(kind, clearance_m=c).make(np.random.default_rng(0)).features) for c in (0.15, 0.35)]
    per_turn = 2
    assert 0 < walls[0] - walls[1] <= 2 * per_turn, "one or two turns are left of three"
