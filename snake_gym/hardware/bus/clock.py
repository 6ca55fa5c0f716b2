"""Clocks: the machine's own, or a virtual one, with which emulated servos run in one thread, the same every time.

All hardware code that waits or takes time stamps is given a clock.
"""

from __future__ import annotations

import time


class MonotonicClock:
    """Clock of the machine, unaffected by changes of the date."""

    def now(self) -> float:
        """Return the time [s] since an arbitrary moment; it never goes back."""
        return time.monotonic()

    def sleep(self, duration_s: float) -> None:
        """Let ``duration_s`` [s] pass; durations <= 0 do nothing."""
        if duration_s > 0.0:
            time.sleep(duration_s)


class VirtualClock:
    """Clock from 0 on, moved by whoever waits."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def now(self) -> float:
        return self._now_s

    def sleep(self, duration_s: float) -> None:
        self._now_s += max(0.0, duration_s)

    def advance_to(self, time_s: float) -> None:
        """Jump forward to ``time_s`` [s]; earlier times change nothing."""
        self._now_s = max(self._now_s, time_s)


Clock = MonotonicClock | VirtualClock
