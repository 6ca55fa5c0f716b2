"""Accelerations know what they say they know; parameters of a law that a robot does not have are refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snake_gym.robot.spec import ActuatorSpec, FrictionSpec, RobotSpec
from snake_gym.simulation.robot_params import chain_params
from snake_gym.simulation.simulated_robot import SimulatedRobot

SERVO = ActuatorSpec(kp=20.0, kd=4.0)
BASE = RobotSpec(
    n_links=4, link_half_length_m=0.1, friction=FrictionSpec(1.0, 10.0), actuator=SERVO, control_dt_s=0.05,
    sim_dt_s=0.0005,
)  # fmt: skip


def servo(**changes: Any) -> dict[str, Any]:
    return {"actuator": replace(SERVO, **changes)}


LAWS: dict[str, dict[str, Any]] = {
    "torque limit": servo(torque_limit_nm=0.5),
    "speed limit": servo(speed_limit_rad_s=0.5),
    "delay": servo(delay_s=0.08),
    "Coulomb across": {"friction": replace(BASE.friction, normal_coulomb=(0.0, 0.3, 0.0, 0.0))},
    "stops": {"joint_stop_rad": 0.1},
    "joint friction": {"joint_friction_nm": 0.3},
    "dead band": servo(dead_band_rad=0.1),
    "backlash": servo(backlash_rad=0.1),
    "supply": servo(torque_limit_nm=2.0, supply_resistance_ohm=2.0),
    "muscles": {**servo(kind="muscle"), "joint_stop_rad": 0.6},
}


@pytest.mark.parametrize("name", ["torque limit", "speed limit", "stops", "delay", "dead band", "supply", "muscles"])
def test_accelerations_follow_from_torques_within_the_torque_limit_and_from_nothing_else_of_a_joint(name: str) -> None:
    torque = np.array([[1.5, -1.0, 0.2]])
    changed, plain = (SimulatedRobot(spec, 1, 1) for spec in (replace(BASE, **LAWS[name]), BASE))
    for robot in (changed, plain):
        robot.set_shape(np.array([[0.5, -0.4, 0.3]]), np.zeros(1), np.zeros((1, 2)))
        robot.state.link_rate[:] = [[1.0, -0.5, 0.3, 0.8]]
    limit = float(changed.params.torque_limit.min()) if name == "torque limit" else math.inf
    assert (limit < torque.max()) == (name == "torque limit")
    for got, expected in zip(changed.derivative(torque), plain.derivative(np.clip(torque, -limit, limit)), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["Coulomb across", "joint friction"])
def test_accelerations_without_a_law_that_the_robot_has_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="derivative knows no"):
        SimulatedRobot(replace(BASE, **LAWS[name]), 1, 1).derivative(np.zeros((1, 3)))


@pytest.mark.parametrize(
    "name", ["Coulomb across", "joint friction", "stops", "torque limit", "dead band", "backlash", "supply"]
)
def test_parameters_that_need_a_law_that_is_off_are_refused(name: str) -> None:
    robot, changed = SimulatedRobot(BASE, 2, 1), replace(BASE, **LAWS[name])
    with pytest.raises(ValueError, match=r"params\.\w+ .*; expected .* as the robot's specification has no"):
        robot.use_parameters(chain_params(changed, 2))
    SimulatedRobot(changed, 2, 1).use_parameters(chain_params(changed, 2))
    assert math.isinf(robot.params.torque_limit.min())
