"""Figures of what the paper does not have: equal amplitude, and every single and double failure."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from papers.sibilska2022.amplitude import VARIANTS, Comparison
from papers.sibilska2022.arrivals import joints
from papers.sibilska2022.failures import CONTROLLERS, Survey
from papers.sibilska2022.trials import ROBOT
from papers.sibilska2022.wave import FaultKind
from papers.study import Figure
from snake_gym.render.palette import BLUE, GREEN, INK, ORANGE, SKY, VERMILION
from snake_gym.robot.spec import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_TICKS_S = (50, 70, 100, 150, 200, 300, 400, 600, 800, 1200, 2000, 3000)
_COLOURS = (BLUE, SKY, GREEN, ORANGE, VERMILION)


def figures(comparison: Comparison, survey: Survey) -> list[Figure]:
    """Amplitude study and heat maps."""
    drawn = [
        Figure(
            "equal-amplitude",
            f"CC against SJC at equal amplitude: arrival at target {comparison.n_targets} over that of SJC with 20 "
            "degrees, for each set of locked joints. Bars: median of "
            f"{comparison.arrival_s.shape[2]} start directions; whiskers: all of them.",
            partial(_draw_comparison, comparison),
            (9.0, 4.6),
        )
    ]
    how = {
        "locked": "locked at their initial angle, as in the paper",
        "free": "that turn freely between stops at +-40 degrees",
        "weak": "with half of their control signal",
    }
    for kind in survey.kinds:
        caption = (
            f"Arrival at target {survey.n_targets} for every pair of joints {how[kind]} (1: tail, 9: head), single "
            "failures on the diagonal, for SJC and CC; their ratio, blue where CC is faster; and single failures "
            "alone, dotted without any. Crosses: not reached in time."
        )
        drawn.append(Figure(f"pairs-{kind}", caption, partial(_draw_pairs, survey, kind), (10.0, 8.8)))
    return drawn


def _draw_comparison(comparison: Comparison, canvas: Canvas) -> None:
    axes = canvas.add_subplot()
    n_sets, n_variants = len(comparison.sets), len(VARIANTS)
    own = comparison.median_s()[:, 0]
    for index, (name, colour) in enumerate(zip(VARIANTS, _COLOURS, strict=True)):
        at = np.arange(n_sets) + (index - (n_variants - 1) / 2) * 0.16
        relative = comparison.arrival_s[:, index] / own[:, None]
        middle = np.median(relative, axis=1)
        whiskers = np.abs(np.array([relative.min(axis=1), relative.max(axis=1)]) - middle)
        bars = axes.bar(at, middle, 0.15, yerr=whiskers, color=colour, label=name, capsize=2, error_kw={"lw": 1.0})
        axes.bar_label(bars, [f"{value:.2f}" for value in middle], label_type="center", fontsize=7.5, color="white")
    axes.axhline(1.0, color=INK, lw=0.8, ls=":")
    axes.set_xticks(range(n_sets), [f"locked: {joints(broken)}" for broken in comparison.sets])
    axes.set_ylabel("time to the last target / that of SJC")
    axes.grid(visible=False, axis="x")
    axes.set_ylim(0.0, 1.45)
    axes.legend(ncols=3, loc="upper center")


def _draw_pairs(survey: Survey, kind: FaultKind, canvas: Canvas) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import LogNorm

    (left, middle), (right, last) = canvas.subplots(2, 2)
    times = [survey.grid(kind, controller) for controller in CONTROLLERS]
    finite = np.concatenate([grid[np.isfinite(grid)] for grid in times])
    norm = LogNorm(finite.min(), finite.max())
    for axes, grid, name in zip((left, middle), times, ("SJC", "CC"), strict=True):
        image = _draw_grid(axes, grid, f"{name}: time [s]", colormaps["viridis_r"], norm, "{:.0f}")
        bar = canvas.colorbar(image, ax=axes, fraction=0.05, label="time to the last target [s]")
        ticks = [tick for tick in _TICKS_S if finite.min() <= tick <= finite.max()]
        bar.set_ticks(ticks, labels=list(map(str, ticks)))
        bar.minorticks_off()
    with np.errstate(invalid="ignore"):
        ratio = np.where(np.isfinite(times[0]) & np.isfinite(times[1]), times[1] / times[0], np.inf)
    ratio[np.isnan(times[0])] = np.nan
    image = _draw_grid(right, ratio, "CC / SJC", colormaps["RdBu_r"], LogNorm(0.5, 2.0), "{:.2f}")
    bar = canvas.colorbar(image, ax=right, fraction=0.05, label="ratio of the times")
    bar.set_ticks([0.5, 0.7, 1.0, 1.4, 2.0], labels=["0.5", "0.7", "1", "1.4", "2"])
    bar.minorticks_off()
    _draw_singles(last, survey, kind)


def _draw_singles(axes: Axes, survey: Survey, kind: FaultKind) -> None:
    times = survey.arrival_s[list(survey.kinds).index(kind)]
    for index, (name, colour) in enumerate((("SJC", BLUE), ("CC", ORANGE))):
        singles = {broken[0]: times[row, index] for row, broken in enumerate(survey.sets) if len(broken) == 1}
        reached = {joint: time for joint, time in singles.items() if np.isfinite(time)}
        axes.plot(list(reached), list(reached.values()), "o", color=colour, label=name, ls="-" if reached else "")
        if () in survey.sets:
            axes.axhline(times[list(survey.sets).index(()), index], color=colour, ls=":", lw=1.2)
    axes.set_xticks(range(1, ROBOT.n_joints + 1))
    axes.set_xlim(0.5, ROBOT.n_joints + 0.5)
    axes.set_ylim(0.0, None)
    axes.set_xlabel("failed joint")
    axes.set_ylabel("time to the last target [s]")
    axes.set_title("single failures")
    axes.legend()


def _draw_grid(axes: Axes, grid: FloatArray, title: str, shades: Any, norm: Any, form: str) -> Any:
    n = len(grid)
    image = axes.imshow(
        np.where(np.isfinite(grid), grid, np.nan), cmap=shades, norm=norm, origin="lower", aspect="auto"
    )
    for row in range(n):
        for column in range(n):
            value = grid[row, column]
            if np.isinf(value):
                axes.plot([column], [row], "x", color=INK, ms=7, mew=1.2)
            elif np.isfinite(value):
                red, green, blue, _ = shades(float(np.clip(norm(value), 0.0, 1.0)))
                dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
                text = form.format(value)
                axes.text(column, row, text, ha="center", va="center", fontsize=7.5, color="white" if dark else INK)
    axes.set_xticks(range(n), [str(joint) for joint in range(1, n + 1)])
    axes.set_yticks(range(n), [str(joint) for joint in range(1, n + 1)])
    axes.set_xlabel("failed joint")
    axes.set_ylabel("failed joint")
    axes.set_title(title)
    axes.grid(visible=False)
    axes.spines[["top", "right"]].set_visible(True)
    return image
