"""Keys that stop the robot: space and q. They need a terminal, or any other standard input.

A thread waits for keys and trips the emergency stop itself, whatever the rest of the program is doing; the owner of the
port checks the stop on every bus cycle. A terminal is put into a mode in which keys come one by one, and back at the
end.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
import threading
import tty
from collections.abc import Iterator
from typing import Any

from snake_gym.hardware.guard.emergency_stop import EmergencyStop

STOP_KEYS = b" qQ"
_LOOK_S = 0.05
"""Longest wait for keys between two looks whether the watch ends."""


class KeyWatch:
    """Context in which keys of ``source``, a file descriptor (None: standard input), trip ``stop``."""

    def __init__(self, stop: EmergencyStop, source: int | None = None) -> None:
        self._stop = stop
        self._source = standard_input() if source is None else source
        self._before: list[Any] | None = None

    def __enter__(self) -> KeyWatch:
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(self._ends,), name="keys", daemon=True)
        # No terminal (a pipe, a file, a service): keys are read all the same until there are no more.
        with contextlib.suppress(termios.error, OSError, ValueError):
            self._before = termios.tcgetattr(self._source)
            tty.setcbreak(self._source)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join(1.0)
        if self._before is not None:
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(self._source, termios.TCSADRAIN, self._before)
            self._before = None

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the keys to a question for as long as the block lasts."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    def _run(self, ends: threading.Event) -> None:
        while not ends.is_set():
            try:
                readable, _, _ = select.select([self._source], [], [], _LOOK_S)
                keys = os.read(self._source, 64) if readable else None
            except (OSError, ValueError):
                return
            if keys == b"":  # no more will come
                return
            if keys and any(key in STOP_KEYS for key in keys):
                self._stop.trip("a key was pressed")


def standard_input() -> int:
    """Return the file descriptor of standard input, or -1 if there is none."""
    try:
        return -1 if sys.stdin is None else sys.stdin.fileno()
    except (OSError, ValueError):  # another object stands in for it
        return -1
