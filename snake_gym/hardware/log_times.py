"""Whether the cycles of a log follow each other as a run writes them.

A run misses single cycles, and a stalled host or port costs it many; its steps then tell that they were late, or that
what they saw was old. A gap that no step tells of, or a time that runs backwards, means that the log was changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

_GAP_PERIODS = 6.0
"""A gap up to so many periods needs no explanation."""
_TOLD_SHARE = 0.5
"""A step that was late by this share of a gap, or saw something so old, explains it."""


def find_time_fault(rows: Sequence[dict[str, Any]]) -> tuple[float, str] | None:
    """Where the first fault in the cycles' times begins [s], and a line about it; None: there is none.

    Args:
        rows: all lines of the log.
    """
    cycles = [(number, row) for number, row in enumerate(rows, 1) if row["kind"] == "cycle" and row["t"] is not None]
    steps = [row for row in rows if row["kind"] == "step" and row["t"] is not None]
    if len(cycles) < 3:
        return None
    differences = np.diff([row["t"] for _, row in cycles])
    period = rows[0].get("config", {}).get("connection", {}).get("period_s") or float(np.median(differences))
    patience = 2.0 * float(rows[0]["spec"].get("control_dt_s", 0.0)) + 2.0 * period
    for (_, last), (number, row) in itertools.pairwise(cycles):
        before, now = float(last["t"]), float(row["t"])
        if now == before and row["angle"] == last["angle"]:
            continue  # the port was away: the last reading again
        told = f"line {number}: the cycle at {now:.3f} s follows the one at {before:.3f} s"
        if now <= before:
            return min(now, before), f"{told}; expected times that increase"
        gap = now - before
        if gap > _GAP_PERIODS * period:
            near = [one for one in steps if before <= one["t"] <= now + patience]
            if not any(max(one.get("late", 0.0), one.get("age", 0.0)) > _TOLD_SHARE * gap for one in near):
                return before, f"{told}, and no step says that it was late; expected one every {1e3 * period:g} ms"
    return None
