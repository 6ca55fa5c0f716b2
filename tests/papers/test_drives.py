"""Runs that are written down: samples, targets, and the guide's view."""

from __future__ import annotations

import numpy as np
import pytest

from papers.drives import Follower, PathGuide, TargetSequence, drive, place
from snake_gym.controllers import make_controller
from snake_gym.controllers.line_of_sight import LineOfSight
from snake_gym.obstacles.polyline import Path
from snake_gym.robot.presets import PEGBOARD
from snake_gym.simulation.simulated_robot import SimulatedRobot


def robots(n_worlds: int = 1) -> SimulatedRobot:
    robot = SimulatedRobot(PEGBOARD, n_worlds, 1)
    bend = np.tile(np.linspace(-0.3, 0.2, PEGBOARD.n_joints), (n_worlds, 1))
    place(robot, bend, np.full(n_worlds, 0.4), np.tile([2.0, 1.0], (n_worlds, 1)))
    return robot


def test_targets_follow_one_another_in_each_world() -> None:
    guide = TargetSequence(np.array([[[1.0, 0.0], [2.0, 0.0]], [[1.0, 1.0], [2.0, 1.0]]]), 0.1)
    goal = guide.goal(np.array([[0.95, 0.0], [0.0, 0.0]]))
    np.testing.assert_array_equal(goal.target_xy_w, [[2.0, 0.0], [1.0, 1.0]])
    goal = guide.goal(np.array([[2.0, 0.05], [1.0, 1.0]]))
    assert goal.active.tolist() == [False, True] and guide.index.tolist() == [2, 1]


def test_samples_within_a_control_step_come_on_the_way() -> None:
    sight = LineOfSight(Path([[0.0, 0.0], [10.0, 0.0]]))
    follower = Follower(make_controller("pfl", PEGBOARD), PathGuide(sight, 1))
    coarse = drive(robots(), follower, 1.0)
    fine = drive(robots(), Follower(follower.controller, PathGuide(sight, 1)), 1.0, samples=5)
    assert len(coarse.time_s) == 10 and len(fine.time_s) == 50
    np.testing.assert_allclose(fine.time_s[4::5], coarse.time_s)
    np.testing.assert_allclose(fine.centre_xy[4::5], coarse.centre_xy, atol=2e-3)
    assert np.isnan(fine.wanted[:4]).all() and np.isfinite(fine.wanted[4::5]).all()
    assert coarse.cross_track_m[0, 0] == pytest.approx(1.0)
    with pytest.raises(ValueError, match="samples is 3; expected a divisor of the 10 steps"):
        drive(robots(), follower, 1.0, samples=3)
