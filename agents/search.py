"""Program that searches settings of a training: ``snake-gym search --config FILE --space FILE --trials 50 --jobs 2``.

Each trial is a run of its own in OUT/trial_0000 ...; its value is the mean of its last evaluation. A trial whose best
value so far is worse than the median of the others at the same evaluation is stopped. ``OUT/best.yaml`` is the training
with the best settings. Ctrl-C, or a kill, stops the search; the same command goes on with it, its unfinished trials
included.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from snake_gym.config import OptionParser, add_set_option, require, run_program
from snake_gym.jobs.run import run_jobs
from snake_gym.jobs.workers import add_job_options, make_workers
from snake_gym.plugins import add_plugin_option, load_plugins

_LESS_IS_BETTER = (
    "regret", "energy_j", "contact_", "penetration_m", "self_overlap_m", "stood_still", "mean_cross_track_m",
    "rms_cross_track_m", "mean_schedule_error_m", "mean_speed_error_m_s", "mean_heading_error_rad",
)  # fmt: skip
"""Beginnings of the names of means of an evaluation that nobody wants to be large."""


def main(argv: list[str] | None = None) -> int:
    """Run the program; 0 if there is a best trial and none is left, 130 if stopped, else 1."""
    args = parse(argv)
    load_plugins(args.plugin)
    require("the search", "optuna", "stable_baselines3", "tensorboard", "torch")
    from .search_trials import Search  # loads torch and Optuna, which --help need not wait for

    search = Search(args)
    with search.lock():
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
    add("--minimise", action="store_true", help="minimise it instead")
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
    if not args.minimise and args.objective.startswith(_LESS_IS_BETTER):
        parser.error(f"--objective is {args.objective!r}, of which less is better; expected --minimise with it")
    return args


if __name__ == "__main__":
    run_program(main)
