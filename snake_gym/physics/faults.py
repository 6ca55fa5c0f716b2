"""Codes of all kinds of faults, and the times at which a fault acts; ``actuators`` has the effects of the own kinds.

A fault acts from ``onset_s`` to ``end_s``; an intermittent one in bursts, for the first ``duty`` of every ``period_s``
counted from its onset.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from snake_gym.physics.state import FaultState, FloatArray

HEALTHY, LOCKED, FREE, WEAK, SLOW, OFFSET, DEAD, BIASED, NOISY = range(9)
FAULT_CODES = {
    "healthy": HEALTHY,
    "locked": LOCKED, "free": FREE, "weak": WEAK, "slow": SLOW, "offset": OFFSET,  # of joints, in the kernels
    "dead": DEAD, "biased": BIASED, "noisy": NOISY,  # of encoders
}  # fmt: skip
"""Codes by name; kinds that are registered (``simulation.fault_kinds``) follow."""
_SLACK_S = 1e-9
"""Rounding [s] of summed steps by which a time may be missed and still counts as reached."""


def acting(faults: FaultState, time_s: FloatArray) -> NDArray[np.bool_]:
    """Return a mask (W, J) of the faults that act at the worlds' present times ``time_s`` (W,) [s]."""
    time = time_s[:, None] + _SLACK_S
    within = (faults.kind != HEALTHY) & (time >= faults.onset_s) & (time < faults.end_s)
    intermittent = np.isfinite(faults.period_s)
    if not intermittent.any():
        return within
    period = np.where(intermittent, faults.period_s, 1.0)
    since_burst = np.mod(np.where(within, time - faults.onset_s, 0.0), period)
    return within & (~intermittent | (since_burst < faults.duty * period))
