"""Work of the servos against Lagrange's equations: the torque peaks for milliseconds after each new reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.accuracy import draw_scenarios
from snake_gym.robot.presets import PRESETS
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.oracles.dry_chain import follow_gait

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
