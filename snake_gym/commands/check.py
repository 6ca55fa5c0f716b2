"""Command ``check``: run the checkers of Gymnasium, Stable-Baselines3 and ours on one env.

snake-gym check Waypoints --set faults.n_max=3
snake-gym check Mine/Reach-v0 --plugin my_task.py
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import gymnasium as gym
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from snake_gym.commands.env_options import env_parser, read_env
from snake_gym.config import run_program
from snake_gym.config.program import install_command
from snake_gym.envs.checker import assert_same, check_vector_env, draw_actions, spread_ends_at_reset
from snake_gym.envs.snake_env import SnakeEnv
from snake_gym.envs.vector_env import SnakeVectorEnv
from snake_gym.tasks.task import EnvConfig

EPISODE_STEPS = 20
"""Control steps of the episodes that the checks play: they have to end."""
WORLDS = 4


def main(argv: list[str] | None = None) -> int:
    """Run the checks and return 1 if one fails. Raises ConfigError for what the user has to correct."""
    env_id, config = read_env(env_parser("check", __doc__).parse_args(argv))
    config = replace(config, time_limit_s=EPISODE_STEPS * config.load_robot().control_dt_s)
    failed = [what for what, check in checks(env_id, config).items() if not passes(what, check)]
    return 1 if failed else 0


def checks(env_id: str, config: EnvConfig) -> dict[str, Callable[[], Any] | None]:
    """Return the checks by name; None: a library that one needs is not installed."""
    single, batch = partial(SnakeEnv, env_id, config=config), partial(SnakeVectorEnv, env_id, config=config)
    return {
        "Gymnasium's check_env": lambda: check_env(single(), skip_render_check=True),
        "Stable-Baselines3's check_env": partial(check_for_sb3, single) if find_spec("stable_baselines3") else None,
        "vector env": lambda: check_vector_env(
            lambda n, mode: spread_ends_at_reset(batch(num_envs=n, autoreset_mode=mode))
        ),
        "vector env equals gymnasium.vector.SyncVectorEnv": lambda: check_equal(single, batch),
    }  # fmt: skip


def passes(what: str, check: Callable[[], Any] | None) -> bool:
    """Run one check, with warnings as errors, print how it went, and return False if it failed."""
    if check is None:
        print(f"skipped {what}: not installed ({install_command('train')})")
        return True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check()
    except Exception as error:  # of the user's env
        told = " ".join(str(error).split())
        print(f"FAILED  {what}: {type(error).__name__}: {told}")
        return False
    print(f"passed  {what}")
    return True


def check_for_sb3(make: Callable[[], gym.Env[Any, Any]]) -> None:
    """Raise what Stable-Baselines3 finds wrong."""
    from stable_baselines3.common.env_checker import check_env

    check_env(make())


def check_equal(make: Callable[..., SnakeEnv], make_batch: Callable[..., SnakeVectorEnv]) -> None:
    """Raise AssertionError unless a batch gives, bit for bit, what single envs in a ``SyncVectorEnv`` give."""
    theirs = SyncVectorEnv([make] * WORLDS, autoreset_mode=AutoresetMode.NEXT_STEP)
    ours = make_batch(num_envs=WORLDS, autoreset_mode=AutoresetMode.NEXT_STEP)
    first, expected = ours.reset(seed=11)[0], theirs.reset(seed=11)[0]
    assert_same(first, expected, "reset")
    for step, action in enumerate(draw_actions(ours, 2 * EPISODE_STEPS + 3)):
        for what, mine, other in zip(("observation", "reward", "terminated", "truncated"), ours.step(action),
                                     theirs.step(action), strict=False):  # fmt: skip
            assert_same(mine, other, f"{what} of step {step}")


if __name__ == "__main__":
    run_program(main)
