"""Comparison of CC and SJC at equal joint amplitude: shares of CC's coupling and of its larger wave in its advantage.

The paper omits this. CC adds half of the neighbour's signal (eq. 37), so its joints swing further than SJC's at the
same alpha, most of all the joint behind a locked one, whose signal never dies down. Five runs are compared for each set
of locked joints: SJC and CC with the paper's alpha; SJC with the alpha that gives its working joints the effective
amplitude (root mean square over joints) measured in CC's run; SJC whose every joint swings with the amplitude and phase
that CC's has in steady state (``wave``); CC with the alpha that brings it down to SJC's effective amplitude.

Arrivals depend on near misses of the targets, so every run is played from several start directions of the head link,
around the paper's, and medians are compared. The remaining advantage is
(time of the other - time of CC) / (time of SJC - time of CC), for two runs at equal amplitude.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from papers.sibilska2022.claims import joints, rounded
from papers.sibilska2022.experiment import TARGETS, Broken, ControllerName, mask_joints
from papers.sibilska2022.trials import Trial, play
from papers.study import Cell, Claim, Table, grade
from snake_gym.controllers.serpenoid import GaitConfig
from snake_gym.robot.spec import FloatArray

START_ANGLES_RAD = tuple(math.radians(angle) for angle in range(-20, 21, 5))

VARIANTS = ("SJC", "SJC, CC's amplitude", "SJC, CC's wave", "CC", "CC, SJC's amplitude")


class Comparison(NamedTuple):
    """Results for S sets of locked joints, five variants and B start directions."""

    sets: Sequence[Broken]
    alpha_rad: FloatArray
    """(S, 5) amplitude of the gait, median over the starts."""
    amplitude_rad: FloatArray
    """(S, 5) effective amplitude, median over the starts."""
    arrival_s: FloatArray
    """(S, 5, B) arrival at the last target, inf where it was not reached."""
    n_targets: int

    def median_s(self) -> FloatArray:
        """Return median arrivals (S, 5) [s] over the starts."""
        return np.asarray(np.median(self.arrival_s, axis=2))

    def left(self, variant: int) -> FloatArray:
        """Return the share (S,) of CC's advantage over SJC that it has over this variant; NaN if none over SJC."""
        sjc, cc, other = (self.median_s()[:, index] for index in (0, 3, variant))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(cc < sjc, (other - cc) / (sjc - cc), np.nan)

    def left_when_reduced(self) -> FloatArray:
        """Return the share (S,) of CC's advantage over SJC that is left to CC with SJC's amplitude."""
        sjc, cc, reduced = (self.median_s()[:, index] for index in (0, 3, 4))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(cc < sjc, (sjc - reduced) / (sjc - cc), np.nan)


def compare_at_equal_amplitude(
    sets: Sequence[Broken],
    start_angles_rad: Sequence[float] = START_ANGLES_RAD,
    n_targets: int = len(TARGETS),
    on_progress: Callable[[float], None] = lambda share: None,
) -> Comparison:
    """Play SJC, CC and SJC with CC's wave, measure their amplitudes, and then the two with amplitudes exchanged."""
    alpha = GaitConfig.amplitude_rad

    def variant(controller: ControllerName, wave: bool, alphas: FloatArray) -> list[Trial]:
        return [
            Trial(controller, broken, "locked", float(alphas[row, column]), wave, angle)
            for row, broken in enumerate(sets)
            for column, angle in enumerate(start_angles_rad)
        ]

    shape = (len(sets), len(start_angles_rad))
    same = np.full(shape, alpha)
    first = [variant("sjc", False, same), variant("sjc", True, same), variant("cc", False, same)]
    arrival, amplitude = _play(first, shape, n_targets, lambda share: on_progress(0.5 * share))
    sjc, cc = amplitude[0], amplitude[2]
    raised, lowered = alpha * cc / sjc, alpha * sjc / cc
    second = [variant("sjc", False, raised), variant("cc", False, lowered)]
    exchanged, exchanged_amplitude = _play(second, shape, n_targets, lambda share: on_progress(0.5 + 0.5 * share))
    order = [arrival[0], exchanged[0], arrival[1], arrival[2], exchanged[1]]
    measured = [amplitude[0], exchanged_amplitude[0], amplitude[1], amplitude[2], exchanged_amplitude[1]]
    return Comparison(
        list(sets),
        np.median([same, raised, same, same, lowered], axis=2).T,
        np.median(measured, axis=2).T,
        np.stack(order, axis=1),
        n_targets,
    )


