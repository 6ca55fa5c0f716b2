"""Links of one chain that touch each other: closed forms, MuJoCo's capsules, energy, and random robots that curl."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.robot.spec import ActuatorSpec, FloatArray, FrictionSpec, RobotSpec
from snake_gym.simulation.simulated_robot import Precision, SimulatedRobot
from tests.oracles.link_overlap import deepest_overlaps
from tests.oracles.mujoco_chain import MujocoChain, MujocoRobot

SMOOTH = FrictionSpec(0.0, 0.0)
HALF, RADIUS, MASS = 0.07, 0.03, 1.0
TONGS = RobotSpec(
    n_links=3, link_half_length_m=HALF, link_radius_m=RADIUS, link_mass_kg=(MASS, 1e7, MASS), friction=SMOOTH,
    actuator=ActuatorSpec("torque", 0.0, 0.0), joint_limit_rad=3.0, sim_dt_s=1e-4, control_dt_s=1e-4, links_touch=True,
)  # fmt: skip
"""Two links that turn about the ends of one that does not move."""
ARM_INERTIA = 4.0 / 3.0 * MASS * HALF**2
"""About the joint [kg m^2]."""


def closing_tongs(gap_m: float) -> tuple[SimulatedRobot, float]:
    """Tongs that lean to each other until their tips have this gap; and the angle of each from upright."""
    lean = math.asin((HALF - RADIUS - 0.5 * gap_m) / (2.0 * HALF))
    robot = SimulatedRobot(TONGS, 1, 1)
    robot.set_shape(np.full((1, 2), 0.5 * math.pi + lean), np.array([-0.5 * math.pi - lean]), np.zeros((1, 2)))
    np.testing.assert_allclose(-deepest_overlaps(robot.state.link_angle, np.full(3, HALF), np.full(3, RADIUS)), gap_m)
    return robot, lean


@pytest.mark.parametrize(("first", "last"), [(3.0, 1.0), (-0.5, 2.0)])
def test_two_links_that_meet_go_on_together(first: float, last: float) -> None:
    """Without restitution: tips, of equal arms, have the mean of their speeds afterwards."""
    robot, _ = closing_tongs(1e-4)
    robot.state.link_rate[0] = [first, 0.0, -last]
    for _ in range(10):
        robot.step(np.zeros((1, 2)))
    mean = 0.5 * (first - last)
    np.testing.assert_allclose(robot.state.link_rate[0], [mean, 0.0, mean], atol=2e-3 * max(first, last))


@pytest.mark.parametrize(("first", "last"), [(2.0, 1.0), (1.0, 1.0)])
def test_two_links_pressed_together_move_by_the_difference_of_their_torques(first: float, last: float) -> None:
    robot, _ = closing_tongs(0.0)
    for _ in range(50):
        robot.step(np.zeros((1, 2)), np.array([[first, last]]))
    rate = 50 * TONGS.sim_dt_s * (first - last) / (2.0 * ARM_INERTIA)
    np.testing.assert_allclose(robot.state.link_rate[0], [rate, 0.0, rate], atol=0.01 * max(rate, 0.1))


def curling(n_links: int, **changes: Any) -> RobotSpec:
    servo = ActuatorSpec("position", kp=4.0, kd=0.8)
    friction = FrictionSpec(1.0, 10.0, 0.01)
    return replace(
        RESILIENT_SERVO, n_links=n_links, actuator=servo, friction=friction, joint_limit_rad=3.0, **changes
    )


@pytest.mark.parametrize(("n_links", "bend"), [(8, 1.2), (10, 0.9), (14, 0.8)])
def test_a_chain_that_curls_up_ends_as_in_mujoco(n_links: int, bend: float) -> None:
    spec = curling(n_links, sim_dt_s=0.005, control_dt_s=0.05)
    robot = SimulatedRobot(spec, 1, 1)
    bends = bend + 0.1 * np.sin(np.arange(spec.n_joints))
    twin = MujocoChain(MujocoRobot.of(spec), None, 1e-4, 1e-3)
    state = robot.state
    twin.set_state(state.link_angle[0], state.link_rate[0], state.centre_xy[0], state.centre_vel[0])
    away = []
    for _ in range(60):
        robot.step(bends[None])
        twin.run(0.05, reference=bends)
        away.append(np.abs(state.link_angle[0] - twin.link_angles()).max())
    assert twin.n_contacts > 0
    print(away)


def energy_after(robot: SimulatedRobot) -> FloatArray:
    robot.step(np.zeros((robot.n_worlds, robot.spec.n_joints)), None, 1)
    return robot.kinetic_energy()
