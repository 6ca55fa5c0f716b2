"""The real robot as an env: Gymnasium's own checks, the same spaces, and the same progress as in simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import snake_gym  # noqa: F401  registers
from snake_gym.config import ConfigError
from snake_gym.hardware.body import BringUpError
from snake_gym.hardware.emergency_stop import EmergencyStop
from snake_gym.hardware.real_env import RealSnakeEnv

POLICY = "agents/pretrained/resilient_servo_locked_joints"
TARGETS = ((2.0, 0.0), (3.0, 1.5), (1.5, 2.5), (0.0, 1.0), (2.0, 0.0), (5.0, 1.0), (8.0, 4.0), (14.0, 8.0))
WAVE = 0.6 * np.sin(0.5236 * np.arange(9))
OPEN = {"max_speed_rad_s": 1000.0, "max_acceleration_rad_s2": 1e6}
"""Clamps that no reference meets: nothing but the bus between policy and servos."""


@pytest.fixture
def latch(tmp_path: Path) -> Path:
    return tmp_path / "estop"


def make(latch: Path, **settings: Any) -> RealSnakeEnv:
    connection = {"latch": str(latch), **settings.pop("connection", {})}
    env = gym.make("SnakeGym/Real-v0", connection=connection, **settings).unwrapped
    assert isinstance(env, RealSnakeEnv)
    return env


def test_gymnasium_s_checker_has_nothing_to_say(latch: Path) -> None:
    env = make(latch, time_limit_s=2.0)
    check_env(env, skip_render_check=True, skip_close_check=True)
    env.close()
    env.close()


def test_spaces_and_observations_are_those_of_the_simulated_env(latch: Path) -> None:
    real = make(latch, action={"kind": "residual", "controller": {"kind": "cc"}}, course={"targets": TARGETS[:1]})
    simulated = gym.make(
        "SnakeGym/Waypoints-v0", action={"kind": "residual", "controller": {"kind": "cc"}},
        course={"kind": "list", "targets": TARGETS[:1]}, start={"amplitude_rad": 0.0, "random": False},
    )  # fmt: skip
    assert real.observation_space == simulated.observation_space
    assert real.action_space == simulated.action_space
    first, _ = real.reset()
    expected, _ = simulated.reset(seed=0)
    # An emulated robot starts with its head at the origin, the simulated one with its centre there.
    moved = [real.loop.layout.fields["distance"].columns.start]
    np.testing.assert_allclose(np.delete(first, moved), np.delete(expected, moved), atol=2e-3)
    real.close()


def course(seed: int) -> list[list[float]]:
    """Targets 1 to 2 m apart in random directions."""
    rng = np.random.default_rng(seed)
    bearing = np.cumsum(rng.uniform(-np.pi, np.pi, 40))
    legs = rng.uniform(1.0, 2.0, 40)[:, None] * np.stack([np.cos(bearing), np.sin(bearing)], axis=1)
    targets: list[list[float]] = np.cumsum(legs, axis=0).tolist()
    return targets


def progress_in_simulation(targets: list[list[float]], seconds: float) -> float:
    from snake_gym.interface.policy_file import load_policy

    policy = load_policy(POLICY)
    action = dict(policy.env_config["action"])
    env = gym.make(
        "SnakeGym/Waypoints-v0", action=action, course={"kind": "list", "targets": targets},
        start={"amplitude_rad": 0.6, "phase_shift_rad": 0.5236, "random": False}, time_limit_s=seconds,
    )  # fmt: skip
    obs, info = env.reset(seed=0)
    done = False
    while not done:
        chosen, _ = policy.predict(obs)
        obs, _, terminated, truncated, info = env.step(chosen)
        done = terminated or truncated
    return float(info["progress_m"])


def centre_of_the_start() -> tuple[float, float]:
    """Where the head has to be for the centre of mass to lie at the origin."""
    from snake_gym.robot.measurement import centre_offset, chain_angles
    from snake_gym.robot.presets import RESILIENT_SERVO

    offset = centre_offset(RESILIENT_SERVO, chain_angles(WAVE[None], np.zeros(1)))[0]
    return -float(offset[0]), -float(offset[1])


def progress_on_servos(latch: Path, targets: list[list[float]], seconds: float, port: str, safety: Any) -> float:
    from snake_gym.interface.policy_file import load_policy

    emulated = {"joint_angle_rad": WAVE.tolist(), "point_xy_m": centre_of_the_start()}
    env = make(
        latch, policy=POLICY, course={"targets": targets}, safety=safety, time_limit_s=seconds,
        connection={"port": port, "emulated": emulated},
    )  # fmt: skip
    policy = load_policy(POLICY)
    obs, info = env.reset()
    done = False
    while not done:
        action, _ = policy.predict(obs)
        obs, _, terminated, truncated, info = env.step(action)
        assert info["sample_age_s"] < 0.02 or port == "pty"
        done = terminated or truncated
    env.close()
    assert info["stop_reason"] == ""
    return float(info["progress_m"])


@pytest.mark.parametrize(
    ("port", "n_courses", "seconds"),
    [
        ("memory", 3, 20.0),
        pytest.param("memory", 8, 60.0, marks=pytest.mark.slow),
        pytest.param("pty", 4, 60.0, marks=pytest.mark.slow),
    ],
)
def test_the_shipped_policy_makes_the_same_progress_through_driver_and_bytes(
    latch: Path, port: str, n_courses: int, seconds: float
) -> None:
    """Ratio of sums: a turn taken a moment later leads another way, by up to 2 % in a single course."""
    courses = [course(seed) for seed in range(n_courses)]
    made = sum(progress_on_servos(latch, targets, seconds, port, OPEN) for targets in courses)
    expected = sum(progress_in_simulation(targets, seconds) for targets in courses)
    assert expected > 0.3 * seconds * n_courses
    assert made == pytest.approx(expected, rel=0.03)


def test_the_default_clamps_let_the_shipped_policy_crawl(latch: Path) -> None:
    made = progress_on_servos(latch, course(0), 20.0, "memory", {})
    assert made > 0.93 * progress_in_simulation(course(0), 20.0)


def test_a_stop_ends_the_episode_and_forbids_the_next(latch: Path) -> None:
    env = make(latch)
    env.reset()
    env.step(env.action_space.sample())
    EmergencyStop(latch).trip("test")
    _, _, terminated, truncated, info = env.step(env.action_space.sample())
    assert (terminated, truncated) == (False, True)
    assert "emergency stop: test" in info["stop_reason"]
    with pytest.raises(BringUpError, match="emergency stop"):
        env.reset()
    EmergencyStop(latch).clear()
    env.reset()
    env.close()


def test_a_lost_pose_degrades_and_holds_but_does_not_crash(latch: Path) -> None:
    env = make(latch, loop={"pose_timeout_s": 1.0}, course={"targets": TARGETS})
    env.reset()
    for _ in range(5):
        env.step(np.full(9, 0.2, np.float32))
    env.loop.pose.lost = True  # type: ignore[attr-defined]
    infos = [env.step(np.full(9, -0.4, np.float32))[4] for _ in range(12)]
    assert not infos[0]["pose_valid"]
    assert not infos[2]["held"]
    assert infos[-1]["held"]
    np.testing.assert_array_equal(infos[-1]["wanted_reference_rad"], infos[-2]["wanted_reference_rad"])
    assert infos[-1]["stop_reason"] == ""
    env.loop.pose.lost = False  # type: ignore[attr-defined]
    env.step(np.zeros(9, np.float32))
    assert not env.step(np.zeros(9, np.float32))[4]["held"]
    env.close()


@pytest.mark.parametrize("bad", [np.full(9, np.nan), np.zeros(4)])
def test_a_bad_action_is_an_error_that_names_it(latch: Path, bad: np.ndarray) -> None:
    env = make(latch)
    env.reset()
    with pytest.raises(ValueError, match="action"):
        env.step(bad)
    env.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"connection": {"port": "/dev/none"}}, "calibration is missing"),
        ({"connection": {"baud": 1_000_001}}, "nearest: 1000000"),
        ({"connection": {"pose": {"kind": "trueth"}}}, "truth"),
        ({"connection": {"emulated": {"joint_angle_rad": [0.0]}}}, "expected 9"),
        ({"safty": {}}, "safety"),
        ({"robot": "resilient"}, "expected 'position'"),
        ({"policy": POLICY, "course": {"tracked_point": "head"}}, "expected 'centre', as the policy"),
    ],
)
def test_bad_settings_are_named(latch: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(latch, **settings)
