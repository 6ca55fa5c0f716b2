"""How fast training is, and what it costs to train on our env instead of one that costs nothing.

    python benchmarks/training_throughput.py [--json -] [--quick] [--busy 1] [--threads 1 2]

The same learner, settings, adapter and callbacks (configs/train/ppo.yaml) train on the snake env and on a zero-cost
env of the same shapes and episode length, taking turns, so that both meet the same machine; the ratio is the median
over the rounds. A third one trains with ``algorithm.bfloat16``. ``--busy N`` also measures while N other processes keep
a core busy each. Rows: case, links, worlds, threads, ours_per_s (training on the snake env), mujoco_per_s (null),
zero_cost_per_s, ratio (ours to zero-cost), bfloat16 (training with it to without), and with ``--busy`` busy_per_s and
kept (its ratio to ours undisturbed).
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from snake_gym.agents.config import CheckpointConfig, EvaluationConfig, TrainConfig, resolve_env
from snake_gym.agents.display import TrainingDisplay
from snake_gym.agents.run_folder import RunFolder
from snake_gym.agents.training import MakeEnv, Training

from benchmarks.zero_cost_env import ZeroCostEnv
from snake_gym.config import build, load_yaml
from snake_gym.envs import WaypointsConfig, make_waypoints

ROOT = Path(__file__).parents[1]
Row = dict[str, Any]
N_LINKS = 10


class Trainee:
    """A training run that goes on a stretch at a time."""

    def __init__(self, config: TrainConfig, folder: Path, zero_cost: bool) -> None:
        display = TrainingDisplay(config.total_steps, quiet=True)
        make_env = zero_cost_envs(config) if zero_cost else None
        config = replace(config, stagger=False) if zero_cost else config  # it has no episodes of its own to spread
        self._training = Training(config, RunFolder(folder), display, make_env=make_env)

    def measure(self, steps: int) -> float:
        """Train for ``steps`` more; env steps per second."""
        model = self._training.model
        begun = model.num_timesteps
        with self._training.logging():
            start = time.perf_counter()
            self._training.learn(begun + steps)
            return (model.num_timesteps - begun) / (time.perf_counter() - start)


def zero_cost_envs(config: TrainConfig) -> MakeEnv:
    """Makes zero-cost envs with the shapes and episode length of the config's env."""
    settings = build(WaypointsConfig, config.env, "env")
    core = make_waypoints(1, settings).core
    n_obs, n_actions, n_steps = core.layout.size, core.decoder.size, settings.n_steps(core.spec)
    return lambda n_worlds, mode: ZeroCostEnv(n_worlds, n_obs, n_actions, n_steps)


def training_config(threads: int | None = None) -> TrainConfig:
    """Settings of configs/train/ppo.yaml without evaluation and checkpoints, which the rates leave out.

    Nor is anything mirrored: a zero-cost env does not look like anything in a mirror.
    """
    with chdir(ROOT):  # the config names files of the repository
        config = resolve_env(build(TrainConfig, load_yaml("configs/train/ppo.yaml"), "ppo.yaml"))
    threads = threads or len(os.sched_getaffinity(0))
    return replace(
        config, eval=EvaluationConfig(every_steps=0), checkpoint=CheckpointConfig(every_steps=0),
        env={**config.env, "n_threads": threads}, algorithm={**config.algorithm, "mirror": 0.0},
    )  # fmt: skip


@contextmanager
def busy_neighbours(count: int) -> Iterator[None]:
    """``count`` other processes that each keep a core busy."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def measure_training(quick: bool = False, threads: int | None = None, busy: int = 0) -> Row:
    """Training steps per second on our env and on the zero-cost env, alternating; a row as in ``throughput.py``.

    Args:
        quick: fewer and shorter rounds.
        threads: of the physics; None: as many as the process may use.
        busy: neighbours that keep a core busy in every second round, for the part ``kept``.
    """
    config = training_config(threads)
    rollout = config.n_envs * int(config.algorithm["n_steps"])
    rounds, steps = (3, 4 * rollout) if quick else (7, 12 * rollout)
    alone: list[tuple[float, float, float]] = []
    short = replace(config, algorithm={**config.algorithm, "bfloat16": True})
    disturbed: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        ours, zero_cost = (Trainee(config, Path(folder) / str(zero), zero) for zero in (False, True))
        in_bfloat16 = Trainee(short, Path(folder) / "bfloat16", False)
        for trainee in (ours, zero_cost, in_bfloat16):
            trainee.measure(rollout)
        for _ in range(rounds):
            alone.append((ours.measure(steps), zero_cost.measure(steps), in_bfloat16.measure(steps)))
            if busy:
                with busy_neighbours(busy):
                    disturbed.append(ours.measure(steps))
    row: Row = {
        "case": "ppo", "links": N_LINKS, "worlds": config.n_envs, "threads": config.env["n_threads"],
        "ours_per_s": round(statistics.median(a for a, *_ in alone)), "mujoco_per_s": None,
        "zero_cost_per_s": round(statistics.median(b for _, b, _ in alone)),
        "ratio": round(statistics.median(a / b for a, b, _ in alone), 3),
        "bfloat16": round(statistics.median(c / a for a, _, c in alone), 3),
    }  # fmt: skip
    if busy:
        kept = statistics.median(after / before for after, (before, *_) in zip(disturbed, alone, strict=True))
        row |= {"busy": busy, "busy_per_s": round(statistics.median(disturbed)), "kept": round(kept, 3)}
    return row


def main() -> int:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="write the rows as JSON; - for standard output")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--busy", type=int, default=0, help="measure beside so many busy processes too")
    parser.add_argument("--threads", type=int, nargs="+", default=[None], help="thread counts (default: all cores)")
    args = parser.parse_args()
    rows = []
    for threads in args.threads:
        row = measure_training(args.quick, threads, args.busy)
        rows.append(row)
        print(" ".join(f"{name} {value}" for name, value in row.items()), file=sys.stderr)
    if args.json == "-":
        print(json.dumps(rows, indent=1))
    elif args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
