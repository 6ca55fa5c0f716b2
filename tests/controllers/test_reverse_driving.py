"""The mirrored robot: its own inverse, its links, and the same physics."""

from __future__ import annotations

import math

import numpy as np

from snake_gym.controllers.fault_aware import mirror_joints, mirror_measurement
from snake_gym.controllers.guidance import wrap_angle
from snake_gym.controllers.serpenoid import serpenoid_reference
from snake_gym.robot.measurement import Measurement, link_angles
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.controllers.worlds import N_JOINTS, SPEC, random_world

ALL = np.ones(6, dtype=bool)


def test_the_mirror_is_its_own_inverse() -> None:
    measurement, _ = random_world(6)
    mask = np.array([True, False] * 3)
    twice = mirror_measurement(mirror_measurement(measurement, mask), mask)
    np.testing.assert_allclose(twice.joint_angle, measurement.joint_angle)
    np.testing.assert_allclose(wrap_angle(twice.head_angle - measurement.head_angle), 0.0, atol=1e-12)
    np.testing.assert_array_equal(
        mirror_joints(mirror_joints(measurement.joint_rate, ALL), ALL), measurement.joint_rate
    )
    unmirrored = mirror_measurement(measurement, ~ALL)
    np.testing.assert_array_equal(unmirrored.joint_angle, measurement.joint_angle)
    np.testing.assert_array_equal(unmirrored.head_angle, measurement.head_angle)


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
