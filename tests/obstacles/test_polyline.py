"""Polylines by arc length, and points spread over them."""

import numpy as np
import pytest

from snake_gym.config import ConfigError
from snake_gym.obstacles.polyline import Routes, spread_points

L_SHAPE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 2.0]])
HAIRPIN = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 0.2], [0.0, 0.2]])


@pytest.fixture
def routes() -> Routes:
    made = Routes(2, 4)
    made.xy[:] = L_SHAPE, HAIRPIN
    made.restored()
    return made


def test_lengths_and_places(routes: Routes) -> None:
    np.testing.assert_allclose(routes.length_m, [3.0, 8.2])
    np.testing.assert_allclose(routes.place(np.array([0.5, 4.1])), [[0.5, 0.0], [4.0, 0.1]])
    np.testing.assert_allclose(routes.place(np.array([1.5, 5.2])), [[1.0, 0.5], [3.0, 0.2]])
    np.testing.assert_allclose(routes.place(np.array([-1.0, 99.0])), [[0.0, 0.0], [0.0, 0.2]])
    np.testing.assert_allclose(routes.place(np.array([99.0]), np.array([0])), [[1.0, 2.0]])


def test_the_nearest_place_is_that_of_a_search_over_all_places(routes: Routes) -> None:
    rng = np.random.default_rng(0)
    arc = np.linspace(0.0, 8.2, 4101)
    for _ in range(50):
        point, last = rng.uniform(-0.5, 2.0, (2, 2)), rng.uniform(0.0, 3.0, 2)
        found = routes.nearest(point, last, 0.7)
        for world in range(2):
            near = arc[(np.abs(arc - last[world]) <= 0.7) & (arc <= routes.length_m[world])]
            places = routes.place(near, np.full(near.size, world))
            gap = np.hypot(*(places - point[world]).T)
            own = np.hypot(*(routes.place(found[world : world + 1], np.array([world]))[0] - point[world]))
            assert own <= gap.min() + 1e-12
            assert own >= gap.min() - 3e-3
            assert abs(found[world] - last[world]) <= 0.7 + 1e-12


def test_points_are_spread_without_moving_the_line() -> None:
    route = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.1], [4.0, 0.1]])
    points = spread_points(route, 40)
    assert points.shape == (40, 2)
    for corner in route:
        assert np.hypot(*(points - corner).T).min() < 1e-12
    steps = np.hypot(*np.diff(points, axis=0).T)
    assert steps.max() < 1.2 * 4.1 / 39 and steps.sum() == pytest.approx(4.1)
    np.testing.assert_array_equal(spread_points(route, 4), route)
    with pytest.raises(ConfigError, match="route has 4 corners; expected at most 3"):
        spread_points(route, 3)
