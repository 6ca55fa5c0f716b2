"""Faults of geared servos: what each kind does to the joint, to the reading and to the commands."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from snake_gym.config import build
from snake_gym.envs import WaypointsConfig
from snake_gym.envs.core import SnakeCore
from snake_gym.physics.actuators import SLIP_RAD_S
from snake_gym.robot.presets import PRESETS, RESILIENT_SERVO
from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.fault_kinds import COOL, FAULT_KINDS, GROWTH_S, HEATING_S
from snake_gym.simulation.simulated_robot import SimulatedRobot


def faulty(spec: RobotSpec, kind: str, joints: Any = slice(None), **settings: float) -> SimulatedRobot:
    """Two robots, the joints ``joints`` of which have the fault."""
    robot = SimulatedRobot(spec, 2, 1)
    robot.allow_faults([kind])
    robot.faults.kind[:, joints] = FAULT_KINDS[kind].code
    for name, value in settings.items():
        getattr(robot.faults, name)[:] = value
    return robot


def crawl(robot: SimulatedRobot, n_steps: int) -> list[np.ndarray]:
    """Play a wave; return the joint torques after each control step."""
    torque = []
    for k in range(n_steps):
        phase = 3.0 * (k + 1) * robot.spec.control_dt_s + 0.8 * np.arange(robot.spec.n_joints)
        robot.step(np.tile(0.5 * np.sin(phase), (2, 1)))
        torque.append(robot.state.joint_torque.copy())
    return torque


def assert_same_motion(one: SimulatedRobot, other: SimulatedRobot) -> None:
    for name, values in one.state._asdict().items():
        np.testing.assert_array_equal(values, getattr(other.state, name), err_msg=name)


def test_a_rough_joint_is_one_with_so_much_dry_friction() -> None:
    robot = faulty(RESILIENT_SERVO, "rough", 3, strength=0.05)
    friction = tuple(0.4 if joint == 3 else 0.0 for joint in range(9))
    other = SimulatedRobot(dataclasses.replace(RESILIENT_SERVO, joint_friction_nm=friction), 2, 1)
    for one in (robot, other):
        crawl(one, 15)
    assert_same_motion(robot, other)


def test_a_loose_joint_comes_to_the_backlash_of_its_strength() -> None:
    robot = faulty(RESILIENT_SERVO, "loose", strength=0.1, onset_s=-GROWTH_S)
    worn = dataclasses.replace(RESILIENT_SERVO.actuator, backlash_rad=0.1)
    other = SimulatedRobot(dataclasses.replace(RESILIENT_SERVO, actuator=worn), 2, 1)
    for one in (robot, other):
        crawl(one, 15)
    assert_same_motion(robot, other)
    young = faulty(RESILIENT_SERVO, "loose", strength=0.1, onset_s=0.0)
    crawl(young, 15)
    widest = 0.5 * 0.1 * 14 * 0.2 / GROWTH_S
    assert np.abs(young.state.lash_rad).max() == pytest.approx(widest, rel=1e-6)


def test_a_servo_that_is_off_has_no_power_and_a_light_load_never_switches_it_off() -> None:
    robot, light = (faulty(RESILIENT_SERVO, "overload", 4, strength=s) for s in (0.1, 1.0))
    torque, healthy = (np.array(crawl(one, 60))[:, 0, 4] for one in (robot, light))
    off = np.abs(torque) < 0.05 * 3.0  # what is left is the viscous friction of a free joint
    assert 0.2 < off.mean() < 0.95 and off.any() and not off[0]
    assert_same = SimulatedRobot(RESILIENT_SERVO, 2, 1)
    np.testing.assert_array_equal(healthy, np.array(crawl(assert_same, 60))[:, 0, 4])


@pytest.mark.parametrize(("step_s", "error", "limit"), [(0.01, 0.3, 8.0), (0.002, 0.15, 1.0)])
def test_heat_follows_the_true_torque(step_s: float, error: float, limit: float) -> None:
    """That of the servos' law in steps that are short beside the pulse of a new command, with true limits."""
    n = 4
    spec = dataclasses.replace(RESILIENT_SERVO, n_links=n + 1, sim_dt_s=step_s, control_dt_s=0.02)
    robot = faulty(spec, "overload", strength=1.0)
    fine = SimulatedRobot(dataclasses.replace(spec, sim_dt_s=5e-5), 2, 1)
    for one in (robot, fine):
        one.params.torque_limit[:] = limit
    heat = np.zeros((2, n))
    for k in range(100):
        reference = np.tile(0.8 * np.sin(4.0 * 0.02 * k + 0.7 * np.arange(n)) * min(0.02 * k, 1.0), (2, 1))
        before = heat
        for _ in range(400):
            fine.step(reference, n_substeps=1)
            drive = np.clip(60.0 * (reference - fine.joint_angle()), -20.0, 20.0)
            torque = np.clip(drive - 10.0 * fine.joint_rate(), -limit, limit)
            heat = heat + 5e-5 / HEATING_S * ((torque / 8.0) ** 2 - heat)
        robot.step(reference)
    # The memory knows the load up to the last step but one.
    np.testing.assert_allclose(robot.faults.memory, before, rtol=error)
    assert before.min() > 1e-4


