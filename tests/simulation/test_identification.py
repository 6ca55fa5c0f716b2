"""Identification: replayed logs, and coefficients found again in simulated ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from snake_gym.robot.presets import ROBO_CONDA
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.identification import Coefficient, Place, RunLog, SensorNoise, identify
from snake_gym.simulation.identification.coefficients import with_values
from snake_gym.simulation.identification.fit import Residuals
from snake_gym.simulation.identification.recording import record_runs
from snake_gym.simulation.identification.replay import Prediction, Replay
from snake_gym.simulation.sensors import SensorConfig

PERIOD_S = 0.05
WHEELS = tuple(range(1, 14))
JOINT = Coefficient("c_joint", 0.036, 0.005, 0.5, (Place("free_joint_damping_nms_rad"),))
ACROSS = Coefficient("mu_lat", 1.25, 0.2, 5.0, (Place("friction.normal_coulomb", WHEELS),))
ALONG = Coefficient(
    "mu_long", 0.145, 0.02, 1.0, (Place("friction.tangential_coulomb"), Place("friction.normal_coulomb", (14,)))
)


def waves(settings: list[tuple[float, float, float]], n_joints: int, seconds: float) -> FloatArray:
    """References (L, T, J) of serpenoid gaits: amplitude [deg], frequency [deg/s], phase shift [deg]."""
    time = PERIOD_S * np.arange(round(seconds / PERIOD_S))
    gaits = [np.radians(gait) for gait in settings]
    return np.array([a * np.sin(f * time[:, None] + s * np.arange(n_joints)) for a, f, s in gaits])


@pytest.fixture(scope="module")
def logs() -> list[RunLog]:
    gaits = [(15.0, 420.0, 50.0), (15.0, 420.0, 90.0), (20.0, 280.0, 60.0), (38.0, 140.0, 35.0)]
    references = waves(gaits, 13, 3.0)
    noise = SensorConfig(angle_noise_rad=0.01, position_noise_m=0.002, heading_noise_rad=0.005)
    return record_runs(ROBO_CONDA, references, PERIOD_S, noise, 0, [(5,), (3, 6), (), (2, 5, 8)], n_rest=10)


# --- logs and coefficients -------------------------------------------------------------------------------------------


def test_a_coefficient_reaches_all_its_places_and_no_other() -> None:
    spec = with_values(ROBO_CONDA, (JOINT, ACROSS, ALONG), (0.1, 2.0, 0.3))
    assert spec.free_joint_damping_nms_rad == 0.1
    np.testing.assert_array_equal(spec.links("friction.normal_coulomb"), [2.0] * 13 + [0.3])
    assert spec.friction.tangential_coulomb == 0.3
    assert spec.friction.normal_ns_m == ROBO_CONDA.friction.normal_ns_m
    one = with_values(spec, (Coefficient("k", 1, 0.1, 9, (Place("actuator.kp", (2,)),)),), (5.0,))
    assert one.joints("actuator.kp")[:3].tolist() == [20.0, 5.0, 20.0]


# --- replay ----------------------------------------------------------------------------------------------------------


def test_the_true_robot_replays_its_log_to_the_noise(logs: list[RunLog]) -> None:
    replay = Replay(logs, ROBO_CONDA, (JOINT, ACROSS, ALONG))
    prediction = replay.predict(np.array([[0.045, 1.5, 0.12], [0.045, 1.2, 0.12]]))
    noise = SensorNoise(0.002, 0.005, 0.01)
    root_mean_square = np.sqrt((Residuals(logs, noise).of(prediction) ** 2).mean(axis=1))
    assert root_mean_square[0] == pytest.approx(1.0, abs=0.1)
    assert root_mean_square[1] > 2.0


def test_residuals_do_not_depend_on_where_a_run_began(logs: list[RunLog]) -> None:
    prediction = Replay(logs, ROBO_CONDA, (ACROSS,)).predict(np.array([[1.3]]))
    turn, shift = 0.7, np.array([3.0, -2.0])
    rotation = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    moved = Prediction(
        prediction.head_xy_m @ rotation.T + shift, prediction.head_angle_rad + turn, prediction.joint_angle_rad
    )
    residuals = Residuals(logs, SensorNoise())
    np.testing.assert_allclose(residuals.of(moved), residuals.of(prediction), atol=1e-6)


# --- fit -------------------------------------------------------------------------------------------------------------

TRUTH = {"c_joint": 0.045, "mu_lat": 1.5, "mu_long": 0.12}


def test_coefficients_are_found_again_within_a_tenth(logs: list[RunLog]) -> None:
    found = identify(logs, ROBO_CONDA, (JOINT, ACROSS, ALONG), SensorNoise(0.002, 0.005, 0.01))
    for name, value in found.values.items():
        assert value == pytest.approx(TRUTH[name], rel=0.1), name
    assert found.spec.links("friction.normal_coulomb")[0] == found.values["mu_lat"]
    assert found.relative_std.keys() == TRUTH.keys()
