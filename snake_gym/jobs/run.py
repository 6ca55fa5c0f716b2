"""Loop that keeps jobs running and shows their progress, and that stops them all when it is asked to stop."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

from .job import STOPPED, Job
from .report import read_progress
from .workers import RunningJob, Workers

_POLL_S = 0.2
_LINE_S = 15.0
"""Time between two lines if there is no terminal [s]."""


def run_jobs(
    workers: Workers,
    jobs: Iterator[Job],
    ended: Callable[[Job, int], None],
    is_unwanted: Callable[[Job], bool] = lambda job: False,
    quiet: bool = False,
) -> bool:
    """Run all jobs; False if SIGINT or SIGTERM came: then no further job begins, and those running save their state.

    The next job is taken when a worker is free for it. ``ended(job, exit code)`` is called after each. A job that is
    unwanted is stopped. A second signal ends all jobs at once.
    """
    running: dict[Job, RunningJob] = {}
    asked: set[Job] = set()
    display = JobsDisplay(quiet)
    with stop_signals() as should_stop, display.bars:
        try:
            while True:
                stopping = should_stop()
                while not stopping and len(running) < workers.n_jobs and (job := next(jobs, None)) is not None:
                    job.progress.unlink(missing_ok=True)
                    running[job] = workers.start(job)
                if not running:
                    return not stopping
                for job, process in list(running.items()):
                    code = process.poll()
                    if code is None and job not in asked and (stopping or is_unwanted(job)):
                        asked.add(job)
                        process.stop()
                    display.update(job, finished=code is not None)
                    if code is not None:
                        del running[job]
                        ended(job, STOPPED if job in asked and code < 0 else code)  # it was still starting
                time.sleep(_POLL_S)
        finally:
            for process in running.values():
                process.kill()


class JobsDisplay:
    """One bar for each running job on standard error, or an occasional line where there is no terminal."""

    def __init__(self, quiet: bool) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._quiet = quiet
        self._shows_bars = self._console.is_terminal and not quiet
        self.bars = Progress(
            TextColumn("{task.description}"), BarColumn(24), TaskProgressColumn(), TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"), console=self._console, disable=not self._shows_bars,
        )  # fmt: skip
        self._tasks: dict[str, TaskID] = {}
        self._lines: dict[str, str] = {}
        self._last = time.monotonic()

    def update(self, job: Job, finished: bool) -> None:
        """Show what the job says; the bar of a finished job goes."""
        if self._quiet:
            return
        done, total, note = read_progress(job.progress) or (0.0, None, "starting")
        if self._shows_bars:
            if job.name not in self._tasks:
                self._tasks[job.name] = self.bars.add_task(job.name, total=total, note=note)
            task = self._tasks[job.name]
            self.bars.update(task, completed=done, total=total, note=note)
            if finished:
                self.bars.remove_task(self._tasks.pop(job.name))
            return
        share = f"{done / total:.0%}" if total else note
        self._lines[job.name] = f"{job.name} {share}" + (f" ({note})" if total and note else "")
        if finished:
            del self._lines[job.name]
        elif time.monotonic() - self._last > _LINE_S:
            self._last = time.monotonic()
            self._console.print("; ".join(self._lines.values()), soft_wrap=True, markup=False)


@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """Take over SIGINT and SIGTERM, main thread only; yields a function that returns True once one has arrived.

    The first signal asks the run to stop, a second one interrupts it at once.
    """
    came: list[int] = []

    def receive(number: int, frame: FrameType | None) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    before = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
