"""Wrappers of Gymnasium that trainings use, around our vector envs, each for two episodes."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import vector

import snake_gym  # noqa: F401  registers

N_STEPS = 4
LOW, HIGH = np.float32(-2.0), np.float32(2.0)  # a float64 gets a warning about its precision
ARGUMENTS: dict[str, dict[str, Any]] = {
    "ClipReward": {"min_reward": -0.01, "max_reward": 0.01},
    "RescaleAction": {"min_action": LOW, "max_action": HIGH},
}
WRAPPERS = ["ClipAction", "ClipReward", "NormalizeReward", "RecordEpisodeStatistics", "RescaleAction"]


def play(env: Any) -> list[int]:
    """Play two episodes and return their lengths."""
    lengths = [0, 0]
    for episode in range(2):
        env.reset(seed=episode)
        ended = False
        while not ended:
            obs, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            assert env.observation_space.contains(obs) and np.isfinite(reward).all()
            ended = bool(np.all(terminated) or np.all(truncated))
            lengths[episode] += 1
    return lengths


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapper_of_vector_envs_plays_two_episodes(name: str, mode: str) -> None:
    env = gym.make_vec("SnakeGym/Waypoints-v0", 3, "vector_entry_point", max_episode_steps=N_STEPS, autoreset_mode=mode)
    wrapped: Any = getattr(vector, name)(env, **ARGUMENTS.get(name, {}))
    assert play(wrapped) == [N_STEPS, N_STEPS]
    if name == "RecordEpisodeStatistics":
        assert list(wrapped.length_queue) == [N_STEPS] * 6
