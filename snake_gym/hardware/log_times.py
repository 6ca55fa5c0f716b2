"""Whether the cycles of a log follow each other as a run writes them.

A run misses single cycles, and a stalled host or port costs it many; its steps then tell that they were late, or that
what they saw was old. Where nobody answers or the port is away, the last reading is written again. A gap or a repeated
reading that no step tells of, a repeated step, or a time that runs backwards means that the log was changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from snake_gym.hardware.body import PORT_AWAY

_GAP_PERIODS = 6.0
"""A gap up to so many periods needs no explanation."""
_TOLD_SHARE = 0.5
"""A step that was late by this share of a gap, or saw something so old, explains it."""
_TOLD_STEPS = 3
"""So many steps after the last reading, a run has told that the port went away."""


class _Fault(NamedTuple):
    line: int
    begin_s: float
    told: str


def find_time_fault(rows: Sequence[dict[str, Any]]) -> tuple[float, str] | None:
    """Where the first fault in the times of cycles and steps begins [s], and a line about it; None: there is none.

    Args:
        rows: all lines of the log.
    """
    faults = [fault for fault in (_cycle_fault(rows), _step_fault(rows)) if fault is not None]
    return None if not faults else min(faults)[1:]


def _step_fault(rows: Sequence[dict[str, Any]]) -> _Fault | None:
    for (line, last), (number, row) in itertools.pairwise(_timed(rows, "step")):
        before, now = float(last["t"]), float(row["t"])
        if now <= before:
            how = f"repeats line {line}" if row == last else f"is a step at {now:.3f} s after one at {before:.3f} s"
            return _Fault(number, min(now, before), f"line {number} {how}; expected times that increase")
    return None


def _cycle_fault(rows: Sequence[dict[str, Any]]) -> _Fault | None:
    cycles, steps = _timed(rows, "cycle"), [row for _, row in _timed(rows, "step")]
    if len(cycles) < 2:
        return None
    differences = np.diff([row["t"] for _, row in cycles])
    period = rows[0].get("config", {}).get("connection", {}).get("period_s") or float(np.median(differences))
    patience = 2.0 * float(rows[0]["spec"].get("control_dt_s", 0.0)) + 2.0 * period
    first = cycles[0][0]
    for (line, last), (number, row) in itertools.pairwise(cycles):
        before, now = float(last["t"]), float(row["t"])
        if now == before and row["angle"] == last["angle"]:
            if len(row.get("silent", [])) == len(row["angle"]) or _port_was_away(rows, first):
                continue  # the last reading again
            told = f"line {number} repeats the reading of line {line}, at {now:.3f} s, and no step says that the port"
            return _Fault(number, now, f"{told} was away; expected a new one")
        first = number
        told = f"line {number}: the cycle at {now:.3f} s follows the one at {before:.3f} s"
        if now <= before:
            return _Fault(number, min(now, before), f"{told}; expected times that increase")
        gap = now - before
        if gap > _GAP_PERIODS * period:
            near = [one for one in steps if before <= one["t"] <= now + patience]
            if not any(max(one.get("late", 0.0), one.get("age", 0.0)) > _TOLD_SHARE * gap for one in near):
                told += f", and no step says that it was late; expected one every {1e3 * period:g} ms"
                return _Fault(number, before, told)
    return None


def _port_was_away(rows: Sequence[dict[str, Any]], number: int) -> bool:
    """Whether the steps that follow line ``number``, or what was noted at the end, say so; a log that was cut off
    before them could not."""
    later = rows[number:]
    steps = [row for row in later if row["kind"] == "step"][:_TOLD_STEPS]
    said = [line for row in steps for line in row.get("news", [])]
    said += [row["text"] for row in later if row["kind"] == "note"]
    is_cut = len(steps) < _TOLD_STEPS and rows[-1]["kind"] != "end"
    return PORT_AWAY in said or is_cut


def _timed(rows: Sequence[dict[str, Any]], kind: str) -> list[tuple[int, dict[str, Any]]]:
    """The lines of a kind that have a time, with their numbers."""
    return [(number, row) for number, row in enumerate(rows, 1) if row["kind"] == kind and row["t"] is not None]
