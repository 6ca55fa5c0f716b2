"""Command ``bench``: control steps per second of one env, by ``gym.make`` and by the vector env.

    snake-gym bench Waypoints
    snake-gym bench ObstacleField --worlds 64,1024 --threads 2 --json -

Everything that a learner sees is in it: actions, physics, observations, rewards, autoreset. For the physics beside
MuJoCo see benchmarks/throughput.py.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace

from gymnasium.vector import AutoresetMode

from snake_gym.commands.env_options import env_parser, read_env
from snake_gym.config import ConfigError, prepare_file, run_program, to_json, write_atomic
from snake_gym.config.threads import process_threads
from snake_gym.envs.checker import draw_actions
from snake_gym.envs.snake_env import SnakeEnv
from snake_gym.envs.vector_env import SnakeVectorEnv
from snake_gym.tasks.task import EnvConfig


def main(argv: list[str] | None = None) -> int:
    """Measure and print. Raises ConfigError for what the user has to correct."""
    parser = env_parser("bench", __doc__)
    parser.add_argument("--worlds", default="256", metavar="A,B", help="sizes of the vector env (%(default)s)")
    parser.add_argument("--threads", type=int, help="threads of the physics (all that the process may use)")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of each measurement (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the rows as JSON; - for standard output")
    args = parser.parse_args(argv)
    if not 0.0 < args.seconds <= 3600.0:
        raise ConfigError(f"--seconds is {args.seconds:g}; expected in (0, 3600]")
    sizes = read_sizes(args.worlds)
    env_id, config = read_env(args)
    if args.threads is not None:
        if args.threads < 1:
            raise ConfigError(f"--threads is {args.threads}; expected at least 1")
        config = replace(config, n_threads=args.threads)
    if args.json not in (None, "-"):
        prepare_file(args.json, "--json")
    threads = config.n_threads or process_threads()
    shown = sys.stderr if args.json == "-" else sys.stdout
    rows = []
    for kind, worlds in [("single", 1), *(("vector", n) for n in sizes)]:
        rate = time_single(env_id, config, args.seconds) if kind == "single" else (
            time_vector(env_id, config, worlds, args.seconds)
        )  # fmt: skip
        rows.append({"env": env_id, "kind": kind, "worlds": worlds, "threads": threads, "steps_per_s": round(rate)})
        print(f"{env_id}  {kind} env, worlds {worlds}, threads {threads}: {rate:,.0f} steps/s", file=shown, flush=True)
    if args.json == "-":
        print(to_json(rows), end="")
    elif args.json is not None:
        write_atomic(args.json, to_json(rows))
    return 0


def read_sizes(text: str) -> list[int]:
    """Return the numbers of worlds in a text such as ``64,1024``. Raises ConfigError."""
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise ConfigError(f"--worlds is {text!r}; expected numbers of worlds such as 256 or 64,1024")
    return sizes


def time_single(env_id: str, config: EnvConfig, seconds: float) -> float:
    """Return the control steps per second of the single env, resets included."""
    env = SnakeEnv(env_id, config=config)
    actions = [env.action_space.sample() for _ in range(16)]
    env.reset(seed=0)

    def step(i: int) -> int:
        _, _, terminated, truncated, _ = env.step(actions[i % 16])
        if terminated or truncated:
            env.reset()
        return 1

    return rate_of(step, seconds)


def time_vector(env_id: str, config: EnvConfig, worlds: int, seconds: float) -> float:
    """Return the control steps per second of all worlds of the vector env together, whose ends are spread out."""
    env = SnakeVectorEnv(env_id, worlds, AutoresetMode.SAME_STEP, config=config)
    actions = draw_actions(env, 16)
    env.reset(seed=0)
    env.core.spread_ends()

    def step(i: int) -> int:
        env.step(actions[i % 16])
        return worlds

    return rate_of(step, seconds)


def rate_of(step: Callable[[int], int], seconds: float) -> float:
    """Return how many units per second ``step(i)`` does; its first call, which may compile, does not count."""
    step(0)
    done, i, begin = 0, 1, time.perf_counter()
    while (passed := time.perf_counter() - begin) < seconds:
        done += step(i)
        i += 1
    return done / passed


if __name__ == "__main__":
    run_program(main)
