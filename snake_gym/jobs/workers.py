"""Workers that run jobs: their interface, and those on this machine."""

from __future__ import annotations

import argparse
import subprocess
from typing import Protocol

from snake_gym.config.threads import process_cores

from .job import Job, start_process

MOST_JOBS = 10_000
"""Largest number of jobs at a time."""


def add_job_options(parser: argparse.ArgumentParser) -> None:
    """Give a program the options ``--jobs`` and ``--ray``."""
    parser.add_argument("--jobs", type=_positive, metavar="N", help="processes at a time (default: one for each core)")
    parser.add_argument("--ray", metavar="ADDRESS", help="run them on a Ray cluster: HOST:PORT, auto, or local")


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < int(text) <= MOST_JOBS):
        raise argparse.ArgumentTypeError(f"{text!r}; expected 1 to {MOST_JOBS}")
    return int(text)


class RunningJob(Protocol):
    """Job that has been started."""

    def poll(self) -> int | None:
        """Return the exit code of the job, negative if a signal killed it; None while it runs."""

    def stop(self) -> None:
        """Ask the job to save its state and end."""

    def kill(self) -> None:
        """End the job at once."""


class Workers(Protocol):
    """Place where ``n_jobs`` jobs run at a time."""

    n_jobs: int

    def start(self, job: Job) -> RunningJob:
        """Start a job."""

    def close(self) -> None:
        """Give the place back; no job runs any more."""


class LocalJob:
    """Job in a process of this machine."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def poll(self) -> int | None:
        code = self._process.poll()
        if code is not None:
            self._process.communicate()  # closes the pipe
        return code

    def stop(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


class LocalWorkers:
    """Processes of this machine, which share its cores out among them."""

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs
        self._threads = max(1, process_cores() // n_jobs)

    def start(self, job: Job) -> LocalJob:
        return LocalJob(start_process(job, self._threads))

    def close(self) -> None:
        pass


def make_workers(n_jobs: int | None, at_most: int, threads: int = 1, ray: str | None = None) -> Workers:
    """Return workers for ``n_jobs`` jobs at a time, or for as many as have ``threads`` cores each; ``at_most`` so many.

    ``ray``: address of a Ray cluster, or "local" for one on this machine; None: processes of this machine. Raises
    ConfigError if Ray is not installed or does not answer.
    """
    if ray is not None:
        from .cluster import RayWorkers

        return RayWorkers(ray, n_jobs, at_most, threads)
    return LocalWorkers(min(n_jobs or max(1, process_cores() // threads), at_most))
