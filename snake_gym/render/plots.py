"""Figures of a comparison: plain arrays in, PNG bytes out. Needs no display and leaves pyplot's state alone."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snake_gym.config import require
from snake_gym.render.palette import BLUE, GRID, INK, MUTED, VERMILION
from snake_gym.robot.spec import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = "osD^vPX*"
_SHOWN, _SHOWN_S = 4, 10.0
"""Largest number of joints drawn in a comparison, spread from tail to head, and drawn time from the start [s]."""


class FaultSeries(NamedTuple):
    """Mean of one quantity of one policy for each number of failed joints, or each size of the one fault."""

    name: str
    colour: str
    faults: Sequence[int]
    mean: Sequence[float]
    low: Sequence[float]
    """Ends of the intervals; nan where there is none, and then no bar is drawn."""
    high: Sequence[float]


class Curve(NamedTuple):
    """Progress, or speed, over time of one policy in all episodes."""

    name: str
    colour: str
    time_s: FloatArray
    """(T,) times [s]."""
    values: NDArray[np.floating]
    """(T, W) progress [m], or speed [m/s]."""


def plot_by_faults(
    series: Sequence[FaultSeries], title: str = "", quantity: str = "mean progress [m]",
    against: str = "failed joints in the episode",
) -> bytes:  # fmt: skip
    """Plot the mean of a quantity with its 95 % interval against the number of failed joints, or another number."""
    figure, (axes,) = _figure(1, (7.2, 4.4))
    counts = sorted({count for one in series for count in one.faults})
    shift = 0.25 * min(np.diff(counts), default=1) / max(len(series), 1)  # series do not hide each other
    for index, one in enumerate(series):
        at = np.asarray(one.faults) + (index - (len(series) - 1) / 2.0) * shift
        error = np.abs(np.array([one.low, one.high], dtype=np.float64) - np.asarray(one.mean))
        marker = _MARKERS[index % len(_MARKERS)]
        axes.errorbar(
            at, one.mean, error, color=one.colour, marker=marker, label=one.name, lw=1.4, ms=6,
            capsize=3, elinewidth=1.6,
        )  # fmt: skip
    axes.set_xticks(counts)
    lowest = (value for one in series for value in (*one.low, *one.mean) if np.isfinite(value))
    axes.set_ylim(min((0.0, *lowest)), None)
    axes.set(xlabel=against, ylabel=f"{quantity}, 95 % interval")
    return _finish(figure, title, len(series), below=True)


def plot_paired(
    x: ArrayLike, y: ArrayLike, n_faults: ArrayLike, names: tuple[str, str], colours: tuple[str, str],
    title: str = "", quantity: str = "progress [m]",
) -> bytes:  # fmt: skip
    """Plot two policies scenario by scenario, and the distribution of each.

    Args:
        x, y: (W,) ``quantity`` of the reference and of the other in the same scenarios, with their ``names`` and
            ``colours``.
        n_faults: (W,) failed joints of each scenario.
    """
    from matplotlib import colormaps

    first, second, faults = np.asarray(x, dtype=float), np.asarray(y, dtype=float), np.asarray(n_faults)
    figure, (left, right) = _figure(2, (10.0, 4.6))
    counts = np.unique(faults)
    for index, count in enumerate(counts):
        chosen = faults == count
        colour = colormaps["viridis"](0.05 + 0.85 * index / max(len(counts) - 1, 1))
        left.scatter(first[chosen], second[chosen], s=16, color=colour, alpha=0.75, lw=0, label=f"{count} failed")
    low, high = min(0.0, first.min(), second.min()), max(0.1, first.max(), second.max())
    ends = low - 0.03 * (high - low), high + 0.03 * (high - low)
    left.plot(ends, ends, color=INK, lw=1, ls="--", zorder=0)
    left.set(xlim=ends, ylim=ends, aspect="equal")
    left.set(xlabel=f"{names[0]}: {quantity}", ylabel=f"{names[1]}: {quantity}")
    wins = float(np.mean(second > first))
    left.set_title(f"one dot per scenario; above the line {names[1]} is ahead ({wins:.0%})", fontsize=9, color=MUTED)
    left.legend(frameon=False, fontsize=8, markerscale=1.4, handletextpad=0.1)
    bins = np.linspace(*ends, 31).tolist()
    for values, name, tint in zip((second, first), names[::-1], colours[::-1], strict=True):
        right.hist(values, bins, color=tint, alpha=0.35)
        right.hist(values, bins, color=tint, histtype="step", lw=1.6, label=name)
        right.axvline(values.mean(), color=tint, lw=1.6, ls=":")
    right.set(xlabel=f"{quantity} (dotted: mean)", ylabel="episodes")
    right.legend(frameon=False)
    return _finish(figure, title, 0)


def plot_over_time(curves: Sequence[Curve], title: str = "", what: str = "mean progress [m]", since: str = "") -> bytes:
    """Plot a mean over time with the 95 % interval of the mean; nan is no part of it."""
    figure, (axes,) = _figure(1, (7.2, 4.4))
    for curve in curves:
        values, n = np.asarray(curve.values, dtype=np.float64), np.isfinite(curve.values).sum(axis=1)
        mean, spread = np.nanmean(values, axis=1), 1.96 * np.nanstd(values, axis=1) / np.sqrt(np.maximum(n - 1, 1))
        axes.plot(curve.time_s, mean, color=curve.colour, lw=2, label=curve.name)
        axes.fill_between(curve.time_s, mean - spread, mean + spread, color=curve.colour, alpha=0.2, lw=0)
    axes.set(xmargin=0.0, xlabel=f"time{since} [s]", ylabel=f"{what}, 95 % interval")
    axes.set_ylim(min(0.0, axes.get_ylim()[0]), None)
    return _finish(figure, title, len(curves))


def draw_comparison(
    time_s: FloatArray, measured_joint: FloatArray, simulated_joint: FloatArray, reference: FloatArray,
    measured_xy: FloatArray, simulated_xy: FloatArray, title: str,
) -> bytes:  # fmt: skip
    """Plot a run of the real robot and its replay in simulation: joints over time, and the head's path.

    Args:
        time_s: (T + 1,).
        measured_joint, simulated_joint: (T + 1, J) [rad].
        reference: (T, J) [rad].
        measured_xy, simulated_xy: (T + 1, 2) [m] of the head; NaN is not drawn.
    """
    n_joints = measured_joint.shape[1]
    shown = sorted({round(k) for k in np.linspace(0, n_joints - 1, min(_SHOWN, n_joints))})
    figure = _empty_figure((11.0, 1.5 + 1.35 * len(shown)))
    grid = figure.add_gridspec(len(shown), 2, width_ratios=[1.5, 1.0])
    part = time_s <= _SHOWN_S
    for row, joint in enumerate(shown):
        axes = figure.add_subplot(grid[row, 0])
        sent, measured, simulated = (
            np.degrees(values[part[: len(values)], joint]) for values in (reference, measured_joint, simulated_joint)
        )
        axes.step(time_s[:-1][part[:-1]], sent, where="post", color=MUTED, lw=1.0, label="reference sent")
        axes.plot(time_s[part], measured, color=VERMILION, lw=1.8, label="measured")
        axes.plot(time_s[part], simulated, color=BLUE, lw=1.2, ls="--", label="simulated")
        axes.set_ylabel(f"joint {joint + 1} [deg]", color=INK)
        axes.grid(color=GRID)
        axes.tick_params(labelbottom=row == len(shown) - 1)
    axes.set_xlabel("time [s]", color=INK)
    path = figure.add_subplot(grid[:, 1])
    seen = np.isfinite(measured_xy).all(axis=1)
    path.plot(*measured_xy[seen].T, color=VERMILION, lw=1.8)
    path.plot(*simulated_xy.T, color=BLUE, lw=1.2, ls="--")
    if seen.any():
        path.plot(*measured_xy[seen][0], "o", color=INK, ms=6)
        path.annotate("start", measured_xy[seen][0], xytext=(6, 6), textcoords="offset points", color=INK)
    path.set_aspect("equal", adjustable="datalim")
    path.set_xlabel("head x [m]", color=INK)
    path.set_ylabel("head y [m]", color=INK)
    path.grid(color=GRID)
    figure.suptitle(title, color=INK)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return _png(figure, 130)


def _figure(columns: int, size: tuple[float, float]) -> tuple[Figure, Sequence[Axes]]:
    figure = _empty_figure(size)
    axes = [figure.add_subplot(1, columns, column + 1) for column in range(columns)]
    for one in axes:
        one.grid(color=GRID, lw=0.8)
        one.set_axisbelow(True)
        one.spines[["top", "right"]].set_visible(False)
        one.tick_params(colors=INK)
    return figure, axes


def _empty_figure(size: tuple[float, float]) -> Figure:
    require("a plot", "matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _finish(figure: Figure, title: str, entries: int, below: bool = False) -> bytes:
    if title:
        figure.suptitle(title, fontsize=11)
    if entries:
        figure.axes[0].legend(frameon=False, ncols=1 if entries < 6 else 2, loc="lower left" if below else "best")
    return _png(figure, 150)


def _png(figure: Figure, dpi: int) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=dpi, format="png")
    return buffer.getvalue()
