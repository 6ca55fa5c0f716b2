"""Encoders that die, lie or rattle: what is read, when, and in which worlds."""

from __future__ import annotations

import numpy as np
import pytest

from snake_gym.physics.faults import BIASED, DEAD, HEALTHY, NOISY
from snake_gym.robot.measurement import tracked_point
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.simulation.sensors import EncoderFault, EncoderFaultConfig, Encoders, SensorConfig, measure
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.simulation.streams import RandomStreams


def make(config: EncoderFaultConfig, n_worlds: int = 3, seed: int = 0) -> Encoders:
    encoders = Encoders(config, n_worlds, 9)
    encoders.begin(np.arange(n_worlds) + seed, np.zeros(n_worlds, np.int64), np.arange(n_worlds))
    return encoders


def read(encoders: Encoders, time_s: float, value: float) -> tuple[np.ndarray, np.ndarray]:
    shape = encoders.faults.kind.shape
    return encoders.read(np.full(shape, value), np.full(shape, 2.0 * value), np.full(shape[0], time_s))


def test_a_dead_encoder_keeps_its_last_reading_and_wakes_up_again() -> None:
    encoders = make(EncoderFaultConfig(events=(EncoderFault(4, "dead", onset_s=1.0, duration_s=2.0),)))
    angles, rates = zip(*(read(encoders, t, t + 0.5) for t in (0.0, 0.5, 1.0, 2.5, 3.0)), strict=True)
    assert [angle[2, 3] for angle in angles] == [0.5, 1.0, 1.0, 1.0, 3.5]
    assert [rate[2, 3] for rate in rates] == [1.0, 2.0, 0.0, 0.0, 7.0]
    assert [angle[2, 4] for angle in angles] == [0.5, 1.0, 1.5, 3.0, 3.5]


def test_an_encoder_dead_from_the_start_keeps_its_first_reading_until_the_next_episode() -> None:
    encoders = make(EncoderFaultConfig(events=(EncoderFault(1),)))
    assert read(encoders, 0.0, 0.7)[0][0, 0] == 0.7
    assert read(encoders, 0.2, 0.9)[0][0, 0] == 0.7
    encoders.begin(np.array([1]), np.array([5]), np.array([1]))
    angle = read(encoders, 0.0, -0.3)[0]
    assert angle[:, 0].tolist() == [0.7, -0.3, 0.7]


def test_bias_and_noise_have_the_configured_size_while_they_last() -> None:
    events = (EncoderFault(2, "biased", bias_rad=-0.15, duration_s=1.0), EncoderFault(5, "noisy", noise_rad=0.3))
    encoders = make(EncoderFaultConfig(events=events), 4000)
    angle, rate = read(encoders, 0.5, 1.0)
    np.testing.assert_allclose(angle[:, 1], 0.85)
    assert angle[:, 4].std() == pytest.approx(0.3, rel=0.05) and angle[:, 4].mean() == pytest.approx(1.0, abs=0.02)
    assert rate[:, 4].std() == pytest.approx(0.5, rel=0.05)
    np.testing.assert_array_equal(angle[:, [0, 2, 3, 5, 6, 7, 8]], 1.0)
    assert (read(encoders, 1.0, 1.0)[0][:, 1] == 1.0).all()
    assert not np.array_equal(read(encoders, 1.0, 1.0)[0][:, 4], angle[:, 4])


def test_drawn_faults_have_the_configured_distribution() -> None:
    config = EncoderFaultConfig(1, 3, ("dead", "biased", "noisy"), onset_min_s=2.0, onset_max_s=4.0, duration_s=3.0)
    encoders = make(config, 4000)
    failed = encoders.faults.kind != HEALTHY
    np.testing.assert_allclose(np.bincount(failed.sum(axis=1), minlength=4)[1:] / 4000, 1 / 3, atol=0.03)
    np.testing.assert_allclose(failed.mean(axis=0), 2 / 9, atol=0.03)
    for kind in (DEAD, BIASED, NOISY):
        assert (encoders.faults.kind[failed] == kind).mean() == pytest.approx(1 / 3, abs=0.03)
    assert encoders.faults.onset_s.min() >= 2.0 and encoders.faults.onset_s.max() <= 4.0
    np.testing.assert_allclose(encoders.faults.end_s - encoders.faults.onset_s, 3.0)
    assert set(np.unique(encoders.faults.bias_rad)) == {-0.2, 0.2}


def test_the_measurement_is_wrong_where_the_encoder_is_and_its_centre_with_it() -> None:
    robot = SimulatedRobot(RESILIENT_SERVO, 3, 1)
    robot.set_shape(np.full((3, 9), 0.2), np.zeros(3), np.zeros((3, 2)))
    streams = RandomStreams("sensors", 3)
    encoders = make(EncoderFaultConfig(events=(EncoderFault(3, "biased", bias_rad=0.4),)))
    sample = measure(robot, SensorConfig(), streams, encoders=encoders)
    error = sample.joint_angle - robot.joint_angle()
    np.testing.assert_allclose(error, np.tile(np.eye(9)[2] * 0.4, (3, 1)), atol=1e-12)
    assert sample.centre_xy_w is not None
    assert np.hypot(*(sample.centre_xy_w - robot.state.centre_xy).T).min() > 0.01
    np.testing.assert_allclose(
        sample.centre_xy_w, tracked_point(robot.spec, sample._replace(centre_xy_w=None), "centre"), atol=1e-12
    )
    good = measure(robot, SensorConfig(), streams, encoders=make(EncoderFaultConfig()))
    np.testing.assert_array_equal(good.joint_angle, robot.joint_angle())
    np.testing.assert_array_equal(good.centre_xy_w, robot.state.centre_xy)


def test_encoder_faults_leave_the_noise_of_the_other_sensors_alone() -> None:
    robot = SimulatedRobot(RESILIENT_SERVO, 3, 1)
    noise = SensorConfig(angle_noise_rad=0.01, position_noise_m=0.02)
    encoders = make(EncoderFaultConfig(events=(EncoderFault(3, "noisy"),)))
    samples = []
    for given in (None, encoders):
        streams = RandomStreams("sensors", 3)
        streams.begin(np.arange(3), np.zeros(3, np.int64))
        samples.append(measure(robot, noise, streams, encoders=given))
    np.testing.assert_array_equal(samples[0].head_xy_w, samples[1].head_xy_w)
    same = samples[0].joint_angle == samples[1].joint_angle
    np.testing.assert_array_equal(same, np.tile(np.arange(9) != 2, (3, 1)))


def test_a_fault_of_whole_control_steps_is_in_so_many_readings_whatever_its_onset() -> None:
    """Times of steps are sums, which rounding puts beside the onset."""
    for steps in range(1, 60):
        onset = round(0.2 * steps, 1)
        encoders = make(EncoderFaultConfig(events=(EncoderFault(1, "biased", onset, 1.0, bias_rad=0.5),)), 1)
        time, wrong = 0.0, []
        for k in range(80):
            if read(encoders, time, 0.0)[0][0, 0] != 0.0:
                wrong.append(k)
            time += 0.2
        assert wrong == list(range(steps, steps + 5)), onset
