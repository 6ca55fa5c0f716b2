"""Batched simulation on MuJoCo: worlds alone and together, restored states, servos' limits, faults."""

from __future__ import annotations

import copy
import dataclasses

import mujoco
import numpy as np
import pytest

from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.fault_kinds import FAULT_KINDS
from snake_gym.spatial.ground import GroundSpec, field_heights
from snake_gym.spatial.simulation import SpatialRobot
from snake_gym.spatial.spec import load_spatial_robot

SPEC = load_spatial_robot(
    {"n_joints": 8, "link_mass_kg": 0.5, "head_mass_kg": 0.5, "actuator": {"kp": 20.0, "kd": 0.1,
     "torque_limit_nm": 6.0, "speed_limit_rad_s": 2.0}, "profile": "step"}
)  # fmt: skip


def references(n_worlds: int, step: int) -> FloatArray:
    """Return winding references (W, J), other ones for each world."""
    phase = 0.4 * step + 0.9 * np.arange(SPEC.n_joints) + 0.3 * np.arange(n_worlds)[:, None]
    return 0.5 * np.cos(phase) * np.where(np.arange(SPEC.n_joints) % 2, 1.0, 0.3)


def placed(n_worlds: int, ground: GroundSpec | None = None, turn: float = 0.5) -> SpatialRobot:
    robot = SpatialRobot(SPEC, n_worlds, 1, ground)
    robot.set_shape(np.zeros((n_worlds, SPEC.n_joints)), np.arange(n_worlds) * turn, np.zeros((n_worlds, 2)))
    return robot


def test_motors_follow_their_torque_speed_line_and_drive_no_joint_beyond_its_speed() -> None:
    """Rattling by random signs; the torques of all physics steps are those of the line, worked out from the states."""
    robot = placed(8)
    signs = np.where(np.random.default_rng(1).random((20, 8, SPEC.n_joints)) < 0.5, -1.2, 1.2)
    servo = SPEC.actuator
    fastest = 0.0
    for aim in signs:
        before, last = robot.state.physics[:, None].copy(), robot.servos.command[:, None].copy()
        robot.step(aim)
        reach = 2.0 * SPEC.sim_dt_s * np.arange(1, SPEC.n_substeps + 1)[:, None]
        path = np.concatenate([before, robot.paths[:, :-1]], axis=1)
        angle, rate = path[:, :, robot._angles], path[:, :, robot._rates]
        error = last + np.clip(aim[:, None] - last, -reach, reach) - angle
        line = 6.0 * (1.0 - np.abs(rate) / 2.0)
        most = np.where(rate > 0.0, line, 6.0)
        least = np.where(rate < 0.0, -line, -6.0)
        law = np.clip(servo.kp * error - servo.kd * rate, np.maximum(least, -6.0), np.minimum(most, 6.0))
        known = np.abs(rate).max(axis=(1, 2)) < 4.0  # beyond twice its speed a motor brakes by the limit alone
        np.testing.assert_allclose(robot.torques[known], law[known], atol=1e-9)
        assert (robot.torques * rate)[np.abs(rate) > 2.0].max(initial=0.0) == 0.0
        fastest = max(fastest, float(np.abs(rate).max()))
    assert fastest > 2.5  # weight and neighbours turn joints faster than their motors do


def test_a_weak_servo_is_one_of_smaller_gains_and_torque_limit() -> None:
    """As of planar robots; a quarter is not rounded."""
    weak = placed(1)
    weak.faults.kind[:], weak.faults.strength[:] = FAULT_KINDS["weak"].code, 0.25
    actuator = dataclasses.replace(SPEC.actuator, kp=5.0, kd=0.025, torque_limit_nm=1.5)
    made = SpatialRobot(dataclasses.replace(SPEC, actuator=actuator), 1, 1)
    made.set_shape(np.zeros((1, SPEC.n_joints)), np.zeros(1), np.zeros((1, 2)))
    for step in range(6):
        weak.step(references(1, step))
        made.step(references(1, step))
    assert (weak.state.physics == made.state.physics).all()


