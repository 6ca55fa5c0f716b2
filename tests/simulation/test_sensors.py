"""Simulated sensors: perfect by default, noise and resolution of the size asked for."""

import numpy as np
import pytest

from snake_gym.robot.measurement import link_angles, mean_angle, tracked_point
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.simulation.sensors import SensorConfig, measure
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.simulation.streams import RandomStreams


def make(n_worlds: int = 2000) -> tuple[SimulatedRobot, RandomStreams]:
    robot = SimulatedRobot(RESILIENT_SERVO, n_worlds, 1)
    rng = np.random.default_rng(0)
    robot.set_shape(rng.normal(0, 0.4, (n_worlds, 9)), rng.normal(size=n_worlds), rng.normal(size=(n_worlds, 2)))
    streams = RandomStreams("sensors", n_worlds)
    streams.begin(np.arange(n_worlds), np.zeros(n_worlds, np.int64))
    return robot, streams


def test_perfect_sensors_tell_the_truth() -> None:
    robot, streams = make(20)
    sample = measure(robot, SensorConfig(), streams)
    np.testing.assert_allclose(link_angles(sample), robot.state.link_angle, atol=1e-12)
    np.testing.assert_allclose(mean_angle(sample), robot.state.link_angle.mean(axis=1), atol=1e-12)
    np.testing.assert_array_equal(sample.head_xy_w, robot.state.head_xy)
    derived = tracked_point(robot.spec, sample._replace(centre_xy_w=None), "centre")
    np.testing.assert_allclose(derived, robot.state.centre_xy, atol=1e-12)
    np.testing.assert_array_equal(tracked_point(robot.spec, sample, "head"), robot.state.head_xy)
    assert (streams.counter == 0).all()


def test_noise_has_the_configured_size_and_centre_follows_from_measurements() -> None:
    robot, streams = make()
    config = SensorConfig(angle_noise_rad=0.01, rate_noise_rad_s=0.2, position_noise_m=0.03, heading_noise_rad=0.05)
    sample = measure(robot, config, streams)
    for measured, true, size in (
        (sample.joint_angle, robot.joint_angle(), 0.01),
        (sample.joint_rate, robot.joint_rate(), 0.2),
        (sample.head_xy_w, robot.state.head_xy, 0.03),
        (sample.head_angle, robot.state.link_angle[:, -1], 0.05),
    ):
        error = measured - true
        assert error.std() == pytest.approx(size, rel=0.06)
        assert abs(error.mean()) < 4 * size / np.sqrt(error.size)
    assert sample.centre_xy_w is not None
    np.testing.assert_allclose(
        sample.centre_xy_w, tracked_point(robot.spec, sample._replace(centre_xy_w=None), "centre"), atol=1e-12
    )
    again = measure(robot, config, streams)
    assert not np.array_equal(again.joint_angle, sample.joint_angle)


def test_encoder_rounds_to_its_steps() -> None:
    robot, streams = make(20)
    step = 2 * np.pi / 4096
    angle = measure(robot, SensorConfig(encoder_step_rad=step), streams).joint_angle
    np.testing.assert_allclose(angle / step, np.rint(angle / step), atol=1e-9)
    assert np.abs(angle - robot.joint_angle()).max() <= step / 2 + 1e-12
