"""Program that searches settings of a training: ``snake-gym search --config FILE --space FILE --trials 50 --jobs 2``.

Each trial is a run of its own in OUT/trial_0000 ...; its value is the mean of its last evaluation. A trial that
is worse than the median of the others at the same evaluation is stopped. ``OUT/best.yaml`` is the training with the
best settings. Ctrl-C, or a kill, stops the search; the same command goes on with it, its unfinished trials included.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from snake_gym.config import (
    ConfigError,
    OptionParser,
    add_set_option,
    apply_overrides,
    choose,
    dump_yaml,
    load_yaml,
    make_folder,
    require,
    run_program,
    to_dict,
)  # fmt: skip
from snake_gym.jobs.job import STOPPED, Job
from snake_gym.jobs.run import run_jobs
from snake_gym.jobs.workers import add_job_options, make_workers
from snake_gym.plugins import add_plugin_option, load_plugins, take_plugins

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

BEST = "best.yaml"
_SHOWN = 10
"""Number of trials in the table."""


def main(argv: list[str] | None = None) -> int:
    """Run the program; 0 if there is a best trial and none is left, 130 if stopped, else 1."""
    args = parse(argv)
    load_plugins(args.plugin)
    require("the search", "optuna", "stable_baselines3", "tensorboard", "torch")
    search = Search(args)
    workers = make_workers(args.jobs, args.trials, search.threads, args.ray)
    try:
        finished = run_jobs(workers, search.jobs(), search.end, search.is_unwanted, args.quiet)
    finally:
        workers.close()
    return search.report(finished)


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the parsed command line. Raises ConfigError."""
    parser = OptionParser(prog="snake-gym search", description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--config", type=Path, required=True, metavar="FILE", help="settings of the training (configs/train/*.yaml)")
    add("--space", type=Path, required=True, metavar="FILE", help="ranges: NAME: {low, high, log} or {choices}")
    add("--trials", type=int, default=50, help="number of trials, earlier ones included (default: %(default)s)")
    add("--objective", default="return", metavar="NAME", help="mean of an evaluation to maximise, as progress/all")
    add("--out", type=Path, metavar="FOLDER", help="folder of the search (default: runs/search-CONFIG-SPACE)")
    add("--search-seed", type=int, default=0, metavar="N", help="seed of the search itself")
    add_set_option(parser, "change settings of all trials")
    add_job_options(parser)
    add_plugin_option(parser)
    add("--quiet", action="store_true", help="no progress")
    args = parser.parse_args(argv)
    for name, least in (("trials", 1), ("search_seed", 0)):
        if getattr(args, name) < least:
            parser.error(f"--{name.replace('_', '-')} is {getattr(args, name)}; expected at least {least}")
    return args


class Search:
    """Trials of a search, made into jobs."""

    def __init__(self, args: argparse.Namespace) -> None:
        from . import launch, search_space  # load torch and Optuna, which --help need not wait for

        self._args, self._assignment = args, search_space.assignment
        self.out: Path = args.out or Path(f"runs/search-{args.config.stem}-{args.space.stem}")
        space = search_space.read_space(args.space)
        if args.objective == "return" and (rewards := [name for name in space if name.startswith("env.reward")]):
            raise ConfigError(f"{args.space}: {rewards[0]} changes what return means: choose another --objective")

        def check(*assignments: str) -> launch.Launch:
            return launch.plan_new(args.config, [*args.set, *assignments], self.out / "trial", args.plugin)

        config = check().config
        for name, each in space.items():
            for value in each.ends:
                try:
                    check(self._assignment(name, value))
                except ConfigError as error:
                    raise ConfigError(f"{args.space}: {name} with the value {value}: {error}") from None
        self.threads, self._every, self._total = config.torch_threads, config.eval.every_steps, config.total_steps
        make_folder(self.out)
        from .study import Study

        shared = {name: value for name, value in to_dict(config).items() if name not in ("run_dir", "if_exists")}
        identity = {"config": shared, "space": to_dict(space), "objective": args.objective, "seed": args.search_seed}
        self.study = Study(self.out, space, identity, args.search_seed)
        self._trials: dict[Job, FrozenTrial] = {}
        self._pruned: set[Job] = set()
        self._seen: dict[Job, int] = {}
        self._killed = 0

    def jobs(self) -> Iterator[Job]:
        """Return the jobs of unfinished trials, then those of new ones."""
        from optuna.trial import TrialState

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
            self.study.complete(trial, means[self._args.objective])
        elif code < 0:
            self._killed += 1
        elif code != STOPPED:
            self.study.fail(trial, job.last_words())

    def report(self, finished: bool) -> int:
        """Write the best settings, print the table of trials, and return the exit code."""
        from optuna.trial import TrialState

        from .seeds import print_table

        console = Console(stderr=True, highlight=False)
        done = sorted(self.study.trials(TrialState.COMPLETE), key=lambda trial: -(trial.value or 0.0))
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
        if not finished or self._killed:
            console.print("the same command goes on with the search", soft_wrap=True)
        return STOPPED if not finished else int(self._killed > 0 or not done)

    def _settings(self, values: Mapping[str, Any]) -> dict[str, Any]:
        assignments = [self._assignment(name, value) for name, value in values.items()]
        settings = apply_overrides(load_yaml(self._args.config), [*self._args.set, *assignments])
        return take_plugins(settings, self._args.config, self._args.plugin)

    def _job(self, trial: FrozenTrial) -> Job:
        from .seeds import train_job

        given = [self._assignment(name, value) for name, value in self.study.values(trial).items()]
        folder = self.out / f"trial_{trial.number:04d}"
        job = train_job(folder, self._args.config, [*self._args.set, *given], self._args.plugin)
        self._trials[job] = trial
        return job

    def _read(self, job: Job) -> dict[str, float] | None:
        """Note the job's new evaluations, in their order, and return its last one."""
        from .run_folder import RunFolder

        evaluations = [each for each in RunFolder(job.folder).evaluations() if each["step"] > 0]
        for each in evaluations[self._seen.get(job, 0) :]:
            value = each[choose(self._args.objective, [name for name in each if name != "step"], "--objective")]
            at = int(each["step"] // self._every) if self._every else 1
            if job not in self._pruned and each["step"] < self._total and self.study.is_hopeless(
                self._trials[job], at, value
            ):  # fmt: skip
                self._pruned.add(job)
        self._seen[job] = len(evaluations)
        return evaluations[-1] if evaluations else None


def _show(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    run_program(main)
