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
from snake_gym.jobs.job import STOPPED, Job
from snake_gym.jobs.run import run_jobs
from snake_gym.jobs.seeds import read_seeds
from snake_gym.jobs.workers import make_workers

from .launch import plan_new
from .run_folder import RunFolder

MODULE = f"{__package__}.train"
"""Program of each job."""
CONTINUE = "if_exists=continue"
_SHOWN = ("return", "progress/all", "success_rate", "targets")
"""Means of an evaluation that the table shows, where the env has them."""


def train_seeds(args: argparse.Namespace) -> int:
    """Train all seeds of the parsed command line; 0 if all are finished, 130 if stopped before, 1 if any failed."""
    seeds, group = read_seeds(args.seeds), group_folder(args.config, args.set, args.run_dir)
    if RunFolder(group).holds_run():
        raise ConfigError(f"{group} holds a run; choose another --run-dir for the folder of several")
    runs = {f"seed_{seed}": RunFolder(group / f"seed_{seed}") for seed in seeds}
    plans = [
        plan_new(args.config, [*args.set, f"seed={seed}", CONTINUE], runs[f"seed_{seed}"].path, args.plugin)
        for seed in seeds
    ]  # says what is wrong before anything runs
    pending = [
        train_job(runs[f"seed_{seed}"].path, args.config, [*args.set, f"seed={seed}"], args.plugin, args.export)
        for seed, plan in zip(seeds, plans, strict=True)
        if args.export or plan.folder.steps_done() < plan.config.total_steps
    ]
    failed: dict[str, str] = {}
    console = Console(stderr=True, highlight=False)

    def note(job: Job, code: int) -> None:
        if code not in (0, STOPPED):
            failed[job.name] = f"killed by signal {-code}" if code < 0 else job.last_words()

    for note_of_settings in plans[0].notes:
        console.print(f"note: {note_of_settings}", soft_wrap=True, markup=False)
    finished = True
    if pending:
        workers = make_workers(args.jobs, len(pending), plans[0].config.torch_threads, args.ray)
        try:
            finished = run_jobs(workers, iter(pending), note, quiet=args.quiet)
        finally:
            workers.close()
    done = {f"seed_{plan.config.seed}": plan.folder.steps_done() >= plan.config.total_steps for plan in plans}
    finished = finished and all(done.values())  # somebody else may have stopped one
    states = {name: "failed" if name in failed else "finished" if done[name] else "stopped" for name in runs}
    print_table(summary_table(runs, states))
    for name, reason in failed.items():
        console.print(f"{name} failed: {reason} ({runs[name].path / 'log.txt'})", soft_wrap=True, markup=False)
    if failed:
        return 1
    if not finished:
        console.print("stopped; the same command goes on", soft_wrap=True)
    return 0 if finished else STOPPED


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


def train_job(
    folder: Path, config_file: Path, assignments: Sequence[str], plugins: Sequence[str] = (), export: bool = False
) -> Job:
    """Return the job that trains in ``folder`` until the run is finished, from where it stands."""
    arguments = ["--config", str(config_file), "--run-dir", str(folder), "--set", *assignments, CONTINUE]
    arguments += [word for plugin in plugins for word in ("--plugin", plugin)]
    return Job(folder.name, MODULE, (*arguments, *(["--export"] if export else [])), folder, Path.cwd())


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
