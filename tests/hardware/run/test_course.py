"""Targets are reached and progress is made by what was measured, and not while the pose is lost."""

from __future__ import annotations

import numpy as np
import pytest

from snake_gym.hardware.run.robot_loop import CourseConfig, MeasuredCourse
from snake_gym.robot.measurement import Measurement
from snake_gym.robot.presets import RESILIENT_SERVO


def at(x: float, y: float, valid: bool = True) -> Measurement:
    joints = np.zeros((1, RESILIENT_SERVO.n_joints))
    return Measurement(joints, joints, np.array([[x, y]]), np.zeros(1), np.array([valid]))


def test_progress_and_targets_follow_the_measured_head() -> None:
    course = MeasuredCourse(CourseConfig(((1.0, 0.0), (1.0, 1.0)), 0.1, "head"), RESILIENT_SERVO)
    assert np.isnan(course.distance_m)
    course.begin(at(0.0, 0.0))
    assert course.distance_m == pytest.approx(1.0)
    assert course.advance(at(0.5, 0.0)) == (pytest.approx(0.5), False)
    assert course.advance(at(0.5, 0.0, valid=False)) == (0.0, False)
    made, reached = course.advance(at(0.95, 0.0))
    assert (round(made, 9), reached) == (0.45, True)
    np.testing.assert_array_equal(course.goal().target_xy_w, [[1.0, 1.0]])
    assert course.distance_m == pytest.approx(np.hypot(0.05, 1.0))
    course.advance(at(1.0, 0.95))
    assert course.complete
    assert not course.goal().active[0]
    assert course.advance(at(3.0, 3.0)) == (0.0, False)
    assert course.progress_m == pytest.approx(0.95 + np.hypot(0.05, 1.0) - 0.05)


def test_a_course_without_targets_is_refused() -> None:
    with pytest.raises(ValueError, match="targets is empty; expected at least one"):
        CourseConfig(targets=())
