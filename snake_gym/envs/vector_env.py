"""Native Gymnasium vector environments: one array operation for all worlds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from pydantic import Field

from snake_gym.config import convert
from snake_gym.config.errors import check_options
from snake_gym.config.settings import PositiveCount
from snake_gym.envs.arguments import NO_SEED, SEED_END, check_seeds, read_settings
from snake_gym.envs.core import POLICY, PRIVILEGED, Observations, SnakeCore, pick
from snake_gym.interface.observations import BOUND
from snake_gym.plugins import load_object
from snake_gym.registry import DEFAULT_ENV
from snake_gym.tasks.task import EnvConfig

MAX_ENVS = 1_000_000
"""Largest number of worlds of a vector env: more would take the memory of any machine."""
UNKNOWN_SEED = -1
"""Gymnasium's ``np_random_seed`` of a generator set from outside."""


def single_spaces(core: SnakeCore) -> tuple[gym.spaces.Space[Any], gym.spaces.Box]:
    """Return the observation and action space of one world."""
    observation: gym.spaces.Space[Any] = gym.spaces.Box(-BOUND, BOUND, (core.layout.size,), np.float32)
    if core.privileged is not None:
        truth = gym.spaces.Box(-BOUND, BOUND, (core.privileged.size,), np.float32)
        observation = gym.spaces.Dict({POLICY: observation, PRIVILEGED: truth})
    return observation, gym.spaces.Box(-1.0, 1.0, (core.decoder.size,), np.float32)


def make_view(core: SnakeCore, world: int, mode: str) -> Any:
    """Return the view of one world, with ``draw`` and ``close``, that its robot names."""
    return load_object(core.spec.view, "view")(core, world, mode)


