"""Guidance: the point of sight by its formula, and the targets that line of sight makes of paths."""

from __future__ import annotations

import math

import numpy as np
import pytest

from snake_gym.controllers.guidance import PointOfSight, steering_offset, wrap_angle
from snake_gym.controllers.line_of_sight import LineOfSight, LineOfSightConfig
from snake_gym.obstacles.polyline import Path, circle
from snake_gym.robot.measurement import link_angles, tracked_point
from tests.controllers.worlds import SPEC, random_world, wrapped


@pytest.mark.parametrize("point", ["centre", "head"])
def test_heading_error_is_the_formula(point: str) -> None:
    measurement, goal = random_world(50)
    error = PointOfSight(SPEC, point).heading_error(measurement, goal)  # type: ignore[arg-type]
    position = tracked_point(SPEC, measurement, point)
    for w in range(50):
        theta_bar = link_angles(measurement)[w].mean()
        d_x, d_y = goal.target_xy_w[w] - position[w]
        assert error[w] == pytest.approx(wrapped(theta_bar - math.atan2(d_y, d_x)), abs=1e-12)


def test_wrap_angle_at_the_seam() -> None:
    np.testing.assert_array_equal(wrap_angle(np.array([-math.pi, math.pi, 3.0 * math.pi])), [math.pi] * 3)


def test_offset_is_limited_and_zero_without_a_target() -> None:
    error = np.array([-3.0, -0.1, 0.1, 3.0, 3.0, np.nan])
    active = np.array([True, True, True, True, False, False])
    np.testing.assert_allclose(steering_offset(error, active, 2.0, 0.7), [-0.7, -0.2, 0.2, 0.7, 0.0, 0.0])


def test_a_derived_centre_is_taken_as_it_is() -> None:
    measurement, goal = random_world(5)
    shifted = measurement._replace(centre_xy_w=goal.target_xy_w - np.array([0.0, 1.0]))
    error = PointOfSight(SPEC, "centre").heading_error(shifted, goal)
    expected = wrap_angle(link_angles(measurement).mean(axis=1) - math.pi / 2.0)
    np.testing.assert_allclose(error, expected, atol=1e-12)


L_SHAPE = Path([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0]])


def test_the_heading_is_that_of_the_published_law() -> None:
    """Direction of the path minus atan(error / look-ahead), left positive."""
    sight = LineOfSight(Path([[0.0, 0.0], [10.0, 10.0]]), LineOfSightConfig(1.5))
    point = np.array([[2.0, 2.0], [2.0, 3.0], [3.0, 1.0]])
    state = sight.initial_state(3)
    goal = sight.goal(point, state)
    way = goal.target_xy_w - point
    error = np.array([0.0, math.sqrt(0.5), -math.sqrt(2.0)])
    np.testing.assert_allclose(state["cross_track_m"], error, atol=1e-12)
    np.testing.assert_allclose(np.arctan2(way[:, 1], way[:, 0]), math.pi / 4 - np.arctan(error / 1.5))


@pytest.mark.parametrize(("ahead", "target"), [("tangent", [4.5, 0.0]), ("path", [4.0, 0.5])])
def test_before_a_corner_the_target_is_on_the_tangent_or_round_it(ahead: str, target: list[float]) -> None:
    sight = LineOfSight(L_SHAPE, LineOfSightConfig(1.5, ahead))  # type: ignore[arg-type]
    goal = sight.goal(np.array([[3.0, 0.2]]), sight.initial_state(1))
    np.testing.assert_allclose(goal.target_xy_w, [target])


def test_a_circle_is_gone_round_and_round() -> None:
    path = circle((1.0, 2.0), 3.0, (1.0, -5.0))
    np.testing.assert_allclose(path.place(np.zeros(1)), [[1.0, -1.0]], atol=1e-9)
    assert path.length_m == pytest.approx(2.0 * math.pi * 3.0, rel=1e-4)
    sight = LineOfSight(path, LineOfSightConfig(0.5))
    state = sight.initial_state(1)
    for angle in np.linspace(0.0, 6.0 * math.pi, 400):
        goal = sight.goal(np.array([[1.0 + 3.3 * math.sin(angle), 2.0 - 3.3 * math.cos(angle)]]), state)
        assert goal.active[0]
        assert state["cross_track_m"][0] == pytest.approx(-0.3, abs=1e-3), "outside, to the right"
    assert state["arc_m"][0] == pytest.approx(3.0 * path.length_m, rel=1e-3)


def test_a_path_that_crosses_itself_is_not_left_for_its_later_part() -> None:
    s = np.linspace(0.0, 2.0 * math.pi, 400, endpoint=False)
    eight = Path(np.stack([3.0 * np.sin(s), 1.5 * np.sin(2.0 * s)], axis=1), closed=True)
    sight = LineOfSight(eight, LineOfSightConfig(0.5))
    state = sight.initial_state(1)
    for arc in np.linspace(0.0, eight.length_m, 300):
        sight.goal(eight.place(np.array([arc])) + 0.02, state)
        assert state["arc_m"][0] == pytest.approx(arc, abs=0.1)


def test_an_open_path_ends() -> None:
    sight = LineOfSight(L_SHAPE)
    state = sight.initial_state(2)
    goal = sight.goal(np.array([[4.0, 3.0], [4.1, 4.2]]), state)
    assert goal.active.tolist() == [True, False]
    np.testing.assert_allclose(goal.target_xy_w[0], [4.0, 4.5])
