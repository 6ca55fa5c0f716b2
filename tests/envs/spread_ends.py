"""Envs whose worlds do not end all at once."""

from __future__ import annotations

from typing import Any

from gymnasium.vector import AutoresetMode

from snake_gym.envs.vector_env import SnakeVectorEnv


def spread_ends_at_reset(env: SnakeVectorEnv) -> SnakeVectorEnv:
    """Return one of our envs changed so that its worlds do not end all at once, as ``check_vector_env`` wants it.

    One world keeps its time limit.
    """
    if env.num_envs == 1 or env.autoreset_mode is AutoresetMode.DISABLED:
        return env
    reset = env.reset

    def reset_and_spread(*, seed: Any = None, options: Any = None) -> Any:
        begun = reset(seed=seed, options=options)
        if seed is not None and options is None:
            env.core.spread_ends()
        return begun

    env.reset = reset_and_spread  # type: ignore[method-assign]
    return env
