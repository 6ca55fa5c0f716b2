"""Pictures of the reruns of wang."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from papers.study import figure
from papers.wang.runs import RADIUS_M, SETTLED_S, Results
from snake_gym.render.palette import BLUE, INK, MUTED, ROCK, VERMILION
from snake_gym.robot.measurement import centre_offset
from snake_gym.robot.presets import PEGBOARD
from snake_gym.robot.spec import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


def _map(axes: Axes) -> None:
    axes.set(aspect="equal", xlabel="x [m]", ylabel="y [m]")


def _obstacles(axes: Axes, features: FloatArray) -> None:
    from matplotlib.patches import Circle

    for sx, sy, ax, ay, length, radius in features:
        if length > 0.0:
            axes.plot([sx, sx + length * ax], [sy, sy + length * ay], color=ROCK, lw=3.0, solid_capstyle="round")
        else:
            axes.add_patch(Circle((sx, sy), radius, facecolor=ROCK, edgecolor=INK, lw=0.4))


def _body(theta: FloatArray, centre_xy: FloatArray) -> FloatArray:
    """Return the ends of the links (N + 1, 2) [m] for link angles (N,) and the centre of mass (2,)."""
    half = PEGBOARD.links("link_half_length_m")
    step = 2.0 * half[:, None] * np.stack([np.cos(theta), np.sin(theta)], axis=1)
    ends = np.concatenate([np.zeros((1, 2)), np.cumsum(step, axis=0)])
    head = ends[-1] - 0.5 * step[-1]
    return np.asarray(ends - head + centre_xy - centre_offset(PEGBOARD, theta[None])[0])


def _targets(axes: Axes, targets: FloatArray) -> None:
    from matplotlib.patches import Circle

    for number, (x, y) in enumerate(targets, 1):
        axes.add_patch(Circle((x, y), RADIUS_M, facecolor="none", edgecolor=VERMILION, lw=1.2, zorder=3))
        axes.annotate(str(number), (x, y + RADIUS_M), ha="center", va="bottom", fontsize=8, color=VERMILION, zorder=4)


def _draw_free(canvas: Canvas, results: Results) -> None:
    axes = canvas.add_subplot()
    run = results.free.run
    axes.plot(*run.centre_xy[:, 0].T, color=BLUE, lw=1.6, label="centre of mass")
    for step in np.linspace(0, len(run.time_s) - 1, 6).astype(int):
        axes.plot(*_body(run.link_angle[step, 0], run.centre_xy[step, 0]).T, color=MUTED, lw=2.5, alpha=0.6, zorder=1)
    _targets(axes, results.free.targets_xy[0])
    _map(axes)
    axes.margins(0.08)


def _draw_courses(canvas: Canvas, results: Results) -> None:
    course = results.pegs
    count = min(4, len(course.features))
    rows = (count + 1) // 2
    for place in range(count):
        axes = canvas.add_subplot(rows, min(count, 2), place + 1)
        _obstacles(axes, course.features[place])
        going = course.run.reached[:, place] < course.targets_xy.shape[1]
        axes.plot(*course.run.centre_xy[going, place].T, color=BLUE, lw=1.4)
        _targets(axes, course.targets_xy[place])
        _map(axes)


def _draw_with_and_without(canvas: Canvas, results: Results) -> None:
    grid = canvas.add_gridspec(2, 2, height_ratios=(2.0, 1.0))
    shared = None
    for column, (course, title) in enumerate(((results.bare, "without pegs"), (results.pegs, "with pegs"))):
        axes = canvas.add_subplot(grid[0, column], sharex=shared, sharey=shared)
        shared = axes
        going = course.run.reached[:, 0] < course.targets_xy.shape[1]
        _obstacles(axes, course.features[0])
        axes.plot(*course.run.centre_xy[going, 0].T, color=BLUE, lw=1.4)
        _targets(axes, course.targets_xy[0])
        _map(axes)
        axes.set_title(title)
    axes = canvas.add_subplot(grid[1, :])
    for course, colour, title in ((results.pegs, VERMILION, "with pegs"), (results.bare, BLUE, "without")):
        change = np.diff(course.run.centre_vel[:, 0], axis=0) / PEGBOARD.control_dt_s
        going = course.run.reached[1:, 0] < course.targets_xy.shape[1]
        axes.plot(course.run.time_s[1:][going], np.hypot(*change[going].T), color=colour, lw=1.0, label=title)
    axes.set(xlabel="time [s]", ylabel="acceleration of the\ncentre of mass [m/s^2]")
    axes.legend(loc="upper right")


def _draw_tracking(canvas: Canvas, results: Results) -> None:
    axes = canvas.subplots(2, 1, sharex=True, sharey=True)
    for one, run, name in zip(axes, (results.lagging, results.followed), ("eq. 32", "with feed-forward"), strict=True):
        shown = (run.time_s > SETTLED_S) & (run.time_s < SETTLED_S + 15.0)
        time, wanted, angle = run.time_s[shown], run.wanted[shown, 0, 4], run.joint_angle[shown, 0, 4]
        one.plot(time, np.degrees(wanted), color=MUTED, lw=3.0, alpha=0.6, label="reference")
        one.plot(time, np.degrees(angle), color=BLUE, lw=1.3, label="joint 5")
        one.set(title=name, ylabel="angle [deg]")
        one.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes[1].set_xlabel("time [s]")


FIGURES = (
    figure("targets", "Targets one after the other on free ground: way of the centre of mass (compare Fig. 4).",
           _draw_free, (8.0, 4.6)),
    figure("with_and_without", "The same targets without pegs and with them: way and acceleration of the centre of "
           "mass (compare Fig. 3).", _draw_with_and_without, (10.0, 5.2)),
    figure("pegboard_targets", "Targets among pegs: way of the centre of mass on four boards.",
           _draw_courses, (9.0, 4.2)),
    figure("joint_tracking", "Joint 5 and its reference by eq. 32 alone and with feed-forward.",
           _draw_tracking, (8.0, 4.8)),
)  # fmt: skip
