"""Pictures of the reruns of haghshenas2022."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from papers.haghshenas2022 import runs
from papers.haghshenas2022.runs import PUBLISHED, PathName, PathRun, Results
from papers.study import figure
from snake_gym.render.palette import BLUE, GREEN, MUTED, ORANGE, SKY, VERMILION
from snake_gym.robot.presets import MUSCLE
from snake_gym.robot.spec import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_JOINTS = (BLUE, ORANGE, GREEN, VERMILION, SKY)
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
        axes.plot(*runs.PATHS[name].points_xy.T, color=MUTED, lw=4.0, alpha=0.45, label="target path")  # type: ignore[index]
        axes.plot(0.0, 0.0, "o", color=VERMILION, ms=5, label="start of the head")
    for axes, run, colour, label in shown:
        axes.plot(*run.run.centre_xy[:, 0].T, color=colour, lw=1.2, label=label)
    for axes in (left, right):
        axes.set(aspect="equal", xlabel="x [m]", ylabel="y [m]")
        axes.legend(loc="center")


def _draw_speed(canvas: Canvas, results: Results) -> None:
    for axes, run in zip(canvas.subplots(2, 1, sharey=True), (results.circle, results.square), strict=True):
        paper = PUBLISHED[run.path]
        axes.axhspan(paper.least_m_s, paper.most_m_s, color=GREEN, alpha=0.18, lw=0.0, label="published band")
        axes.axhline(runs.SPEED_M_S, color=MUTED, lw=0.9, ls="--", label="wanted")
        axes.plot(run.run.time_s, run.speed, color=BLUE, lw=0.7, label="measured")
        axes.set(title=run.path, ylabel="speed [m/s]", xlabel="time [s]")
        axes.legend(loc="lower right", ncols=3)


def _draw_muscles(canvas: Canvas, run: PathRun, left: FloatArray, right: FloatArray, unit: str, end_s: float) -> None:
    """Draw a quantity (T, J) of the left and right muscles, one panel for each joint, up to ``end_s`` [s]."""
    shown = run.run.time_s <= end_s
    panels = canvas.subplots(MUSCLE.n_joints, 1, sharex=True, sharey=True)
    for joint, axes in enumerate(panels):
        for values, colour, label in ((left, BLUE, "left"), (right, VERMILION, "right")):
            axes.plot(run.run.time_s[shown], values[shown, joint], color=colour, lw=0.8, label=label)
        axes.set_ylabel(f"m{joint + 1} [{unit}]")
    panels[0].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    panels[-1].set_xlabel("time [s]")


def _draw_lengths(canvas: Canvas, results: Results, path: PathName, end_s: float) -> None:
    run: PathRun = getattr(results, path)
    left, right = np.moveaxis(1e3 * run.muscle_length_m, 2, 0)
    _draw_muscles(canvas, run, left, right, "mm", end_s)


def _draw_circle_forces(canvas: Canvas, results: Results) -> None:
    net = results.circle.net_force_n
    _draw_muscles(canvas, results.circle, np.maximum(-net, 0.0), np.maximum(net, 0.0), "N", _BEGINNING_S)


def _draw_forces(canvas: Canvas, results: Results) -> None:
    run = results.square
    axes = canvas.subplots()
    period = round(1.0 / (run.run.time_s[1] - run.run.time_s[0]))
    whole = len(run.run.time_s) // period * period
    for joint, colour in enumerate(_JOINTS):
        peaks = np.abs(run.net_force_n[:whole, joint]).reshape(-1, period).max(axis=1)
        axes.plot(run.run.time_s[period - 1 : whole : period], peaks, color=colour, lw=1.2, label=f"m{joint + 1}")
    axes.axhspan(*runs.FORCE_N, color=GREEN, alpha=0.3, lw=0.0, label="paper, straight")
    axes.axhline(runs.CORNER_FORCE_N, color=MUTED, lw=1.0, ls="--", label="paper, corners")
    axes.set(ylabel="net force,\npeak of each second [N]", xlabel="time [s]")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


FIGURES = (
    figure("paths", "Ways of the centre of mass on the circle (Fig. 3) and on the square (Fig. 7).", _draw_paths,
           (9.0, 4.8)),
    figure("speed", "Forward speed; shaded: the published band (Fig. 4 and 8).", _draw_speed, (8.5, 5.6)),
    figure("lengths-circle", "Muscle lengths on the circle, first 40 s (Fig. 5).",
           partial(_draw_lengths, path="circle", end_s=_BEGINNING_S), (8.5, 7.0)),
    figure("forces-circle", "Force of each pair on the circle, the first 40 s (Fig. 6): what one muscle alone would "
           "have to hold alone.", _draw_circle_forces, (8.5, 7.0)),
    figure("lengths-square", "Muscle lengths on the square (Fig. 9).",
           partial(_draw_lengths, path="square", end_s=math.inf), (8.5, 7.0)),
    figure("forces", "Net force of each pair on the square (Fig. 10).", _draw_forces,
           (8.5, 6.4)),
)  # fmt: skip
