"""The physics behind the servos is the physics of the simulated robot, to the bit; a whole loop over bytes agrees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from snake_gym.hardware.bus.clock import VirtualClock
from snake_gym.hardware.bus.feetech import FEETECH
from snake_gym.hardware.bus.servo_bus import ServoBus
from snake_gym.hardware.emulator.bus import EmulatedBus, EmulatedServo
from snake_gym.physics.faults import FREE, LOCKED
from snake_gym.robot.presets import PRESETS
from snake_gym.simulation.servo_plant import RobotPlant, self_overlap
from snake_gym.simulation.simulated_robot import SimulatedRobot

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


def test_faults_of_the_robot_come_back_with_the_torque() -> None:
    plant = make_plant()
    robot = plant.robot
    robot.faults.kind[0, 3] = LOCKED
    robot.faults.onset_s[0, 3] = 1.5
    plant.advance(0.2, gait(0), np.zeros(J, dtype=bool), FULL, FAST)
    assert (robot.faults.kind == FREE).all()
    plant.advance(0.2, gait(0), ALL_ON, FULL, FAST)
    assert robot.faults.kind[0].tolist() == [0, 0, 0, LOCKED, 0, 0, 0, 0, 0]
    assert robot.faults.onset_s[0, 3] == 1.5


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


def test_a_gait_over_the_bus_moves_the_robot_as_far() -> None:
    """The same references at the same times, once straight to the physics, once through driver, bytes and servos."""
    direct, plant, clock = make_robot(), make_plant(), VirtualClock()
    behind = plant.robot
    bus = EmulatedBus([EmulatedServo(i + 1) for i in range(J)], plant=plant, clock=clock, step_s=0.01)
    driver = ServoBus(bus.host_transport(), clock=clock)
    ids = list(range(1, J + 1))
    driver.torque(ids, True)
    behind.set_shape(direct.joint_angle(), np.array([0.2]), np.zeros((1, 2)))
    next_s = clock.now()
    for k in range(150):
        reference = 0.5 * np.sin(0.5 * k * SPEC.control_dt_s * 2.0 - 0.6 * np.arange(J))
        direct.step(reference[None])
        driver.write_targets(ids, [2048 + FEETECH.steps(angle) for angle in reference])
        found = driver.read_block(ids, "present_position", "present_current")
        assert not found.failures
        next_s += SPEC.control_dt_s
        clock.advance_to(next_s)
        bus.poll()
    way = np.linalg.norm(direct.state.centre_xy[0])
    error = np.linalg.norm(direct.state.centre_xy[0] - behind.state.centre_xy[0])
    assert way > 2.0
    assert error < 0.002 * way


def test_a_mechanical_stop_is_no_load_of_the_motor() -> None:
    spec = replace(SPEC, joint_stop_rad=0.5, joint_limit_rad=0.5)
    plant = RobotPlant(spec, np.zeros(J), 0.0, step_s=spec.sim_dt_s)
    loads = []
    for _ in range(300):
        plant.advance(spec.sim_dt_s, np.full(J, 3.0), ALL_ON, np.full(J, 0.5), FAST)
        loads.append(np.abs(plant.load()).max())
    assert np.abs(plant.joint_angle()).max() > 0.49, "it has met its stops"
    assert 0.4 < max(loads) <= 0.5 + 1e-9


def closest_centres(plant: RobotPlant, least_joints: int) -> float:
    """Smallest distance [m] of points along links that have so many joints between them; independent of the plant."""
    spec, angle = plant.spec, plant.robot.state.link_angle[0]
    half = spec.links("link_half_length_m")
    way = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    begin = np.cumsum(2.0 * half[:, None] * way, axis=0) - 2.0 * half[:, None] * way
    share = np.linspace(0.0, 2.0, 41)[:, None]
    points = [begin[i] + share * half[i] * way[i] for i in range(spec.n_links)]
    pairs = [(i, j) for i in range(spec.n_links) for j in range(i + least_joints, spec.n_links)]
    return min(float(np.hypot(*(points[i][:, None] - points[j][None]).T).min()) for i, j in pairs)


def test_a_chain_that_curls_up_runs_into_itself_and_can_be_uncurled() -> None:
    plant = RobotPlant(SPEC)
    curled, straight = np.full(J, 1.2), np.zeros(J)
    for _ in range(1500):
        plant.advance(0.002, curled, ALL_ON, FULL, FAST)
    thick = 2.0 * float(SPEC.links("link_radius_m").max())
    assert closest_centres(plant, 3) > thick - 0.003, "no link lies in another"
    assert closest_centres(plant, 3) < thick + 0.02, "they touch"
    assert plant.blocked.any()
    assert np.abs(plant.joint_angle()[plant.blocked] - 1.2).max() > 0.1, "it is not where it should be"
    for _ in range(1500):
        plant.advance(0.002, straight, ALL_ON, FULL, FAST)
    assert not plant.blocked.any()
    np.testing.assert_allclose(plant.joint_angle(), 0.0, atol=0.05)


def test_links_pass_through_each_other_where_they_are_told_to() -> None:
    plant = RobotPlant(SPEC)
    plant.is_solid = False
    for _ in range(1500):
        plant.advance(0.002, np.full(J, 1.2), ALL_ON, FULL, FAST)
    assert not plant.blocked.any()
    np.testing.assert_allclose(plant.joint_angle(), 1.2, atol=0.05)
    assert self_overlap(SPEC, plant.robot.state.link_angle[0])[0] > 0.02


def test_a_joint_that_is_jammed_too_stays_so_when_links_come_apart() -> None:
    plant = RobotPlant(SPEC)
    for _ in range(1500):
        plant.advance(0.002, np.full(J, 1.2), ALL_ON, FULL, FAST)
    one = int(np.flatnonzero(plant.blocked)[1])
    plant.jam(one)
    held = plant.joint_angle()[one]
    for _ in range(1000):
        plant.advance(0.002, np.zeros(J), ALL_ON, FULL, FAST)
    assert not plant.blocked.any()
    assert plant.joint_angle()[one] == pytest.approx(held, abs=0.01)
    plant.jam(one, False)
    for _ in range(1000):
        plant.advance(0.002, np.zeros(J), ALL_ON, FULL, FAST)
    assert plant.joint_angle()[one] == pytest.approx(0.0, abs=0.05)
