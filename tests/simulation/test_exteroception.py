"""Contact sensors and range scan: frames, noise, dead band, saturation, drop-out."""

import numpy as np
import pytest

from snake_gym.obstacles.shapes import Circle, features
from snake_gym.physics.state import no_obstacles
from snake_gym.robot.catalogue import load_robot
from snake_gym.simulation.sensors import ContactSensorConfig, RangeScanConfig, SensorConfig, SensorSuite
from snake_gym.simulation.simulated_robot import SimulatedRobot

SPEC = load_robot("resilient_servo")


def robots(n_worlds: int = 3) -> SimulatedRobot:
    pegs = np.repeat(features([Circle(2.0, 0.0, 0.5)])[None], n_worlds, axis=0)
    robot = SimulatedRobot(SPEC, n_worlds, obstacles=no_obstacles(n_worlds)._replace(feature=pegs))
    robot.set_shape(np.zeros((n_worlds, 9)), np.zeros(n_worlds), np.zeros((n_worlds, 2)))
    return robot


def suite(contact: ContactSensorConfig | None = None, scan: RangeScanConfig | None = None, n: int = 3) -> SensorSuite:
    made = SensorSuite(SensorConfig(), n, SPEC.n_joints, contact, scan)
    made.begin(np.arange(n), np.zeros(n, np.int64), np.arange(n))
    return made


def test_forces_are_told_in_the_link_s_frame() -> None:
    robot = robots()
    robot.state.link_angle[1, 4] = np.pi / 2
    robot.state.contact_force[:, 4] = [3.0, 4.0]
    felt = suite(ContactSensorConfig()).measure(robot).contact_force_l
    np.testing.assert_allclose(felt[0, 4], [3.0, 4.0])
    np.testing.assert_allclose(felt[1, 4], [4.0, -3.0], atol=1e-12)
    assert np.count_nonzero(felt[:, [0, 1, 2, 3, 5, 6, 7, 8, 9]]) == 0
    rows = suite(ContactSensorConfig()).measure(robot, np.array([1])).contact_force_l
    np.testing.assert_array_equal(rows[0], felt[1])


def test_dead_band_and_saturation() -> None:
    robot = robots()
    robot.state.contact_force[0, :3, 0] = [0.9, -1.1, 99.0]
    felt = suite(ContactSensorConfig(threshold_n=1.0, limit_n=20.0)).measure(robot).contact_force_l
    assert felt[0, :3, 0].tolist() == [0.0, -1.1, 20.0]


def test_noise_has_its_size_and_depends_on_the_world_s_seed_alone() -> None:
    config = ContactSensorConfig(noise_n=2.0)
    sensors, robot = suite(config, n=50), robots(50)
    seen = np.array([sensors.measure(robot).contact_force_l for _ in range(20)])
    assert seen.std() == pytest.approx(2.0, rel=0.03) and abs(seen.mean()) < 0.05
    alone = SensorSuite(SensorConfig(), 1, SPEC.n_joints, config)
    alone.begin(np.array([7]), np.zeros(1, np.int64), np.arange(1))
    np.testing.assert_array_equal(alone.measure(robots(1)).contact_force_l[0], seen[0, 7])


def test_the_scan_sees_a_peg_ahead_and_nothing_aside() -> None:
    scan = RangeScanConfig(n_beams=3, field_of_view_rad=np.pi, max_range_m=2.5)
    np.testing.assert_allclose(scan.beam_angles(), [-np.pi / 2, 0.0, np.pi / 2])
    robot = robots()
    robot.set_shape(np.zeros((3, 9)), np.array([0.0, np.pi / 2, np.pi]), np.zeros((3, 2)))
    seen = suite(scan=scan).measure(robot).range_m
    np.testing.assert_allclose(seen, [[2.5, 1.5, 2.5], [1.5, 2.5, 2.5], [2.5, 2.5, 2.5]], atol=1e-9)


def test_range_noise_only_where_there_is_an_echo_and_lost_echoes() -> None:
    robot = robots(400)
    scan = RangeScanConfig(n_beams=3, field_of_view_rad=np.pi, max_range_m=2.5, noise_m=0.02, dropout=0.25)
    seen = suite(scan=scan, n=400).measure(robot).range_m
    assert (seen[:, [0, 2]] == 2.5).all()
    lost = seen[:, 1] == 2.5
    assert lost.mean() == pytest.approx(0.25, abs=0.07)
    assert seen[~lost, 1].mean() == pytest.approx(1.5, abs=0.005)
    assert seen[~lost, 1].std() == pytest.approx(0.02, rel=0.15)


def test_a_full_circle_has_no_beam_twice() -> None:
    angles = RangeScanConfig(n_beams=8, field_of_view_rad=2 * np.pi).beam_angles()
    np.testing.assert_allclose(np.diff(angles), np.pi / 4)
    assert angles[-1] - angles[0] < 2 * np.pi - 0.1
