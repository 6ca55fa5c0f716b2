"""The side of the job: it writes its progress into a file, and ends when the process that started it has died."""

from __future__ import annotations

import argparse
import os
import threading
import time
from pathlib import Path

from snake_gym.config import read_json, to_json, write_atomic

_EVERY_S = 1.0
"""Shortest time between two writes [s]."""


def add_progress_option(parser: argparse.ArgumentParser) -> None:
    """Give a program the option ``--progress``, which only jobs use."""
    parser.add_argument("--progress", type=Path, help=argparse.SUPPRESS)


class ProgressFile:
    """File that tells how much of the work is done."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last = 0.0

    def write(self, done: float, total: float, note: str = "") -> None:
        """Write the progress, unless it was written a moment ago and there is more to come."""
        if done < total and time.monotonic() - self._last < _EVERY_S:
            return
        self._last = time.monotonic()
        write_atomic(self._path, to_json({"done": done, "total": total, "note": note}, indent=None))


def read_progress(path: Path) -> tuple[float, float, str] | None:
    """Return what a job has done, of how much, and its note; None before it has written anything."""
    try:
        content = read_json(path.read_bytes(), str(path))
        return float(content["done"]), float(content["total"]), str(content["note"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def end_with_parent() -> None:
    """Let this process end at once when its standard input is closed: then the process that started it has died.

    Nothing is lost but the work since the last checkpoint; another process may continue it immediately.
    """

    def watch() -> None:
        while os.read(0, 1024):
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
