"""A vector env that costs next to nothing, to measure a learner's own ceiling."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

_POOL = 16
"""Batches of observations and rewards that are drawn once and then handed out in turn."""


class ZeroCostEnv(VectorEnv[Any, Any, Any]):
    """Observations (W, D) and rewards (W,) from a pool, whatever the actions (W, A); SAME_STEP autoreset.

    Episodes are truncated after ``episode_steps`` steps, and staggered over the worlds: a learner meets as many ends
    per step as in our env.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012
    render_mode = None

    def __init__(self, num_envs: int, n_obs: int, n_actions: int, episode_steps: int) -> None:
        self.num_envs = num_envs
        self.single_observation_space = gym.spaces.Box(-10.0, 10.0, (n_obs,), np.float32)
        self.single_action_space = gym.spaces.Box(-1.0, 1.0, (n_actions,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        rng = np.random.default_rng(0)
        self._obs = rng.standard_normal((_POOL, num_envs, n_obs)).astype(np.float32)
        self._reward = rng.standard_normal((_POOL, num_envs))
        self._episode_steps = episode_steps
        self._age = np.arange(num_envs) * episode_steps // num_envs

    def reset(self, **_: Any) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """The first observations of the pool."""
        return self._obs[0].copy(), {}

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """The next observations and rewards of the pool."""
        self._age += 1
        k = self._age[0] % _POOL
        obs, ended = self._obs[k].copy(), self._age % self._episode_steps == 0
        infos = report_ends(obs, ended, {}) if ended.any() else {}
        return obs, self._reward[k].copy(), np.zeros(self.num_envs, bool), ended, infos


def report_ends(obs: NDArray[np.float32], ended: NDArray[np.bool_], infos: dict[str, Any]) -> dict[str, Any]:
    """SAME_STEP's infos for worlds that ended: last observations (W,) objects, and the infos at the end."""
    final_obs = np.full(ended.size, None, dtype=object)
    for world in np.flatnonzero(ended):
        final_obs[world] = obs[world]
    return {"final_obs": final_obs, "_final_obs": ended, "final_info": infos, "_final_info": ended}
