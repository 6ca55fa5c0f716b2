"""How long a bus cycle takes: a reading of all servos and the goals of all, byte by byte on the wire."""

from __future__ import annotations

import math
from collections.abc import Sequence

from snake_gym.hardware.bus.family import GOAL, READING, ServoFamily
from snake_gym.hardware.bus.feetech import FEETECH
from snake_gym.hardware.bus.protocol import MAX_PARAMS, OVERHEAD_BYTES, wire_time_s
from snake_gym.hardware.bus.servo_bus import ServoBus
from snake_gym.hardware.safety.body import BringUpError

READING_SHARE = 0.7
"""Share of the bus period after which a reading, repeated or not, is over, unless the wire alone takes as long."""
ADAPTER_S = 0.001
"""Time that a USB adapter adds to a reading or to goals: one frame."""
_PATIENCE_S = 0.005
"""Longest delay of an answer where the wire is slow: what a USB adapter and a busy computer add at worst."""
_CYCLE_SHARE = 0.9
"""Share of the bus period for reading and goals; the rest is for the computer."""
_PERIOD_STEP_S = 0.005
"""Step of the periods that are proposed."""


def _n_bytes(family: ServoFamily, names: Sequence[str]) -> int:
    """Length of the block that holds the registers of these names."""
    block = family.cover(names)
    return block[-1].end - block[0].address


def reading_s(n_servos: int, baud: int, return_delay_s: float = 0.0, family: ServoFamily = FEETECH) -> float:
    """Time [s] that a reading of ``n_servos`` keeps the line busy; each waits ``return_delay_s`` with its answer."""
    answer = OVERHEAD_BYTES + _n_bytes(family, READING)
    return wire_time_s(OVERHEAD_BYTES + 2 + n_servos * (1 + answer), baud) + n_servos * return_delay_s


def goals_s(n_servos: int, baud: int, family: ServoFamily = FEETECH) -> float:
    """Time [s] that the goals of ``n_servos`` keep the line busy."""
    goal = 1 + _n_bytes(family, GOAL)
    n_packets = math.ceil(n_servos * goal / ((MAX_PARAMS - 2) // goal * goal))
    return wire_time_s(n_packets * (OVERHEAD_BYTES + 2) + n_servos * goal, baud)


def shortest_period_s(n_servos: int, baud: int, return_delay_s: float = 0.0, family: ServoFamily = FEETECH) -> float:
    """Least bus period [s] in which ``n_servos`` can be read and sent their goals."""
    reading = reading_s(n_servos, baud, return_delay_s, family) + ADAPTER_S
    return max(reading / READING_SHARE, (reading + goals_s(n_servos, baud, family)) / _CYCLE_SHARE)


def too_short(
    period_s: float, n_servos: int, baud: int, return_delay_s: float = 0.0, family: ServoFamily = FEETECH
) -> str | None:
    """Why a bus cycle does not fit into ``period_s`` [s], and which period it fits into; None: it fits."""
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


class CycleTime:
    """When the parts of a chain's bus cycles begin and end.

    Args:
        ids: all servos.
        period_s: of a cycle [s].
    """

    def __init__(self, bus: ServoBus, ids: Sequence[int], period_s: float) -> None:
        self._bus, self._ids, self._period_s = bus, ids, period_s
        self._line_free_s = -math.inf
        self.sending_s = goals_s(len(ids), bus.baud, bus.family) + ADAPTER_S
        """Time [s] that the goals of all servos take."""

    def check(self) -> None:
        """Raise BringUpError where the servos' own return delays leave a cycle too little time."""
        delay_s = self._bus.return_delay_s(self._ids)
        complaint = too_short(self._period_s, len(self._ids), self._bus.baud, delay_s, self._bus.family)
        if complaint is not None:
            raise BringUpError(complaint)

    def reading_ends_s(self, now_s: float) -> float:
        """Time [s] when a reading that begins now, or after the goals, is given up: early enough for new goals."""
        delay_s = self._bus.return_delay_s(self._ids)
        whole_s = reading_s(len(self._ids), self._bus.baud, delay_s, self._bus.family) + _PATIENCE_S
        most_s = min(whole_s, self._period_s - self.sending_s)
        return max(now_s, self._line_free_s) + max(READING_SHARE * self._period_s, most_s)

    def goals_sent(self, now_s: float, n_servos: int) -> None:
        """Goals for so many servos have been handed to the port."""
        self._line_free_s = now_s + goals_s(n_servos, self._bus.baud, self._bus.family)
