"""A logged run and its replay: the same references on a robot's model, from where the robot was, never corrected."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.identification.replay import Replay
from snake_gym.simulation.identification.run_log import RunLog

STEP_S = 0.0025
"""Longest physics step of the replay."""
BACKLASH_STEP_S = 0.002
"""Longest physics step with backlash, of which longer ones would make more than the gap itself does."""


@dataclass(frozen=True, eq=False)
class ReplayedRun:
    """A run as measured and as simulated, on the same grid: T + 1 samples, J joints."""

    time_s: FloatArray
    measured_joint: FloatArray
    """(T + 1, J) [rad]; NaN where an encoder said nothing."""
    simulated_joint: FloatArray
    reference: FloatArray
    """(T, J) [rad]."""
    measured_xy: FloatArray
    """(T + 1, 2) [m]; NaN without a pose."""
    simulated_xy: FloatArray

    def errors(self) -> dict[str, float]:
        """The numbers: root mean square joint error [rad] and path error [m], its end, and the path's length [m]."""
        away = np.hypot(*(self.simulated_xy - self.measured_xy).T)
        seen = np.flatnonzero(np.isfinite(away))
        return {
            "joint_rms_rad": float(np.sqrt(np.nanmean((self.simulated_joint - self.measured_joint) ** 2))),
            "path_rms_m": float(np.sqrt((away[seen] ** 2).mean())),
            "path_end_m": float(away[seen[-1]]),
            "path_length_m": float(np.hypot(*np.diff(self.measured_xy[seen], axis=0).T).sum()),
        }


def with_finer_step(spec: RobotSpec, period_s: float, step_s: float = STEP_S) -> RobotSpec:
    """``spec`` with the log's period as control step and a physics step of at most ``step_s`` that goes into it."""
    if "backlash_rad" in spec.actuator.imperfections:
        step_s = min(step_s, BACKLASH_STEP_S)
    steps = max(1, math.ceil(period_s / min(spec.step_s, step_s) - 1e-9))
    return replace(spec, control_dt_s=period_s, sim_dt_s=period_s / steps, integrator="implicit")


def replay(log: RunLog, spec: RobotSpec) -> ReplayedRun:
    """Play the log's references on ``spec``. Raises ConfigError where it has another number of joints."""
    seen = Replay([log], with_finer_step(spec, log.period_s), ()).predict(np.empty((1, 0)))
    return ReplayedRun(
        log.period_s * np.arange(log.n_periods + 1, dtype=np.float64), log.joint_angle_rad, seen.joint_angle_rad[0, 0],
        log.reference_rad, log.head_xy_m, seen.head_xy_m[0, 0],
    )  # fmt: skip
