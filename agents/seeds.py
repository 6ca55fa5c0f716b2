"""Several seeds of one training, side by side: ``snake-gym train --config FILE --seeds 5``.

Each seed is a run of its own in ``NAME/seed_0``, ``NAME/seed_1`` and so on. The same command goes on with those that
were stopped or killed, and leaves finished ones alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from snake_gym.config import ConfigError, apply_overrides, load_yaml
from snake_gym.parallel import STOPPED, read_seeds, run_parallel

from .launch import plan_new
from .run_folder import RunFolder

CONTINUE = "if_exists=continue"
_SHOWN = ("return", "progress/all", "success_rate", "targets")
"""Means of an evaluation that the table shows, where the env has them."""


def train_seeds(args: argparse.Namespace) -> int:
    """Train all seeds of the parsed command line; 0 if all are finished, 130 if stopped before, 1 if any failed."""
    seeds, group = read_seeds(args.seeds), group_folder(args.config, args.set, args.run_dir)
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
    commands = {
        name: train_words(
            plan.folder.path, args.config, [*args.set, f"seed={plan.config.seed}"], args.plugin, args.export
        )
        for name, plan in plans.items()
        if args.export or plan.folder.steps_done() < plan.config.total_steps
    }
    stopped, failed = False, dict[str, str]()
    try:
        ended = run_parallel(_train, commands, args.jobs, args.ray, first.config.torch_threads)
        failed = {name: fault for name, fault in ended.items() if fault is not None}
    except KeyboardInterrupt:
        stopped = True
    done = {name: plan.folder.steps_done() >= plan.config.total_steps for name, plan in plans.items()}
    states = {name: "failed" if name in failed else "finished" if done[name] else "stopped" for name in runs}
    print_table(summary_table(runs, states))
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


def print_table(table: Table) -> None:
    """Print a table, wide where there is no terminal."""
    terminal = Console(highlight=False)
    if not terminal.is_terminal:
        terminal.width = 160
    terminal.print(table)


def group_folder(config_file: Path, assignments: Sequence[str], run_dir: Path | None) -> Path:
    """Return the folder of the runs: the one given, that of the settings, or one named after the config."""
    if run_dir is not None:
        return run_dir
    return Path(apply_overrides(load_yaml(config_file), assignments).get("run_dir") or f"runs/{config_file.stem}")


def train_words(
    folder: Path, config_file: Path, assignments: Sequence[str], plugins: Sequence[str] = (), export: bool = False
) -> list[str]:
    """Return the command line that trains in ``folder`` until the run is finished, from where it stands."""
    words = ["--config", str(config_file), "--quiet", "--run-dir", str(folder), "--set", *assignments, CONTINUE]
    words += [word for plugin in plugins for word in ("--plugin", plugin)]
    return words + (["--export"] if export else [])


def summary_table(runs: dict[str, RunFolder], states: dict[str, str]) -> Table:
    """Return the table of the last evaluation of each run and of its best one, and the mean over the finished runs."""
    evaluations = {name: run.evaluations() for name, run in runs.items()}
    last = {name: each[-1] for name, each in evaluations.items() if each}
    shown = [column for column in _SHOWN if any(column in means for means in last.values())]
    table = Table(title="last evaluation of each run")
    for column in ("run", "state", "steps", *shown, "best return"):
        table.add_column(column, justify="left" if column in ("run", "state") else "right")
    rows: dict[str, list[float]] = {}
    for name in runs:
        if name in last:
            trained = [each["return"] for each in evaluations[name] if each["step"] > 0]
            rows[name] = [*(last[name].get(column, np.nan) for column in shown), max(trained, default=np.nan)]
            cells = [f"{last[name]['step']:,.0f}", *(f"{value:.2f}" for value in rows[name])]
        else:
            cells = ["0", *([""] * (len(shown) + 1))]
        table.add_row(name, states[name], *cells)
    finished = np.array([row for name, row in rows.items() if states[name] == "finished"])
    if len(finished) > 1:
        spread = finished.std(axis=0, ddof=1)
        table.add_section()
        cells = [f"{mean:.2f} ± {sd:.2f}" for mean, sd in zip(finished.mean(axis=0), spread, strict=True)]
        table.add_row("mean ± sd", f"{len(finished)} finished", "", *cells)
    return table
