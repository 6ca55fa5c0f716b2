"""The learned bias: against a robot of one equation, and on simulated robots with failed joints."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from snake_gym.controllers import make_controller
from snake_gym.controllers.guidance import wrap_angle
from snake_gym.physics.faults import FREE, LOCKED
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.presets import RESILIENT_SERVO, ROBO_CONDA
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.sensors import SensorConfig, measure
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.simulation.streams import RandomStreams
from tests.controllers.worlds import SPEC, straight_world

DT_S = 0.2
GAIT = {"kind": "adaptive_bias", "amplitude_rad": 0.5, "frequency_rad_s": 1.5}
STEPS_PER_PERIOD = math.ceil(2.0 * math.pi / 1.5 / DT_S)


def aimless(n_worlds: int) -> Goal:
    return Goal(np.zeros((n_worlds, 2)), np.zeros(n_worlds, dtype=bool))


def pointing(heading: FloatArray, xy: FloatArray | None = None) -> Measurement:
    """Straight robots with these headings."""
    world, _ = straight_world(heading.size)
    return world._replace(head_angle=heading, head_xy_w=np.zeros((heading.size, 2)) if xy is None else xy)


@pytest.mark.parametrize("frequency", [1.5, -1.5])
def test_it_learns_the_bias_that_stops_a_robot_from_turning(frequency: float) -> None:
    """theta_dot = -/+ g (bias - b*), by the sense of travel: the robot ends on its first heading with bias b*."""
    needed = np.radians([0.0, 4.0, -6.0])
    controller = make_controller({**GAIT, "frequency_rad_s": frequency}, SPEC)
    state = controller.initial_state(3)
    heading = np.array([0.0, 2.0, -3.0])
    first = heading.copy()
    gain = math.copysign(5.0, frequency) / (STEPS_PER_PERIOD * DT_S)
    for _ in range(60 * STEPS_PER_PERIOD):
        controller.command(pointing(heading), aimless(3), state, DT_S)
        heading = heading - gain * (state["bias_rad"] - needed) * DT_S
    np.testing.assert_allclose(heading, first, atol=math.radians(0.2))
    np.testing.assert_allclose(state["learned_rad"], needed, atol=math.radians(0.2))


def test_the_course_is_the_bearing_of_the_target_and_is_kept_when_the_target_falls_away() -> None:
    controller = make_controller(GAIT, SPEC)
    state = controller.initial_state(1)
    heading = np.array([0.0])
    aside = Goal(np.array([[0.0, 1e6]]), np.ones(1, dtype=bool))
    for k in range(120 * STEPS_PER_PERIOD):
        active = k < 60 * STEPS_PER_PERIOD
        controller.command(pointing(heading), aside._replace(active=np.array([active])), state, DT_S)
        heading = heading - state["bias_rad"] * DT_S
    np.testing.assert_allclose(wrap_angle(heading - 0.5 * math.pi), 0.0, atol=math.radians(0.5))
    np.testing.assert_allclose(state["course_rad"], heading, atol=math.radians(1.0))


def test_a_lost_pose_teaches_nothing() -> None:
    controller = make_controller(GAIT, SPEC)
    state = controller.initial_state(1)
    for k in range(40 * STEPS_PER_PERIOD):
        heading = np.array([0.0 if k == 0 else 1.0])
        sample = pointing(heading)._replace(pose_valid=np.array([k == 0]))
        controller.command(sample, aimless(1), state, DT_S)
    np.testing.assert_allclose(state["bias_rad"], 0.0, atol=1e-12)
    assert np.isfinite(state["course_rad"]).all()


def turned(
    spec: RobotSpec, kind: str, joint: int, fault: int, shift_deg: float, seconds: float, angle: float | None = None
) -> float:
    """By how much one robot with a failed joint has turned in all [deg]."""
    amplitude, frequency = (math.radians(38.0), math.radians(140.0)) if spec is not RESILIENT_SERVO else (0.52, 1.5)
    settings = {"kind": kind, "amplitude_rad": amplitude, "frequency_rad_s": frequency}
    controller = make_controller({**settings, "phase_shift_rad": math.radians(shift_deg)}, spec)
    state = controller.initial_state(1)
    robot = SimulatedRobot(spec, 1)
    shape = amplitude * np.sin(math.radians(shift_deg) * np.arange(spec.n_joints))[None]
    if angle is not None:
        shape[0, joint - 1] = angle
    robot.set_shape(shape, np.zeros(1), np.zeros((1, 2)))
    start = robot.state.link_angle.mean()
    robot.faults.kind[0, joint - 1] = fault
    streams = RandomStreams("test", 1)
    for _ in range(round(seconds / spec.control_dt_s)):
        sample = measure(robot, SensorConfig(), streams)
        robot.step(controller.command(sample, aimless(1), state, spec.control_dt_s))
    return abs(math.degrees(float(robot.state.link_angle.mean() - start)))


def test_robo_conda_with_a_free_joint_in_the_middle_keeps_its_course() -> None:
    spec = replace(ROBO_CONDA, control_dt_s=0.05)
    drift = {kind: turned(spec, kind, 7, FREE, 32.5, 80.0) for kind in ("serpenoid", "adaptive_bias")}
    assert drift["serpenoid"] > 100.0
    assert drift["adaptive_bias"] < 25.0


@pytest.mark.parametrize("joint", [2, 5, 8])
def test_a_joint_locked_aside_no_longer_turns_the_robot(joint: int) -> None:
    drift = {
        kind: turned(RESILIENT_SERVO, kind, joint, LOCKED, 40.0, 150.0, math.radians(20.0))
        for kind in ("serpenoid", "adaptive_bias")
    }
    assert drift["serpenoid"] > 200.0
    assert drift["adaptive_bias"] < 6.0
