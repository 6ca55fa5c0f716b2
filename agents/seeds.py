"""Several seeds of one training, side by side: ``snake-gym train --config FILE --seeds 5``.

Each seed is a run of its own in ``NAME/seed_0``, ``NAME/seed_1`` and so on. The same command goes on with those that
were stopped or killed, and leaves finished ones alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from snake_gym.config import ConfigError
from snake_gym.parallel import STOPPED, read_seeds, run_parallel

from .launch import plan_new
from .run_folder import RunFolder

CONTINUE = "if_exists=continue"
_SHOWN = ("return", "progress/all", "success_rate", "targets")
"""Means of an evaluation that the table shows, where the env has them."""


def train_seeds(args: argparse.Namespace) -> int:
    """Train all seeds of the parsed command line; 0 if all are finished, 130 if stopped before, 1 if any failed."""
    seeds = read_seeds(args.seeds)
    group = args.run_dir or Path(f"runs/{args.config.stem}")
    if RunFolder(group).holds_run():
        raise ConfigError(f"{group} holds a run; choose another --run-dir for the folder of several")
    runs = {f"seed_{seed}": RunFolder(group / f"seed_{seed}") for seed in seeds}
    plans = {
        name: plan_new(args.config, [*args.set, f"seed={seed}", CONTINUE], runs[name].path, args.plugin)
        for name, seed in zip(runs, seeds, strict=True)
    }  # says what is wrong before anything runs
    console = Console(stderr=True, highlight=False)
    first = next(iter(plans.values()))
    for note_of_settings in first.notes:
        console.print(f"note: {note_of_settings}", soft_wrap=True, markup=False)
    plugins = [word for plugin in args.plugin for word in ("--plugin", plugin)]
    common = ["--config", str(args.config), "--quiet", *plugins, "--set", *args.set, CONTINUE]
    commands = {
        name: [*common, f"seed={plan.config.seed}", "--run-dir", str(plan.folder.path)]
        for name, plan in plans.items()
        if plan.folder.steps_done() < plan.config.total_steps
    }
    stopped, failed = False, dict[str, str]()
    try:
        ended = run_parallel(_train, commands, args.jobs, args.ray, first.config.torch_threads)
        failed = {name: fault for name, fault in ended.items() if fault is not None}
    except KeyboardInterrupt:
        stopped = True
    done = {name: plan.folder.steps_done() >= plan.config.total_steps for name, plan in plans.items()}
    states = {name: "failed" if name in failed else "finished" if done[name] else "stopped" for name in runs}
    terminal = Console(highlight=False)
    if not terminal.is_terminal:
        terminal.width = 160
    terminal.print(summary_table(runs, states))
    for name, reason in failed.items():
        console.print(f"{name} failed: {reason}", soft_wrap=True, markup=False)
    if failed:
        return 1
    if stopped or not all(done.values()):
        console.print("stopped; the same command goes on", soft_wrap=True)
        return STOPPED
    return 0


def _train(words: list[str]) -> int:
    from .train import main

    return main(words)


def summary_table(runs: dict[str, RunFolder], states: dict[str, str]) -> Table:
    """Return the table of the last evaluation of each run, and the mean over the finished runs."""
    last = {name: (run.evaluations() or [{"step": 0}])[-1] for name, run in runs.items()}
    shown = [column for column in _SHOWN if any(column in means for means in last.values())]
    table = Table(title="last evaluation of each run")
    for column in ("run", "state", "steps", *shown):
        table.add_column(column, justify="left" if column in ("run", "state") else "right")
    for name, means in last.items():
        cells = (f"{means[column]:.2f}" if column in means else "" for column in shown)
        table.add_row(name, states[name], f"{means['step']:,.0f}", *cells)
    finished = [[last[name][column] for column in shown] for name in runs if states[name] == "finished"]
    if len(finished) > 1:
        table.add_section()
        means_and_spreads = zip(np.mean(finished, axis=0), np.std(finished, axis=0, ddof=1), strict=True)
        cells = (f"{mean:.2f} ± {spread:.2f}" for mean, spread in means_and_spreads)
        table.add_row("mean ± sd", f"{len(finished)} finished", "", *cells)
    return table
