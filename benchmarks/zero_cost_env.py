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
    """Observations and rewards from a pool, whatever the action; SAME_STEP autoreset.

    Episodes last ``episode_steps`` steps, are truncated, and are staggered over the worlds, so that a learner meets as
    many ends per step as in the env it stands for.

    Args:
        num_envs: W.
        n_obs: D.
        n_actions: A.
        episode_steps: length of an episode.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(self, num_envs: int, n_obs: int, n_actions: int, episode_steps: int) -> None:
        self.num_envs = num_envs
        self.render_mode = None
        self.episode_steps = episode_steps
        self.single_observation_space = gym.spaces.Box(-10.0, 10.0, (n_obs,), np.float32)
        self.single_action_space = gym.spaces.Box(-1.0, 1.0, (n_actions,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        rng = np.random.default_rng(0)
        self._obs = rng.standard_normal((_POOL, num_envs, n_obs)).astype(np.float32)
        self._reward = rng.standard_normal((_POOL, num_envs))
        self._age = np.zeros(num_envs, np.int64)
        self._clock = 0

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin; the worlds' ages are spread over an episode's length."""
        self._age = np.arange(self.num_envs) * self.episode_steps // self.num_envs
        self._clock = 0
        return self._obs[0].copy(), {}

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """The next observations and rewards of the pool."""
        self._clock = (self._clock + 1) % _POOL
        self._age += 1
        obs, reward = self._obs[self._clock].copy(), self._reward[self._clock].copy()
        ended = self._age >= self.episode_steps
        infos: dict[str, Any] = {}
        if ended.any():
            self._age[ended] = 0
            infos = report_ends(obs, ended, {})
        return obs, reward, np.zeros(self.num_envs, bool), ended, infos


def report_ends(obs: NDArray[np.float32], ended: NDArray[np.bool_], infos: dict[str, Any]) -> dict[str, Any]:
    """SAME_STEP's infos for worlds that ended: last observations (W,) objects, and the infos at the end."""
    final_obs = np.full(ended.size, None, dtype=object)
    for world in np.flatnonzero(ended):
        final_obs[world] = obs[world]
    return {"final_obs": final_obs, "_final_obs": ended, "final_info": infos, "_final_info": ended}
