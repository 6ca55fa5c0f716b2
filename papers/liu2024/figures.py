"""Figures of the rerun of liu2024; each function draws on an empty matplotlib figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from papers.liu2024.creeping import MEASURED_M_PER_RAD, no_slip_speed
from papers.liu2024.derivative_error import STEPS_S, TITLES
from papers.liu2024.gait_change import Change
from papers.liu2024.network import (
    PHASE_TOLERANCE_RAD,
    RADIUS_TOLERANCE,
    RATES,
    TOPOLOGIES,
    Settling,
)
from snake_gym.robot.spec import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLES = {"equal": "-", "gaussian": "--"}
_FLOOR = 1e-6


def draw_locking(canvas: Figure, settlings: Sequence[Settling]) -> None:
    """Errors of radius and phase over time, published rates on the left, ours on the right."""
    axes = canvas.subplots(2, 2, sharex="col", sharey="row")
    for column, rates in enumerate(RATES):
        for s in settlings:
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
            axes[row, column].set_xscale("log")
            axes[row, column].set_yscale("log")
            axes[row, column].set_xlim(left=1.0)
    axes[0, 0].set_ylabel("largest radius error [%]")
    axes[1, 0].set_ylabel("largest phase error [rad]")
    axes[0, 0].set_ylim(1e-4, 200.0)
    axes[1, 0].set_ylim(1e-4, 4.0)
    canvas.legend(loc="outside lower center", ncols=4, fontsize=9, title="solid: equal weights, dashed: Gaussian; "
                  "dotted: 1 % and 0.01 rad")  # fmt: skip


def draw_change(canvas: Figure, change: Change) -> None:
    """Commands of the network and of the formula around one change of gait."""
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


def draw_derivative(canvas: Figure, errors: dict[str, FloatArray]) -> None:
    """Errors against the step."""
    axis = canvas.subplots()
    for name, values in errors.items():
        axis.loglog(STEPS_S, values, "o-", ms=4, label=TITLES[name])
    axis.axvspan(0.01, 0.1, color="0.9", zorder=0, label="10 to 100 Hz (section 4.5)")
    axis.set_xlabel("step [s]")
    axis.set_ylabel("largest error / amplitude")
    canvas.legend(loc="outside right upper", fontsize=8)


def draw_creeping(
    canvas: Figure, ratios: FloatArray, scan: dict[float, FloatArray], preset: tuple[float, float]
) -> None:
    """Speed over omega against the ratio of the friction coefficients, with the measured value."""
    axis = canvas.subplots()
    for mu, speed in scan.items():
        axis.semilogx(ratios, speed, "o-", ms=4, label=f"wheels, {mu:g} across")
    axis.plot(*preset, "k*", ms=12, label="preset snakesys")
    axis.axhline(MEASURED_M_PER_RAD, color="C3", lw=1.2, label="measured (liu2024)")
    axis.axhline(no_slip_speed(), color="0.5", ls="--", lw=1.0, label="continuous curve, no slip")
    axis.set_xlabel("friction along / across")
    axis.set_ylabel("speed / omega [m/rad]")
    axis.set_ylim(0.0, 0.32)
    canvas.legend(loc="outside right upper", fontsize=8)
