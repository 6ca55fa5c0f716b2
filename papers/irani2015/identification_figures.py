"""Figures of the identification and of the learned bias."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from papers.irani2015.figures import BLUE, GREEN, GREY, ORANGE, RED, head_path
from papers.irani2015.friction import TABLE_1, Fit
from papers.irani2015.learned_bias import Learning, bias_history
from papers.study import Figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_NAMES = {"avs": "alternating search", "least_squares": "least squares"}


def coefficient_errors(fits: Sequence[Fit]) -> Figure:
    """Relative error of each coefficient for every fit."""
    groups = list(dict.fromkeys((fit.method, fit.start) for fit in fits))
    colours = dict(zip(groups, (BLUE, GREEN, ORANGE, RED), strict=False))

    def draw(canvas: Canvas) -> None:
        ax = canvas.subplots()
        for place, group in enumerate(groups):
            own = [fit for fit in fits if (fit.method, fit.start) == group]
            offset = (place - 0.5 * (len(groups) - 1)) * 0.18
            for number, fit in enumerate(own):
                errors = [100.0 * error for error in fit.errors().values()]
                label = f"{_NAMES[group[0]]}, {group[1]} start" if number == 0 else None
                ax.plot(np.arange(len(errors)) + offset, errors, "o", color=colours[group], ms=5.0, label=label)
        ax.axhspan(-10.0, 10.0, color=GREY, alpha=0.15, lw=0.0, label="within 10 %")
        worst = max(100.0 * fit.worst() for fit in fits)
        ax.set_ylim(-max(12.0, 1.1 * worst), max(12.0, 1.1 * worst))
        ax.set_xticks(range(len(TABLE_1)), list(TABLE_1))
        ax.set_ylabel("error [%]")
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))

    return Figure("coefficients", "Coefficients found again, one mark for each noise seed.", draw, (9.5, 4.5))


def search_progress(fits: Sequence[Fit]) -> Figure:
    """Cost of the alternating search over its iterations."""

    def draw(canvas: Canvas) -> None:
        ax = canvas.subplots()
        colours = {"paper's": RED, "20 % off": ORANGE}
        seen: set[str] = set()
        for fit in fits:
            if fit.method == "avs":
                costs = [100.0 * step.cost for step in fit.found.steps]
                label = f"{fit.start} start" if fit.start not in seen else None
                seen.add(fit.start)
                ax.semilogy(range(1, len(costs) + 1), costs, color=colours[fit.start], lw=1.2, label=label)
        ax.axvline(10, color=GREY, ls="--", lw=1.0, label="the paper's ten iterations")
        ax.set_xlabel("iteration (one coefficient each)")
        ax.set_ylabel("simulator error, eq. 6, root mean square [%]")
        ax.legend(loc="upper right")

    return Figure("search", "Alternating search on eq. 6, one line for each noise seed.", draw)


def learned(learning: Learning) -> Figure:
    """Paths without and with the learned bias, and the bias over time, first start of each joint."""
    n_starts = learning.bias_rad.shape[2]

    def draw(canvas: Canvas) -> None:
        left, right = canvas.subplots(1, 2)
        colours = (BLUE, ORANGE, GREEN, RED, GREY)
        for place, joint in enumerate(learning.joints[: len(colours)]):
            trial = place * n_starts
            head_path(left, learning.paths[0], trial, colours[place])
            left.lines[-1].set_linestyle(":")
            head_path(left, learning.paths[1], trial, colours[place], f"J{joint}")
            time, bias = bias_history(learning.paths[1])
            right.plot(time, np.degrees(bias[:, trial]), color=colours[place], lw=1.2, label=f"J{joint}")
        left.set_aspect("equal", adjustable="datalim")
        left.set_xlabel("x [m]")
        left.set_ylabel("y [m]")
        left.set_title("path (dotted: no bias)")
        right.set_xlabel("time [s]")
        right.set_ylabel("bias [deg]")
        right.set_title("bias found")
        right.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))

    shift = math.degrees(learning.shifts_rad[0])
    caption = f"The bias that finds itself, at a phase shift of {shift:g} deg, one start of each failure."
    return Figure("learned_bias", caption, draw, (11.0, 4.6))
