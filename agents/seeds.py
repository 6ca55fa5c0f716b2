"""Several seeds of one training, side by side: ``snake-gym train --config FILE --seeds 5``.

Each seed is a run of its own in ``NAME/seed_0``, ``NAME/seed_1`` and so on. The same command goes on with those that
were stopped or killed, and leaves finished ones alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from snake_gym.config import ConfigError
from snake_gym.parallel import STOPPED, read_seeds, run_parallel

from .command import main
from .config import read_settings
from .run_folder import RunFolder

_SHOWN = ("return", "progress/all", "success_rate", "targets")
"""Means of an evaluation that the table shows, where the env has them."""


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
    console = Console(stderr=True, highlight=False)
    for note in notes:
        console.print(f"note: {note}", soft_wrap=True, markup=False)
    failed, stopped = dict[str, str | None](), False
    try:
        failed = run_parallel(main, commands, args.jobs, args.ray, config.torch_threads)
    except KeyboardInterrupt:
        stopped = True
    failed = {name: fault for name, fault in failed.items() if fault is not None}
    states = {
        name: "failed" if name in failed else "finished" if run.steps_done() >= config.total_steps else "stopped"
        for name, run in runs.items()
    }
    terminal = Console(highlight=False)
    if not terminal.is_terminal:
        terminal.width = 160
    terminal.print(summary_table({name: run.evaluations() for name, run in runs.items()}, states))
    for name, reason in failed.items():
        console.print(f"{name} failed: {reason}", soft_wrap=True, markup=False)
    if failed:
        return 1
    if stopped or "stopped" in states.values():
        console.print("stopped; the same command goes on", soft_wrap=True)
        return STOPPED
    return 0


def summary_table(evaluations: Mapping[str, list[dict[str, float]]], states: Mapping[str, str]) -> Table:
    """Return the table of the last evaluation of each run, and the mean over the finished runs."""
    last = {name: (made or [{"step": 0}])[-1] for name, made in evaluations.items()}
    shown = [column for column in _SHOWN if any(column in means for means in last.values())]
    table = Table(title="last evaluation of each run")
    for column in ("run", "state", "steps", *shown):
        table.add_column(column, justify="left" if column in ("run", "state") else "right")
    for name, means in last.items():
        cells = (f"{means[column]:.2f}" if column in means else "" for column in shown)
        table.add_row(name, states[name], f"{means['step']:,.0f}", *cells)
    finished = [[means[column] for column in shown] for name, means in last.items() if states[name] == "finished"]
    if len(finished) > 1:
        table.add_section()
        means_and_spreads = zip(np.mean(finished, axis=0), np.std(finished, axis=0, ddof=1), strict=True)
        cells = (f"{mean:.2f} ± {spread:.2f}" for mean, spread in means_and_spreads)
        table.add_row("mean ± sd", f"{len(finished)} finished", "", *cells)
    return table
