"""Point-of-sight guidance: signs, wrapping, tracked point, and its formula written out for one robot."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snake_gym.controllers.guidance import PointOfSight, steering_offset, wrap_angle
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


@given(st.floats(-1e3, 1e3))
def test_wrap_angle_changes_by_whole_turns(angle: float) -> None:
    (result,) = wrap_angle(np.array([angle]))
    assert -math.pi - 1e-12 < result <= math.pi + 1e-12
    turns = (angle - result) / (2.0 * math.pi)
    assert turns == pytest.approx(round(turns), abs=1e-9)


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
