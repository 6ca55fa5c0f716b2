"""Speed held through the frequency of the gait, on robots with different joints and grounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from papers.drives import Drive, Follower, TargetSequence, drive, place
from snake_gym.controllers import make_controller
from snake_gym.robot.presets import MUSCLE, PEGBOARD, RESILIENT_SERVO
from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.controllers.worlds import straight_world

MUSCLE_GAIT = {"amplitude_rad": math.radians(30.0), "phase_shift_rad": math.radians(72.0), "frequency_gain_rad_m": 16.0}
GAIT = {"amplitude_rad": math.radians(30.0), "phase_shift_rad": math.radians(40.0), "frequency_gain_rad_m": 5.0}


def straight_run(spec: RobotSpec, seconds: float, **settings: Any) -> Drive:
    robot = SimulatedRobot(spec, 1, 1)
    place(robot, np.zeros((1, spec.n_joints)), np.zeros(1), np.zeros((1, 2)))
    controller = make_controller({"kind": "speed", **settings}, spec)
    return drive(robot, Follower(controller, TargetSequence(np.array([[[1e3, 0.0]]]), 0.1)), seconds)


@pytest.mark.parametrize(
    ("spec", "speed", "gait"),
    [(MUSCLE, 0.15, MUSCLE_GAIT), (PEGBOARD, 0.1, GAIT), (RESILIENT_SERVO, 0.12, GAIT)],
    ids=["muscle", "pegboard", "servo"],
)
def test_the_speed_is_held(spec: RobotSpec, speed: float, gait: dict[str, float]) -> None:
    run = straight_run(spec, 24.0, speed_m_s=speed, **gait)
    late = run.centre_xy[run.time_s > 16.0, 0, 0]
    assert (late[-1] - late[0]) / ((len(late) - 1) * spec.control_dt_s) == pytest.approx(speed, rel=0.03)


def test_the_frequency_stays_within_its_limits() -> None:
    controller = make_controller({"kind": "speed", "frequency_limit_rad_s": 1.0, "speed_m_s": 10.0}, RESILIENT_SERVO)
    measurement, goal = straight_world(2)
    state = controller.initial_state(2)
    for _ in range(20):
        controller.command(measurement, goal, state, 0.2)
    np.testing.assert_allclose(state["frequency"], 1.0)
    for _ in range(200):  # the goal is reached: the robot is to stop, and it stands
        controller.command(measurement, goal._replace(active=np.zeros(2, bool)), state, 0.2)
    np.testing.assert_allclose(state["frequency"], 1.0)
    moving = goal._replace(active=np.zeros(2, bool))
    for step in range(60):
        ahead = measurement._replace(head_xy_w=np.full((2, 2), [0.2 * step, 0.0]))
        controller.command(ahead, moving, state, 0.2)
    np.testing.assert_array_equal(state["frequency"], 0.0)
