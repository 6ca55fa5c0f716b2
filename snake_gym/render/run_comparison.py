"""A run of the real robot beside its replay in simulation, as a figure: joints over time, and the head's path."""

from __future__ import annotations

import io
import math

import numpy as np

from snake_gym.render.palette import BLUE, GRID, INK, MUTED, VERMILION
from snake_gym.robot.spec import FloatArray

_SHOWN = 4
"""Joints that are drawn, from tail to head."""


def draw_comparison(
    time_s: FloatArray,
    measured_joint: FloatArray,
    simulated_joint: FloatArray,
    reference: FloatArray,
    measured_xy: FloatArray,
    simulated_xy: FloatArray,
    title: str,
    seconds: float = 10.0,
) -> bytes:
    """A PNG.

    Args:
        time_s: (T + 1,).
        measured_joint, simulated_joint: (T + 1, J) [rad].
        reference: (T, J) [rad].
        measured_xy, simulated_xy: (T + 1, 2) [m] of the head; NaN is not drawn.
        seconds: how much of the joints' motion is shown, from the start.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    n_joints = measured_joint.shape[1]
    shown = sorted({round(k) for k in np.linspace(0, n_joints - 1, min(_SHOWN, n_joints))})
    figure = Figure(figsize=(11.0, 1.5 + 1.35 * len(shown)), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(len(shown), 2, width_ratios=[1.5, 1.0])
    part = time_s <= seconds
    for row, joint in enumerate(shown):
        axes = figure.add_subplot(grid[row, 0])
        axes.step(
            time_s[:-1][part[:-1]], np.degrees(reference[part[:-1], joint]), where="post", color=MUTED, lw=1.0,
            label="reference sent",
        )  # fmt: skip
        axes.plot(time_s[part], np.degrees(measured_joint[part, joint]), color=VERMILION, lw=1.8, label="measured")
        axes.plot(
            time_s[part], np.degrees(simulated_joint[part, joint]), color=BLUE, lw=1.2, ls="--", label="simulated"
        )
        axes.set_ylabel(f"joint {joint + 1} [deg]", color=INK)
        axes.grid(color=GRID)
        if row < len(shown) - 1:
            axes.tick_params(labelbottom=False)
        else:
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
    stream = io.BytesIO()
    figure.savefig(stream, format="png")
    return stream.getvalue()


def describe_errors(errors: dict[str, float]) -> str:
    """The numbers of a comparison in one line."""
    return (
        f"joints: {math.degrees(errors['joint_rms_rad']):.2f} deg rms; head: {100 * errors['path_rms_m']:.1f} cm rms, "
        f"{100 * errors['path_end_m']:.1f} cm at the end of a path of {errors['path_length_m']:.2f} m"
    )
