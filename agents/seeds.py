"""Several seeds of one training, side by side: ``snake-gym train --config FILE --seeds 5``.

Each seed is a run of its own in ``NAME/seed_0``, ``NAME/seed_1`` and so on. The same command goes on with those that
were stopped or killed, and leaves finished ones alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.parallel import STOPPED, read_seeds, run_parallel

from .command import main
from .config import read_settings
from .run_folder import RunFolder

_SHOWN = ("return", "progress/all", "success_rate", "targets")
"""Means of an evaluation that the summary shows, where the env has them."""


def train_seeds(args: argparse.Namespace) -> int:
    """Train all seeds of the parsed command line; 0 if all are finished, 130 if stopped before, 1 if any failed."""
    group = args.run_dir or Path(f"runs/{args.config.stem}")
    if RunFolder(group).holds_run():
        raise ConfigError(f"{group} holds a run; choose another --run-dir for the folder of several")
    runs: dict[str, RunFolder] = {}
    commands: dict[str, list[str]] = {}
    plugins = [word for plugin in args.plugin for word in ("--plugin", plugin)]
    for seed in read_seeds(args.seeds):
        name = f"seed_{seed}"
        assignments = [*args.set, "if_exists=continue", f"seed={seed}"]
        config, notes = read_settings(args.config, assignments, args.plugin)  # says now what is wrong
        runs[name] = RunFolder(group / name)
        runs[name].check_run(config)
        if runs[name].steps_done() < config.total_steps:
            where = ["--config", str(args.config), "--run-dir", str(runs[name].path)]
            commands[name] = [*where, "--quiet", *plugins, "--set", *assignments]
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    failed: dict[str, str] = {}
    with suppress(KeyboardInterrupt):  # a second Ctrl-C
        ended = run_parallel(main, commands, args.jobs, args.ray, config.torch_threads)
        failed = {name: fault for name, fault in ended.items() if fault is not None}
    states = {
        name: "failed" if name in failed else "finished" if run.steps_done() >= config.total_steps else "stopped"
        for name, run in runs.items()
    }
    print(*summary(runs, states), sep="\n")
    for name, reason in failed.items():
        print(f"{name} failed: {reason}", file=sys.stderr)
    if failed:
        return 1
    if "stopped" in states.values():
        print("stopped; the same command goes on", file=sys.stderr)
        return STOPPED
    return 0


def summary(runs: Mapping[str, RunFolder], states: Mapping[str, str]) -> list[str]:
    """Return a line on the last evaluation of each run, and one with the means over the finished runs."""
    last = {name: (run.evaluations() or [{"step": 0.0}])[-1] for name, run in runs.items()}
    lines = []
    for name, means in last.items():
        shown = "".join(f", {column} {means[column]:.2f}" for column in _SHOWN if column in means)
        lines.append(f"{name} {states[name]}: {means['step']:,.0f} steps{shown}")
    finished = [means for name, means in last.items() if states[name] == "finished"]
    if len(finished) > 1:
        columns = {name: [means[name] for means in finished] for name in _SHOWN if name in finished[0]}
        shown = "".join(f", {name} {np.mean(of):.2f} ± {np.std(of, ddof=1):.2f}" for name, of in columns.items())
        lines.append(f"{len(finished)} finished, mean ± standard deviation{shown}")
    return lines
