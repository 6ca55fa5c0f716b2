"""Servos against Lagrange's equations: work, with a torque that peaks after each new reference, and dead bands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.accuracy import draw_scenarios
from benchmarks.mujoco_chain import MujocoChain
from snake_gym.robot.presets import PRESETS, RESILIENT_SERVO
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.oracles.dry_chain import follow_gait, run_gait
from tests.oracles.random_crawlers import crawl

SECONDS = 6.0


@pytest.mark.parametrize("name", ["resilient_servo", "pegboard"])
@pytest.mark.parametrize("step_s", [0.01, 0.005])
def test_the_work_of_a_gait_on_viscous_ground_is_that_of_lagranges_equations(name: str, step_s: float) -> None:
    spec = replace(PRESETS[name], sim_dt_s=step_s)
    references = draw_scenarios(spec, 1).references()[: round(SECONDS / spec.control_dt_s)]
    robot = SimulatedRobot(spec, 1, 1)
    robot.set_shape(references[:1], np.zeros(1), np.zeros((1, 2)), "centre")
    for reference in references:
        robot.step(reference[None])
    truth = follow_gait(spec, references)[-1, -1]
    assert robot.state.work_j[0] == pytest.approx(truth, rel=0.02)


def test_a_dead_band_beside_a_speed_limit_moves_the_robot_as_lagranges_equations_say() -> None:
    base = RESILIENT_SERVO
    servo = replace(base.actuator, kp=10.0, kd=0.8, speed_limit_rad_s=2.0, dead_band_rad=0.1)
    spec = replace(base, n_links=5, actuator=servo, sim_dt_s=5e-4)
    phase = np.arange(4) - 0.6 * np.arange(20)[:, None]
    references = 0.7 * np.sin(phase)
    truth = run_gait(spec, references)
    way = np.hypot(*np.diff(truth, axis=0).T).sum()
    assert way > 0.3 and np.abs(crawl(spec, references) - truth).max() < 2e-3 * way


@pytest.mark.parametrize(("step_s", "settles"), [(1e-3, False), (2.5e-4, True)])
def test_mujoco_does_not_hold_a_long_chain_at_a_step_of_a_millisecond(step_s: float, settles: bool) -> None:
    spec = replace(RESILIENT_SERVO, n_links=28)
    reference = 0.35 * np.sin(0.5 * np.arange(27))
    chain = MujocoChain(spec, step_s, "implicitfast", True, reference)
    chain.step(round(3.0 / step_s))
    assert (np.abs(chain.data.qvel).max() < 0.1) == settles
    robot = SimulatedRobot(spec, 1, 1)
    robot.set_shape(np.zeros((1, 27)), np.zeros(1), np.zeros((1, 2)))
    robot.step(reference[None], None, round(3.0 / spec.step_s))
    assert np.abs(robot.joint_rate()).max() < 0.01 and robot.spec.step_s == 0.01
