"""Figures of irani2015: motion by failed joint, widths of circles, effects of a bias, and recovered coefficients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from papers.irani2015.claims import J2_DIAMETER_M, Judged, circles
from papers.irani2015.crawling import (
    FINISH_M,
    FRONT,
    MIDDLE,
    N_JOINTS,
    PERIOD_S,
    SAMPLES_PER_PERIOD,
    Motion,
    Scan,
    best_bias,
    three_degrees,
)
from papers.irani2015.friction import TABLE_1, Fit, Iteration
from papers.irani2015.learned_bias import Learning
from papers.irani2015.performance import CASES, N_STARTS, Performance, end_points
from papers.study import Figure
from snake_gym.robot.spec import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

BLUE, ORANGE, GREEN, RED, GREY = "#2a6fbb", "#d97a1f", "#3a9a5b", "#c0392b", "#8a8f98"
KINDS = ((GREEN, "moves on"), (ORANGE, "turns back"), (RED, "stalls"))
GRADES = ((RED, "does not hold"), (ORANGE, "partly"), (GREEN, "holds"))


def all_paths(scan: Scan) -> Figure:
    """Draw head paths of every failure at the shown phase shift."""
    shift = math.degrees(scan.shifts_rad[scan.shown])
    n_starts = scan.starts_rad.size

    def draw(canvas: Canvas) -> None:
        axes = canvas.subplots(3, 5, sharex=True, sharey=True)
        for joint, ax in enumerate(axes.flat):
            if joint > N_JOINTS:
                ax.set_visible(False)
                continue
            for start in range(n_starts):
                head = scan.paths.head_xy[:, joint * n_starts + start]
                ax.plot(head[:, 0] - head[0, 0], head[:, 1] - head[0, 1], lw=0.8, color=BLUE, alpha=0.8)
            ax.axvline(FINISH_M, color=GREY, lw=0.8, ls="--")
            if joint == 2:
                angle = np.linspace(0.0, 2.0 * math.pi, 60)
                radius = 0.5 * J2_DIAMETER_M
                ax.plot(radius * np.cos(angle), radius + radius * np.sin(angle), color=RED, lw=1.2)
            title = "no failure" if joint == 0 else f"J{joint}"
            ax.set(title=title, aspect="equal", xlim=(-5.0, 9.0), ylim=(-6.0, 6.0))
        canvas.supxlabel("x [m], the body's direction at the start")
        canvas.supylabel("y [m]")

    caption = (
        f"Paths of the head at a phase shift of {shift:g} deg, {n_starts} starts each; the mirror images belong to "
        "starts half a period later. Dashed: the paper's finish at 3.18 m. Red: the paper's J2 circle of 0.56 m."
    )
    return Figure("paths", caption, draw, (11.0, 6.6))


_ENDS_M = {"no failure": (0.25, 1.0), "J7": (-2.0, -1.0)}
"""Range of y in which the paper's heads end (Fig. 8 and 11)."""


def paper_frame(result: Performance) -> Figure:
    """Draw head paths up to the finish line as in Fig. 8, 11, 12 and 13, with their end points."""

    def draw(canvas: Canvas) -> None:
        panels = canvas.subplots(2, 2, sharex=True, sharey=True).ravel()
        for row, (ax, name) in enumerate(zip(panels, CASES, strict=True)):
            for paths, colour, mark, label in (
                (result.robot, BLUE, "*", "robot with servos"), (result.simulator, ORANGE, "o", "joint motion imposed"),
            ):  # fmt: skip
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

    caption = (
        f"Heads on the way to the line at 3.18 m (Fig. 8, 11, 12, 13), phase shift "
        f"{math.degrees(result.shown_rad):g} deg, from {N_STARTS} starts; mirror images belong to starts half a period "
        "later."
    )
    return Figure("paper-frame", caption, draw, (10.0, 9.0))


def head_rates(result: Performance) -> Figure:
    """Draw the head's angular velocity over time without failure, as in Fig. 9."""

    def draw(canvas: Canvas) -> None:
        ax = canvas.subplots()
        for paths, colour, label in (
            (result.robot, BLUE, "robot with servos"), (result.simulator, ORANGE, "joint motion imposed"),
        ):  # fmt: skip
            step = PERIOD_S / SAMPLES_PER_PERIOD
            rate = np.degrees(np.diff(np.unwrap(paths.head_angle[:, 0]))) / step
            time = step * (np.arange(rate.size) + 0.5)
            ax.plot(time[time < 12.0], rate[time < 12.0], color=colour, lw=1.2, label=label)
        ax.set(xlabel="time [s]", ylabel="angular velocity of the head [deg/s]", ylim=(None, 240.0))
        ax.legend(loc="upper right", ncols=2)

    return Figure("head-rates", "Angular velocity of the head without failure (Fig. 9).", draw)


