"""Duration of a bus cycle, a reading of all servos and the goals of all, and the periods that it fits."""

from __future__ import annotations

import math

from snake_gym.hardware.bus.bus import CycleTime

READING_SHARE = 0.7
"""Share of the period after which a reading ends."""
ADAPTER_S = 0.001
"""Least time that a USB adapter adds: one frame [s]."""
_CYCLE_SHARE = 0.9
"""Share of the period for reading and goals."""
_PERIOD_STEP_S = 0.005
"""Step of the periods that a message proposes [s]."""
SLOW_S = 0.004
"""Delay of answers that a message calls slow [s]."""


def shortest_period_s(cycle: CycleTime) -> float:
    """Return the least bus period [s] in which servos can be read and sent their goals."""
    reading = cycle.reading_s + max(ADAPTER_S, cycle.latency_s)
    return max(reading / READING_SHARE, (reading + cycle.goals_s) / _CYCLE_SHARE)


def proposed_period_s(shortest_s: float) -> float:
    """Return the round period [s] that is no shorter than ``shortest_s``."""
    return _PERIOD_STEP_S * math.ceil(shortest_s / _PERIOD_STEP_S)


def too_short(period_s: float, n_servos: int, baud: int, cycle: CycleTime) -> str | None:
    """Return a message that a bus cycle exceeds ``period_s`` [s], with a period that suffices; None if it fits."""
    shortest = shortest_period_s(cycle)
    if period_s >= shortest:
        return None
    delay_s, latency_s = cycle.return_delay_s, cycle.latency_s
    said = f" with a return delay of {1e6 * delay_s:.0f} us" if delay_s > 0.0 else ""
    mend = "set the servos to a higher baud rate: python -m snake_gym.hardware scan --change-baud"
    if latency_s > SLOW_S:
        said += f", and answers take {1e3 * latency_s:.0f} ms"
        mend = "set the adapter's latency timer: docs/hardware.md, Wiring"
    fits = f"connection.period_s is {period_s:g}; expected >= {proposed_period_s(shortest):g}"
    return f"{fits}: {n_servos} servos at {baud} baud need {1e3 * shortest:.1f} ms a cycle{said} (or {mend})"
