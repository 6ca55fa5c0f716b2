"""Every task on the emulated robot, beside the simulated env: the same spaces, and nearly the same scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import snake_gym  # noqa: F401  registers
from snake_gym.hardware.robot.real_env import RealSnakeEnv

CC = {"kind": "residual", "controller": {"kind": "cc"}}
SHAPE = 0.35 * np.sin(0.5236 * np.arange(9))
MAP = {
    "kind": "list", "goal_m": [2.5, 0.0],
    "shapes": [{"x_m": 1.2, "y_m": 0.5, "radius_m": 0.1}],
}  # fmt: skip
TASKS: dict[str, dict[str, Any]] = {
    "SnakeGym/PathFollow-v0": {"path": {"kind": "circle", "radius_m": 1.5}},
    "SnakeGym/Velocity-v0": {"command": {"max_turn_rad": 0.5}},
    "SnakeGym/ObstacleField-v0": {"field": MAP},
}


def make(folder: Path, task: dict[str, Any], **settings: Any) -> RealSnakeEnv:
    emulated = {"joint_angle_rad": SHAPE.tolist(), "head_angle_rad": 2.0, "point_xy_m": [3.0, -1.0]}
    connection = {"latch": str(folder / "estop"), "emulated": emulated}
    env = gym.make("SnakeGym/Real-v0", connection=connection, task=task, **settings).unwrapped
    assert isinstance(env, RealSnakeEnv)
    return env


@pytest.mark.parametrize(
    "env_id", [pytest.param(one, marks=pytest.mark.slow) if "Velocity" in one else one for one in TASKS]
)
def test_a_task_is_shown_and_scored_as_in_simulation(env_id: str, tmp_path: Path) -> None:
    """The robot lies somewhere in the room and looks elsewhere; all that counts is relative to that."""
    real = make(tmp_path, {"id": env_id, **TASKS[env_id]}, action=CC, time_limit_s=20.0)
    among = {"observation": {"columns": [
        "joint_angle", "joint_rate", "reference_error", "last_action", "phase", "heading_error", "distance", "range",
    ]}} if "Obstacle" in env_id else {}  # fmt: skip
    same = gym.make(env_id, action=CC, time_limit_s=20.0, faults={"n_max": 0}, **TASKS[env_id], **among)
    assert real.observation_space == same.observation_space
    assert real.action_space == same.action_space
    first, _ = real.reset(seed=1)
    again, _ = real.reset(seed=1)
    np.testing.assert_allclose(first, again, atol=2e-3)
    assert np.abs(first).max() > 0.1
    still, total = np.zeros(real.action_space.shape), 0.0
    for _ in range(90):
        obs, reward, terminated, truncated, info = real.step(still)
        total += reward
        assert real.observation_space.contains(obs)
        if terminated or truncated:
            break
    assert info["progress_m"] > 0.2 and total > 0.0
    weighted = sum(value for name, value in info.items() if name.startswith("reward/"))
    assert weighted == pytest.approx(reward)
    real.close()


def test_steps_without_a_pose_score_nothing(tmp_path: Path) -> None:
    real = make(tmp_path, {"id": "SnakeGym/PathFollow-v0", "path": {"kind": "line"}}, action=CC)
    real.reset(seed=0)
    for _ in range(15):
        real.step(np.zeros(9))
    real.loop.pose.lost = True  # type: ignore[attr-defined]
    before = real.loop.course.progress_m
    for _ in range(5):
        _, reward, _, _, info = real.step(np.zeros(9))
        assert reward == 0.0 and not info["pose_valid"]
    real.loop.pose.lost = False  # type: ignore[attr-defined]
    for _ in range(10):
        real.step(np.zeros(9))
    assert real.loop.course.progress_m > before
    real.close()
