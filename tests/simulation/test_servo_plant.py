"""The physics behind the servos is the physics of the simulated robot, to the bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from snake_gym.physics.faults import FREE
from snake_gym.robot.presets import PRESETS
from snake_gym.simulation.servo_plant import RobotPlant
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.oracles.link_overlap import deepest_overlaps

SPEC = PRESETS["resilient_servo"]
J = SPEC.n_joints
ALL_ON, FULL, FAST = np.ones(J, dtype=bool), np.ones(J), np.full(J, 100.0)
SHAPE = 0.3 * np.sin(0.7 * np.arange(J))


def make_robot() -> SimulatedRobot:
    robot = SimulatedRobot(SPEC, 1, 1)
    robot.set_shape(SHAPE[None], np.array([0.2]), np.zeros((1, 2)))
    return robot


def make_plant() -> RobotPlant:
    """The same robot behind servos."""
    return RobotPlant(SPEC, SHAPE, 0.2, step_s=SPEC.sim_dt_s)


def gait(k: int) -> np.ndarray:
    return 0.5 * np.sin(0.35 * k + 0.6 * np.arange(J))


def test_the_same_targets_make_the_same_motion() -> None:
    """To the bit over whole control steps; the integrator begins anew with every call, so cutting shows a little."""
    direct, plant, pieces_of = make_robot(), make_plant(), make_plant()
    whole, cut = plant.robot, pieces_of.robot
    for k in range(20):
        direct.step(gait(k)[None])
        plant.advance(SPEC.control_dt_s, gait(k), ALL_ON, FULL, FAST)
        for dt_s in (0.003, 0.017, 0.01, 0.05, 0.12):  # 20 steps of 0.01 s, however they are cut
            pieces_of.advance(dt_s, gait(k), ALL_ON, FULL, FAST)
    assert np.array_equal(direct.state.link_angle, whole.state.link_angle)
    assert np.array_equal(direct.state.head_xy, whole.state.head_xy)
    assert np.array_equal(plant.joint_angle(), direct.joint_angle()[0])
    assert np.array_equal(plant.joint_rate(), direct.joint_rate()[0])
    assert cut.state.time_s[0] == pytest.approx(direct.state.time_s[0])
    assert np.abs(direct.state.link_angle - cut.state.link_angle).max() < 5e-4


def test_without_torque_a_joint_is_free() -> None:
    direct, plant = make_robot(), make_plant()
    behind = plant.robot
    off = np.isin(np.arange(J), [2, 5])
    direct.faults.kind[0, off] = FREE
    direct.faults.end_s[0, off] = np.inf
    for k in range(10):
        direct.step(gait(k)[None])
        plant.advance(SPEC.control_dt_s, gait(k), ~off, FULL, FAST)
    assert np.array_equal(direct.state.link_angle, behind.state.link_angle)
    assert (plant.load()[off] == 0.0).all()
    assert (plant.load()[~off] != 0.0).all()
    direct.faults.kind[0, off] = 0
    for k in range(10):
        direct.step(gait(k)[None])
        plant.advance(SPEC.control_dt_s, gait(k), ALL_ON, FULL, FAST)
    assert np.array_equal(direct.state.link_angle, behind.state.link_angle)


def test_limits_of_the_servos_are_limits_of_the_joints() -> None:
    plant = make_plant()
    start = plant.joint_angle().copy()
    plant.advance(0.5, start + 1.0, ALL_ON, FULL, np.full(J, 0.2))
    assert np.abs(plant.joint_angle() - start).max() <= 0.2 * 0.5 * 1.05
    assert np.abs(plant.joint_angle() - start).max() > 0.2 * 0.5 * 0.8
    plant.advance(0.5, start - 1.0, ALL_ON, np.full(J, 0.05), FAST)
    assert np.abs(plant.load()).max() <= 0.05 + 1e-9


def test_a_robot_has_to_follow_angles_and_without_a_torque_limit_has_no_load() -> None:
    with pytest.raises(ValueError, match="'acceleration'"):
        RobotPlant(PRESETS["resilient"])
    unlimited = replace(SPEC, actuator=replace(SPEC.actuator, torque_limit_nm=float("inf")))
    plant = RobotPlant(unlimited)
    plant.advance(0.2, gait(0), ALL_ON, FULL, FAST)
    assert (plant.load() == 0.0).all()


def test_a_mechanical_stop_is_no_load_of_the_motor() -> None:
    spec = replace(SPEC, joint_stop_rad=0.5, joint_limit_rad=0.5)
    plant = RobotPlant(spec, np.zeros(J), 0.0, step_s=spec.sim_dt_s)
    loads = []
    for _ in range(300):
        plant.advance(spec.sim_dt_s, np.full(J, 3.0), ALL_ON, np.full(J, 0.5), FAST)
        loads.append(np.abs(plant.load()).max())
    assert np.abs(plant.joint_angle()).max() > 0.49, "it has met its stops"
    assert 0.4 < max(loads) <= 0.5 + 1e-9


def hold(plant: RobotPlant, angle_rad: float) -> None:
    """Command every joint to one angle for three seconds."""
    for _ in range(1500):
        plant.advance(0.002, np.full(J, angle_rad), ALL_ON, FULL, FAST)


def test_a_chain_that_curls_up_runs_into_itself_and_can_be_uncurled_but_for_a_jammed_joint() -> None:
    plant = RobotPlant(SPEC)
    hold(plant, 1.2)
    body = SPEC.links("link_half_length_m"), SPEC.links("link_radius_m")
    assert abs(deepest_overlaps(plant.robot.state.link_angle, *body)[0]) < 0.001, "links touch, none lies in another"
    jammed = int(np.argmax(np.abs(plant.joint_angle() - 1.2)))
    assert abs(plant.joint_angle()[jammed] - 1.2) > 0.1 and plant.load()[jammed] > 0.9, "it is held, and pushes"
    plant.jam(jammed)
    held = plant.joint_angle()[jammed]
    hold(plant, 0.0)
    np.testing.assert_allclose(np.delete(plant.joint_angle(), jammed), 0.0, atol=0.05)
    assert plant.joint_angle()[jammed] == pytest.approx(held, abs=0.01)
    plant.jam(jammed, False)
    hold(plant, 0.0)
    assert plant.joint_angle()[jammed] == pytest.approx(0.0, abs=0.05)
