"""The scan: every single joint failure at every phase shift from several starts; bias on joint 7; front failures driven
backwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from papers.irani2015.crawling import N_JOINTS, Paths, Trial, crawl
from papers.irani2015.motion import Motion, judge
from papers.study import Advance
from snake_gym.robot.spec import FloatArray

FRONT = (2, 3, 4, 5, 6)
"""Joints whose failure makes the paper's robot circle."""
MIDDLE = 7
REAR = tuple(range(8, N_JOINTS + 1))
N_PERIODS = 15
"""39 s: at the fastest gait 14 m, four times the paper's test track."""
BIAS_RAD = math.radians(3.0)
"""Section 4, on all joints."""
BIASES_RAD = tuple(math.radians(b) for b in (-4.5, -3.0, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0, 4.5))


class Scan(NamedTuple):
    """Results on a grid of P phase shifts and S starts."""

    shifts_rad: FloatArray
    """(P,)."""
    starts_rad: FloatArray
    """(S,)."""
    forwards: Motion
    """Fields (P, 14, S): failed joint 0 (none) to 13."""
    backwards: Motion
    """Fields (P, 14, S), driven tail first."""
    biased: Motion
    """Fields (P, len(BIASES_RAD), S): joint 7 failed."""
    paths: Paths
    """Of ``forwards`` at ``shown``, trials (14, S) flat."""
    shown: int
    """Index of the phase shift whose paths are kept."""


def scan(shifts_deg: Sequence[float], n_starts: int, shown_deg: float, advance: Advance) -> Scan:
    """Run all trials, one phase shift after the other.

    ``shown_deg``: the paths at the nearest scanned phase shift are kept.
    """
    shifts = np.radians(np.array(shifts_deg, dtype=np.float64))
    starts: FloatArray = math.pi / n_starts * np.arange(n_starts, dtype=np.float64)
    shown = int(np.argmin(np.abs(shifts - math.radians(shown_deg))))
    parts: list[tuple[Motion, Motion, Motion]] = []
    kept: Paths | None = None
    for index, shift in enumerate(shifts.tolist()):
        advance(index / len(shifts), f"single failures at a phase shift of {math.degrees(shift):g} deg")
        ahead = [Trial(j, shift, s) for j in range(N_JOINTS + 1) for s in starts.tolist()]
        back = [trial._replace(backwards=True) for trial in ahead]
        bias = [Trial(MIDDLE, shift, s, b) for b in BIASES_RAD for s in starts.tolist()]
        n = len(ahead)
        paths = crawl(ahead + back + bias, N_PERIODS)
        motion = judge(paths, np.array([t.backwards for t in ahead + back + bias]))
        pieces = (slice(0, n), slice(n, 2 * n), slice(2 * n, None))
        parts.append(tuple(Motion(*(x[piece].reshape(-1, n_starts) for x in motion)) for piece in pieces))  # type: ignore[arg-type]
        if index == shown:
            kept = Paths(*(x[:, :n] for x in paths))
    assert kept is not None
    ahead_all, back_all, bias_all = (_stack([part[k] for part in parts]) for k in range(3))
    return Scan(shifts, starts, ahead_all, back_all, bias_all, kept, shown)


def _stack(motions: Sequence[Motion]) -> Motion:
    return Motion(*(np.stack(field) for field in zip(*motions, strict=True)))


def drift(scan: Scan) -> FloatArray:
    """|y at the finish - y without failure, same start| (P, 14, S) [m]; NaN: one of them never gets there."""
    return np.abs(scan.forwards.finish_y_m - scan.forwards.finish_y_m[:, :1])


def best_bias(scan: Scan) -> tuple[NDArray[np.int64], FloatArray]:
    """Index into BIASES_RAD of the bias that ends nearest to the line, and that |y| (P, S) [m]; -1: none arrives."""
    off = np.abs(scan.biased.finish_y_m)
    some = np.isfinite(off).any(axis=1)
    best = np.where(some, np.argmin(np.where(np.isfinite(off), off, np.inf), axis=1), -1)
    return best, np.where(some, np.min(np.where(np.isfinite(off), off, np.inf), axis=1), np.nan)


def three_degrees(scan: Scan) -> FloatArray:
    """|y at the finish| with joint 7 failed and 3 deg of bias to the better side (P, S) [m]; NaN: neither arrives."""
    sides = [BIASES_RAD.index(-BIAS_RAD), BIASES_RAD.index(BIAS_RAD)]
    off = np.abs(scan.biased.finish_y_m[:, sides])
    nearest = np.min(np.where(np.isfinite(off), off, np.inf), axis=1)
    return np.where(np.isfinite(nearest), nearest, np.nan)
