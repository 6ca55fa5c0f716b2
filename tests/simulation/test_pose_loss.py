"""A pose that is lost now and then: the last one is repeated and told to be invalid."""

from __future__ import annotations

import numpy as np
import pytest

from snake_gym.config import ConfigError
from snake_gym.robot.measurement import tracked_point
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.simulation.pose_loss import PoseLossConfig
from snake_gym.simulation.sensors import SensorConfig, SensorSuite
from snake_gym.simulation.simulated_robot import SimulatedRobot


def suite(config: PoseLossConfig, n_worlds: int = 3, noise_m: float = 0.0) -> SensorSuite:
    sensors = SensorSuite(SensorConfig(position_noise_m=noise_m, pose_loss=config), n_worlds, 9)
    rows = np.arange(n_worlds)
    sensors.begin(rows + 10, rows * 0, rows)
    return sensors


def test_a_lost_pose_is_the_last_valid_one_until_the_robot_is_found_again() -> None:
    sensors, robot = suite(PoseLossConfig(gap_s=1.0, duration_s=0.5)), SimulatedRobot(RESILIENT_SERVO, 3, 1)
    xs, valid = [], []
    for k in range(20):
        robot.state.time_s[:] = 0.25 * k
        robot.state.head_xy[:, 0] = robot.state.centre_xy[:, 0] = 10.0 + k
        sample = sensors.measure(robot)
        xs.append(sample.head_xy_w[0, 0])
        valid.append(sample.pose_valid[0])
        point = tracked_point(robot.spec, sample._replace(centre_xy_w=None), "centre")
        if not sample.pose_valid[0]:
            np.testing.assert_allclose(sample.centre_xy_w, point)
    assert "".join("x" if ok else "-" for ok in valid) == "xxxx--xxxx--xxxx--xx"
    assert xs[:8] == [10.0, 11.0, 12.0, 13.0, 13.0, 13.0, 16.0, 17.0]


def test_losses_are_drawn_from_the_ranges_in_each_world_and_move_no_other_noise() -> None:
    config, n = PoseLossConfig(gap_s=(0.5, 1.5), duration_s=(0.2, 0.4)), 500
    with_loss, without, one = suite(config, n, 0.1), suite(PoseLossConfig(), n, 0.1), suite(config, 1, 0.1)
    robot, alone = SimulatedRobot(RESILIENT_SERVO, n, 1), SimulatedRobot(RESILIENT_SERVO, 1, 1)
    seen = []
    for k in range(1000):
        robot.state.time_s[:] = alone.state.time_s[:] = 0.01 * k
        sample, noisy = with_loss.measure(robot), without.measure(robot)
        ok = sample.pose_valid
        np.testing.assert_array_equal(sample.head_xy_w[ok], noisy.head_xy_w[ok])
        np.testing.assert_array_equal(sample.joint_angle, noisy.joint_angle)
        for own, batch in zip(one.measure(alone), sample, strict=True):
            assert own is None or np.array_equal(own[0], batch[0])
        seen.append(ok.copy())
    lost = ~np.array(seen)
    assert not lost[:50].any() and lost.mean() == pytest.approx(0.3 / 1.3, abs=0.02)
    begins = np.diff(lost.astype(int), axis=0) == 1
    assert begins.sum() / n == pytest.approx(9.5 / 1.3, abs=0.7)


def test_a_range_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"gap_s is \[2, 1\]; expected \[low, high\] with low <= high"):
        PoseLossConfig(gap_s=(2.0, 1.0))
