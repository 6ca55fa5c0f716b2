"""Adapter of a Gymnasium vector env to Stable-Baselines3 ``VecEnv``: one call for all worlds, no Python loop.

SB3 needs its own form of three things. Worlds restart within the step that ends them (``AutoresetMode.SAME_STEP``), and
``infos`` is a list with one dict per world. Only the dicts of worlds that ended hold anything: the last observation
(``terminal_observation``), the flag of an end by the time limit (``TimeLimit.truncated``), ``is_success`` and
``episode`` (return r, length l). What the env reports for all worlds stays in arrays: ``infos`` and ``ends``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from snake_gym.envs.core import Observations, SnakeCore

Infos = Mapping[str, Any]


class Ends(NamedTuple):
    """End values of the M episodes that ended in one step."""

    worlds: NDArray[np.int64]
    """(M,) indices of the worlds."""
    returns: NDArray[np.float64]
    """(M,) sums of rewards."""
    lengths: NDArray[np.int64]
    """(M,) numbers of steps."""
    infos: Infos
    """Infos at the end, arrays (W, ...); rows ``worlds`` are valid."""


class Sb3VecEnv(VecEnv):
    """Adapter of ``env``, in autoreset mode SAME_STEP, to SB3.

    ``infos`` are arrays (W, ...) of the last step, ``ends`` the episodes that ended in it (or None), ``returns`` and
    ``lengths`` (W,) sum of rewards and number of steps of the running episodes. ``stagger`` spreads the first episodes'
    ends over the time limit; ``had_cut_episodes`` is True if such episodes were running in the last step.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], stagger: bool = False) -> None:
        mode = env.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.SAME_STEP:
            raise ValueError(f"the env's autoreset mode is {mode}; expected make_vec(..., autoreset_mode='SameStep')")
        self.env = env
        self.stagger = stagger
        self.had_cut_episodes = False
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self.infos: Infos = {}
        self.ends: Ends | None = None
        self.returns: NDArray[np.float64] = np.zeros(self.num_envs)
        self.lengths: NDArray[np.int64] = np.zeros(self.num_envs, np.int64)
        self._nothing: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        self._actions: NDArray[Any] = np.zeros((0,))
        self._first_seed: int | None = None

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Let world i start with seed ``seed + i`` at the next reset; None: seeds from the system."""
        self._first_seed = seed
        return [None if seed is None else seed + world for world in range(self.num_envs)]

    def reset(self) -> Observations:
        """Start new episodes in all worlds and return observations (W, D), or such arrays by part."""
        obs, self.infos = self.env.reset(seed=self._first_seed)
        self._first_seed = None
        if self.stagger:
            self.core.spread_ends()
        self.ends = None
        self.returns[:] = 0.0
        self.lengths[:] = 0
        return obs

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[Observations, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Return observations (W, D) and rewards (W,), float32 and fresh; dones (W,); infos, filled where done."""
        self.had_cut_episodes = self.stagger and bool((self.core.step_limit < self.core.n_steps).any())
        obs, reward, terminated, truncated, self.infos = self.env.step(self._actions)
        done = terminated | truncated
        self.returns += reward
        self.lengths += 1
        worlds = np.flatnonzero(done)
        if worlds.size:
            listed = self._report_ends(worlds, truncated & ~terminated)
        else:
            self.ends = None
            listed = self._nothing
        return obs, reward.astype(np.float32), done, listed

    def get_state(self) -> dict[str, Any]:
        """Return env and running episodes; ``set_state`` continues from them bit for bit."""
        state = self.env.get_state()  # type: ignore[attr-defined]
        return {"env": state, "returns": self.returns.copy(), "lengths": self.lengths.copy()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state from ``get_state``. Raises ValueError if it came from another env."""
        self.env.set_state(state["env"])  # type: ignore[attr-defined]
        self.returns[:] = state["returns"]
        self.lengths[:] = state["lengths"]
        self.ends = None

    def close(self) -> None:
        self.env.close()

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """Return the vector env's attribute, once for each of ``indices``."""
        return [getattr(self.env, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Set an attribute of the vector env, for all worlds: they share one object."""
        setattr(self.env, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: int | Iterable[int] | None = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of the vector env once, and return its result once for each of ``indices``."""
        result = getattr(self.env, method_name)(*method_args, **method_kwargs)
        return [result] * len(list(self._get_indices(indices)))

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: int | Iterable[int] | None = None
    ) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))

    @property
    def core(self) -> SnakeCore:
        core: SnakeCore = self.env.core  # type: ignore[attr-defined]
        return core

    def _report_ends(self, worlds: NDArray[np.int64], timed_out: NDArray[np.bool_]) -> list[dict[str, Any]]:
        infos = self.infos["final_info"]
        self.ends = Ends(worlds, self.returns[worlds], self.lengths[worlds], infos)
        self.returns[worlds] = 0.0
        self.lengths[worlds] = 0
        success = infos.get("is_success")
        final_obs = self.infos["final_obs"]
        listed = self._nothing.copy()
        totals, lengths = self.ends.returns.tolist(), self.ends.lengths.tolist()
        for world, total, length in zip(worlds.tolist(), totals, lengths, strict=True):
            listed[world] = {
                "terminal_observation": final_obs[world],
                "TimeLimit.truncated": bool(timed_out[world]),
                "episode": {"r": total, "l": length},
            }
            if success is not None:
                listed[world]["is_success"] = bool(success[world])
        return listed