def _play(
    variants: Sequence[list[Trial]], shape: tuple[int, int], n_targets: int, told: Callable[[float], None]
) -> tuple[FloatArray, FloatArray]:
    """Return last arrivals, inf if there is none, and effective amplitudes of all variants, (V, S, B) each."""
    trials = [trial for variant in variants for trial in variant]
    result = play(trials, n_targets, on_progress=told)
    working = np.where(mask_joints([trial.broken for trial in trials]), np.nan, result.amplitude_rad)
    amplitude = np.sqrt(np.nanmean(working**2, axis=1))
    arrival = result.arrivals_s[:, -1]
    arrival = np.where(np.isfinite(arrival), arrival, np.inf)
    return arrival.reshape(-1, *shape), amplitude.reshape(-1, *shape)


def amplitude_table(comparison: Comparison) -> Table:
    """Return a table of all five runs of every set."""
    median, arrival = comparison.median_s(), comparison.arrival_s
    alpha, amplitude = comparison.alpha_rad, comparison.amplitude_rad
    left = [comparison.left(1), comparison.left(2), comparison.left_when_reduced()]
    rows: list[list[Cell]] = []
    for row, broken in enumerate(comparison.sets):
        for index, name in enumerate(VARIANTS):
            share = {1: left[0], 2: left[1], 4: left[2]}.get(index)
            rows.append([
                joints(broken, ","), name, *(round(math.degrees(float(x[row, index])), 2) for x in (alpha, amplitude)),
                *(rounded(x, 2) for x in (median[row, index], arrival[row, index].min(), arrival[row, index].max())),
                None if share is None or not np.isfinite(share[row]) else round(100.0 * float(share[row])),
            ])  # fmt: skip
    return Table(
        "equal-amplitude",
        "CC against SJC at equal joint amplitude",
        [
            "locked",
            "run",
            "alpha [deg]",
            "effective amplitude [deg]",
            "median [s]",
            "first [s]",
            "last [s]",
            "left [%]",
        ],
        rows,
        f"Arrival at target {comparison.n_targets} from {comparison.arrival_s.shape[2]} start directions: median, "
        "first and last. Effective amplitude: at the gait's frequency, root mean square over the working joints. Left: "
        "share of CC's advantage over SJC that remains at equal amplitude (last row: to CC with SJC's amplitude).",
    )


def amplitude_claims(comparison: Comparison) -> list[Claim]:
    """Return claims on an assumption of the paper: that the neighbour's signal itself makes CC faster."""
    left, shape = comparison.left(1), comparison.left(2)
    faulty = np.array([bool(broken) for broken in comparison.sets]) & np.isfinite(left)
    if not faulty.any():
        return []
    rest, rest_shape = float(np.median(left[faulty])), float(np.median(shape[faulty]))
    numbers = "; ".join(
        f"{joints(broken)}: {100 * left[row]:.0f} % and {100 * shape[row]:.0f} %"
        for row, broken in enumerate(comparison.sets)
        if faulty[row]
    )
    text = "With broken joints CC is faster because of the coupling, not because its joints swing further"
    note = (
        "Share of CC's advantage left when SJC gets CC's effective amplitude, and when each of its joints "
        f"gets amplitude and phase of CC's: {numbers}. Median {100 * rest:.0f} % and {100 * rest_shape:.0f} %."
    )
    return [Claim(text, "section 3.2 and 5, implied", grade(rest >= 2.0 / 3.0, rest >= 1.0 / 3.0), note=note,
                  own=True)]  # fmt: skip