class SnakeVectorEnv(VectorEnv[Any, Any, Any]):
    """Vector env of W worlds, each like ``SnakeEnv``.

    World i of ``reset(seed=s)`` is the single env of ``reset(seed=s + i)``. Infos are arrays (W,) without masks, given
    at every step. Autoreset modes: NEXT_STEP (the step after an end resets, its action is ignored and its reward 0),
    SAME_STEP (the ending step returns the next episode's first observation and infos, whose reward terms are 0; the
    reward and flags are the end's, and ``final_obs`` and ``final_info`` hold its observation and infos), DISABLED
    (ended worlds stand still until ``reset(options={"reset_mask": ...})``; sensors go on, and actions are noted).
    With ``lean_infos`` a step gives ``speed_m_s`` and ``reward/<term>`` alone; ``final_info`` has all.

    Args:
        env_id: registered name of the task.
        num_envs: W.
        autoreset_mode: an ``AutoresetMode`` or its name or value.
        render_mode: None or "rgb_array"; "human" is for one world.
        config: settings as an object or mapping; further keyword arguments are settings too, laid over it.
        max_episode_steps: control steps until truncation, if sooner than ``time_limit_s``; ``make_vec`` passes it.
        plugin: see ``SnakeEnv``.
        lean_infos: leave out infos that cost time.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["rgb_array"],
        "render_fps": 5,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        env_id: str = DEFAULT_ENV,
        num_envs: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        config: EnvConfig | Mapping[str, Any] | None = None,
        max_episode_steps: int | None = None,
        plugin: str | Sequence[str] | None = None,
        lean_infos: bool = False,
        **settings: Any,
    ) -> None:
        num_envs = convert(Annotated[int, Field(ge=1, le=MAX_ENVS)], num_envs, "num_envs")
        if render_mode not in (None, "rgb_array", *(["human"] if num_envs == 1 else [])):
            raise ValueError(f"render_mode is {render_mode!r}; expected None, 'rgb_array' or, for one world, 'human'")
        self.core = SnakeCore(read_settings(env_id, plugin, config, settings), num_envs)
        if max_episode_steps is not None:
            self.core.limit_steps(
                min(convert(PositiveCount, max_episode_steps, "max_episode_steps"), self.core.n_steps)
            )
        self.core.lean_infos = lean_infos
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.autoreset_mode = _as_mode(autoreset_mode)
        self.metadata = {
            **type(self).metadata,
            "autoreset_mode": self.autoreset_mode,
            "render_fps": round(1.0 / self.core.spec.control_dt_s),
        }
        self.single_observation_space, self.single_action_space = single_spaces(self.core)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._views: list[Any] = []

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin new episodes in all worlds, or in those of ``options["reset_mask"]`` (W,) bool.

        A world without a seed (None in a list) continues with its next episode. World i that has had none gets
        ``np_random_seed + i``, or, if that is a list or ``np_random`` was set from outside, one drawn by ``np_random``.
        Raises ValueError unless each seed is an integer from 0 to 2**63 - 1, and for a list of another length.
        """
        mask = self._reset_mask(options)
        seeds = self._choose_seeds(seed)
        if mask is not None:
            seeds = seeds[mask]
        return self.core.reset(seeds, mask), self.core.infos()

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[Observations, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Advance one control step; see ``SnakeCore.step``, and the class for ends and resets."""
        if not self.core.have_begun:
            raise gym.error.ResetNeeded("step before the first reset; call reset() first")
        core, mode = self.core, self.autoreset_mode
        before = np.flatnonzero(core.terminated | core.truncated)
        obs, reward, terminated, truncated, infos = core.step(actions)
        if mode is AutoresetMode.NEXT_STEP and before.size:
            terminated[before], truncated[before] = False, False
            infos = self._begin(before, obs)
        ended = terminated | truncated
        if mode is AutoresetMode.SAME_STEP and ended.any():
            infos_at_end = core.infos() if core.lean_infos else infos
            worlds = np.flatnonzero(ended)
            final_obs = np.full(self.num_envs, None, dtype=object)
            last = pick(obs, worlds)
            for row, world in enumerate(worlds):
                final_obs[world] = pick(last, row)
            infos = self._begin(worlds, obs)
            infos |= {"final_obs": final_obs, "_final_obs": ended, "final_info": infos_at_end, "_final_info": ended}
        return obs, reward, terminated, truncated, infos

    def _begin(self, worlds: NDArray[np.int64], obs: Observations) -> dict[str, Any]:
        """Begin new episodes in ``worlds``, write their first observations to ``obs``, and return the infos then."""
        self.core.begin(worlds)
        new = self.core.observe(worlds)
        for all_rows, rows in zip(obs.values(), new.values(), strict=True) if isinstance(obs, dict) else [(obs, new)]:
            all_rows[worlds] = rows
        return self.core.infos(self.core.lean_infos)

    def set_difficulty(self, difficulty: Any) -> None:
        """Let each world's next episode have this share, in [0, 1], of what makes it hard: a number, or one for each
        world. Raises ConfigError.
        """
        self.core.set_difficulty(difficulty)

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return the whole state that later steps depend on; ``set_state`` continues from it bit for bit."""
        return self.core.get_state()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state from ``get_state``. Raises ValueError, with the env unchanged, if it is no valid state."""
        self.core.set_state(state)

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """Return one frame (H, W, 3) for each world; "human" shows it in a window as well."""
        if self.render_mode is None:
            gym.logger.warn("render() called without a render mode; make the env with render_mode='rgb_array'")
            return None
        if not self._views:
            self._views = [make_view(self.core, world, self.render_mode) for world in range(self.num_envs)]
        return tuple(view.draw() for view in self._views)

    def close_extras(self, **kwargs: Any) -> None:
        """Free the resources of rendering."""
        for view in self._views:
            view.close()
        self._views = []

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a copy: all but the pictures' surfaces, which the copy makes anew."""
        return {**self.__dict__, "_views": []}

    # --- seeds: Gymnasium's np_random_seed is that of the episodes, even where it is read before the first reset ------

    @property
    def np_random(self) -> np.random.Generator:
        """Generator of the env; if it has none yet, one with a seed drawn for the first episode."""
        if self._np_random is None:
            self._np_random, self._np_random_seed = seeding.np_random(int(np.random.default_rng().integers(SEED_END)))
        return self._np_random

    @np_random.setter
    def np_random(self, generator: np.random.Generator) -> None:
        self._np_random, self._np_random_seed = generator, UNKNOWN_SEED

    @property
    def np_random_seed(self) -> Any:
        """The first world's seed if the others count up from it, else all of them; -1 before the first episode, if
        ``np_random`` was set from outside."""
        _ = self.np_random
        seeds = self.core.seeds.tolist()
        if not self.core.have_begun:
            return self._np_random_seed
        return seeds[0] if seeds == list(range(seeds[0], seeds[0] + len(seeds))) else tuple(seeds)

    def _choose_seeds(self, seed: int | list[int | None] | None) -> NDArray[np.int64]:
        """Return world seeds (W,), NO_SEED for those that continue; a plain seed is that of ``np_random``, too."""
        seeds = check_seeds(seed, self.num_envs)
        new = (seeds == NO_SEED) & (self.core.episode < 0)
        if isinstance(seed, int | np.integer):
            super().reset(seed=int(seeds[0]))
        elif new.any():
            first = self.np_random_seed
            if seed is None and first != UNKNOWN_SEED and np.ndim(first) == 0:
                seeds[new] = first + np.flatnonzero(new)
            else:
                seeds[new] = self.np_random.integers(0, SEED_END, np.count_nonzero(new))
        return seeds

    def _reset_mask(self, options: dict[str, Any] | None) -> NDArray[np.bool_] | None:
        given = check_options(options, ("reset_mask",)).get("reset_mask")
        if given is None:
            return None
        mask = np.asarray(given)
        if mask.dtype != np.bool_ or mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError(
                f"options['reset_mask'] has dtype {mask.dtype}, shape {mask.shape}; expected bool ({self.num_envs},), "
                "at least one True"
            )
        return mask


def _as_mode(mode: AutoresetMode | str) -> AutoresetMode:
    for known in AutoresetMode:
        if mode == known or str(mode).upper() in (known.name, known.value.upper()):
            return known
    names = ", ".join(known.name for known in AutoresetMode)
    raise ValueError(f"autoreset_mode is {mode!r}; expected one of {names}")
