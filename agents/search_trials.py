"""Trials of a search of settings, made into jobs, and what becomes of them by their evaluations."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial, TrialState
from rich.console import Console
from rich.table import Table

from snake_gym.config import ConfigError, apply_overrides, choose, dump_yaml, load_yaml, make_folder, to_dict
from snake_gym.jobs.job import STOPPED, Job
from snake_gym.plugins import take_plugins

from .launch import Launch, plan_new
from .run_folder import RunFolder
from .search_space import assignment, read_space
from .seeds import print_table, train_job
from .study import Study

BEST = "best.yaml"
_SHOWN = 10
"""Number of trials in the table."""


class Search:
    """Search in a folder, of which ``lock`` is taken before anything but the settings is asked for."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self.out: Path = args.out or Path(f"runs/search-{args.config.stem}-{args.space.stem}")
        space = self._space = read_space(args.space)
        if args.objective == "return" and (rewards := [name for name in space if name.startswith("env.reward")]):
            raise ConfigError(f"{args.space}: {rewards[0]} changes what return means: choose another --objective")

        def check(*assignments: str) -> Launch:
            return plan_new(args.config, [*args.set, *assignments], self.out / "trial", args.plugin)

        config = self._config = check().config
        for name, each in space.items():
            for value in each.ends:
                try:
                    check(assignment(name, value))
                except ConfigError as error:
                    raise ConfigError(f"{args.space}: {name} with the value {value}: {error}") from None
        self.threads = config.torch_threads
        # The gaits on the scenarios are the same in all trials, and nobody looks at fifty films.
        self._given = ["eval.pictures=false"]
        self._given += [] if args.objective.startswith("regret") else ["eval.references=false"]
        self._given += args.set
        make_folder(self.out)
        self._trials: dict[Job, FrozenTrial] = {}
        self._pruned: set[Job] = set()
        self._seen: dict[Job, int] = {}

    def lock(self) -> AbstractContextManager[None]:
        """Lock the folder. Raises ConfigError if another process searches in it."""
        return RunFolder(self.out).lock()

    @cached_property
    def study(self) -> Study:
        """Trials so far. Raises ConfigError if the folder holds another search."""
        args = self._args
        shared = {name: value for name, value in to_dict(self._config).items() if name not in ("run_dir", "if_exists")}
        identity = {
            "config": shared, "space": to_dict(self._space), "objective": args.objective, "minimise": args.minimise,
            "seed": args.search_seed,
        }  # fmt: skip
        return Study(self.out, self._space, identity, args.search_seed, args.minimise)

    def jobs(self) -> Iterator[Job]:
        """Return the jobs of unfinished trials, then those of new ones."""
        for trial in self.study.trials(TrialState.RUNNING, TrialState.WAITING):
            yield self._job(trial)
        while len(self.study.trials()) < self._args.trials:
            yield self._job(self.study.suggest())

    def is_unwanted(self, job: Job) -> bool:
        """Return True if the job's trial is to be stopped, by its evaluations so far."""
        self._read(job)
        return job in self._pruned

    def end(self, job: Job, code: int) -> None:
        """Note the result of a trial. One that was stopped or killed is left to the next launch."""
        means, trial = self._read(job), self._trials[job]
        if job in self._pruned:
            self.study.prune(trial)
        elif code == 0 and means is not None:
            objective = self._args.objective
            if math.isfinite(value := float(means[objective])):
                self.study.complete(trial, value)
            else:
                self.study.fail(trial, f"{objective} is {value}")
        elif code >= 0 and code != STOPPED:
            self.study.fail(trial, job.last_words())

    def report(self, finished: bool) -> int:
        """Write the best settings, print the table of trials, and return the exit code."""
        console = Console(stderr=True, highlight=False)
        done = self.study.trials(TrialState.COMPLETE)
        done.sort(key=lambda trial: trial.value or 0.0, reverse=not self._args.minimise)
        pruned, failed = self.study.trials(TrialState.PRUNED), self.study.trials(TrialState.FAIL)
        console.print(f"{len(done)} trials finished, {len(pruned)} stopped as worse, {len(failed)} failed")
        for trial in failed:
            console.print(
                f"trial_{trial.number:04d} failed: {trial.user_attrs['reason']}", soft_wrap=True, markup=False
            )
        if done:
            names = list(self.study.values(done[0]))
            table = Table(title=f"best trials by {self._args.objective}")
            for column in ("trial", self._args.objective, *names):
                table.add_column(column)
            for trial in done[:_SHOWN]:
                values = self.study.values(trial).values()
                table.add_row(f"{trial.number:04d}", f"{trial.value:.3f}", *(_show(value) for value in values))
            print_table(table)
            dump_yaml(self._settings(self.study.values(done[0])), self.out / BEST)
            console.print(f"the best settings are in {self.out / BEST}", soft_wrap=True, markup=False)
        left = self.study.trials(TrialState.RUNNING, TrialState.WAITING)
        if not finished or left:
            console.print("the same command goes on with the search", soft_wrap=True)
        return STOPPED if not finished else int(bool(left) or not done)

    def _settings(self, values: Mapping[str, Any]) -> dict[str, Any]:
        assignments = [assignment(name, value) for name, value in values.items()]
        settings = apply_overrides(load_yaml(self._args.config), [*self._args.set, *assignments])
        return take_plugins(settings, self._args.config, self._args.plugin)

    def _job(self, trial: FrozenTrial) -> Job:
        given = [assignment(name, value) for name, value in self.study.values(trial).items()]
        folder = self.out / f"trial_{trial.number:04d}"
        job = train_job(folder, self._args.config, [*self._given, *given], self._args.plugin)
        self._trials[job] = trial
        return job

    def _read(self, job: Job) -> dict[str, float] | None:
        """Note the job's new evaluations, in their order, and return its last one."""
        evaluations = [each for each in RunFolder(job.folder).evaluations() if each["step"] > 0]
        for each in evaluations[self._seen.get(job, 0) :]:
            name = choose(self._args.objective, [name for name in each if name != "step"], "--objective")
            if job in self._pruned or each["step"] >= self._config.total_steps:
                continue
            at = int(each["step"] // self._config.eval.period(self._config.total_steps))
            if self.study.is_hopeless(self._trials[job], at, float(each[name])):
                self._pruned.add(job)
        self._seen[job] = len(evaluations)
        return evaluations[-1] if evaluations else None


def _show(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
