"""Causes of silence that are not the servos: a computer or an adapter that is late."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from snake_gym.hardware.bus.bus import Bus
from snake_gym.hardware.guard.bring_up import late_note
from snake_gym.hardware.guard.checks import BoolArray

_BUSY_S = 0.01
"""Lateness of this computer that explains missing answers [s]."""


class Excuse:
    """Excuse of each silent joint, since its last answer; call ``note`` once a cycle.

    A joint is excused if answers of its own servo came too late, or if this computer was late in every cycle.
    """

    def __init__(self, ids: Sequence[int]) -> None:
        self._ids = ids
        self._late_s = 0.0
        self._always_late = np.ones(len(ids), bool)
        self._n_late, self._n_before = np.zeros((2, len(ids)), int)

    def note(self, answered: BoolArray, late_s: float, bus: Bus) -> None:
        """Note which servos (J,) answered in this cycle, in which the computer was late by ``late_s`` [s]."""
        self._n_late = np.array([bus.late[one] for one in self._ids])
        self._n_before = np.where(answered, self._n_late, self._n_before)
        self._always_late = answered | (self._always_late & (late_s > _BUSY_S))
        self._late_s = late_s if answered.all() else max(self._late_s, late_s)

    def lines(self) -> list[str]:
        """Return the excuse of each joint, to be added to a message; empty: it has none."""
        busy = f" (this computer was late by {1e3 * self._late_s:.0f} ms: it is too busy)"
        return [
            busy if late and self._late_s > _BUSY_S else late_note(n)
            for late, n in zip(self._always_late, (self._n_late - self._n_before).tolist(), strict=True)
        ]
