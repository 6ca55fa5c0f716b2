"""A vector env that every learner must be able to solve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from benchmarks.zero_cost_env import report_ends


class CopyEnv(VectorEnv[Any, Any, Any]):
    """Copy what you see: the reward is ``-|action - observation|^2``, the best return 0; SAME_STEP or DISABLED.

    The observation (W, A) is uniform in [-0.8, 0.8] and drawn anew at each step; episodes last ``episode_steps``. A
    policy that always answers 0 gets -0.64 A / 3 a step on average.
    """

    def __init__(
        self, num_envs: int, n_actions: int = 2, episode_steps: int = 10, mode: AutoresetMode = AutoresetMode.SAME_STEP
    ) -> None:
        self.num_envs = num_envs
        self.render_mode = None
        self.episode_steps = episode_steps
        self.metadata = {"render_modes": [], "autoreset_mode": mode}
        self.single_observation_space = gym.spaces.Box(-1.0, 1.0, (n_actions,), np.float32)
        self.single_action_space = gym.spaces.Box(-1.0, 1.0, (n_actions,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seed = np.zeros(1, np.int64)
        self._count = np.zeros(1, np.int64)
        self._age = np.zeros(num_envs, np.int64)
        self._obs = np.zeros((num_envs, n_actions), np.float32)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin new episodes in all worlds."""
        if isinstance(seed, int):
            self._seed[0] = seed
        self._age[:] = 0
        return self._draw(), self._infos(np.zeros(self.num_envs))

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Score the action against what was seen."""
        reward = -np.square(actions.astype(np.float64) - self._obs).sum(axis=1)
        self._age += 1
        ended = self._age >= self.episode_steps
        obs = self._draw()
        infos = self._infos(reward)
        if ended.any() and self.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP:
            infos |= report_ends(obs, ended, infos)
            self._age[ended] = 0
        return obs, reward, np.zeros(self.num_envs, bool), ended, infos

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Everything that a later step depends on."""
        own = {"seed": self._seed, "count": self._count, "age": self._age, "obs": self._obs}
        return {name: values.copy() for name, values in own.items()}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go back to what ``get_state`` returned."""
        self._seed, self._count, self._age, self._obs = (state[name].copy() for name in ("seed", "count", "age", "obs"))

    def _draw(self) -> NDArray[np.float32]:
        rng = np.random.default_rng([int(self._seed[0]), int(self._count[0])])
        self._count += 1
        self._obs = rng.uniform(-0.8, 0.8, self._obs.shape).astype(np.float32)
        return self._obs.copy()

    def _infos(self, reward: NDArray[np.float64]) -> dict[str, Any]:
        failed = np.arange(self.num_envs) % 2  # so that "by number of failed joints" has two groups
        progress, success = reward.copy(), reward > -0.1
        return {"reward/copy": reward.copy(), "progress_m": progress, "n_failed_joints": failed, "is_success": success}
