"""Policies of an evaluation played side by side, each by a process of its own, here or on a Ray cluster.

Each process writes the rows of its policy where an evaluation keeps them; the evaluation then finds all of them there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from snake_gym.benchmark.runner import file_name, play_all
from snake_gym.benchmark.scenarios import Entrant, Scenarios
from snake_gym.config import ConfigError
from snake_gym.jobs.job import Job
from snake_gym.jobs.report import ProgressFile
from snake_gym.jobs.run import run_jobs
from snake_gym.jobs.workers import make_workers

MODULE = "snake_gym.benchmark.evaluate"
KEPT = "policies"
"""Folder, below that of the evaluation, of the rows of each policy."""


def play_in_jobs(
    names: Sequence[str], words: Sequence[str], out: Path, n_jobs: int | None = None, ray: str | None = None
) -> None:
    """Play the policies of these names, by jobs with the command line ``words``; their rows are in ``out`` afterwards.

    Raises ConfigError if one fails, KeyboardInterrupt if a signal came; what is done is kept.
    """
    jobs = [
        Job(name, MODULE, (*words, "--only", name), out / "jobs" / file_name(name), Path.cwd())
        for name in dict.fromkeys(names)
    ]
    failed: list[str] = []

    def note(job: Job, code: int) -> None:
        if code != 0:
            reason = f"killed by signal {-code}" if code < 0 else job.last_words()
            failed.append(f"{job.name} could not be played: {reason} ({job.log})")

    workers = make_workers(n_jobs, len(jobs), ray=ray)
    try:
        finished = run_jobs(workers, iter(jobs), note)
    finally:
        workers.close()
    if not finished:
        raise KeyboardInterrupt
    if failed:
        raise ConfigError(failed[0])


def play_only(
    name: str,
    entrants: Sequence[Entrant],
    scenarios: Scenarios,
    out: Path,
    fresh: bool,
    progress: Path | None,
    replicates: int,
) -> None:
    """Play one of the entrants, and write its rows into ``out``."""
    file = None if progress is None else ProgressFile(progress)

    def show(_: str, done: int, of: int) -> None:
        if file is not None:
            file.write(done, of)

    mine = [entrant for entrant in entrants if entrant.name == name]
    play_all(mine, scenarios, out / KEPT, show, fresh, replicates)