@pytest.mark.parametrize("kind", ["locked", "free", "slow", "offset"])
def test_a_fault_does_what_it_says_while_it_lasts(kind: str) -> None:
    """Two worlds with the same references; in the second joint 6 fails from 0.5 s to 1.5 s."""
    robot = placed(2, turn=0.0)
    joint = 5
    robot.faults.kind[1, joint], robot.faults.onset_s[1, joint] = FAULT_KINDS[kind].code, 0.5
    robot.faults.end_s[1, joint], robot.faults.strength[1, joint] = 1.5, 0.1
    robot.faults.offset_rad[1, joint] = 0.3
    angles, torques, commands = [], [], []
    for step in range(30):
        robot.step(np.repeat(references(1, step), 2, axis=0))
        angles.append(robot.joint_angle()[:, joint].copy())
        torques.append(np.abs(robot.torques[:, :, joint]).max(axis=1))
        commands.append(robot.servos.command[:, joint].copy())
    angle, torque = np.array(angles), np.array(torques)
    speed = np.abs(np.diff(commands, axis=0)) / SPEC.control_dt_s
    during = slice(5, 15)
    assert (angle[:5, 0] == angle[:5, 1]).all()
    if kind == "locked":
        assert np.ptp(angle[during, 1]) < 6e-3 and np.ptp(angle[during, 0]) > 0.2
    elif kind == "free":
        assert torque[during, 1].max() == 0.0 < torque[during, 0].max()
    elif kind == "slow":
        assert speed[4:14, 1].max() == pytest.approx(0.2) and speed[4:14, 0].max() > 1.0
    else:
        assert np.median(angle[8:15, 1] - angle[8:15, 0]) > 0.1
    assert abs(angle[-1, 1] - angle[-1, 0]) < 0.12  # mended, it follows again


def test_each_world_may_have_its_own_heights() -> None:
    """A robot falls onto its own field: on one that is 5 cm higher it comes to lie 5 cm higher."""
    spec = GroundSpec(kind="grass", height_m=0.1, size_m=4.0)
    robot = placed(2, ground=spec)
    heights = np.zeros_like(field_heights(spec))
    robot.lay_heights(0, heights)
    robot.lay_heights(1, heights + 0.05)
    robot.state.physics[:, 3] += 0.06
    for _ in range(15):
        robot.step(np.zeros((2, SPEC.n_joints)))
    low = robot.model.geom("ground").pos[2]
    assert np.allclose(np.diff(robot.state.centre_z), 0.05 - max(low, 0.0), atol=2e-3)


def test_mujoco_steps_the_same_model_to_the_same_state() -> None:
    """One control step equals MuJoCo's own loop with the commands of each physics step."""
    robot = placed(1)
    aim = references(1, 0)
    before, last = robot.state.physics[0].copy(), robot.servos.command[0].copy()
    data = mujoco.MjData(robot.model)
    mujoco.mj_setState(robot.model, data, before, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    for step in range(1, SPEC.n_substeps + 1):
        reach = step * SPEC.sim_dt_s * 2.0
        data.ctrl[: SPEC.n_joints] = last + np.clip(aim[0] - last, -reach, reach)
        mujoco.mj_step(robot.model, data)
    robot.step(aim)
    after = np.zeros_like(before)
    mujoco.mj_getState(robot.model, data, after, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    assert (robot.state.physics[0] == after).all()


def test_a_control_step_of_wild_rates_is_taken_with_smaller_physics_steps() -> None:
    robot = placed(3)
    robot.state.physics[1, -SPEC.n_joints :] = 45.0 * (-1.0) ** np.arange(SPEC.n_joints)
    model, data = copy.copy(robot.model), mujoco.MjData(robot.model)
    model.opt.timestep /= 4
    mujoco.mj_setState(model, data, robot.state.physics[1].copy(), mujoco.mjtState.mjSTATE_FULLPHYSICS.value)
    last, reference = robot.servos.command[1].copy(), references(3, 0)
    robot.step(reference)
    reach = 2.0 * SPEC.sim_dt_s
    for step in range(4 * SPEC.n_substeps):
        data.ctrl[: SPEC.n_joints] = last + np.clip(
            reference[1] - last, -reach * (step // 4 + 1), reach * (step // 4 + 1)
        )
        mujoco.mj_step(model, data)
    assert np.abs(np.concatenate([data.qpos, data.qvel]) - robot.state.physics[1, 1:]).max() < 1e-6
    calm = placed(3)
    calm.step(reference)
    assert (calm.state.physics[[0, 2]] == robot.state.physics[[0, 2]]).all()
