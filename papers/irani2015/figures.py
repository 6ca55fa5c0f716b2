"""Figures of irani2015: paths, motion by failed joint, widths of circles, effects of a bias, identification."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from papers.irani2015 import crawling
from papers.irani2015.claims import J2_DIAMETER_M, Judged, circles
from papers.irani2015.crawling import FINISH_M, FRONT, MIDDLE, N_JOINTS, Scan
from papers.irani2015.friction import TABLE_1, Fit, Iteration
from papers.irani2015.performance import CASES, N_STARTS, Performance, end_points
from papers.study import figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

BLUE, ORANGE, GREEN, RED, GREY = "#2a6fbb", "#d97a1f", "#3a9a5b", "#c0392b", "#8a8f98"
KINDS = ((GREEN, "moves on"), (ORANGE, "turns back"), (RED, "stalls"))
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


def _draw_paths(canvas: Canvas, results: Results) -> None:
    scan, n_starts = results.scan, results.scan.starts_rad.size
    for joint, ax in enumerate(canvas.subplots(3, 5, sharex=True, sharey=True).flat):
        if joint > N_JOINTS:
            ax.set_visible(False)
            continue
        for start in range(n_starts):
            head = scan.paths.head_xy[:, joint * n_starts + start]
            ax.plot(*(head - head[0]).T, lw=0.8, color=BLUE, alpha=0.8)
        ax.axvline(FINISH_M, color=GREY, lw=0.8, ls="--")
        if joint == 2:
            angle, radius = np.linspace(0.0, 2.0 * math.pi, 60), 0.5 * J2_DIAMETER_M
            ax.plot(radius * np.cos(angle), radius + radius * np.sin(angle), color=RED, lw=1.2)
        title = "no failure" if joint == 0 else f"J{joint}"
        ax.set(title=title, aspect="equal", xlim=(-5.0, 9.0), ylim=(-6.0, 6.0))
    canvas.supxlabel("x [m], the body's direction at the start")
    canvas.supylabel("y [m]")


def _draw_kinds(canvas: Canvas, results: Results) -> None:
    from matplotlib.patches import Patch

    scan, degrees = results.scan, np.degrees(results.scan.shifts_rad)
    edges = np.concatenate([degrees[:1] - 1.0, 0.5 * (degrees[1:] + degrees[:-1]), degrees[-1:] + 1.0])
    axes = canvas.subplots(1, 2, sharey=True)
    for ax, motion, title in zip(
        axes, (scan.forwards, scan.backwards), ("head first", "driven backwards"), strict=True
    ):
        parts = [kind.mean(axis=2) for kind in (motion.goes_on, motion.turns_back, motion.stalls)]
        for joint in range(N_JOINTS + 1):
            bottom = np.full(degrees.size, joint - 0.45)
            for part, (colour, _) in zip(parts, KINDS, strict=True):
                height = 0.9 * part[:, joint]
                ax.bar(
                    edges[:-1], height, np.diff(edges), bottom, align="edge", color=colour, edgecolor="white", lw=0.3
                )
                bottom = bottom + height
        ax.set(xlim=(edges[0], edges[-1]), ylim=(N_JOINTS + 0.5, -0.5), title=title, xlabel="phase shift [deg]")
        ax.grid(visible=False)
    axes[0].set_ylabel("failed joint (1 is next to the head)")
    axes[0].set_yticks(range(N_JOINTS + 1), ["none", *(str(j) for j in range(1, N_JOINTS + 1))])
    handles = [Patch(color=colour, label=label) for colour, label in KINDS]
    canvas.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def _draw_diameters(canvas: Canvas, results: Results) -> None:
    from matplotlib import colormaps

    ax, table = canvas.subplots(), circles(results.scan)[:, list(FRONT)]
    rows = np.flatnonzero(np.isfinite(table).any(axis=1))
    for place, row in enumerate(rows):
        colour = colormaps["viridis"](0.05 + 0.85 * place / max(len(rows) - 1, 1))
        label = f"{math.degrees(results.scan.shifts_rad[row]):g} deg"
        ax.plot(FRONT, table[row], "o-", color=colour, label=label, ms=5.0, lw=1.2)
    ax.plot([2], [J2_DIAMETER_M], "*", color=RED, ms=14.0, label="paper, J2")
    ax.set_xticks(FRONT)
    ax.set(xlabel="failed joint (1 is next to the head)", ylabel="diameter of the circle [m]", ylim=(0.0, None))
    ax.legend(title="phase shift", loc="center left", bbox_to_anchor=(1.01, 0.5), ncols=1 if len(rows) < 12 else 2)


def _draw_drift(canvas: Canvas, results: Results) -> None:
    ax, scan, plain = canvas.subplots(), results.scan, np.abs(results.scan.forwards.finish_y_m)
    ax.axhspan(1.0, 2.0, color=ORANGE, alpha=0.15, lw=0.0, label="paper, J7")
    ax.axhspan(0.25, 1.0, color=GREY, alpha=0.15, lw=0.0, label="paper, no failure")
    for values, colour, marker, label, aside in (
        (plain[:, 0], GREY, "o", "no failure", -0.45),
        (plain[:, MIDDLE], ORANGE, "s", "J7", -0.15),
        (crawling.three_degrees(scan), RED, "x", "J7, 3 deg to the better side", 0.15),
        (crawling.best_bias(scan)[1], GREEN, "^", "J7, best scanned bias", 0.45),
    ):
        x = np.repeat(np.degrees(scan.shifts_rad)[:, None] + aside, values.shape[1], axis=1)
        ax.plot(x.ravel(), values.ravel(), marker, color=colour, label=label, ms=5.0)
    ax.set(xlabel="phase shift [deg]", ylabel="|y| of the head after 3.18 m [m]", ylim=(0.0, 4.5))
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))


FIGURES = (
    figure("paper-frame", "Heads on the way to the line at 3.18 m (Fig. 8, 11, 12, 13), phase shift 32.5 deg, from "
           f"{N_STARTS} starts; mirror images belong to starts half a period later.", _draw_finish, (10.0, 9.0)),
    figure("head-rates", "Angular velocity of the head without failure (Fig. 9).", _draw_head_rates),
    figure("iterations", "Ten iterations of the search from the paper's initial values (Fig. 6 and 7): eq. 6 over the "
           "coefficient that is varied; filled: the best; dashed: the value with which the logs were simulated.",
           _draw_iterations, (12.0, 5.5)),
    figure("paths", "Paths of the head at a phase shift of 32.5 deg, from each start; the mirror images belong to "
           "starts half a period later. Dashed: the paper's finish at 3.18 m. Red: the paper's J2 circle of 0.56 m.",
           _draw_paths, (11.0, 6.6)),
    figure("kinds", "What the robot does with one joint without power: area of a colour is the share of the starts.",
           _draw_kinds, (10.5, 5.4)),
    figure("diameters", "Circles, where at least half of the starts end in one; the paper says they widen from J2 to "
           "J6.", _draw_diameters),
    figure("drift_j7", "Sideways displacement at the finish line, one mark for each start; none where the head is "
           "turned away and never crosses the line.", _draw_drift, (9.5, 4.5)),
)  # fmt: skip
