"""An env of ours for LeRobot's hub loader: put this file into a repository of yours, as ``env.py``.

    make_env("me/snake-env", n_envs=8, trust_remote_code=True)  # of lerobot.envs.factory

Observations are ``agent_pos``, which LeRobot's policies know as ``observation.state``.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

import snake_gym  # noqa: F401  registers

ENV_ID = "SnakeGym/Waypoints-v0"
SETTINGS: dict[str, Any] = {"faults": {"n_max": 2}, "time_limit_s": 30.0}


class SnakeForLeRobot(gym.ObservationWrapper):
    """Names and attributes that its evaluation asks for."""

    task = task_description = "crawl to the targets, whatever joint fails"

    def __init__(self) -> None:
        env = gym.make(ENV_ID, render_mode="rgb_array", **SETTINGS)
        super().__init__(env)
        self._max_episode_steps = int(env.unwrapped.core.n_steps)  # type: ignore[attr-defined]
        self.observation_space = gym.spaces.Dict({"agent_pos": env.observation_space})

    def observation(self, observation: np.ndarray) -> dict[str, np.ndarray]:
        return {"agent_pos": observation}


def make_env(n_envs: int = 1, use_async_envs: bool = False, cfg: Any = None) -> dict[str, dict[int, Any]]:
    kind = gym.vector.AsyncVectorEnv if use_async_envs else gym.vector.SyncVectorEnv
    return {ENV_ID: {0: kind([SnakeForLeRobot] * n_envs)}}
