"""Pictures of the reruns of haghshenas2022."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from papers.haghshenas2022.claims import Results, length_range_mm
from papers.haghshenas2022.inverse import Inverse
from papers.haghshenas2022.published import CORNER_FORCE_N, FORCE_N, PUBLISHED
from papers.haghshenas2022.runs import PATHS, SPEED_M_S, PathRun
from papers.study import Figure
from snake_gym.render.palette import BLUE, GREEN, MUTED, ORANGE, SKY, VERMILION
from snake_gym.robot.presets import MUSCLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_JOINTS = (BLUE, ORANGE, GREEN, VERMILION, SKY)
_WINDOW_S = 4.0
"""Length of the close-ups."""


def make_figures(results: Results) -> list[Figure]:
    """All pictures of the study."""
    circle, square = results.circle, results.square
    return [
        Figure("paths", "Ways of the centre of mass on the circle (Fig. 3) and on the square (Fig. 7).",
               lambda canvas: _draw_paths(canvas, results), (9.0, 4.8)),
        Figure("speed", "Forward speed; shaded: the published band (Fig. 4 and 8).",
               lambda canvas: _draw_speed(canvas, (circle, square)), (8.5, 5.6)),
        Figure("lengths", "Range of each muscle's length beside Tables 1 and 2.",
               lambda canvas: _draw_ranges(canvas, (circle, square)), (8.5, 6.2)),
        Figure("length_over_time", "Muscle lengths on the circle (Fig. 5), four seconds.",
               lambda canvas: _draw_lengths(canvas, circle), (8.5, 7.0)),
        Figure("forces", "Net force of each pair on the square (Fig. 10) and the tensions behind it.",
               lambda canvas: _draw_forces(canvas, square), (8.5, 6.4)),
        Figure("inverse", "What ten muscle forces do to the eight accelerations of eq. 51.",
               lambda canvas: _draw_inverse(canvas, results.inverse), (7.0, 4.0)),
    ]  # fmt: skip


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
        axes.set_aspect("equal")
        axes.set_xlabel("x [m]")
        axes.set_ylabel("y [m]")
        axes.legend(loc="center")


def _draw_speed(canvas: Canvas, runs: Sequence[PathRun]) -> None:
    for axes, run in zip(canvas.subplots(len(runs), 1, sharey=True), runs, strict=True):
        paper = PUBLISHED[run.path]
        axes.axhspan(paper.least_m_s, paper.most_m_s, color=GREEN, alpha=0.18, lw=0.0, label="published band")
        axes.axhline(SPEED_M_S, color=MUTED, lw=0.9, ls="--", label="wanted")
        axes.plot(run.run.time_s, run.speed, color=BLUE, lw=0.7, label="measured")
        axes.set_title(run.path)
        axes.set_ylabel("speed [m/s]")
        axes.set_xlabel("time [s]")
        axes.legend(loc="lower right", ncols=3)


def _draw_ranges(canvas: Canvas, runs: Sequence[PathRun]) -> None:
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
        axes.set_title(run.path)
        axes.set_ylim(70.0, 120.0)
        axes.set_ylabel("length [mm]")
        axes.legend(loc="upper right", ncols=2)
    axes.set_xticks(place, names)


def _draw_lengths(canvas: Canvas, run: PathRun) -> None:
    end = run.run.time_s[-1]
    shown = run.run.time_s > end - _WINDOW_S
    for joint, axes in enumerate(canvas.subplots(MUSCLE.n_joints, 1, sharex=True, sharey=True)):
        for side, colour, label in ((0, BLUE, "left"), (1, VERMILION, "right")):
            axes.plot(
                run.run.time_s[shown], 1e3 * run.muscle_length_m[shown, joint, side], color=colour, lw=1.3, label=label
            )
        axes.set_ylabel(f"m{joint + 1} [mm]")
        axes.axhline(100.0, color=MUTED, lw=0.8, ls=":")
        if joint == 0:
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes.set_xlabel("time [s] (dotted: length at rest)")


def _draw_forces(canvas: Canvas, run: PathRun) -> None:
    upper, lower = canvas.subplots(2, 1)
    period = round(1.0 / (run.run.time_s[1] - run.run.time_s[0]))
    whole = len(run.run.time_s) // period * period
    for joint, colour in enumerate(_JOINTS):
        peaks = np.abs(run.net_force_n[:whole, joint]).reshape(-1, period).max(axis=1)
        upper.plot(run.run.time_s[period - 1 : whole : period], peaks, color=colour, lw=1.2, label=f"m{joint + 1}")
    upper.axhspan(*FORCE_N, color=GREEN, alpha=0.3, lw=0.0, label="paper, straight")
    upper.axhline(CORNER_FORCE_N, color=MUTED, lw=1.0, ls="--", label="paper, corners")
    upper.set_ylabel("net force,\npeak of each second [N]")
    upper.set_xlabel("time [s]")
    upper.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    shown = run.run.time_s > run.run.time_s[-1] - _WINDOW_S
    for side, colour, label in ((0, BLUE, "left"), (1, VERMILION, "right")):
        lower.plot(run.run.time_s[shown], run.muscle_force_n[shown, 2, side], color=colour, lw=1.3, label=f"m3 {label}")
    lower.set_ylim(0.0, None)
    lower.set_ylabel("tension [N]")
    lower.set_xlabel("time [s]")
    lower.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _draw_inverse(canvas: Canvas, inverse: Inverse) -> None:
    axes = canvas.add_subplot()
    share = np.maximum(inverse.singular, 1e-19)
    place = np.arange(1, share.shape[1] + 1)
    axes.vlines(
        place, share.min(axis=0), share.max(axis=0), color=BLUE, lw=6.0, alpha=0.4, label="range over the states"
    )
    axes.plot(place, np.median(share, axis=0), "o", color=BLUE, label="median")
    axes.axhline(1e-16, color=MUTED, lw=1.0, ls=":", label="rounding")
    axes.set_yscale("log")
    axes.set_ylim(1e-20, 10.0)
    axes.set_xticks(place)
    axes.set_xlabel("number of the singular value (eq. 48-49 invert all eight)")
    axes.set_ylabel("share of the largest [1]")
    axes.legend(loc="lower left")
