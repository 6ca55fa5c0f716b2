"""Marks of processes that may have torque on: how an emergency stop knows whom it stops, and that it has stopped them.

Before the torque goes on, whoever owns the port makes a file with its process, its latch and what it does; once every
servo has said that its torque is off, the file goes away. The process holds a lock on the file, which the kernel takes
back when it dies: a file without its lock is of a process that died before it could switch the torque off.

The files are in one folder of the machine, whichever latch they name, so that one stop finds all robots. Nothing here
raises where the file system fails; a mark that cannot be made is missing, and the stop says that it found nobody.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

FOLDER = Path("/tmp")
_PREFIX = "snake_gym-torque-"
_numbers = itertools.count()


class SeenMark(NamedTuple):
    """A mark that somebody has made."""

    path: Path
    pid: int
    what: str
    """As "run"."""
    latch: Path
    """Of the stop that this process obeys."""
    alive: bool
    """Whether the process is there; False: it died with the torque on, as far as anybody knows."""


class TorqueMark:
    """This process's mark for one robot.

    Args:
        latch: file of the stop that it obeys.
    """

    def __init__(self, latch: Path) -> None:
        self._latch = latch
        self._is_made = False
        self._path: Path | None = None
        self._descriptor = -1

    def make(self, what: str) -> None:
        """The torque may go on from now on. Marks that dead processes left for the same robot go away."""
        if self._is_made:
            return
        self._is_made = True
        sweep(self._latch)
        name = f"{_PREFIX}{os.getpid()}-{next(_numbers)}"
        told = json.dumps({"pid": os.getpid(), "what": what, "latch": str(self._latch.absolute())})
        path, draft = FOLDER / f"{name}.json", FOLDER / f"{name}.draft"
        with suppress(OSError):
            self._descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.fchmod(self._descriptor, 0o644)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(self._descriptor, told.encode())
            os.rename(draft, path)
            self._path = path

    def remove(self) -> None:
        """Every servo's torque is off."""
        self._is_made = False
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()
            self._path = None
        if self._descriptor >= 0:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = -1


def seen_marks(latch: Path | None = None) -> list[SeenMark]:
    """The marks of all robots, or of those that obey ``latch``."""
    found = []
    for path in sorted(FOLDER.glob(f"{_PREFIX}*.json")):
        with suppress(OSError, ValueError, KeyError, TypeError):
            told = json.loads(path.read_text())
            mark = SeenMark(path, int(told["pid"]), str(told["what"]), Path(told["latch"]), _is_locked(path))
            if latch is None or mark.latch == latch.absolute():
                found.append(mark)
    return found


def sweep(latch: Path | None = None) -> None:
    """Remove what dead processes left for the robot of ``latch``, or for all robots."""
    for mark in seen_marks(latch):
        if not mark.alive:
            with suppress(OSError):
                mark.path.unlink()


def _is_locked(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