def iterations(steps: Sequence[Iteration]) -> Figure:
    """Draw eq. 6 over the coefficient varied in each of ten iterations, as in Fig. 6 and 7."""

    def draw(canvas: Canvas) -> None:
        for number, (ax, step) in enumerate(zip(canvas.subplots(2, 5, sharey=True).ravel(), steps, strict=True), 1):
            best = int(step.error.argmin())
            ax.semilogx(step.values, 100.0 * step.error, "o-", color=BLUE, mfc="white", ms=4.0, lw=1.0)
            ax.plot(step.values[best], 100.0 * step.error[best], "o", color=BLUE, ms=6.0)
            ax.axvline(TABLE_1[step.name], color=RED, lw=1.0, ls="--")
            ticks = step.values[[0, len(step.values) // 2, -1]]
            ax.set_xticks(ticks, [f"{tick:.2g}" for tick in ticks])
            ax.minorticks_off()
            ax.set(title=f"#{number}: {step.name}")
        canvas.supylabel("simulator error, eq. 6 [%]")

    caption = (
        "Ten iterations of the search from the paper's initial values (Fig. 6 and 7): eq. 6 over the coefficient "
        "that is varied; filled: the best; dashed: the value with which the logs were simulated."
    )
    return Figure("iterations", caption, draw, (12.0, 5.5))


def kinds(scan: Scan) -> Figure:
    """Draw failed joint x phase shift: the motion of most starts, head first and backwards."""

    def draw(canvas: Canvas) -> None:
        axes = canvas.subplots(1, 2, sharey=True)
        for ax, motion, title in zip(
            axes, (scan.forwards, scan.backwards), ("head first", "driven backwards"), strict=True
        ):
            _kind_map(ax, scan.shifts_rad, motion)
            ax.set(title=title, xlabel="phase shift [deg]")
        axes[0].set_ylabel("failed joint (1 is next to the head)")
        axes[0].set_yticks(range(N_JOINTS + 1), ["none", *(str(j) for j in range(1, N_JOINTS + 1))])
        _patches(canvas, KINDS)

    caption = "What the robot does with one joint without power: area of a colour is the share of the starts."
    return Figure("kinds", caption, draw, (10.5, 5.4))


def _kind_map(ax: Axes, shifts: FloatArray, motion: Motion) -> None:
    degrees = np.degrees(shifts)
    edges = np.concatenate([degrees[:1], 0.5 * (degrees[1:] + degrees[:-1]), degrees[-1:]])
    edges[0], edges[-1] = degrees[0] - 1.0, degrees[-1] + 1.0
    parts = [kind.mean(axis=2) for kind in (motion.goes_on, motion.turns_back, motion.stalls)]
    for joint in range(N_JOINTS + 1):
        bottom = np.full(degrees.size, joint - 0.45)
        for part, (colour, _) in zip(parts, KINDS, strict=True):
            height = 0.9 * part[:, joint]
            ax.bar(edges[:-1], height, np.diff(edges), bottom, align="edge", color=colour, edgecolor="white", lw=0.3)
            bottom = bottom + height
    ax.set(xlim=(edges[0], edges[-1]), ylim=(N_JOINTS + 0.5, -0.5))
    ax.grid(visible=False)


def _patches(canvas: Canvas, entries: Sequence[tuple[str, str]]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=colour, label=label) for colour, label in entries]
    canvas.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def diameters(scan: Scan) -> Figure:
    """Draw the diameter of the circles over the failed joint, a line for each phase shift with circles."""
    table = circles(scan)

    def draw(canvas: Canvas) -> None:
        from matplotlib import colormaps

        ax = canvas.subplots()
        rows = [k for k in range(len(table)) if np.isfinite(table[k, list(FRONT)]).any()]
        for place, k in enumerate(rows):
            colour = colormaps["viridis"](0.05 + 0.85 * place / max(len(rows) - 1, 1))
            label = f"{math.degrees(scan.shifts_rad[k]):g} deg"
            ax.plot(FRONT, table[k, list(FRONT)], "o-", color=colour, label=label, ms=5.0, lw=1.2)
        ax.plot([2], [J2_DIAMETER_M], "*", color=RED, ms=14.0, label="paper, J2")
        ax.set_xticks(FRONT)
        ax.set(xlabel="failed joint (1 is next to the head)", ylabel="diameter of the circle [m]", ylim=(0.0, None))
        ax.legend(title="phase shift", loc="center left", bbox_to_anchor=(1.01, 0.5), ncols=1 if len(rows) < 12 else 2)

    caption = "Circles, where at least half of the starts end in one; the paper says they widen from J2 to J6."
    return Figure("diameters", caption, draw)


def middle_drift(scan: Scan) -> Figure:
    """Draw |y| at the finish over the phase shift: no failure, J7, J7 with bias."""
    degrees = np.degrees(scan.shifts_rad)
    plain = np.abs(scan.forwards.finish_y_m)
    series = (
        (plain[:, 0], GREY, "o", "no failure", -0.45),
        (plain[:, MIDDLE], ORANGE, "s", "J7", -0.15),
        (three_degrees(scan), RED, "x", "J7, 3 deg to the better side", 0.15),
        (best_bias(scan)[1], GREEN, "^", "J7, best scanned bias", 0.45),
    )

    def draw(canvas: Canvas) -> None:
        ax = canvas.subplots()
        ax.axhspan(1.0, 2.0, color=ORANGE, alpha=0.15, lw=0.0, label="paper, J7")
        ax.axhspan(0.25, 1.0, color=GREY, alpha=0.15, lw=0.0, label="paper, no failure")
        for values, colour, marker, label, aside in series:
            x = np.repeat(degrees[:, None] + aside, values.shape[1], axis=1)
            ax.plot(x.ravel(), values.ravel(), marker, color=colour, label=label, ms=5.0)
        ax.set(xlabel="phase shift [deg]", ylabel="|y| of the head after 3.18 m [m]", ylim=(0.0, 4.5))
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))

    caption = (
        "Sideways displacement at the finish line, one mark for each start; none where the head is turned away and "
        "never crosses the line."
    )
    return Figure("drift_j7", caption, draw, (9.5, 4.5))


