"""Fault-aware control: CC where nothing fails, each of its means by itself, and the mirrored robot that drives back."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from snake_gym.controllers.base import ControllerState
from snake_gym.controllers.cc import Cc, CcConfig
from snake_gym.controllers.fault_aware import FaultAware, FaultAwareConfig, mirror_joints, mirror_measurement
from snake_gym.controllers.fault_detection import FREE, LOCKED, WEAK
from snake_gym.controllers.guidance import wrap_angle
from snake_gym.controllers.nominal_joint import NominalJoints
from snake_gym.controllers.serpenoid import serpenoid_reference
from snake_gym.robot.measurement import Goal, Measurement, link_angles
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.controllers.worlds import N_JOINTS, SPEC, random_world, straight_world

WIDE = replace(SPEC, joint_limit_rad=3.1)
DT_S = 0.2


def known(measurement: Measurement, *joints: int) -> Measurement:
    """Somebody says that these joints (from 0) have failed, and no others."""
    failed = np.zeros(measurement.joint_angle.shape, dtype=bool)
    failed[:, list(joints)] = True
    return measurement._replace(joint_failed=failed)


def start(
    config: FaultAwareConfig, world: tuple[Measurement, Goal], *joints: int, kind: float = LOCKED
) -> tuple[FloatArray, FaultAware, ControllerState]:
    """First command of robots of which ``joints`` are known to have failed in the way ``kind``; the state then."""
    controller = FaultAware(config, WIDE)
    state = controller.initial_state(len(world[0].joint_angle))
    state["fault_kind"][:, list(joints)] = kind
    return controller.command(known(world[0], *joints), world[1], state, DT_S), controller, state


def command(
    config: FaultAwareConfig, world: tuple[Measurement, Goal], *joints: int, kind: float = LOCKED
) -> FloatArray:
    return start(config, world, *joints, kind=kind)[0]


def test_without_faults_it_is_cc() -> None:
    world = random_world(7)
    cc, own = Cc(CcConfig(), WIDE), FaultAware(FaultAwareConfig(), WIDE)
    state, own_state = cc.initial_state(7), own.initial_state(7)
    for _ in range(5):
        expected = cc.command(*world, state, DT_S)
        np.testing.assert_allclose(own.command(known(world[0]), world[1], own_state, DT_S), expected, atol=1e-12)


@pytest.mark.parametrize(("kind", "ahead", "behind"), [(LOCKED, 0.3, 0.6), (FREE, 0.25, 0.1)])
def test_a_failed_joints_angle_is_spread_over_its_neighbours(kind: float, ahead: float, behind: float) -> None:
    """From a straight robot, offset zero: what joint 4 cannot do, joints 3 and 5 do in the given shares."""
    world = straight_world(3)
    config = FaultAwareConfig(
        coupling=0.0, spread_ahead=0.3, spread_behind=0.6, free_ahead=0.25, free_behind=0.1, free_front_weight_rad=0.0
    )
    plain, spread = command(config, world), command(config, world, 4, kind=kind)
    difference = spread - plain
    np.testing.assert_allclose(difference[:, 5], ahead * plain[:, 4], atol=1e-12)
    np.testing.assert_allclose(difference[:, 3], behind * plain[:, 4], atol=1e-12)
    np.testing.assert_allclose(np.delete(difference, [3, 5], axis=1), 0.0, atol=1e-12)


def test_two_locked_neighbours_hand_on_what_they_lack() -> None:
    world = straight_world(1)
    config = FaultAwareConfig(coupling=0.0, spread_ahead=1.0, spread_behind=0.0)
    plain, given = command(config, world), command(config, world, 3, 4)
    np.testing.assert_allclose(given[:, 5] - plain[:, 5], plain[:, 3] + plain[:, 4], atol=1e-12)
    np.testing.assert_allclose(given[:, 6:], plain[:, 6:], atol=1e-12)


@pytest.mark.parametrize(
    ("joints", "kind", "tail_leads"),
    [
        ((8,), FREE, True),
        ((0,), FREE, False),
        ((8,), LOCKED, False),
        ((8,), WEAK, True),
        ((4,), FREE, False),
        ((), 0.0, False),
    ],
)
def test_a_free_joint_in_front_makes_the_tail_lead(joints: tuple[int, ...], kind: float, tail_leads: bool) -> None:
    _, _, state = start(FaultAwareConfig(), straight_world(3), *joints, kind=kind)
    assert (state["reverse"] == float(tail_leads)).all()


def test_a_target_behind_makes_the_tail_lead_and_one_ahead_the_head() -> None:
    config = FaultAwareConfig(turn_back=1.0, hysteresis_rad=0.3)
    controller = FaultAware(config, WIDE)
    state = controller.initial_state(1)
    leads = []
    for heading in (0.0, 1.4, 1.65, 1.9, 1.5, 1.0):  # of the robot, against its target
        measurement, goal = straight_world(1, heading)
        controller.command(known(measurement), goal, state, DT_S)
        leads.append(state["reverse"][0])
    assert leads == [0.0, 0.0, 0.0, 1.0, 1.0, 0.0]


def test_reverse_driving_steers_the_tail_to_the_target() -> None:
    """Straight, target to the left of where the tail points: the mirrored robot sees a positive offset."""
    config = FaultAwareConfig(turn_back=1.0, amplitude_rad=0.0, coupling=0.0, heading_gain=0.5)
    given, _, state = start(config, straight_world(1, np.pi - 0.2))
    assert state["reverse"][0] == 1.0
    # The tail points 0.2 rad to the right of the target; offset -0.1 on the mirrored robot is +0.1 on the real one.
    np.testing.assert_allclose(given, 0.1, atol=1e-6)


def test_the_command_goes_on_smoothly_when_the_direction_changes() -> None:
    config = FaultAwareConfig(coupling=0.0, spread_ahead=0.0, heading_gain=0.0, frequency_rad_s=3.0, amplitude_rad=0.5)
    controller = FaultAware(config, WIDE)
    state = controller.initial_state(1)
    world = straight_world(1)
    commands = []
    for step in range(40):
        if step == 20:
            state["fault_kind"][:, 8] = FREE
        commands.append(controller.command(known(world[0], *([8] if step >= 20 else [])), world[1], state, 0.02)[0])
    assert state["reverse"][0] == 1.0
    assert np.abs(np.diff(commands, axis=0)).max() <= 3.0 * 0.5 * 0.02 * 1.001


def test_amplitude_and_frequency_follow_the_number_of_faults() -> None:
    world = straight_world(1)
    config = FaultAwareConfig(coupling=0.0, spread_ahead=0.0, amplitude_per_fault=-0.2, frequency_per_fault=0.5)
    np.testing.assert_allclose(command(config, world, 2)[:, 5:], 0.8 * command(config, world)[:, 5:], atol=1e-12)
    _, controller, state = start(config, world, 2)
    assert controller.phase(state)[0] == pytest.approx(1.5 * config.frequency_rad_s * DT_S)


def test_a_servo_that_was_calibrated_wrongly_is_trimmed() -> None:
    """Joints that follow as nominal servos do, one of them off by 0.3 rad, which the trim takes away."""
    settings = {"amplitude_rad": 0.5, "frequency_rad_s": 3.0, "coupling": 0.0, "heading_gain": 0.0}
    seen = {}
    for trim_hz in (0.0, 0.5):
        controller, nominal = FaultAware(FaultAwareConfig(**settings, trim_hz=trim_hz), SPEC), NominalJoints(SPEC)
        state, (measurement, goal) = controller.initial_state(1), straight_world(1)
        angle, rate, off = np.zeros((1, N_JOINTS)), np.zeros((1, N_JOINTS)), 0.3 * (np.arange(N_JOINTS) == 4)
        swings = []
        for _ in range(1000):
            seen_so = known(measurement._replace(joint_angle=angle + off, joint_rate=rate))
            nominal.advance(angle, rate, controller.command(seen_so, goal, state, DT_S), DT_S)
            swings.append((angle + off)[0].copy())
        period = round(2.0 * np.pi / 3.0 / DT_S)
        seen[trim_hz] = np.mean(swings[-4 * period :], axis=0)
        assert state["trim"][0, 4] == pytest.approx(-0.3 if trim_hz else 0.0, abs=0.01)
        assert np.abs(np.delete(state["trim"], 4, axis=1)).max() < 1e-9
    assert seen[0.0][4] == pytest.approx(0.3, abs=0.02)
    assert seen[0.5][4] == pytest.approx(0.0, abs=0.02)


ALL = np.ones(6, dtype=bool)


def test_links_of_the_mirrored_robot_are_those_of_the_robot_turned_round() -> None:
    measurement, _ = random_world(6)
    seen = link_angles(mirror_measurement(measurement, ALL))
    np.testing.assert_allclose(wrap_angle(seen - link_angles(measurement)[:, ::-1] - math.pi), 0.0, atol=1e-12)


def test_a_mirrored_gait_drives_the_robot_as_far_tail_first() -> None:
    """World 0 head first, world 1 the mirrored gait: the same motion, turned round."""
    robot = SimulatedRobot(SPEC, 2, n_threads=1)
    mirrored = np.array([False, True])
    shape = mirror_joints(serpenoid_reference(np.zeros(2), 0.5, 0.5, N_JOINTS), mirrored)
    start = Measurement(shape, 0 * shape, np.zeros((2, 2)), np.zeros(2), np.ones(2, dtype=bool), np.zeros((2, 2)))
    head = np.array([0.0, -math.pi - float(start.joint_angle[1].sum())])  # the tail of world 1 points along x
    robot.set_shape(shape, head, np.zeros((2, 2)), "centre")
    for step in range(100):
        wave = serpenoid_reference(np.full(2, 4.0 * 0.2 * step), 0.5, 0.5, N_JOINTS, 0.1)
        robot.step(mirror_joints(wave, mirrored))
    way = robot.state.centre_xy
    assert np.hypot(*way[0]) > 1.0
    np.testing.assert_allclose(way[1], way[0], rtol=1e-6, atol=1e-6)
