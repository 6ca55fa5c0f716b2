"""Partial feedback linearisation on simulated robots: how closely joints follow, and what it does without a pose."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from papers.drives import measure, place
from snake_gym.controllers import make_controller
from snake_gym.controllers.feedback_linearization import Pfl
from snake_gym.controllers.nominal_joint import fade
from snake_gym.robot.measurement import Goal
from snake_gym.robot.presets import MUSCLE, PEGBOARD, RESILIENT, RESILIENT_SERVO
from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot

WAVE = {"amplitude_rad": math.radians(30.0), "frequency_rad_s": 1.5, "phase_shift_rad": math.radians(40.0)}
SLOW_WAVE = {"amplitude_rad": math.radians(20.0), "frequency_rad_s": math.radians(50.0)}
FAST_WAVE = {"amplitude_rad": math.radians(30.0), "frequency_rad_s": 6.28, "phase_shift_rad": math.radians(72.0)}


def joint_error(spec: RobotSpec, seconds: float, lost: slice = slice(0, 0), **settings: Any) -> float:
    """Root mean square of what the joints miss of their gait in the last half [deg]; poses ``lost`` by step."""
    robot, controller = SimulatedRobot(spec, 1, 1), make_controller({"kind": "pfl", **settings}, spec)
    assert isinstance(controller, Pfl)
    place(robot, np.zeros((1, spec.n_joints)), np.zeros(1), np.zeros((1, 2)))
    state, goal = controller.initial_state(1), Goal(np.array([[1e3, 0.0]]), np.ones(1, bool))
    steps = round(seconds / spec.control_dt_s)
    error = []
    for step in range(steps):
        sample = measure(robot)
        if lost.start <= step < lost.stop:
            sample = sample._replace(pose_valid=np.zeros(1, bool), head_xy_w=np.zeros((1, 2)))
        robot.step(controller.command(sample, goal, state, spec.control_dt_s))
        error.append(controller.wanted(state) - robot.joint_angle())
    return float(np.degrees(np.sqrt(np.mean(np.square(error[steps // 2 :])))))


@pytest.mark.parametrize(
    ("spec", "wave", "limit_deg"),
    [(RESILIENT, SLOW_WAVE, 0.05), (PEGBOARD, WAVE, 1.0), (RESILIENT_SERVO, WAVE, 2.0), (MUSCLE, FAST_WAVE, 2.5)],
    ids=["acceleration", "torque", "position", "muscle"],
)
def test_joints_follow_their_gait_whatever_drives_them(
    spec: RobotSpec, wave: dict[str, float], limit_deg: float
) -> None:
    assert joint_error(spec, 12.0, **wave) < limit_deg


def test_without_feedforward_they_lag() -> None:
    """Eq. 32 on a double integrator: the error of a sine is |1 - H|, H = k_p / (k_p - w^2 + i k_d w)."""
    share = 1.0 - 25.0 / (25.0 - 1.5**2 + 15.0j)
    expected = abs(share) * 30.0 / math.sqrt(2.0)
    strong = replace(PEGBOARD, actuator=replace(PEGBOARD.actuator, torque_limit_nm=math.inf), control_dt_s=0.02)
    assert joint_error(strong, 12.0, feedforward=False, heading_gain=0.0, **WAVE) == pytest.approx(expected, rel=0.1)


def test_an_error_beyond_full_torque_is_left_to_the_servo() -> None:
    """The shipped robot answers 8 N m / 60 N m/rad = 7.6 deg with all it has, so it lags less."""
    assert 7.6 < joint_error(PEGBOARD, 12.0, feedforward=False, heading_gain=0.0, **WAVE) < 10.0


def test_a_lost_pose_is_bridged_by_the_model() -> None:
    assert joint_error(PEGBOARD, 12.0, slice(60, 110), **WAVE) < 2.0


def test_errors_fade_as_their_equation_says() -> None:
    for gain, damping in ((25.0, 10.0), (100.0, 4.0), (4.0, 10.0), (0.0, 3.0)):
        error, rate, dt = 0.3, -1.0, 1e-5
        ahead = fade(np.full((1, 9), error), np.full((1, 9), rate), np.full(9, gain), np.full(9, damping), 0.2)
        for _ in range(20000):
            middle = rate - 0.5 * dt * (damping * rate + gain * error)
            error, rate = error + dt * middle, rate - dt * (damping * middle + gain * (error + 0.5 * dt * rate))
        np.testing.assert_allclose([ahead[0][0, 0], ahead[1][0, 0]], [error, rate], atol=1e-6)
