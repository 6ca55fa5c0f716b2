"""Duration of a bus cycle: a reading of all servos and the goals of all, byte by byte on the wire."""

from __future__ import annotations

import math
from collections.abc import Sequence

from snake_gym.hardware.bus.family import GOAL, READING, ServoFamily
from snake_gym.hardware.bus.feetech import FEETECH
from snake_gym.hardware.bus.protocol import MAX_PARAMS, OVERHEAD_BYTES, wire_time_s

READING_SHARE = 0.7
"""Share of the bus period after which a reading ends, retries included, unless the wire alone takes as long."""
ADAPTER_S = 0.001
"""Time that a USB adapter adds to a reading or to goals: one frame."""
_CYCLE_SHARE = 0.9
"""Share of the bus period for reading and goals; the rest is for the computer."""
_PERIOD_STEP_S = 0.005
"""Step of the periods that a message proposes [s]."""


def _n_bytes(family: ServoFamily, names: Sequence[str]) -> int:
    """Return the length of the block that holds the registers of these names."""
    block = family.cover(names)
    return block[-1].end - block[0].address


def reading_s(n_servos: int, baud: int, return_delay_s: float = 0.0, family: ServoFamily = FEETECH) -> float:
    """Return the time [s] that reading ``n_servos`` keeps the line busy; each answers after ``return_delay_s`` [s]."""
    answer = OVERHEAD_BYTES + _n_bytes(family, READING)
    return wire_time_s(OVERHEAD_BYTES + 2 + n_servos * (1 + answer), baud) + n_servos * return_delay_s


def goals_s(n_servos: int, baud: int, family: ServoFamily = FEETECH) -> float:
    """Return the time [s] that the goals of ``n_servos`` keep the line busy."""
    goal = 1 + _n_bytes(family, GOAL)
    n_packets = math.ceil(n_servos * goal / ((MAX_PARAMS - 2) // goal * goal))
    return wire_time_s(n_packets * (OVERHEAD_BYTES + 2) + n_servos * goal, baud)


def shortest_period_s(n_servos: int, baud: int, return_delay_s: float = 0.0, family: ServoFamily = FEETECH) -> float:
    """Return the least bus period [s] in which ``n_servos`` can be read and sent their goals."""
    reading = reading_s(n_servos, baud, return_delay_s, family) + ADAPTER_S
    return max(reading / READING_SHARE, (reading + goals_s(n_servos, baud, family)) / _CYCLE_SHARE)


def too_short(
    period_s: float, n_servos: int, baud: int, return_delay_s: float = 0.0, family: ServoFamily = FEETECH
) -> str | None:
    """Return a message that a bus cycle exceeds ``period_s`` [s], with a period that suffices; None if it fits."""
    shortest = shortest_period_s(n_servos, baud, return_delay_s, family)
    if period_s >= shortest:
        return None
    fits = _PERIOD_STEP_S * math.ceil(shortest / _PERIOD_STEP_S)
    said = f" with a return delay of {1e6 * return_delay_s:.0f} us" if return_delay_s > 0.0 else ""
    return (
        f"connection.period_s is {period_s:g}; expected >= {fits:g}: {n_servos} servos at {baud} baud need "
        f"{1e3 * shortest:.1f} ms a cycle{said} (or set the servos to a higher baud rate: "
        "python -m snake_gym.hardware scan --change-baud)"
    )
