"""Playing held-out scenarios with the policy as it stands, all at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from snake_gym.interface.policy import Policy

from .metrics import Accumulator, Columns, end_columns


def play_episodes(
    policy: Policy,
    env: VectorEnv[Any, Any, Any],
    seed: int,
    should_stop: Callable[[], bool] = lambda: False,
) -> Columns | None:
    """One episode of every world, deterministic; None if ``should_stop`` became true on the way.

    Args:
        env: with autoreset mode DISABLED; world i plays the scenario of seed ``seed + i``.
    """
    if env.metadata.get("autoreset_mode") is not AutoresetMode.DISABLED:
        raise ValueError(f"the env's autoreset mode is {env.metadata.get('autoreset_mode')}; expected DISABLED")
    obs, infos = env.reset(seed=seed)
    start = np.ones(env.num_envs, bool)
    running = np.ones(env.num_envs, bool)
    total = np.zeros(env.num_envs)
    length = np.zeros(env.num_envs, np.int64)
    sums = Accumulator(env.num_envs)
    carried: Any = None
    while running.any():
        if should_stop():
            return None
        action, carried = policy.predict(obs, carried, start, deterministic=True)
        start = np.zeros_like(start)
        obs, reward, terminated, truncated, infos = env.step(action)
        total += reward * running
        length += running
        sums.add(infos, running)
        running &= ~(terminated | truncated)
    worlds = np.arange(env.num_envs)
    columns = {"return": total, "length": length.astype(np.float64)}
    return {**columns, **end_columns(infos, worlds), **sums.close(worlds, length)}
