"""Results of the rerun of liu2024, and their figures; each function draws on an empty matplotlib figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from papers.liu2024.creeping import Creeping
from papers.liu2024.generator import Change
from papers.liu2024.network import LOCKED_RAD, MODES, Locking
from papers.study import figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_FLOOR = 1e-6


class Results(NamedTuple):
    """Results of all runs of the study."""

    lockings: dict[str, Locking]
    """Mode -> locking of the published network."""
    changes: Sequence[Change]
    errors: tuple[float, float]
    """Relative errors of rate and acceleration, see ``derivative_error``."""
    preset: tuple[float, float]
    """Friction coefficients of the preset: along, across."""
    runs: dict[float, Creeping]
    """Frequency [rad/s] -> creeping with the preset's friction."""
    simulator: Creeping
    """Creeping with the friction of the authors' simulation model."""


def _draw_locking(canvas: Canvas, results: Results) -> None:
    """Draw phase errors of the published network over time."""
    axis = canvas.subplots()
    for name, locking in results.lockings.items():
        label = f"{name}: {locking.periods:.1f} periods"
        periods = locking.time_s * MODES[name].frequency_rad_s / (2.0 * np.pi)
        axis.semilogy(periods, np.maximum(locking.phase_error_rad, _FLOOR), lw=1.3, label=label)
    axis.set(xlabel="time [periods]", xlim=(0.0, 20.0), ylabel="largest phase error [rad]", ylim=(1e-4, 4.0))
    axis.axhline(LOCKED_RAD, color="k", lw=1.0, ls=":")
    axis.legend(loc="upper right")


def _draw_change(canvas: Canvas, results: Results) -> None:
    """Draw commands around one change of gait: by the formula and by the equations."""
    change = next(c for c in results.changes if c.name.startswith("all"))
    axes = canvas.subplots(2, 1, sharex=True, sharey=True)
    shown = (change.time_s >= -0.5) & (change.time_s <= 30.0)
    kinds = ((change.formula, "serpenoid formula"), (change.equations, "published equations"))
    for axis, (motion, title) in zip(axes, kinds, strict=True):
        axis.plot(change.time_s[shown], motion.joints[shown, ::2], lw=1.2)
        axis.axvline(0.0, color="k", lw=0.8, ls=":")
        speeds = f"speed {motion.speed:.3g} omega rho, acceleration {motion.acceleration:.3g} omega^2 rho"
        axis.set_title(f"{title}: {speeds}", fontsize=10)
        axis.set_ylabel("command [rad]")
    axes[-1].set_xlabel("time after the change [s]")


FIGURES = (
    figure("locking", "Phase errors of the published network from its start; dotted: 0.01 rad.", _draw_locking),
    figure("gait_change", "At time 0 three waves in place of two, smaller and faster: commands of every second joint.",
           _draw_change, (9.0, 6.0)),
)  # fmt: skip
