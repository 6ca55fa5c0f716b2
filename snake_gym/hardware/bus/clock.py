"""Time as the hardware code sees it: the monotonic clock of the machine, or one that only moves when it is told to.

Everything in this package that waits or stamps takes a clock. With ``VirtualClock`` an emulated servo bus runs in one
thread, as fast as the processor allows and the same every time.
"""

from __future__ import annotations

import time


class MonotonicClock:
    """The clock of the machine: unaffected by changes of the date."""

    def now(self) -> float:
        """Time [s] since an arbitrary moment; never goes back."""
        return time.monotonic()

    def sleep(self, duration_s: float) -> None:
        """Let ``duration_s`` pass; nothing for durations <= 0."""
        if duration_s > 0.0:
            time.sleep(duration_s)


class VirtualClock:
    """A clock that stands still until somebody sleeps; it begins at ``start_s`` [s]."""

    def __init__(self, start_s: float = 0.0) -> None:
        self._now_s = start_s

    def now(self) -> float:
        return self._now_s

    def sleep(self, duration_s: float) -> None:
        self._now_s += max(0.0, duration_s)

    def advance_to(self, time_s: float) -> None:
        """Jump forward to ``time_s``; times in the past change nothing."""
        self._now_s = max(self._now_s, time_s)


Clock = MonotonicClock | VirtualClock
