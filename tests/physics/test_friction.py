"""Robots that stick and slip on dry ground: the order of the step is kept, and worlds do not touch each other."""

from __future__ import annotations

import dataclasses

import numpy as np

from snake_gym.robot.presets import ROBO_CONDA
from snake_gym.simulation.simulated_robot import SimulatedRobot


def crawl(dt: float, seconds: float = 12.0) -> np.ndarray:
    spec = dataclasses.replace(ROBO_CONDA, sim_dt_s=dt)
    robot = SimulatedRobot(spec, 1, 1)
    wave = 0.87 * np.arange(spec.n_joints)
    robot.set_shape(0.6 * np.sin(wave)[None], np.zeros(1), np.zeros((1, 2)))
    for step in range(round(seconds / spec.control_dt_s)):
        robot.step(0.6 * np.sin(2.4 * (step + 1) * spec.control_dt_s + wave)[None])
    return robot.state.centre_xy[0].copy()


def test_a_crawling_robot_on_dry_ground_converges_faster_than_first_order() -> None:
    """Wheels stick and slip some forty times a second here; a first-order method would gain a factor 4."""
    converged = crawl(0.1 / 640)
    errors = [float(np.linalg.norm(crawl(dt) - converged)) for dt in (0.01, 0.0025)]
    assert errors[0] < 0.05 * np.linalg.norm(converged)
    assert errors[1] < errors[0] / 6.0


def test_a_robot_alone_is_the_robot_in_a_batch_bit_for_bit_on_dry_ground() -> None:
    rng = np.random.default_rng(0)
    angles = rng.uniform(-0.5, 0.5, (11, ROBO_CONDA.n_joints))
    goals = rng.uniform(-0.6, 0.6, (20, 11, ROBO_CONDA.n_joints))
    batch = SimulatedRobot(ROBO_CONDA, 11, 2)
    batch.set_shape(angles, np.zeros(11), np.zeros((11, 2)))
    for goal in goals:
        batch.step(goal)
    for world in (0, 6, 10):
        alone = SimulatedRobot(ROBO_CONDA, 1, 1)
        alone.set_shape(angles[world : world + 1], np.zeros(1), np.zeros((1, 2)))
        for goal in goals:
            alone.step(goal[world : world + 1])
        np.testing.assert_array_equal(alone.state.link_angle[0], batch.state.link_angle[world])
        np.testing.assert_array_equal(alone.state.centre_xy[0], batch.state.centre_xy[world])
