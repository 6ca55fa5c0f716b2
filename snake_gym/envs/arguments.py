"""Checks of the user's arguments of an env, before any use: settings, actions and seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError, apply_keywords
from snake_gym.config.errors import show
from snake_gym.plugins import check_numbers, load_plugins
from snake_gym.registry import find_task
from snake_gym.robot.spec import FloatArray
from snake_gym.tasks.task import EnvConfig

LARGEST_SEED = 2**63 - 1
SEED_END = 2**31
"""Upper bound (exclusive) of seeds that are drawn when none is given."""
NO_SEED = -1
"""Seed of a world without a given seed, in an array of seeds."""

_ARGUMENTS = (
    "env_id", "plugin", "config", "render_mode", "max_episode_steps", "disable_env_checker", "num_envs",
    "autoreset_mode", "vectorization_mode", "vector_kwargs", "wrappers",
)  # fmt: skip
"""Arguments of ``make`` and ``make_vec`` that are no settings."""


def read_settings(
    env_id: str,
    plugin: str | Sequence[str] | None,
    config: EnvConfig | Mapping[str, Any] | None,
    keywords: Mapping[str, Any],
) -> EnvConfig:
    """Return the checked settings of a task: ``config`` overridden by ``keywords``, after ``plugin`` is imported."""
    load_plugins(plugin or ())
    kind: type[EnvConfig] = find_task(env_id)
    if isinstance(config, EnvConfig) and not isinstance(config, kind):
        raise ConfigError(f"the settings are a {type(config).__name__}; this env expects a {kind.__name__}")
    return apply_keywords(kind, config, keywords, "env", _ARGUMENTS)


def check_action(action: Any, shape: tuple[int, ...]) -> FloatArray:
    """Return ``action`` as an array of ``shape``, clipped to [-1, 1].

    Raises ValueError for another shape, no numbers, or an entry that is not finite.
    """
    return check_numbers(action, shape, "action").astype(np.float64).clip(-1.0, 1.0)


def check_seed(seed: Any, largest: int = LARGEST_SEED, where: str = "seed") -> int:
    """Return ``seed`` as a Python integer. Raises ValueError unless it is an integer from 0 to ``largest``."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed <= largest:
        raise ValueError(f"{where} is {show(seed)}; expected an integer from 0 to {largest}")
    return int(seed)


def check_seeds(seed: int | Sequence[int | None] | None, n_worlds: int) -> NDArray[np.int64]:
    """Return world seeds (W,): ``seed + i`` for world i, or the list itself; NO_SEED for a world without one.

    Raises ValueError for a list of another length, or an entry that is no seed.
    """
    if seed is None:
        return np.full(n_worlds, NO_SEED, np.int64)
    if not isinstance(seed, list | tuple | np.ndarray) or np.ndim(seed) == 0:
        return np.arange(n_worlds, dtype=np.int64) + check_seed(seed, LARGEST_SEED - n_worlds + 1)
    if len(seed) != n_worlds:
        raise ValueError(f"seed is a list of {len(seed)}; expected {n_worlds}, one for each world")
    each = [NO_SEED if one is None else check_seed(one, where=f"seed[{i}]") for i, one in enumerate(seed)]
    return np.array(each, dtype=np.int64)
