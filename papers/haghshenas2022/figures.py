"""Pictures of the reruns of haghshenas2022."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from papers.haghshenas2022.runs import (
    CORNER_FORCE_N,
    FORCE_N,
    PATHS,
    PUBLISHED,
    SPEED_M_S,
    PathRun,
    Results,
    length_range_mm,
)
from papers.study import figure
from snake_gym.render.palette import BLUE, GREEN, MUTED, ORANGE, SKY, VERMILION
from snake_gym.robot.presets import MUSCLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_JOINTS = (BLUE, ORANGE, GREEN, VERMILION, SKY)
_WINDOW_S = 4.0
"""Duration of the close-ups [s]."""
_BEGINNING_S = 40.0
"""Time that Fig. 4 to 6 show [s]."""


def _draw_paths(canvas: Canvas, results: Results) -> None:
    left, right = canvas.subplots(1, 2)
    shown: Sequence[tuple[Axes, PathRun, str, str]] = (
        (left, results.circle, BLUE, "published guidance"),
        (right, results.square, BLUE, "look-ahead along the path"),
        (right, results.published_square, ORANGE, "published guidance"),
    )
    for axes, name in ((left, "circle"), (right, "square")):
        axes.plot(*PATHS[name].points_xy.T, color=MUTED, lw=4.0, alpha=0.45, label="target path")  # type: ignore[index]
        axes.plot(0.0, 0.0, "o", color=VERMILION, ms=5, label="start of the head")
    for axes, run, colour, label in shown:
        axes.plot(*run.run.centre_xy[:, 0].T, color=colour, lw=1.2, label=label)
    for axes in (left, right):
        axes.set(aspect="equal", xlabel="x [m]", ylabel="y [m]")
        axes.legend(loc="center")


def _draw_speed(canvas: Canvas, results: Results) -> None:
    runs = (results.circle, results.square)
    for axes, run in zip(canvas.subplots(len(runs), 1, sharey=True), runs, strict=True):
        paper = PUBLISHED[run.path]
        axes.axhspan(paper.least_m_s, paper.most_m_s, color=GREEN, alpha=0.18, lw=0.0, label="published band")
        axes.axhline(SPEED_M_S, color=MUTED, lw=0.9, ls="--", label="wanted")
        axes.plot(run.run.time_s, run.speed, color=BLUE, lw=0.7, label="measured")
        axes.set(title=run.path, ylabel="speed [m/s]", xlabel="time [s]")
        axes.legend(loc="lower right", ncols=3)


def _draw_ranges(canvas: Canvas, results: Results) -> None:
    runs = (results.circle, results.square)
    n = MUSCLE.n_joints
    names = [f"m{joint + 1}\n{side}" for joint in range(n) for side in ("right", "left")]
    place = np.arange(2 * n)
    for axes, run in zip(canvas.subplots(len(runs), 1, sharex=True, sharey=True), runs, strict=True):
        paper, (short, long) = PUBLISHED[run.path], length_range_mm(run)
        for shift, low, high, colour, label in (
            (-0.18, paper.shortest_mm, paper.longest_mm, MUTED, f"paper, {paper.table}"),
            (0.18, short, long, BLUE, "rerun"),
        ):
            low, high = low[:, ::-1].ravel(), high[:, ::-1].ravel()
            axes.bar(place + shift, high - low, 0.32, low, color=colour, label=label)
        axes.set(title=run.path, ylim=(70.0, 120.0), ylabel="length [mm]")
        axes.legend(loc="upper right", ncols=2)
    axes.set_xticks(place, names)


def _draw_circle_lengths(canvas: Canvas, results: Results) -> None:
    _draw_lengths(canvas, results.circle, _BEGINNING_S)


def _draw_square_lengths(canvas: Canvas, results: Results) -> None:
    _draw_lengths(canvas, results.square, math.inf)


def _draw_lengths(canvas: Canvas, run: PathRun, end_s: float) -> None:
    shown = run.run.time_s <= end_s
    for joint, axes in enumerate(canvas.subplots(MUSCLE.n_joints, 1, sharex=True, sharey=True)):
        for side, colour, label in ((0, BLUE, "left"), (1, VERMILION, "right")):
            length_mm = 1e3 * run.muscle_length_m[shown, joint, side]
            axes.plot(run.run.time_s[shown], length_mm, color=colour, lw=0.8, label=label)
        axes.set_ylabel(f"m{joint + 1} [mm]")
        axes.axhline(100.0, color=MUTED, lw=0.8, ls=":")
        if joint == 0:
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes.set_xlabel("time [s] (dotted: length at rest)")


def _draw_circle_forces(canvas: Canvas, results: Results) -> None:
    run = results.circle
    shown = run.run.time_s <= _BEGINNING_S
    for joint, axes in enumerate(canvas.subplots(MUSCLE.n_joints, 1, sharex=True, sharey=True)):
        net = run.net_force_n[shown, joint]
        for sign, colour, label in ((-1.0, BLUE, "left"), (1.0, VERMILION, "right")):
            axes.plot(run.run.time_s[shown], np.maximum(sign * net, 0.0), color=colour, lw=0.8, label=label)
        axes.set_ylabel(f"m{joint + 1} [N]")
        if joint == 0:
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes.set_xlabel("time [s]")


def _draw_forces(canvas: Canvas, results: Results) -> None:
    run = results.square
    upper, lower = canvas.subplots(2, 1)
    period = round(1.0 / (run.run.time_s[1] - run.run.time_s[0]))
    whole = len(run.run.time_s) // period * period
    for joint, colour in enumerate(_JOINTS):
        peaks = np.abs(run.net_force_n[:whole, joint]).reshape(-1, period).max(axis=1)
        upper.plot(run.run.time_s[period - 1 : whole : period], peaks, color=colour, lw=1.2, label=f"m{joint + 1}")
    upper.axhspan(*FORCE_N, color=GREEN, alpha=0.3, lw=0.0, label="paper, straight")
    upper.axhline(CORNER_FORCE_N, color=MUTED, lw=1.0, ls="--", label="paper, corners")
    upper.set(ylabel="net force,\npeak of each second [N]", xlabel="time [s]")
    upper.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    shown = run.run.time_s > run.run.time_s[-1] - _WINDOW_S
    for side, colour, label in ((0, BLUE, "left"), (1, VERMILION, "right")):
        lower.plot(run.run.time_s[shown], run.muscle_force_n[shown, 2, side], color=colour, lw=1.3, label=f"m3 {label}")
    lower.set(ylim=(0.0, None), ylabel="tension [N]", xlabel="time [s]")
    lower.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _draw_inverse(canvas: Canvas, results: Results) -> None:
    axes = canvas.add_subplot()
    share = np.maximum(results.inverse.singular, 1e-19)
    place = np.arange(1, share.shape[1] + 1)
    low, high = share.min(axis=0), share.max(axis=0)
    axes.vlines(place, low, high, color=BLUE, lw=6.0, alpha=0.4, label="range over the states")
    axes.plot(place, np.median(share, axis=0), "o", color=BLUE, label="median")
    axes.axhline(1e-16, color=MUTED, lw=1.0, ls=":", label="rounding")
    axes.set(yscale="log", ylim=(1e-20, 10.0), xticks=place, ylabel="share of the largest [1]")
    axes.set_xlabel("number of the singular value (eq. 48-49 invert all eight)")
    axes.legend(loc="lower left")


FIGURES = (
    figure("paths", "Ways of the centre of mass on the circle (Fig. 3) and on the square (Fig. 7).", _draw_paths,
           (9.0, 4.8)),
    figure("speed", "Forward speed; shaded: the published band (Fig. 4 and 8).", _draw_speed, (8.5, 5.6)),
    figure("lengths", "Range of each muscle's length beside Tables 1 and 2.", _draw_ranges, (8.5, 6.2)),
    figure("lengths-circle", "Muscle lengths on the circle, first 40 s (Fig. 5).", _draw_circle_lengths, (8.5, 7.0)),
    figure("forces-circle", "Force of each pair on the circle, the first 40 s (Fig. 6): what one muscle alone would "
           "have to hold alone.", _draw_circle_forces, (8.5, 7.0)),
    figure("lengths-square", "Muscle lengths on the square (Fig. 9).", _draw_square_lengths, (8.5, 7.0)),
    figure("forces", "Net force of each pair on the square (Fig. 10) and the tensions behind it.", _draw_forces,
           (8.5, 6.4)),
    figure("inverse", "What ten muscle forces do to the eight accelerations of eq. 51.", _draw_inverse, (7.0, 4.0)),
)  # fmt: skip
