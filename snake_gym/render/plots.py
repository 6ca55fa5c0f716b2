"""Figures of a comparison: plain arrays in, PNG bytes out. Needs no display and leaves pyplot's state alone."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snake_gym.config import require
from snake_gym.render.palette import GRID, INK, MUTED
from snake_gym.robot.spec import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 150
_MARKERS = "osD^vPX*"


@dataclass(frozen=True)
class FaultSeries:
    """Mean of one quantity of one policy for each number of failed joints."""

    name: str
    colour: str
    faults: Sequence[int]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclass(frozen=True)
class Curve:
    """Progress over time of one policy in all episodes."""

    name: str
    colour: str
    time_s: FloatArray
    """(T,)."""
    progress_m: NDArray[np.floating]
    """(T, W)."""


def plot_by_faults(series: Sequence[FaultSeries], title: str = "", quantity: str = "mean progress [m]") -> bytes:
    """Mean of a quantity with its 95 % interval against the number of failed joints."""
    figure, (axes,) = _figure(1, (7.2, 4.4))
    shift = 0.5 / max(len(series), 1)
    for index, one in enumerate(series):
        at = np.asarray(one.faults) + (index - (len(series) - 1) / 2.0) * shift * 0.5
        error = np.abs(np.array([one.low, one.high], dtype=np.float64) - np.asarray(one.mean))
        marker = _MARKERS[index % len(_MARKERS)]
        axes.errorbar(
            at, one.mean, np.nan_to_num(error), color=one.colour, marker=marker, label=one.name, lw=1.4, ms=6,
            capsize=3, elinewidth=1.6,
        )  # fmt: skip
    counts = sorted({count for one in series for count in one.faults})
    axes.set_xticks(counts)
    axes.set_xlim(min(counts, default=0) - 0.5, max(counts, default=0) + 0.5)
    axes.set_ylim(min(0.0, *(low for one in series for low in one.low), 0.0), None)
    axes.set_xlabel("failed joints in the episode")
    axes.set_ylabel(f"{quantity}, 95 % interval")
    return _finish(figure, title, len(series), below=True)


def plot_paired(
    x: ArrayLike,
    y: ArrayLike,
    n_faults: ArrayLike,
    names: tuple[str, str],
    colours: tuple[str, str],
    title: str = "",
    quantity: str = "progress [m]",
    less_is_better: bool = False,
) -> bytes:
    """Two policies scenario by scenario, and the distribution of each.

    Args:
        x: (W,) the reference's ``quantity``.
        y: (W,) the other's in the same scenarios.
        n_faults: (W,) failed joints of each scenario.
        names: of x and y.
        colours: of x and y.
    """
    from matplotlib import colormaps

    first, second, faults = np.asarray(x, dtype=float), np.asarray(y, dtype=float), np.asarray(n_faults)
    figure, (left, right) = _figure(2, (10.0, 4.6))
    counts = np.unique(faults)
    map_ = colormaps["viridis"]
    for index, count in enumerate(counts):
        chosen = faults == count
        colour = map_(0.05 + 0.85 * index / max(len(counts) - 1, 1))
        left.scatter(first[chosen], second[chosen], s=16, color=colour, alpha=0.75, lw=0, label=f"{count} failed")
    ends = _span(np.concatenate([first, second]))
    left.plot(ends, ends, color=INK, lw=1, ls="--", zorder=0)
    left.set_xlim(ends)
    left.set_ylim(ends)
    left.set_aspect("equal")
    left.set_xlabel(f"{names[0]}: {quantity}")
    left.set_ylabel(f"{names[1]}: {quantity}")
    ahead = second < first if less_is_better else second > first
    wins, side = float(np.mean(ahead)) if first.size else float("nan"), "below" if less_is_better else "above"
    left.set_title(f"one dot per scenario; {side} the line {names[1]} is ahead ({wins:.0%})", fontsize=9, color=MUTED)
    left.legend(frameon=False, fontsize=8, markerscale=1.4, handletextpad=0.1)
    bins = np.linspace(*ends, 31).tolist()
    for values, name, tint in zip((second, first), names[::-1], colours[::-1], strict=True):
        right.hist(values, bins, color=tint, alpha=0.35)
        right.hist(values, bins, color=tint, histtype="step", lw=1.6, label=name)
        right.axvline(values.mean() if values.size else 0.0, color=tint, lw=1.6, ls=":")
    right.set_xlabel(f"{quantity} (dotted: mean)")
    right.set_ylabel("episodes")
    right.legend(frameon=False)
    return _finish(figure, title, 0)


def plot_over_time(curves: Sequence[Curve], title: str = "") -> bytes:
    """Mean progress over time with the 95 % interval of the mean."""
    figure, (axes,) = _figure(1, (7.2, 4.4))
    for curve in curves:
        progress = np.asarray(curve.progress_m, dtype=np.float64)
        mean = progress.mean(axis=1)
        spread = 1.96 * progress.std(axis=1, ddof=1) / np.sqrt(progress.shape[1]) if progress.shape[1] > 1 else 0.0
        axes.plot(curve.time_s, mean, color=curve.colour, lw=2, label=curve.name)
        axes.fill_between(curve.time_s, mean - spread, mean + spread, color=curve.colour, alpha=0.2, lw=0)
    axes.set_xlim(0.0, max((float(curve.time_s[-1]) for curve in curves), default=1.0))
    axes.set_xlabel("time [s]")
    axes.set_ylabel("mean progress [m], 95 % interval")
    return _finish(figure, title, len(curves))


def _figure(columns: int, size: tuple[float, float]) -> tuple[Figure, Sequence[Axes]]:
    require("a plot", "matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = [figure.add_subplot(1, columns, column + 1) for column in range(columns)]
    for one in axes:
        one.grid(color=GRID, lw=0.8)
        one.set_axisbelow(True)
        one.spines[["top", "right"]].set_visible(False)
        one.tick_params(colors=INK)
    return figure, axes


def _finish(figure: Figure, title: str, entries: int, below: bool = False) -> bytes:
    if title:
        figure.suptitle(title, fontsize=11)
    if entries:
        figure.axes[0].legend(frameon=False, ncols=1 if entries < 6 else 2, loc="lower left" if below else "best")
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=_DPI, format="png")
    return buffer.getvalue()


def _span(values: FloatArray) -> tuple[float, float]:
    if not values.size:
        return 0.0, 1.0
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.1)
    return low - 0.03 * (high - low), high + 0.03 * (high - low)
