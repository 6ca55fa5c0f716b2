"""Programs side by side: in processes of this machine, or on the nodes of a Ray cluster (``--ray``), both by joblib.

A program that was killed goes on from its own files when it is called again.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any

from snake_gym.config import ConfigError, require
from snake_gym.config.threads import process_cores

STOPPED = 130
"""Exit code of a program that was asked to stop, its state saved."""
MOST_SEEDS = 1000
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
    """Call ``program(words)`` for the words of each name; return what went wrong by name, None if nothing.

    ``n_jobs`` run at a time; None: as many as have ``threads`` cores each. ``ray``: address of a cluster; None: here.
    After Ctrl-C, which reaches them all, no further one begins. Raises ConfigError for a wrong ``n_jobs`` or ``ray``,
    or if a process was killed.
    """
    from joblib import Parallel, delayed, parallel_config

    if n_jobs is not None and n_jobs < 1:
        raise ConfigError(f"--jobs is {n_jobs}; expected at least 1")
    if not commands:
        return {}
    cores = process_cores() if ray is None else _connect(ray)
    n_jobs = min(n_jobs or max(1, cores // threads), len(commands))
    how: dict[str, Any] = {"backend": "ray"}
    parent = None
    if ray is None:
        parent = os.getpid()
        os.environ["OMP_WAIT_POLICY"] = "passive"
        how = {"backend": "loky", "inner_max_num_threads": max(1, cores // n_jobs)}
    with stop_signals(signal.SIGINT) as should_stop, parallel_config(n_jobs=n_jobs, **how):
        calls = (
            delayed(_call)(program, list(words), os.getcwd(), parent)
            for words in commands.values()
            if not should_stop()
        )
        try:
            found = Parallel(pre_dispatch="n_jobs")(calls)
        except BrokenProcessPool:
            raise ConfigError("a process was killed, and the others with it; the same command goes on") from None
    return dict(zip(commands, found, strict=False))


def _call(program: Program, words: list[str], folder: str, parent: int | None) -> str | None:
    """Run a program in a worker, in ``folder``; return what went wrong, None if nothing did or it was stopped."""
    os.chdir(folder)
    if parent not in (None, os.getpid()):  # one program alone runs in this process
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    try:
        code = program(words)
    except KeyboardInterrupt:
        return None
    except (Exception, SystemExit) as error:
        return str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}"
    return None if code in (0, STOPPED) else f"exit code {code}"


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


def _connect(address: str) -> int:
    """Connect to a Ray cluster and make it a back end of joblib; return its number of cores. Raises ConfigError."""
    require("--ray", "ray")
    cluster = import_module("ray")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        cluster.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # of any kind
        reason = str(error).split("\n")[0]
        expected = "expected HOST:PORT, auto or local"
        raise ConfigError(f"--ray is {address!r}, where no Ray cluster answers ({reason}); {expected}") from None
    import_module("ray.util.joblib").register_ray()
    return int(cluster.cluster_resources().get("CPU", 1))
