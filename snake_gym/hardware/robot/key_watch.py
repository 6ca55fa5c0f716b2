"""Keys of a terminal, or of any other standard input: space and q stop the robot, others are answers.

A thread reads the keys and trips the emergency stop itself, whatever the rest of the program is doing; the owner of the
port checks the stop on every bus cycle. A terminal is put into a mode in which keys come one by one, and back at the
end.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import sys
import termios
import threading
import tty
from typing import Any

from snake_gym.hardware.guard.emergency_stop import EmergencyStop

STOP_KEYS = " qQ"
_LOOK_S = 0.05
"""Longest wait for keys between two looks whether the watch ends."""


class KeyWatch:
    """Context in which stop keys of ``source``, a file descriptor (None: standard input), trip ``stop``."""

    def __init__(self, stop: EmergencyStop, source: int | None = None) -> None:
        self._stop = stop
        self._source = standard_input() if source is None else source
        self._before: list[Any] | None = None
        self._keys: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="keys", daemon=True)

    def __enter__(self) -> KeyWatch:
        # No terminal (a pipe, a file, a service): keys are read all the same until there are no more.
        with contextlib.suppress(termios.error, OSError, ValueError):
            self._before = termios.tcgetattr(self._source)
            tty.setcbreak(self._source, termios.TCSANOW)  # keys typed before count
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join(1.0)
        if self._before is not None:
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(self._source, termios.TCSADRAIN, self._before)

    def forget(self) -> None:
        """Drop keys that were typed on a terminal before anybody asked."""
        while self._before is not None and not self._keys.empty():
            self._keys.get()

    def next(self, wait_s: float) -> str | None:
        """Return the next key, or None after ``wait_s`` [s]. Raises EOFError: no more will come."""
        try:
            key = self._keys.get(timeout=wait_s)
        except queue.Empty:
            return None
        if not key:
            raise EOFError
        return key

    def _run(self) -> None:
        while not self._ends.is_set():
            try:
                readable, _, _ = select.select([self._source], [], [], _LOOK_S)
                keys = os.read(self._source, 64).decode(errors="replace") if readable else None
            except (OSError, ValueError):
                keys = ""
            if keys is not None and set(keys) & set(STOP_KEYS):
                self._stop.trip("a key was pressed")
            for key in keys or "":
                self._keys.put(key)
            if keys == "":
                self._keys.put("")
                return


def standard_input() -> int:
    """Return the file descriptor of standard input, or -1 if there is none."""
    try:
        return -1 if sys.stdin is None else sys.stdin.fileno()
    except (OSError, ValueError):  # another object stands in for it
        return -1
