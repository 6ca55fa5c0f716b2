"""Figures of the rerun: what fails where, how wide the circles are, what a bias does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from papers.irani2015.claims import J2_DIAMETER_M, Judged, circles
from papers.irani2015.crawling import FINISH_M, N_JOINTS, Paths
from papers.irani2015.failures import FRONT, MIDDLE, Scan, best_bias, three_degrees
from papers.irani2015.motion import Motion
from papers.study import Figure
from snake_gym.robot.spec import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

BLUE, ORANGE, GREEN, RED, GREY = "#2a6fbb", "#d97a1f", "#3a9a5b", "#c0392b", "#8a8f98"
KINDS = ((GREEN, "moves on"), (ORANGE, "turns back"), (RED, "stalls"))
GRADES = ((RED, "does not hold"), (ORANGE, "partly"), (GREEN, "holds"))


def all_paths(scan: Scan) -> Figure:
    """Head paths of every failure at the shown phase shift."""
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
            ax.set_title("no failure" if joint == 0 else f"J{joint}")
            ax.set_aspect("equal")
            ax.set_xlim(-5.0, 9.0)
            ax.set_ylim(-6.0, 6.0)
        canvas.supxlabel("x [m], the body's direction at the start")
        canvas.supylabel("y [m]")

    caption = (
        f"Paths of the head at a phase shift of {shift:g} deg, {n_starts} starts each; the mirror images belong to "
        "starts half a period later. Dashed: the paper's finish at 3.18 m. Red: the paper's J2 circle of 0.56 m."
    )
    return Figure("paths", caption, draw, (11.0, 6.6))


def kinds(scan: Scan) -> Figure:
    """Failed joint x phase shift: what most starts do, head first and backwards."""

    def draw(canvas: Canvas) -> None:
        axes = canvas.subplots(1, 2, sharey=True)
        for ax, motion, title in zip(
            axes, (scan.forwards, scan.backwards), ("head first", "driven backwards"), strict=True
        ):
            _kind_map(ax, scan.shifts_rad, motion)
            ax.set_title(title)
            ax.set_xlabel("phase shift [deg]")
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
    ax.set_xlim(edges[0], edges[-1])
    ax.set_ylim(N_JOINTS + 0.5, -0.5)
    ax.grid(visible=False)


def _patches(canvas: Canvas, entries: Sequence[tuple[str, str]]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=colour, label=label) for colour, label in entries]
    canvas.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def diameters(scan: Scan) -> Figure:
    """Diameter of the circles over the failed joint, a line for each phase shift with circles."""
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
        ax.set_ylim(0.0, None)
        ax.set_xlabel("failed joint (1 is next to the head)")
        ax.set_ylabel("diameter of the circle [m]")
        ax.legend(title="phase shift", loc="center left", bbox_to_anchor=(1.01, 0.5), ncols=1 if len(rows) < 12 else 2)

    caption = "Circles, where at least half of the starts end in one; the paper says they widen from J2 to J6."
    return Figure("diameters", caption, draw)


def middle_drift(scan: Scan) -> Figure:
    """|y| at the finish over the phase shift: no failure, J7, J7 with bias."""
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
        ax.set_xlabel("phase shift [deg]")
        ax.set_ylabel("|y| of the head after 3.18 m [m]")
        ax.set_ylim(0.0, 4.5)
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))

    caption = (
        "Sideways displacement at the finish line, one mark for each start; none where the head is turned away and "
        "never crosses the line."
    )
    return Figure("drift_j7", caption, draw, (9.5, 4.5))


def claim_map(judged: Sequence[Judged], shifts_rad: FloatArray) -> Figure:
    """Claim x phase shift."""

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


def head_path(ax: Axes, paths: Paths, trial: int, colour: str, label: str | None = None) -> None:
    """Path of the centre of mass from the origin."""
    xy = paths.centre_xy[:, trial] - paths.centre_xy[0, trial]
    ax.plot(xy[:, 0], xy[:, 1], color=colour, lw=1.2, label=label)
