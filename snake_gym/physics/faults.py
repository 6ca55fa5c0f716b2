"""Codes of the kernels' and encoders' faults, and the times at which a fault acts; ``actuators`` has the effects.

A fault acts from ``onset_s`` to ``end_s``; an intermittent one in bursts, one in every ``period_s`` counted from its
onset, each for the share ``duty`` of it. A burst takes the first part of its period; with ``jitter`` it begins later,
anew at random in each, by up to that share of the pause.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.physics.state import FaultState, FloatArray

HEALTHY, LOCKED, FREE, WEAK, SLOW, OFFSET, DEAD, BIASED, NOISY, SLIPPED = range(10)
BURST_LEFT, BURST_RIGHT, LEAK_LEFT, LEAK_RIGHT, WEAK_LEFT, WEAK_RIGHT = range(10, 16)
"""Codes of faults: of joints, and DEAD, BIASED and NOISY of encoders; then those of single muscles.
``simulation.fault_kinds`` adds larger ones."""
SLACK_S = 1e-7
"""Rounding [s] of summed steps by which a time may be missed and still counts as reached."""
_HASH, _32_BITS = 0x45D9F3B, 0xFFFFFFFF


def hash_number(key: Any, number: Any) -> Any:
    """Return the ``number``-th random number in [0, 1) of ``key``: non-negative int64 or arrays; kernels compile it.

    Three rounds of an integer hash (T. Mueller, "hash function for integers"); products stay below 2^63.
    """
    x = ((key & _32_BITS) * _HASH + (number & _32_BITS)) & _32_BITS
    for _ in range(3):
        x = (((x >> 16) ^ x) * _HASH) & _32_BITS
    return ((x >> 16) ^ x) / 4294967296.0


def acting(faults: FaultState, time_s: FloatArray) -> NDArray[np.bool_]:
    """Return a mask (W, J) of the faults that act at the worlds' present times ``time_s`` (W,) [s]."""
    time = time_s[:, None] + SLACK_S
    within = (faults.kind != HEALTHY) & (time >= faults.onset_s) & (time < faults.end_s)
    intermittent = np.isfinite(faults.period_s)
    if not intermittent.any():
        return within
    period = np.where(intermittent, faults.period_s, 1.0)
    since = np.where(within, time - faults.onset_s, 0.0)
    since_burst, burst = np.mod(since, period), np.floor_divide(since, period).astype(np.int64)
    late = faults.jitter * hash_number(faults.key, burst) * (1.0 - faults.duty) * period
    return within & (~intermittent | ((since_burst >= late) & (since_burst < late + faults.duty * period)))
