"""Figures: snapshots (Fig. 8-11), paths (Fig. 12-13), arrivals (Fig. 14), joint angles (Fig. 15-18).

Like the paper's, the figures plot -y.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from papers.sibilska2022.claims import Arrivals, Draws, joints
from papers.sibilska2022.experiment import (
    BROKEN_SETS,
    LIMIT_RAD,
    RADIUS_M,
    TARGETS,
    Broken,
    Case,
    ControllerName,
    Point,
    Recording,
    Recordings,
    paper_time,
)
from papers.study import Figure
from snake_gym.render.palette import BLUE, GREEN, INK, MUTED, ORANGE, SKY, VERMILION
from snake_gym.robot.presets import RESILIENT
from snake_gym.robot.spec import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_METHODS: tuple[tuple[Point, ControllerName, str], ...] = (
    ("centre", "sjc", BLUE),
    ("centre", "cc", SKY),
    ("head", "sjc", VERMILION),
    ("head", "cc", ORANGE),
)


SNAPSHOTS: dict[int, tuple[Case, tuple[float, ...]]] = {
    8: (Case("centre", "published", "sjc", ()), (3.0, 10.0, 43.0, 100.0, 102.0, 107.0)),
    9: (Case("head", "published", "sjc", ()), (3.0, 10.0, 38.0, 41.0, 57.0, 119.0)),
    10: (Case("head", "published", "sjc", (3, 5, 8)), (3.0, 78.0, 165.0, 184.0, 217.0, 384.0)),
    11: (Case("head", "published", "cc", (3, 5, 8)), (3.0, 33.0, 115.0, 120.0, 155.0, 287.0)),
}
"""Figure of the paper -> its run and the times [s] of its snapshots."""


def draw_figures(arrivals: Arrivals, draws: Draws, recordings: Recordings) -> list[Figure]:
    """Return figures of the published simulations, as far as the recorded cases allow."""
    sets = [broken for broken in BROKEN_SETS if any(case.broken == broken for case in recordings)]
    drawn = [
        Figure(
            "arrivals",
            "Arrival at the five targets for each set of broken joints (Fig. 14). Bars: median of the published "
            "solver's runs, whiskers all of them; dots: exact solution; crosses: the paper's fifth times.",
            partial(_draw_arrivals, arrivals, draws, sets),
            (10.0, 3.4 * math.ceil(len(sets) / 2)),
        )
    ]
    for number, (case, times_s) in SNAPSHOTS.items():
        if case in recordings:
            caption = (
                f"The robot at the times of Fig. {number}: {case.controller.upper()} guided by the {case.point}, "
                f"broken {joints(case.broken)}; exact solution. Dot: head; red: broken joints; line: path of the "
                "guided point so far; circles: targets. As in the paper, -y is plotted."
            )
            draw_case = partial(_draw_snapshots, recordings[case], case, times_s)
            drawn.append(Figure(f"snapshots-{number}", caption, draw_case, (10.0, 5.4)))
    named = {
        ("centre", "published"): ("paths-centre", "Paths of the centre of mass (Fig. 12)."),
        ("head", "published"): ("paths-head", "Paths of the head, published head model (Fig. 13)."),
    }
    for (point, model), (name, caption) in named.items():
        cases = [case for case in recordings if (case.point, case.model) == (point, model)]
        if cases:
            more = " Circles: targets, drawn with their radius of arrival and a cross; as in the paper, -y is plotted."
            draw = partial(_draw_paths, recordings, cases, sets)
            drawn.append(Figure(name, caption + more, draw, (8.0, 0.6 + 2.5 * len(sets))))
    for broken in sets:
        cases = [case for case in recordings if case.broken == broken and case.model == "published"]
        which = f"joints {joints(broken)} broken" if broken else "no fault"
        number = 15 + BROKEN_SETS.index(broken)
        drawn.append(
            Figure(
                f"joint-angles-{joints(broken, '-')}",
                f"Joint angles with {which} (Fig. {number}), published models; red: the limits of +-40 degrees. The "
                "lines are dense because each swing takes 7.2 s; a broken joint keeps its initial angle (black).",
                partial(_draw_angles, recordings, cases, broken),
                (10.0, 6.5 if len(cases) > 2 else 3.8),
            )
        )
    return drawn


def _draw_arrivals(arrivals: Arrivals, draws: Draws, sets: Sequence[Broken], canvas: Canvas) -> None:
    for index, broken in enumerate(sets):
        axes = canvas.add_subplot(math.ceil(len(sets) / 2), 2, index + 1)
        cases = [
            (Case(point, "published", controller, broken), colour)
            for point, controller, colour in _METHODS
            if Case(point, "published", controller, broken) in arrivals
        ]
        for group, (case, colour) in enumerate(cases):
            drawn, at = draws.get(case, arrivals[case][None]), group + 0.16 * (np.arange(len(TARGETS)) - 2.0)
            middle = np.median(drawn, axis=0)
            whiskers = np.abs(np.array([drawn.min(axis=0), drawn.max(axis=0)]) - middle)
            bars = axes.bar(at, middle, 0.14, yerr=whiskers, color=colour, capsize=2, error_kw={"lw": 0.8})
            labels = [f"{time:.0f}" for time in middle]
            axes.bar_label(bars, labels, fontsize=7.0, label_type="center", rotation=90, color="white")
            axes.plot(at, arrivals[case], ".", color=INK, ms=4)
            paper = paper_time(case)
            if paper is not None:
                axes.plot([at[-1]], [paper], "x", color="#CC0000", ms=8, mew=2, zorder=4)
        axes.set_xticks(range(len(cases)), [f"{case.point}-{case.controller.upper()}" for case, _ in cases])
        axes.set(title=f"broken: {joints(broken)}", ylabel="time [s]")
        axes.grid(visible=False, axis="x")


def _draw_snapshots(run: Recording, case: Case, times_s: Sequence[float], canvas: Canvas) -> None:
    panels = canvas.subplots(2, math.ceil(len(times_s) / 2), squeeze=False).ravel()
    for axes, time_s in zip(panels, times_s, strict=False):
        row = int(np.argmin(np.abs(run.time_s - time_s)))
        body, path = _body(run, row, case.point), run.tracked_xy[: row + 1]
        axes.plot(path[:, 0], -path[:, 1], color=MUTED, lw=0.8)
        _draw_targets(axes)
        axes.plot(body[:, 0], -body[:, 1], color=BLUE, lw=2.5, solid_capstyle="round", zorder=4)
        axes.plot(*(body[-1] * (1.0, -1.0)), "o", color=BLUE, ms=5, zorder=5)
        for joint in case.broken:
            axes.plot(*(body[joint] * (1.0, -1.0)), "o", color="#CC0000", ms=3.5, zorder=5)
        middle = body.mean(axis=0)
        axes.set(title=f"{time_s:g} s", aspect="equal", xlim=middle[0] + np.array([-1.2, 1.2]))
        axes.set(ylim=-middle[1] + np.array([-1.0, 1.0]), xlabel="x [m]", ylabel="-y [m]")


def _body(run: Recording, row: int, point: Point) -> FloatArray:
    """Return the tail's end, the joints and the head's end (N + 1, 2) [m] of a recorded robot, world frame."""
    phi = run.joint_angle[row]
    theta = run.head_angle[row] + np.append(np.cumsum(phi[::-1])[::-1], 0.0)
    step = 2.0 * float(RESILIENT.links("link_half_length_m")[0]) * np.stack([np.cos(theta), np.sin(theta)], axis=1)
    ends = np.vstack([np.zeros(2), np.cumsum(step, axis=0)])
    centres = 0.5 * (ends[1:] + ends[:-1])
    return ends + run.tracked_xy[row] - (centres[-1] if point == "head" else centres.mean(axis=0))


def _draw_paths(recordings: Recordings, cases: Sequence[Case], sets: Sequence[Broken], canvas: Canvas) -> None:
    axes_of = canvas.subplots(len(sets), 1, sharex=True, squeeze=False)[:, 0]
    colours: dict[ControllerName, str] = {"sjc": BLUE, "cc": ORANGE}
    for axes, broken in zip(axes_of, sets, strict=True):
        for case in (case for case in cases if case.broken == broken):
            path = recordings[case].tracked_xy
            axes.plot(path[:, 0], -path[:, 1], color=colours[case.controller], lw=1.1, label=case.controller.upper())
        _draw_targets(axes)
        axes.set(title=f"broken: {joints(broken)}", ylabel="-y [m]", aspect="equal", xlim=(-0.4, 8.6), ylim=(-1.4, 1.4))
        axes.legend(loc="upper left", bbox_to_anchor=(0.02, 1.0))
    axes_of[-1].set_xlabel("x [m]")


def _draw_targets(axes: Axes) -> None:
    from matplotlib.patches import Circle

    route = np.vstack([[0.0, 0.0], TARGETS])
    axes.plot(route[:, 0], -route[:, 1], ":", color=MUTED, lw=1.0, zorder=1)
    for x, y in TARGETS:
        axes.add_patch(Circle((x, -y), RADIUS_M, fill=False, color=GREEN, lw=1.4, zorder=3))
        axes.plot([x], [-y], "+", color=GREEN, ms=8, zorder=3)


def _draw_angles(recordings: Recordings, cases: Sequence[Case], broken: Broken, canvas: Canvas) -> None:
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    rows = 2 if len(cases) > 2 else 1
    panels = canvas.subplots(rows, 2, sharey=True, squeeze=False).ravel()
    shades = colormaps["viridis"](np.linspace(0.0, 0.9, 9))
    for axes, case in zip(panels, cases, strict=False):
        run = recordings[case]
        for joint in range(run.joint_angle.shape[1]):
            fails = joint + 1 in broken
            colour, width = (INK, 1.8) if fails else (shades[joint], 0.5)
            angle = np.degrees(run.joint_angle[:, joint])
            axes.plot(run.time_s, angle, color=colour, lw=width, zorder=4 if fails else 2)
        for limit in (-LIMIT_RAD, LIMIT_RAD):
            axes.axhline(math.degrees(limit), color="#CC0000", lw=1.2, zorder=3)
        share = f"{100 * run.outside:.1f} % of the time beyond"
        title = f"{case.controller.upper()}, {case.point}: {share}"
        axes.set(title=title, xlim=(0.0, run.duration_s), xlabel="time [s]")
    for axes in panels[::2]:
        axes.set_ylabel("joint angle [deg]")
    scale = ScalarMappable(BoundaryNorm(np.arange(0.5, 10.0), 9), ListedColormap(shades))
    canvas.colorbar(scale, ax=panels.tolist(), label="joint (1: tail)", ticks=range(1, 10), fraction=0.03)