def test_a_stalled_servo_switches_off_when_hot_and_comes_back_when_cool() -> None:
    """At twice the load that it bears, heat 4 (1 - exp(-t / tau)) is 1 at t = tau ln 4/3; it halves in tau ln 2."""
    events = [{"joint": 5, "kind": "overload", "strength": 0.5}, {"joint": 5, "kind": "locked"}]
    core = make(1, faults={"events": events}, robot={"preset": "resilient_servo", "control_dt_s": 0.05})
    off = []
    for _ in range(200):
        core.step(np.ones(core.action.shape))
        off.append(core.robot.faults.memory[0, 4] < 0.0)
    changes = 0.05 * (np.flatnonzero(np.diff(np.array(off, int))) + 1)
    heats, cools = HEATING_S * math.log(4.0 / 3.0), HEATING_S * math.log(1.0 / COOL)
    again = HEATING_S * math.log((4.0 - COOL) / (4.0 - 1.0))
    assert changes[0] == pytest.approx(heats, abs=0.15)
    np.testing.assert_allclose(np.diff(changes)[:2], [cools, again], atol=0.15)


def test_a_misread_joint_goes_where_its_servo_believes_to_be_right() -> None:
    robot = faulty(RESILIENT_SERVO, "misread", 4, strength=0.3)
    robot.faults.key[:] = np.arange(18).reshape(2, 9)
    errors = []
    for _ in range(60):
        robot.step(np.full((2, 9), 0.1), n_substeps=200)
        np.testing.assert_allclose(robot.read_servos()[0], 0.1, atol=2e-3)
        errors.append(robot.joint_angle()[:, 4] - 0.1)
    spread = np.array(errors)
    assert np.abs(spread).max() <= 0.302 and np.quantile(np.abs(spread), 0.5) == pytest.approx(0.15, abs=0.05)
    assert abs(np.corrcoef(spread.T)[0, 1]) < 0.4 and abs(np.corrcoef(spread[1:, 0], spread[:-1, 0])[0, 1]) < 0.4
    np.testing.assert_allclose(robot.joint_angle()[:, :4], 0.1, atol=2e-3)


def test_a_silent_servo_keeps_its_command_and_its_reading() -> None:
    events = [{"joint": 3, "kind": "silent", "onset_s": 1.0, "duration_s": 1.0}]
    core = make(faults={"events": events})
    angle, truth, said = [], [], []
    rng = np.random.default_rng(3)
    for _ in range(15):
        core.step(rng.uniform(-0.5, 0.5, core.action.shape))
        angle.append(core.measurement.joint_angle[0].copy())
        truth.append(core.robot.joint_angle()[0].copy())
        said.append(core.robot.servos.command[0].copy())
    # The fault acts in the control steps from 1.0 s to 2.0 s, those of index 5 to 9.
    assert (np.array(said)[4:10, 2] == said[4][2]).all() and said[10][2] != said[9][2]
    np.testing.assert_array_equal(np.array(angle)[4:10, 2], angle[4][2])
    wrong = np.array(angle) != np.array(truth)
    assert np.flatnonzero(wrong.any(axis=0)).tolist() == [2]
    assert np.flatnonzero(wrong[:, 2]).tolist() == [5, 6, 7, 8, 9]
    assert (core.measurement.joint_rate == core.robot.joint_rate()).all()


def make(n_worlds: int = 4, **settings: Any) -> SnakeCore:
    core = SnakeCore(build(WaypointsConfig, {"faults": {"n_max": 0}, **settings}, "env"), n_worlds)
    core.reset(np.arange(n_worlds) + 5)
    return core


def act(core: SnakeCore, n_steps: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    actions = rng.uniform(-1.0, 1.0, (n_steps, core.decoder.size))
    return np.array([core.step(np.tile(action, (core.n_worlds, 1)))[0] for action in actions])


@pytest.mark.parametrize("preset", ["resilient_servo", "robo_conda", "muscle", "resilient"])
def test_a_slip_does_not_jump(preset: str) -> None:
    """Physics step by physics step: neither the joint nor the reading of its servo."""
    spec = PRESETS[preset]
    robot, healthy = SimulatedRobot(spec, 1, 1), SimulatedRobot(spec, 1, 1)
    slot = robot.faults
    slot.kind[0, 2], slot.offset_rad[0, 2], slot.onset_s[0, 2] = FAULT_KINDS["slipped"].code, 0.3, 20.5 * spec.step_s
    slot.end_s[0, 2] = 5.0
    joints, servos, told = [], [], []
    for _ in range(round(12.0 / spec.step_s)):
        for one in (robot, healthy):
            one.step(np.zeros((1, spec.n_joints)), n_substeps=1)
        joints.append(robot.joint_angle()[0, 2])
        servos.append(robot.read_servos()[0][0, 2] - healthy.read_servos()[0][0, 2])
        told.append(robot.read_servos()[1][0, 2])
    assert max(joints) > (0.25 if preset == "resilient_servo" else 0.1) and abs(joints[-1]) < 0.1
    for angle in (joints, servos):
        assert np.abs(np.diff(angle)).max() < 1.5 * SLIP_RAD_S * spec.step_s
    np.testing.assert_allclose(np.sum(told) * spec.step_s, servos[-1], atol=0.02)


def test_a_joint_that_is_held_or_has_no_power_does_not_slip() -> None:
    for kind in ("locked", "free"):
        events = [{"joint": 5, "kind": kind, "duration_s": 2.0}, {"joint": 5, "kind": "slipped", "offset_rad": 0.35}]
        core = make(1, faults={"events": events})
        for k in range(30):
            core.step(np.zeros(core.action.shape))
            slip = (core.robot.joint_angle() - core.measurement.joint_angle)[0, 4]
            assert slip == pytest.approx(0.0 if k < 10 else min(SLIP_RAD_S * 0.2 * (k - 9), 0.35), abs=1e-9)
