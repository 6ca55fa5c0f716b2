"""A robot that folds onto itself says how deep, against the distances of all pairs of links."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.oracles.link_overlap import deepest_overlaps

HALF = np.array([0.05, 0.08, 0.06, 0.07, 0.07, 0.06, 0.06, 0.09])
RADIUS = np.array([0.03, 0.02, 0.04, 0.03, 0.05, 0.03, 0.02, 0.04])
SPEC = replace(
    RESILIENT_SERVO, n_links=8, link_half_length_m=tuple(HALF.tolist()), link_radius_m=tuple(RADIUS.tolist()),
    sim_dt_s=1e-4, control_dt_s=1e-4, links_touch=False,
)  # fmt: skip


def test_the_overlap_is_that_of_the_deepest_pair() -> None:
    n_worlds = 60
    rng = np.random.default_rng(0)
    robot = SimulatedRobot(SPEC, n_worlds, 1)
    shapes = rng.uniform(-1.0, 1.0, (n_worlds, 7)) * rng.uniform(0.0, 3.0, (n_worlds, 1))
    robot.set_shape(shapes, rng.uniform(-9.0, 9.0, n_worlds), rng.normal(size=(n_worlds, 2)))
    robot.step(shapes)
    expected = np.maximum(deepest_overlaps(robot.state.link_angle, HALF, RADIUS), 0.0)
    np.testing.assert_allclose(robot.state.self_overlap_m, expected, atol=1e-9)
    np.testing.assert_array_equal(robot.state.overlap_now_m, robot.state.self_overlap_m)
    assert 8 < np.count_nonzero(expected) < 50


def test_the_deepest_overlap_is_kept_until_the_robot_is_placed_anew() -> None:
    short = tuple(HALF * [1.0, 1.0, 0.5, 1.0, 1.0, 0.3, 1.0, 1.0])  # ends of their neighbours overlap when straight
    robot = SimulatedRobot(replace(SPEC, link_half_length_m=short), 1, 1)
    folded, straight = np.full((1, 7), 1.2), np.zeros((1, 7))
    robot.set_shape(folded, np.zeros(1), np.zeros((1, 2)))
    robot.step(folded)
    deepest = robot.state.self_overlap_m[0]
    assert deepest > 0.01
    robot.state.link_angle[:] = 0.0
    robot.step(straight)
    assert (robot.state.self_overlap_m[0], robot.state.overlap_now_m[0]) == (deepest, 0.0)
    robot.set_shape(straight, np.zeros(1), np.zeros((1, 2)))
    robot.step(straight)
    assert robot.state.self_overlap_m[0] == 0.0
