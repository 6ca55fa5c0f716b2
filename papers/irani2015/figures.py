"""Figures of irani2015: paths, rates of the head, iterations of the search."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from papers.irani2015 import crawling
from papers.irani2015.claims import Judged
from papers.irani2015.crawling import FINISH_M, Scan
from papers.irani2015.friction import TABLE_1, Fit, Iteration
from papers.irani2015.performance import CASES, N_STARTS, Performance, end_points
from papers.study import figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

BLUE, ORANGE, RED, GREY = "#2a6fbb", "#d97a1f", "#c0392b", "#8a8f98"
_ENDS_M = {"no failure": (0.25, 1.0), "J7": (-2.0, -1.0)}
"""Range of y in which the paper's heads end (Fig. 8 and 11)."""


class Results(NamedTuple):
    """Results of all runs of the study."""

    scan: Scan
    judged: list[Judged]
    imposed: Scan
    """Scan with imposed joint motion, as in the paper's simulator."""
    judged_imposed: list[Judged]
    performance: Performance
    iterations: list[Iteration]
    fits: list[Fit]
    """Empty in a quick run."""


def _draw_finish(canvas: Canvas, results: Results) -> None:
    panels = canvas.subplots(2, 2, sharex=True, sharey=True).ravel()
    for row, (ax, name) in enumerate(zip(panels, CASES, strict=True)):
        for paths, colour, mark, label in (
            (results.performance.robot, BLUE, "*", "robot with servos"),
            (results.performance.simulator, ORANGE, "o", "joint motion imposed"),
        ):
            ends = end_points(paths)
            for start in range(N_STARTS):
                trial = row * N_STARTS + start
                head = paths.head_xy[:, trial] - paths.head_xy[0, trial]
                across = head[:, 0] >= FINISH_M
                last = int(across.argmax()) if across.any() else len(head) - 1
                ax.plot(*head[: last + 1].T, color=colour, lw=0.7, alpha=0.7)
                ax.plot(*ends[trial], mark, color=colour, ms=7.0, label=label if start == 0 else None)
        if name in _ENDS_M:
            ax.plot([FINISH_M] * 2, _ENDS_M[name], color=RED, lw=5.0, alpha=0.5, label="the paper's end points")
        ax.axvline(FINISH_M, color=GREY, lw=0.8, ls="--")
        ax.set(title=name, aspect="equal", xlim=(-0.6, 4.2), ylim=(-2.6, 2.6))
    panels[0].legend(loc="lower left")
    canvas.supxlabel("x [m]")
    canvas.supylabel("y [m]")


def _draw_head_rates(canvas: Canvas, results: Results) -> None:
    ax, step = canvas.subplots(), crawling.PERIOD_S / crawling.SAMPLES_PER_PERIOD
    for paths, colour, label in (
        (results.performance.robot, BLUE, "robot with servos"),
        (results.performance.simulator, ORANGE, "joint motion imposed"),
    ):
        rate = np.degrees(np.diff(np.unwrap(paths.head_angle[:, 0]))) / step
        time = step * (np.arange(rate.size) + 0.5)
        ax.plot(time[time < 12.0], rate[time < 12.0], color=colour, lw=1.2, label=label)
    ax.set(xlabel="time [s]", ylabel="angular velocity of the head [deg/s]", ylim=(None, 240.0))
    ax.legend(loc="upper right", ncols=2)


def _draw_iterations(canvas: Canvas, results: Results) -> None:
    panels = canvas.subplots(2, 5, sharey=True).ravel()
    for number, (ax, step) in enumerate(zip(panels, results.iterations, strict=True), 1):
        best = int(step.error.argmin())
        ax.semilogx(step.values, 100.0 * step.error, "o-", color=BLUE, mfc="white", ms=4.0, lw=1.0)
        ax.plot(step.values[best], 100.0 * step.error[best], "o", color=BLUE, ms=6.0)
        ax.axvline(TABLE_1[step.name], color=RED, lw=1.0, ls="--")
        ticks = step.values[[0, len(step.values) // 2, -1]]
        ax.set_xticks(ticks, [f"{tick:.2g}" for tick in ticks])
        ax.minorticks_off()
        ax.set(title=f"#{number}: {step.name}")
    canvas.supylabel("simulator error, eq. 6 [%]")


FIGURES = (
    figure("paper-frame", "Heads on the way to the line at 3.18 m (Fig. 8, 11, 12, 13), phase shift 32.5 deg, from "
           f"{N_STARTS} starts; mirror images belong to starts half a period later.", _draw_finish, (10.0, 9.0)),
    figure("head-rates", "Angular velocity of the head without failure (Fig. 9).", _draw_head_rates),
    figure("iterations", "Ten iterations of the search from the paper's initial values (Fig. 6 and 7): eq. 6 over the "
           "coefficient that is varied; filled: the best; dashed: the value with which the logs were simulated.",
           _draw_iterations, (12.0, 5.5)),
)  # fmt: skip
