"""The grid lists every feature that a link can touch, fits within its room, and says so where it does not."""

from __future__ import annotations

import numpy as np
import pytest

from snake_gym.config import ConfigError
from snake_gym.obstacles.fields import FieldConfig, FieldMaker, RobotExtent
from snake_gym.obstacles.grid import FieldBounds, empty_arrays, with_ends, write_world
from snake_gym.obstacles.shapes import Circle, FloatArray, Polygon, Wall, distance, features
from snake_gym.physics.state import Obstacles

ROBOT = RobotExtent(front_m=0.73, rear_m=0.73, half_width_m=0.18, radius_m=0.03, clearance_m=0.15)
REACH_M, SKIN_M = 0.13, 0.03


def listed(arrays: Obstacles, world: int, x: float, y: float) -> set[int]:
    """What one look-up finds at a point, as the physics does it."""
    ix = int(np.floor((x - arrays.origin_xy[world, 0]) / arrays.cell_m))
    iy = int(np.floor((y - arrays.origin_xy[world, 1]) / arrays.cell_m))
    n_x, n_y = arrays.n_cells[world]
    if not (0 <= ix < n_x and 0 <= iy < n_y):
        return set()
    first, last = arrays.cell_start[world, ix * n_y + iy : ix * n_y + iy + 2]
    return set(arrays.cell_item[world, first:last].tolist())


def random_features(rng: np.random.Generator, k: int, size: float) -> FloatArray:
    angle = rng.uniform(-np.pi, np.pi, k)
    length = np.where(rng.random(k) < 0.5, 0.0, rng.uniform(0.0, size, k))
    start = rng.uniform(-size, size, (k, 2))
    radius = rng.uniform(0.0, 0.2, k) * (rng.random(k) < 0.8)
    return np.column_stack([start, np.cos(angle), np.sin(angle), length, radius])


@pytest.mark.parametrize(("k", "size", "cell_m"), [(20, 2.0, None), (40, 3.0, 0.05), (500, 8.0, 0.3), (1, 0.5, 1.0)])
def test_every_feature_within_reach_is_listed(k: int, size: float, cell_m: float | None) -> None:
    rng = np.random.default_rng(k)
    rows = random_features(rng, k, size)
    bounds = FieldBounds(k, 4.0 * size + 0.4, float(rows[:, 4].sum()), 0.2)
    arrays = empty_arrays(2, bounds, REACH_M, SKIN_M, cell_m)
    write_world(arrays, 1, rows, REACH_M)
    points = rng.uniform(-2.2 * size, 2.2 * size, (1500, 2))
    points[:500] = rows[rng.integers(0, k, 500), :2] + rng.normal(scale=0.1, size=(500, 2))
    gaps = np.stack([distance(row[None], points) for row in rows], axis=1)
    n_near = 0
    for point, gap in zip(points, gaps, strict=True):
        near = set(np.flatnonzero(gap <= REACH_M).tolist())
        assert near <= listed(arrays, 1, *point)
        n_near += len(near)
    assert n_near > 200


def test_segments_get_a_disc_at_each_end_and_shared_corners_one() -> None:
    square = Polygon(((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)))
    rows = features([square, Circle(5.0, 5.0, 0.2), Wall(3.0, 0.0, 3.0, 2.0)])
    made = with_ends(rows)
    np.testing.assert_array_equal(made[: len(rows)], rows)
    discs = made[len(rows) :]
    assert (discs[:, 4:] == 0.0).all()
    assert sorted(map(tuple, discs[:, :2].round(9).tolist())) == sorted([*square.points, (3.0, 0.0), (3.0, 2.0)])
    np.testing.assert_allclose(distance(made, np.array([[3.3, 2.4]])), distance(rows, np.array([[3.3, 2.4]])))


def test_worlds_are_written_anew_and_one_by_one() -> None:
    rng = np.random.default_rng(1)
    arrays = empty_arrays(3, FieldBounds(30, 13.0, 60.0, 0.2), REACH_M, SKIN_M)
    many, few = random_features(rng, 30, 3.0), random_features(rng, 2, 1.0)
    write_world(arrays, 0, many, REACH_M)
    write_world(arrays, 1, many, REACH_M)
    before = [array[0].copy() for array in arrays[:5]]
    write_world(arrays, 1, few, REACH_M)
    assert all(np.array_equal(a, b[0]) for a, b in zip(before, arrays[:5], strict=True))
    np.testing.assert_array_equal(arrays.feature[1, :2], few)
    assert distance(arrays.feature[1, 2:], np.zeros((1, 2)))[0] > 1e5
    fresh = empty_arrays(1, FieldBounds(30, 13.0, 60.0, 0.2), REACH_M, SKIN_M)
    write_world(fresh, 0, few, REACH_M)
    total = int(np.prod(fresh.n_cells[0]))
    np.testing.assert_array_equal(arrays.n_cells[1], fresh.n_cells[0])
    np.testing.assert_array_equal(arrays.cell_start[1, : total + 1], fresh.cell_start[0, : total + 1])
    assert arrays.n_cells[2].tolist() == [0, 0]
    write_world(arrays, 0, few[:0], REACH_M)
    assert arrays.n_cells[0].tolist() == [0, 0]


def test_what_does_not_fit_is_an_error() -> None:
    rows = random_features(np.random.default_rng(2), 5, 2.0)
    with pytest.raises(ConfigError, match="world 0 has 5 features; expected at most 4"):
        write_world(empty_arrays(1, FieldBounds(4, 9.0, 10.0, 0.2), REACH_M, SKIN_M), 0, rows, REACH_M)
    with pytest.raises(ConfigError, match="grid cells"):
        write_world(empty_arrays(1, FieldBounds(5, 0.5, 10.0, 0.2), REACH_M, SKIN_M), 0, rows, REACH_M)
    rows[:, 4] = 3.0
    with pytest.raises(ConfigError, match="grid items"):
        write_world(empty_arrays(1, FieldBounds(5, 9.0, 0.0, 0.0), 0.1, 0.0, 0.05), 0, rows, 0.4)
    with pytest.raises(ConfigError, match=r"skin_m 0\.2"):
        empty_arrays(1, FieldBounds(5, 9.0, 1.0, 0.0), 0.1, 0.2)


@pytest.mark.parametrize("kind", ["pegboard", "forest", "corridor", "bends", "gates"])
@pytest.mark.parametrize("difficulty", [0.0, 1.0])
def test_the_room_for_a_config_suffices_for_all_its_fields(kind: str, difficulty: float) -> None:
    maker = FieldMaker(FieldConfig(kind=kind, difficulty=difficulty), ROBOT)
    arrays = empty_arrays(1, maker.bounds, REACH_M, SKIN_M)
    with_end_room = empty_arrays(1, maker.bounds.with_ends(), REACH_M, SKIN_M)
    rng = np.random.default_rng(0)
    for _ in range(200):
        field = maker.make(rng, (3.0, -1.0), rng.uniform(-np.pi, np.pi))
        write_world(arrays, 0, field.features, REACH_M)
        write_world(with_end_room, 0, with_ends(field.features), REACH_M)
        assert np.count_nonzero(field.features[:, 4]) <= maker.bounds.max_segments
        assert field.features[:, 4].sum() <= maker.bounds.total_length_m
        assert field.features[:, 5].max() <= maker.bounds.max_radius_m
