"""Programs side by side: in processes of this machine, or on the nodes of a Ray cluster (``--ray``), both by joblib.

A program that was killed goes on from its own files when it is called again, so a lost worker costs little.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import track

from snake_gym.config import ConfigError, require
from snake_gym.config.threads import process_cores

STOPPED = 130
"""Exit code of a program that was asked to stop, its state saved."""
MOST_SEEDS = 1000
_ATTEMPTS = 20
"""Most calls of a program that loses workers."""
Program = Callable[[list[str]], int]


def add_parallel_options(parser: argparse.ArgumentParser) -> None:
    """Give a program the options ``--jobs`` and ``--ray``."""
    parser.add_argument("--jobs", type=int, metavar="N", help="processes at a time (default: one for each core)")
    parser.add_argument("--ray", metavar="ADDRESS", help="run them on a Ray cluster: HOST:PORT, auto, or local")


def read_seeds(text: str) -> tuple[int, ...]:
    """Return the seeds of ``5`` (0 to 4) or ``0,1,7``. Raises ConfigError."""
    words = [word.strip() for word in text.strip().removesuffix(",").split(",")]
    numbers = tuple(int(word) for word in words if word.isascii() and word.isdecimal())
    seeds = numbers if "," in text or not numbers else tuple(range(min(numbers[0], MOST_SEEDS + 1)))
    if len(numbers) < len(words) or not 0 < len(set(seeds)) == len(seeds) <= MOST_SEEDS:
        raise ConfigError(
            f"--seeds is {text!r}; expected a number of seeds up to {MOST_SEEDS}, or different ones such as 0,1,7"
        )
    return seeds


def run_parallel(
    program: Program,
    commands: Mapping[str, Sequence[str]],
    n_jobs: int | None = None,
    ray: str | None = None,
    threads: int = 1,
) -> dict[str, str | None]:
    """Call ``program(words)`` for the words of each name; return by name None if it returned 0, else what went wrong.

    ``n_jobs`` run at a time; None: as many as have ``threads`` cores each. ``ray``: address of a cluster; None: here.
    Raises KeyboardInterrupt if one was stopped, ConfigError for a wrong ``n_jobs`` or ``ray``, or if workers are lost
    again and again.
    """
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    if n_jobs is not None and n_jobs < 1:
        raise ConfigError(f"--jobs is {n_jobs}; expected at least 1")
    if not commands:
        return {}
    found: dict[str, str | None] = {}
    console = Console(stderr=True)
    with stop_signals(signal.SIGINT) as should_stop, _backend(n_jobs, ray, threads, len(commands)) as (lost, parent):
        for _ in range(_ATTEMPTS):
            left = [name for name in commands if name not in found]
            calls = (
                delayed(_call)(program, name, list(commands[name]), os.getcwd(), parent)
                for name in left
                if not should_stop()
            )
            how = "generator_unordered" if ray is None else "list"  # all that Ray's back end can
            try:
                results = Parallel(return_as=how, pre_dispatch="n_jobs")(calls)
                for name, fault in track(results, "done", len(left), console=console, disable=not console.is_terminal):
                    if fault == STOPPED:
                        raise KeyboardInterrupt
                    found[name] = fault
                if should_stop():
                    raise KeyboardInterrupt
                return found
            except (TerminatedWorkerError, *lost):
                if should_stop():
                    raise KeyboardInterrupt from None
    raise ConfigError(f"workers were lost {_ATTEMPTS} times, {len(left)} of {len(commands)} programs are not done")


def _call(
    program: Program, name: str, words: list[str], folder: str, parent: int | None
) -> tuple[str, str | int | None]:
    """Run a program in a worker, in ``folder``; return its name with None, STOPPED, or the fault as text."""
    os.chdir(folder)
    if parent not in (None, os.getpid()):  # one program alone runs in this process
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    try:
        code = program(words)
    except KeyboardInterrupt:
        return name, STOPPED
    except (Exception, SystemExit) as error:
        return name, str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}"
    return name, {0: None, STOPPED: STOPPED}.get(code, f"exit code {code}")


def _end_with(parent: int) -> None:
    """End this process at once when its parent has died; its files are whole."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


@contextmanager
def stop_signals(*numbers: int) -> Iterator[Callable[[], bool]]:
    """Take over signals, main thread only; yields a function that returns True once one has arrived.

    The first one asks the program to stop, a second one interrupts it at once. Ctrl-C reaches the workers too.
    """
    came: list[int] = []

    def receive(number: int, frame: FrameType | None) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    before = {number: signal.signal(number, receive) for number in numbers}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _backend(
    n_jobs: int | None, ray: str | None, threads: int, most: int
) -> Iterator[tuple[tuple[type[Exception], ...], int | None]]:
    """Use joblib's back end; yields the errors for lost workers and the process with which workers end (None: any)."""
    from joblib import parallel_config

    if ray is None:
        n_jobs = min(n_jobs or max(1, process_cores() // threads), most)
        os.environ["OMP_WAIT_POLICY"] = "passive"
        with parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=max(1, process_cores() // n_jobs)):
            yield (), os.getpid()
        return
    require("--ray", "ray")
    import ray as library

    cluster: Any = library
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    options: dict[str, Any] = {"include_dashboard": False} if ray == "local" else {}
    try:
        cluster.init(ray, log_to_driver=False, logging_level=logging.ERROR, **options)
    except Exception as error:  # of any kind
        reason = str(error).split("\n")[0]
        expected = "expected HOST:PORT, auto or local"
        raise ConfigError(f"--ray is {ray!r}, where no Ray cluster answers ({reason}); {expected}") from None
    import_module("ray.util.joblib").register_ray()
    try:
        n_jobs = min(n_jobs or max(1, int(cluster.cluster_resources().get("CPU", 1)) // threads), most)
        with parallel_config("ray", n_jobs=n_jobs):
            yield (cluster.exceptions.RayError,), None
    finally:
        cluster.shutdown()
