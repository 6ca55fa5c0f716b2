"""Robot, law: whatever a robot may have acts on its motion; accelerations know what they say they know."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from snake_gym.physics.faults import FREE, LOCKED, OFFSET, SLIPPED, SLOW, WEAK
from snake_gym.physics.state import no_obstacles
from snake_gym.robot.spec import ActuatorSpec, FrictionSpec, RobotSpec
from snake_gym.simulation.robot_params import chain_params
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.oracles.contact_scenes import one_cell

SERVO = ActuatorSpec(kp=20.0, kd=4.0)
BASE = RobotSpec(
    n_links=4, link_half_length_m=0.1, friction=FrictionSpec(1.0, 10.0), actuator=SERVO, control_dt_s=0.05,
    sim_dt_s=0.0005,
)  # fmt: skip
ACCELERATED = replace(BASE, actuator=ActuatorSpec(kind="acceleration", kp=9.0, kd=4.0))


class Law(NamedTuple):
    """One thing that a robot may have: what sets it, and on which robot."""

    changes: dict[str, Any] = {}  # noqa: RUF012
    fault: dict[str, float] | None = None
    robot: RobotSpec = BASE


def servo(**changes: Any) -> dict[str, Any]:
    return {"actuator": replace(SERVO, **changes)}


def ground(**changes: Any) -> dict[str, Any]:
    return {"friction": replace(BASE.friction, **changes)}


LAWS = {
    "friction along": Law(ground(tangential_ns_m=3.0)),
    "friction backward": Law(ground(backward=5.0)),
    "friction across": Law(ground(normal_ns_m=30.0)),
    "friction of turning": Law(ground(rotational_nms_rad=0.5)),
    "slope": Law({"incline_rad": 0.2, "incline_direction_rad": 1.0}),
    "gains": Law(servo(kp=40.0)),
    "torque joint": Law(servo(kind="torque", kd=1.0)),
    "torque limit": Law(servo(torque_limit_nm=0.5)),
    "torque limit of a torque joint": Law(servo(kind="torque", torque_limit_nm=0.5)),
    "speed limit": Law(servo(speed_limit_rad_s=0.5)),
    "delay": Law(servo(delay_s=0.08)),
    "locked": Law(fault={"kind": LOCKED}),
    "locked in motion": Law(fault={"kind": LOCKED, "onset_s": 0.3}),
    "free": Law({"free_joint_damping_nms_rad": 0.1}, {"kind": FREE}),
    "weak": Law(fault={"kind": WEAK, "strength": 0.1}),
    "slow": Law(servo(speed_limit_rad_s=1.0), {"kind": SLOW, "strength": 0.2}),
    "offset": Law(fault={"kind": OFFSET, "offset_rad": 0.3}),
    "slipped": Law(fault={"kind": SLIPPED, "offset_rad": 0.3}),
    "recovering": Law(fault={"kind": LOCKED, "end_s": 0.4}),
    "intermittent": Law(fault={"kind": WEAK, "strength": 0.1, "period_s": 0.2, "duty": 0.5}),
    "gains of an accelerated joint": Law({"actuator": replace(ACCELERATED.actuator, kp=4.0)}, robot=ACCELERATED),
    "accelerated, locked": Law(fault={"kind": LOCKED, "onset_s": 0.3}, robot=ACCELERATED),
    "accelerated, free": Law({"free_joint_damping_nms_rad": 0.1}, {"kind": FREE}, ACCELERATED),
    "accelerated, weak": Law(fault={"kind": WEAK, "strength": 0.1}, robot=ACCELERATED),
    "Coulomb along": Law(ground(tangential_coulomb=0.1)),
    "Coulomb across": Law(ground(normal_coulomb=(0.0, 0.3, 0.0, 0.0))),
    "Coulomb of turning": Law(ground(rotational_coulomb_nm=0.1)),
    "stops": Law({"joint_stop_rad": 0.1}),
    "joint friction": Law({"joint_friction_nm": 0.3}),
    "dead band": Law(servo(dead_band_rad=0.1)),
    "backlash": Law(servo(backlash_rad=0.1)),
    "torque-speed line": Law(
        servo(torque_limit_nm=2.0, no_load_speed_rad_s=0.5)
    ),
    "supply": Law(servo(torque_limit_nm=2.0, supply_resistance_ohm=2.0)),
    "muscles": Law({**servo(kind="muscle"), "joint_stop_rad": 0.6}),
}  # fmt: skip


def run(spec: RobotSpec, fault: dict[str, float] | None = None, robot: SimulatedRobot | None = None) -> NDArray[Any]:
    """Link angles and centre after 0.8 s of a wave, (N + 2,)."""
    robot = SimulatedRobot(spec, 1, 1) if robot is None else robot
    if fault is not None:
        joint = {name: values[:, 1] for name, values in robot.faults._asdict().items()}
        for name, value in fault.items():
            joint[name][:] = value
    for k in range(16):
        robot.step(0.5 * np.sin(0.4 * k + np.arange(3.0))[None])
    return np.concatenate([robot.state.link_angle[0], robot.state.centre_xy[0]])


@pytest.mark.parametrize("name", LAWS)
def test_a_law_acts(name: str) -> None:
    law = LAWS[name]
    without = law.robot if law.fault is None else replace(law.robot, **law.changes)
    assert np.abs(run(replace(law.robot, **law.changes), law.fault) - run(without)).max() > 1e-3


PEG = np.array([[0.30, 0.09, 1.0, 0.0, 0.0, 0.05]])
"""Beside the head, which the wave swings against it."""


@pytest.mark.parametrize("model", ["stiff", "rigid"])
def test_obstacles_act(model: Any) -> None:
    spec = replace(BASE, contact=replace(BASE.contact, model=model))
    robot = SimulatedRobot(spec, 1, 1, one_cell(PEG))
    assert np.abs(run(spec, robot=robot) - run(spec)).max() > 1e-3


@pytest.mark.parametrize("name", ["torque limit", "speed limit", "stops", "delay", "dead band", "supply", "muscles"])
def test_accelerations_follow_from_torques_within_the_torque_limit_and_from_nothing_else_of_a_joint(name: str) -> None:
    torque = np.array([[1.5, -1.0, 0.2]])
    changed, plain = (SimulatedRobot(spec, 1, 1) for spec in (replace(BASE, **LAWS[name].changes), BASE))
    for robot in (changed, plain):
        robot.set_shape(np.array([[0.5, -0.4, 0.3]]), np.zeros(1), np.zeros((1, 2)))
        robot.state.link_rate[:] = [[1.0, -0.5, 0.3, 0.8]]
    limit = float(changed.params.torque_limit.min()) if name == "torque limit" else math.inf
    assert (limit < torque.max()) == (name == "torque limit")
    for got, expected in zip(changed.derivative(torque), plain.derivative(np.clip(torque, -limit, limit)), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_accelerations_without_a_law_that_the_robot_has_are_refused() -> None:
    torque = np.zeros((1, 3))
    SimulatedRobot(BASE, 1, 1).derivative(torque)
    with pytest.raises(ValueError, match="derivative knows no Coulomb friction"):
        SimulatedRobot(replace(BASE, **ground(normal_coulomb=0.1)), 1, 1).derivative(torque)
    with pytest.raises(ValueError, match="derivative knows no joint friction"):
        SimulatedRobot(replace(BASE, joint_friction_nm=0.1), 1, 1).derivative(torque)
    with pytest.raises(ValueError, match="derivative knows no obstacles"):
        SimulatedRobot(BASE, 1, 1, no_obstacles(1)).derivative(torque)


@pytest.mark.parametrize(
    "name", ["Coulomb across", "joint friction", "stops", "torque limit", "dead band", "backlash", "supply"]
)
def test_parameters_that_need_a_law_that_is_off_are_refused(name: str) -> None:
    robot, changed = SimulatedRobot(BASE, 2, 1), replace(BASE, **LAWS[name].changes)
    with pytest.raises(ValueError, match=r"params\.\w+ .*; expected .* as the robot's specification has no"):
        robot.use_parameters(chain_params(changed, 2))
    SimulatedRobot(changed, 2, 1).use_parameters(chain_params(changed, 2))
    assert math.isinf(robot.params.torque_limit.min())
