"""Clocks of the hardware code: the machine's monotonic clock, or a virtual one that moves only when it is told to.

Every part of this package that waits or takes time stamps is given a clock. With ``VirtualClock`` an emulated servo bus
runs in one thread, as fast as the processor allows and the same every time.
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
    """Clock that starts at ``start_s`` [s] and moves only when it is told to."""

    def __init__(self, start_s: float = 0.0) -> None:
        self._now_s = start_s

    def now(self) -> float:
        return self._now_s

    def sleep(self, duration_s: float) -> None:
        self._now_s += max(0.0, duration_s)

    def advance_to(self, time_s: float) -> None:
        """Jump forward to ``time_s`` [s]; earlier times change nothing."""
        self._now_s = max(self._now_s, time_s)


Clock = MonotonicClock | VirtualClock
