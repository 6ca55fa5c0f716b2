"""Figures of the published simulations: arrivals (Fig. 14), paths (Fig. 12-13), joint angles (Fig. 15-18).

Like the paper's, the figures plot -y.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from papers.dynamics import Point
from papers.sibilska2022.arrivals import Arrivals, joints
from papers.sibilska2022.experiment import BROKEN_SETS, COURSE, Broken, Case, ControllerName, paper_time
from papers.sibilska2022.recording import LIMIT_RAD, Recordings
from papers.study import Figure
from snake_gym.render.palette import BLUE, GREEN, INK, MUTED, ORANGE, SKY, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_METHODS: tuple[tuple[Point, ControllerName, str], ...] = (
    ("centre", "sjc", BLUE),
    ("centre", "cc", SKY),
    ("head", "sjc", VERMILION),
    ("head", "cc", ORANGE),
)


def figures(arrivals: Arrivals, recordings: Recordings) -> list[Figure]:
    """All that the recorded cases allow."""
    sets = [broken for broken in BROKEN_SETS if any(case.broken == broken for case in recordings)]
    drawn = [
        Figure(
            "arrivals",
            "Times of arrival at the five targets for each set of broken joints (Fig. 14): lines are the rerun, with "
            "the published head model; crosses are the paper's times at the fifth target.",
            partial(_draw_arrivals, arrivals, sets),
            (9.0, 3.4 * math.ceil(len(sets) / 2)),
        )
    ]
    named = {
        ("centre", "published"): ("paths-centre", "Paths of the centre of mass (Fig. 12)."),
        ("head", "published"): ("paths-head", "Paths of the head, published head model (Fig. 13)."),
        ("head", "consistent"): ("paths-head-consistent", "Paths of the head, consistent physics (not in the paper)."),
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


def _draw_arrivals(arrivals: Arrivals, sets: Sequence[Broken], canvas: Canvas) -> None:
    for index, broken in enumerate(sets):
        axes = canvas.add_subplot(math.ceil(len(sets) / 2), 2, index + 1)
        for point, controller, colour in _METHODS:
            case = Case(point, "published", controller, broken)
            if case not in arrivals:
                continue
            times = np.concatenate([[0.0], arrivals[case]])
            axes.plot(
                range(len(times)), times, "o-", color=colour, ms=4, lw=1.6, label=f"{controller.upper()}, {point}"
            )
            paper = paper_time(case)
            if paper is not None:
                axes.plot([5.2], [paper], "x", color=colour, ms=8, mew=2, clip_on=False)
        axes.plot([], [], "x", color=INK, ms=8, mew=2, label="paper, 5th target")
        axes.set_title(f"broken: {joints(broken)}")
        axes.set_xlabel("target")
        axes.set_ylabel("time [s]")
        axes.set_ylim(0.0, None)
        axes.set_xlim(0.0, 5.4)
        axes.legend(loc="upper left")


def _draw_paths(recordings: Recordings, cases: Sequence[Case], sets: Sequence[Broken], canvas: Canvas) -> None:
    axes_of = canvas.subplots(len(sets), 1, sharex=True, squeeze=False)[:, 0]
    colours: dict[ControllerName, str] = {"sjc": BLUE, "cc": ORANGE}
    for axes, broken in zip(axes_of, sets, strict=True):
        for case in (case for case in cases if case.broken == broken):
            path = recordings[case].tracked_xy
            axes.plot(path[:, 0], -path[:, 1], color=colours[case.controller], lw=1.1, label=case.controller.upper())
        _draw_targets(axes)
        axes.set_title(f"broken: {joints(broken)}")
        axes.set_ylabel("-y [m]")
        axes.set_aspect("equal")
        axes.set_xlim(-0.4, 8.6)
        axes.set_ylim(-1.4, 1.4)
        axes.legend(loc="upper left", bbox_to_anchor=(0.02, 1.0))
    axes_of[-1].set_xlabel("x [m]")


def _draw_targets(axes: Axes) -> None:
    from matplotlib.patches import Circle

    route = np.vstack([[0.0, 0.0], COURSE.targets])
    axes.plot(route[:, 0], -route[:, 1], ":", color=MUTED, lw=1.0, zorder=1)
    for x, y in COURSE.targets:
        axes.add_patch(Circle((x, -y), COURSE.radius_m, fill=False, color=GREEN, lw=1.4, zorder=3))
        axes.plot([x], [-y], "+", color=GREEN, ms=8, zorder=3)


def _draw_angles(recordings: Recordings, cases: Sequence[Case], broken: Broken, canvas: Canvas) -> None:
    from matplotlib import colormaps

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
        axes.set_title(f"{case.controller.upper()}, {case.point}: {share}")
        axes.set_xlim(0.0, run.duration_s)
        axes.set_xlabel("time [s]")
    for axes in panels[::2]:
        axes.set_ylabel("joint angle [deg]")
    scale = _joint_scale(len(shades))
    canvas.colorbar(scale, ax=panels.tolist(), label="joint (1: tail)", ticks=range(1, 10), fraction=0.03)


def _joint_scale(n_joints: int):  # type: ignore[no-untyped-def]
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    shades = ListedColormap(colormaps["viridis"](np.linspace(0.0, 0.9, n_joints)))
    return ScalarMappable(BoundaryNorm(np.arange(0.5, n_joints + 1), n_joints), shades)
