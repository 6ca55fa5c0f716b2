"""Results of the rerun of liu2024, and their figures; each function draws on an empty matplotlib figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from papers.liu2024.creeping import FREQUENCY_RAD_S, MEASURED_M_PER_RAD, Creeping, no_slip_speed
from papers.liu2024.generator import (
    PHASE_TOLERANCE_RAD,
    RADIUS_TOLERANCE,
    RATES,
    STEPS_S,
    TITLES,
    TOPOLOGIES,
    Change,
    Settling,
)
from papers.study import figure
from snake_gym.robot.spec import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_STYLES = {"equal": "-", "gaussian": "--"}
_FLOOR = 1e-6


class Results(NamedTuple):
    """Results of all runs of the study."""

    quick: bool
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
    """Draw errors of radius and phase over time, published rates on the left, ours on the right."""
    axes = canvas.subplots(2, 2, sharex="col", sharey="row")
    for column, rates in enumerate(RATES):
        for s in results.settlings:
            if s.rates != rates:
                continue
            colour = f"C{TOPOLOGIES.index(s.topology)}"
            label = s.topology.replace("_", " ") if s.weights == "equal" and rates == "default" else None
            axes[0, column].plot(s.time_s, 100.0 * np.maximum(s.radius_errors, _FLOOR), _STYLES[s.weights], c=colour)
            phase = np.maximum(s.phase_errors, _FLOOR)
            axes[1, column].plot(s.time_s, phase, _STYLES[s.weights], c=colour, label=label)
        title = "lambda = 0.2, alpha = 0.01 (paper)" if rates == "paper" else "lambda = 2, alpha = 0.6 (default)"
        axes[0, column].set_title(title)
        axes[0, column].axhline(100.0 * RADIUS_TOLERANCE, color="k", lw=1.0, ls=":")
        axes[1, column].axhline(PHASE_TOLERANCE_RAD, color="k", lw=1.0, ls=":")
        axes[1, column].set_xlabel("time [s]")
        for row in (0, 1):
            axes[row, column].set(xscale="log", yscale="log", xlim=(1.0, None))
    axes[0, 0].set(ylabel="largest radius error [%]", ylim=(1e-4, 200.0))
    axes[1, 0].set(ylabel="largest phase error [rad]", ylim=(1e-4, 4.0))
    canvas.legend(loc="outside lower center", ncols=4, fontsize=9, title="solid: equal weights, dashed: Gaussian; "
                  "dotted: 1 % and 0.01 rad")  # fmt: skip


def _draw_change(canvas: Canvas, results: Results) -> None:
    """Draw commands of the network and of the formula around one change of gait."""
    change = next(c for c in results.changes if c.rates == "default" and c.name.startswith("all"))
    axes = canvas.subplots(3, 1, sharex=True, sharey=True)
    shown = (change.time_s >= -0.5) & (change.time_s <= 20.0)
    step = "largest step {:.3g} omega rho dt"
    for axis, joints, title in (
        (axes[0], change.serpenoid, "serpenoid formula: " + step.format(change.serpenoid_step)),
        (axes[1], change.unlimited, f"Hopf network ({change.topology}), equations alone: "
         + step.format(change.unlimited_step)),
        (axes[2], change.joints, f"Hopf network ({change.topology}), phase shift brought in at a bounded rate: "
         + step.format(change.step)),
    ):  # fmt: skip
        for joint in range(0, joints.shape[1], 2):
            axis.plot(change.time_s[shown], joints[shown, joint], lw=1.2)
        axis.axvline(0.0, color="k", lw=0.8, ls=":")
        axis.set_title(title, fontsize=10)
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
    figure("locking", "Radius and phase errors from (0.1, 0.1), creeping gait of 14 joints.", _draw_locking,
           (10.0, 7.0)),
    figure("gait_change", "At time 0 three waves in place of two, smaller and faster: commands of every second joint.",
           _draw_change, (9.0, 8.0)),
    figure("derivative", "Error of the sliding-window derivative of the locked output against the step.",
           _draw_derivative),
    figure("creeping", "Speed of the creeping gait over omega against the ratio of friction coefficients.",
           _draw_creeping),
)  # fmt: skip
