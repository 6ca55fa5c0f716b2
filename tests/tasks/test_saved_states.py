"""Every state of an episode is taken back, in every task."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from snake_gym.envs.vector_env import SnakeVectorEnv


@pytest.mark.parametrize(
    ("task", "settings"),
    [
        ("Waypoints", {"course": {"kind": "paper"}}), ("Velocity", {"time_limit_s": 4.0}),
        ("PathFollow", {"path": {"kind": "circle", "radius_m": 0.1}, "follow": {"speed_m_s": 0.5}}),
        ("PathFollow", {"path": {"kind": "recorded", "points": [[0, 0], [1, 1], [3, 0]]}}),
        ("ObstacleField", {}), ("Escape", {"goal": {"guidance": "goal"}}),
    ],
)  # fmt: skip
def test_every_state_of_an_episode_is_taken_back(task: str, settings: dict[str, Any]) -> None:
    """Also before the first one, at each end, and beyond the time limit of the settings."""
    env = SnakeVectorEnv(f"SnakeGym/{task}-v0", 4, "SAME_STEP", max_episode_steps=90, config=settings)
    gait = SnakeVectorEnv(f"SnakeGym/{task}-v0", 4, "SAME_STEP", max_episode_steps=90, config={
        **settings, "action": {"kind": "gait"}, "faults": {"n_max": 0}})  # fmt: skip
    for one in (env, gait):
        one.set_state(one.get_state())
        one.reset(seed=8)
        action = np.tile(np.linspace(-1.0, 1.0, 4)[:, None], one.action_space.shape[1])
        for _ in range(110):
            one.set_state(one.get_state())
            one.step(action)