def claim_map(judged: Sequence[Judged], shifts_rad: FloatArray) -> Figure:
    """Draw claim x phase shift."""

    def draw(canvas: Canvas) -> None:
        from matplotlib.colors import ListedColormap

        ax = canvas.subplots()
        grades = np.array([claim.grades for claim in judged])
        colours = ListedColormap([colour for colour, _ in GRADES])
        ax.imshow(grades, cmap=colours, vmin=0, vmax=2, aspect="auto", interpolation="nearest")
        ax.set_yticks(range(len(judged)), [claim.short for claim in judged])
        ax.set_xticks(range(shifts_rad.size), [f"{d:g}" for d in np.degrees(shifts_rad)], rotation=60)
        ax.set_xticks(np.arange(-0.5, shifts_rad.size), minor=True)
        ax.set_yticks(np.arange(-0.5, len(judged)), minor=True)
        ax.grid(visible=False)
        ax.grid(which="minor", color="white", lw=1.5)
        ax.tick_params(which="minor", length=0.0)
        ax.set_xlabel("phase shift [deg]")
        _patches(canvas, GRADES)

    return Figure("claims", "Where each claim holds over the phase shifts the paper allows.", draw, (9.0, 4.6))


_NAMES = {"avs": "alternating search", "least_squares": "least squares"}


def coefficient_errors(fits: Sequence[Fit]) -> Figure:
    """Draw the relative error of each coefficient for every fit."""
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
        ax.set_xticks(range(len(TABLE_1)), list(TABLE_1))
        ax.set(ylabel="error [%]", ylim=(-max(12.0, 1.1 * worst), max(12.0, 1.1 * worst)))
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))

    return Figure("coefficients", "Coefficients found again, one mark for each noise seed.", draw, (9.5, 4.5))


def learned(learning: Learning) -> Figure:
    """Draw paths without and with the learned bias, and the bias over time, first start of each joint."""
    n_starts = learning.bias_rad.shape[2]

    def draw(canvas: Canvas) -> None:
        left, right = canvas.subplots(1, 2)
        colours = (BLUE, ORANGE, GREEN, RED, GREY)
        for place, joint in enumerate(learning.joints[: len(colours)]):
            trial = place * n_starts
            for paths, style in zip(learning.paths, (":", "-"), strict=True):
                xy = paths.centre_xy[:, trial] - paths.centre_xy[0, trial]
                left.plot(xy[:, 0], xy[:, 1], style, color=colours[place], lw=1.2)
            bias = learning.paths[1].bias[:, trial]
            time = PERIOD_S / SAMPLES_PER_PERIOD * np.arange(bias.size)
            right.plot(time, np.degrees(bias), color=colours[place], lw=1.2, label=f"J{joint}")
        left.set_aspect("equal", adjustable="datalim")
        left.set(xlabel="x [m]", ylabel="y [m]", title="path (dotted: no bias)")
        right.set(xlabel="time [s]", ylabel="bias [deg]", title="bias found")
        right.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))

    shift = math.degrees(learning.shifts_rad[0])
    caption = f"The bias that finds itself, at a phase shift of {shift:g} deg, one start of each failure."
    return Figure("learned_bias", caption, draw, (11.0, 4.6))
