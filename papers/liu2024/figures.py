"""Results of the rerun of liu2024, and their figures; each function draws on an empty matplotlib figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from papers.liu2024.creeping import FREQUENCY_RAD_S, MEASURED_M_PER_RAD, Creeping, no_slip_speed
from papers.liu2024.generator import (
    STEPS_S,
    TITLES,
    TOPOLOGIES,
    Change,
    Settling,
)
from papers.liu2024.network import LOCKED_RAD, MODES, Locking
from papers.study import figure
from snake_gym.robot.spec import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_STYLES = {"equal": "-", "gaussian": "--"}
_FLOOR = 1e-6


class Results(NamedTuple):
    """Results of all runs of the study."""

    quick: bool
    lockings: dict[str, Locking]
    """Mode -> locking of the published network."""
    settlings: Sequence[Settling]
    changes: Sequence[Change]
    errors: dict[str, FloatArray]
    """Errors of the derivatives, one for each of ``STEPS_S``."""
    ratios: FloatArray
    """Ratios mu_along / mu_across of the scan."""
    scan: dict[float, FloatArray]
    """mu_across -> speed over omega [m/rad] at every ratio."""
    preset: tuple[float, float]
    """Friction coefficients of the preset: along, across."""
    runs: dict[float, Creeping]
    """Frequency [rad/s] -> creeping with the preset's friction."""
    simulator: Creeping
    """Creeping with the friction of the authors' simulation model."""


def _draw_locking(canvas: Canvas, results: Results) -> None:
    """Draw phase errors over time: the published network on the left, ours in every topology on the right."""
    left, right = canvas.subplots(1, 2, sharey=True)
    for name, locking in results.lockings.items():
        label = f"{name}: {locking.periods:.1f} periods"
        periods = locking.time_s * MODES[name].frequency_rad_s / (2.0 * np.pi)
        left.semilogy(periods, np.maximum(locking.phase_error_rad, _FLOOR), lw=1.3, label=label)
    left.set(title="published network, five modes", xlabel="time [periods]", xlim=(0.0, 20.0))
    left.set(ylabel="largest phase error [rad]", ylim=(1e-4, 4.0))
    left.legend(loc="upper right")
    for s in results.settlings:
        topology = s.topology.replace("_", " ") if s.weights == "equal" else None
        error = np.maximum(s.phase_errors, _FLOOR)
        right.loglog(s.time_s, error, _STYLES[s.weights], c=f"C{TOPOLOGIES.index(s.topology)}", label=topology)
    right.set(title="controller cpg (solid: equal weights, dashed: Gaussian)", xlabel="time [s]", xlim=(1.0, None))
    right.legend(fontsize=7, ncols=2)
    for axis in (left, right):
        axis.axhline(LOCKED_RAD, color="k", lw=1.0, ls=":")


def _draw_change(canvas: Canvas, results: Results) -> None:
    """Draw commands around one change of gait: the formula, the equations alone, and ``set_gait``."""
    change = next(c for c in results.changes if c.rates == "default" and c.name.startswith("all"))
    axes = canvas.subplots(3, 1, sharex=True, sharey=True)
    shown = (change.time_s >= -0.5) & (change.time_s <= 30.0)
    for axis, motion, title in zip(
        axes, (change.formula, change.alone, change.smooth),
        ("serpenoid formula", "Hopf network, equations alone, our rates", "Hopf network, set_gait"), strict=True,
    ):  # fmt: skip
        for joint in range(0, motion.joints.shape[1], 2):
            axis.plot(change.time_s[shown], motion.joints[shown, joint], lw=1.2)
        axis.axvline(0.0, color="k", lw=0.8, ls=":")
        told = f"speed {motion.speed:.3g} omega rho, acceleration {motion.acceleration:.3g} omega^2 rho"
        axis.set_title(f"{title}: {told}, still {motion.still_periods:.2f} periods", fontsize=10)
        axis.set_ylabel("command [rad]")
    axes[-1].set_xlabel("time after the change [s]")


def _draw_derivative(canvas: Canvas, results: Results) -> None:
    """Draw errors against the step."""
    axis = canvas.subplots()
    for name, values in results.errors.items():
        axis.loglog(STEPS_S, values, "o-", ms=4, label=TITLES[name])
    axis.axvspan(0.01, 0.1, color="0.9", zorder=0, label="10 to 100 Hz (section 4.5)")
    axis.set(xlabel="step [s]", ylabel="largest error / amplitude")
    canvas.legend(loc="outside right upper", fontsize=8)


def _draw_creeping(canvas: Canvas, results: Results) -> None:
    """Draw speed over omega against the ratio of the friction coefficients, with the measured value."""
    axis = canvas.subplots()
    for mu, speed in results.scan.items():
        axis.semilogx(results.ratios, speed, "o-", ms=4, label=f"wheels, {mu:g} across")
    along, across = results.preset
    axis.plot(along / across, results.runs[FREQUENCY_RAD_S].speed_m_per_rad, "k*", ms=12, label="preset snakesys")
    axis.axhline(MEASURED_M_PER_RAD, color="C3", lw=1.2, label="measured (liu2024)")
    axis.axhline(no_slip_speed(), color="0.5", ls="--", lw=1.0, label="continuous curve, no slip")
    axis.set(xlabel="friction along / across", ylabel="speed / omega [m/rad]", ylim=(0.0, 0.32))
    canvas.legend(loc="outside right upper", fontsize=8)


FIGURES = (
    figure("locking", "Phase errors from the start to the locked gait; dotted: 0.01 rad.", _draw_locking, (10.0, 4.6)),
    figure("gait_change", "At time 0 three waves in place of two, smaller and faster: commands of every second joint.",
           _draw_change, (9.0, 8.0)),
    figure("derivative", "Error of the sliding-window derivative of the locked output against the step.",
           _draw_derivative),
    figure("creeping", "Speed of the creeping gait over omega against the ratio of friction coefficients.",
           _draw_creeping),
)  # fmt: skip
