"""Command ``warm``: compile everything that the shipped envs need, so that no later process has to.

snake-gym warm
NUMBA_CACHE_DIR=/scratch/numba snake-gym warm       where the package's own folder cannot be written to
"""

from __future__ import annotations

import time
from pathlib import Path

from snake_gym.commands.env_options import command_parser
from snake_gym.config import load_yaml, run_program
from snake_gym.envs.vector_env import SnakeVectorEnv
from snake_gym.registry import TASKS, find_task

VARIED = Path("configs", "env", "randomised_servo.yaml")
"""Settings under which an env calls kernels that it does without by default."""


def main(argv: list[str] | None = None) -> int:
    """Compile, or find everything compiled."""
    command_parser("warm", __doc__).parse_args(argv)
    begin = time.perf_counter()
    for env_id in TASKS:
        if find_task(env_id)().load_robot().in_space:  # MuJoCo compiles nothing
            continue
        for settings in ({}, {"randomisation": load_yaml(VARIED)["randomisation"]}, {"precision": "float32"}):
            env = SnakeVectorEnv(env_id, 2, config=settings)
            env.reset(seed=0)
            for _ in range(3):
                env.step(env.action_space.sample())
        print(f"{env_id}: ready", flush=True)
    print(f"all compiled kernels are there ({time.perf_counter() - begin:.0f} s)")
    return 0


if __name__ == "__main__":
    run_program(main)
