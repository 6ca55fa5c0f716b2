"""A logged run beside its replay: the same references on a robot's model, from where the robot was, never corrected."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.identification.coefficients import Coefficient, Place
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
    measured_angle: FloatArray
    simulated_angle: FloatArray

    def errors(self) -> dict[str, float]:
        """The numbers: root mean square joint error [rad] and path error [m], its end, and the path's length [m]."""
        joint = self.simulated_joint - self.measured_joint
        away = np.hypot(*(self.simulated_xy - self.measured_xy).T)
        seen = np.flatnonzero(np.isfinite(away))
        path = self.measured_xy[seen]
        turned = self.simulated_angle - self.measured_angle
        turned = np.remainder(turned + math.pi, 2.0 * math.pi) - math.pi
        return {
            "joint_rms_rad": float(np.sqrt(np.nanmean(joint**2))),
            "joint_max_rad": float(np.nanmax(np.abs(joint))),
            "path_rms_m": float(np.sqrt((away[seen] ** 2).mean())) if seen.size else math.nan,
            "path_end_m": float(away[seen[-1]]) if seen.size else math.nan,
            "path_length_m": float(np.hypot(*np.diff(path, axis=0).T).sum()),
            "displacement_m": float(np.hypot(*(path[-1] - path[0]))) if seen.size else math.nan,
            "heading_rms_rad": float(np.sqrt(np.nanmean(turned**2))) if seen.size else math.nan,
            "duration_s": float(self.time_s[-1]),
        }


def fine(spec: RobotSpec, period_s: float, step_s: float = STEP_S) -> RobotSpec:
    """``spec`` with the log's period as control step and a physics step of at most ``step_s`` that goes into it."""
    if "backlash_rad" in spec.actuator.imperfections:
        step_s = min(step_s, BACKLASH_STEP_S)
    steps = max(1, math.ceil(period_s / min(spec.step_s, step_s) - 1e-9))
    return replace(spec, control_dt_s=period_s, sim_dt_s=period_s / steps, integrator="implicit")


def unchanged(spec: RobotSpec) -> Coefficient:
    """A coefficient whose start is the value that ``spec`` has: for the replay of a batch with one candidate."""
    limit = spec.joint_limit_rad
    return Coefficient("limit", limit, 0.5 * limit, limit, (Place("joint_limit_rad"),))


def replay(log: RunLog, spec: RobotSpec) -> ReplayedRun:
    """Play the log's references on ``spec``. Raises ConfigError where it has another number of joints."""
    same = unchanged(spec)
    player = Replay([log], fine(spec, log.period_s), [same], 1)
    seen = player.predict(np.array([[same.start]]))
    return ReplayedRun(
        log.period_s * np.arange(log.n_periods + 1, dtype=np.float64), log.joint_angle_rad, seen.joint_angle_rad[0, 0],
        log.reference_rad, log.head_xy_m, seen.head_xy_m[0, 0], log.head_angle_rad, seen.head_angle_rad[0, 0],
    )  # fmt: skip
