"""A logged run beside the simulation: the same references on the nominal robot, and what it takes to make them agree.

The log's bus cycles become a ``RunLog`` on an even grid; references are those that were sent to the servos, after all
safety clamps. The simulation starts where the robot was, in its shape, and is never corrected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.hardware.run_record import RunRecord
from snake_gym.robot.spec import FloatArray, RobotSpec

if TYPE_CHECKING:
    from snake_gym.simulation.identification import Coefficient, RunLog, SensorNoise
    from snake_gym.simulation.identification.delayed_fit import DelayedIdentification

_STEP_S = 0.0025
"""Physics step of the replay, at most,"""
_BACKLASH_STEP_S = 0.0005
"""and with backlash: a stiff servo hunts in its gap at longer steps."""
_BACKLASH_STARTS = (0.01, 0.04)
_CLEARLY = 0.9
"""Backlash has to bring the misfit below this share of that without,"""
_SEEN_RAD = 1e-3
"""and to be no smaller than an encoder can see."""
_START_POSE_S = 0.3
"""The first pose counts for the start if it came so soon: the robot lay still."""
_GROUPS = 3
"""A field with more different numbers than this is not identified."""


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


def to_run_log(record: RunRecord, from_s: float = 0.0, to_s: float = math.inf) -> RunLog:
    """The log on an even grid of the bus's period. Raises ConfigError: limp, too short, or no pose at its start."""
    from snake_gym.simulation.identification import RunLog

    if record.is_limp:
        raise ConfigError("the log is of a limp robot, which had no references; expected a run under a policy")
    inside = (record.cycle_s >= from_s) & (record.cycle_s <= to_s)
    cycle_s = record.cycle_s[inside]
    if cycle_s.size < 10:
        raise ConfigError(f"the log has {cycle_s.size} bus cycles; expected at least 10")
    joint, sent = record.joint_angle[inside], record.reference[inside]
    period = float(np.median(np.diff(cycle_s)))
    period = float(record.start.get("config", {}).get("connection", {}).get("period_s", period))
    n = round((cycle_s[-1] - cycle_s[0]) / period)
    grid: FloatArray = cycle_s[0] + period * np.arange(n + 1, dtype=np.float64)
    angle = np.stack([_resampled(grid, cycle_s, column, period) for column in joint.T], axis=1)
    # Held until the next sample: what that sample says was sent last.
    following = np.minimum(np.searchsorted(cycle_s, grid[1:] - 0.5 * period), cycle_s.size - 1)
    xy, heading = np.full((n + 1, 2), np.nan), np.full(n + 1, np.nan)
    known = record.pose_valid & np.isfinite(record.pose_s)
    for at, place, direction in zip(record.pose_s[known], record.xy_w[known], record.angle[known], strict=True):
        k = round((at - grid[0]) / period)
        k = 0 if 0 <= k * period <= _START_POSE_S and np.isnan(heading[0]) and from_s <= 0.0 else k
        if 0 <= k <= n:
            xy[k], heading[k] = place, direction
    if np.isnan(heading[0]):
        first = np.flatnonzero(np.isfinite(heading))
        if not first.size:
            raise ConfigError("the log has no pose of the head; expected one to start from")
        return to_run_log(record, float(grid[first[0]]) - 1e-6, to_s)
    free = tuple((np.flatnonzero(np.isnan(joint).mean(axis=0) > 0.5) + 1).tolist())
    return RunLog(period, sent[following], angle, xy, heading, free)


def _resampled(grid: FloatArray, stamps: FloatArray, values: FloatArray, period: float) -> FloatArray:
    """``values`` at the grid's times, NaN in gaps of more than two periods."""
    known = np.isfinite(values)
    if known.sum() < 2:
        return np.full(grid.size, np.nan)
    at, here = stamps[known], values[known]
    found = np.interp(grid, at, here)
    after = np.clip(np.searchsorted(at, grid), 1, at.size - 1)
    found[at[after] - at[after - 1] > 2.5 * period] = np.nan
    return np.asarray(found)


def fine(spec: RobotSpec, period_s: float, step_s: float = _STEP_S) -> RobotSpec:
    """``spec`` with the log's period as control step and a physics step of at most ``step_s`` that goes into it."""
    if "backlash_rad" in spec.actuator.imperfections:
        step_s = min(step_s, _BACKLASH_STEP_S)
    steps = max(1, math.ceil(period_s / min(spec.sim_dt_s, step_s) - 1e-9))
    return replace(spec, control_dt_s=period_s, sim_dt_s=period_s / steps, integrator="implicit")


def replay(log: RunLog, spec: RobotSpec, delay_s: float = 0.0) -> ReplayedRun:
    """Play the log's references on ``spec``, ``delay_s`` later."""
    from snake_gym.simulation.identification import Coefficient, Place, Replay
    from snake_gym.simulation.identification.delayed_fit import delayed

    if log.reference_rad.shape[1] != spec.n_joints:
        raise ConfigError(f"the log has {log.reference_rad.shape[1]} joints; expected {spec.n_joints} ({spec.name})")
    limit = spec.joint_limit_rad
    # A coefficient that is given its own value: the replay of a batch with one candidate.
    same = Coefficient("limit", limit, 0.5 * limit, limit, (Place("joint_limit_rad"),))
    player = Replay([delayed(log, delay_s)], fine(spec, log.period_s), [same], 1)
    seen = player.predict(np.array([[limit]]))
    return ReplayedRun(
        log.period_s * np.arange(log.n_periods + 1, dtype=np.float64), log.joint_angle_rad, seen.joint_angle_rad[0, 0],
        log.reference_rad, log.head_xy_m, seen.head_xy_m[0, 0], log.head_angle_rad, seen.head_angle_rad[0, 0],
    )  # fmt: skip


def usual_coefficients(spec: RobotSpec) -> list[Coefficient]:
    """What is worth identifying of ``spec``: its friction as far as it has any, and servo gains."""
    found: list[Coefficient] = []
    for name in ("tangential_ns_m", "normal_ns_m", "tangential_coulomb", "normal_coulomb"):
        found += _grouped(spec, f"friction.{name}", name, spec.n_links)
    for name in ("kp", "kd"):
        found += _grouped(spec, f"actuator.{name}", name, spec.n_joints)
    return found


def _grouped(spec: RobotSpec, path: str, name: str, n: int) -> list[Coefficient]:
    """One coefficient for each different number > 0 in a field."""
    from snake_gym.simulation.identification import Coefficient, Place

    values = spec.links(path) if n == spec.n_links else spec.joints(path)
    groups = [value for value in np.unique(values).tolist() if value > 0.0]
    if len(groups) > _GROUPS:
        return []
    found = []
    for value in groups:
        members = None if len(np.unique(values)) == 1 else tuple((np.flatnonzero(values == value) + 1).tolist())
        label = name if members is None else f"{name}[{','.join(map(str, members))}]"
        found.append(Coefficient(label, value, value / 8.0, 8.0 * value, (Place(path, members),)))
    return found


def _noise() -> SensorNoise:
    """How well a usual pose source and a 12-bit encoder tell."""
    from snake_gym.simulation.identification import SensorNoise

    return SensorNoise(position_m=0.004, heading_rad=0.01, joint_rad=0.002)


@dataclass(frozen=True, eq=False)
class FoundRobot:
    """What identification made of the logs."""

    spec: RobotSpec
    """Named and with its source; its timing is that of the nominal robot."""
    values: dict[str, float]
    relative_std: dict[str, float] | None
    delay_s: float
    delay_std_s: float
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "values": self.values, "relative_std": self.relative_std, "delay_s": self.delay_s,
            "delay_std_s": self.delay_std_s, "seconds": self.seconds,
        }  # fmt: skip


def identify_robot(
    logs: Sequence[RunLog], spec: RobotSpec, method: str = "least_squares", backlash: bool = True, said: str = ""
) -> FoundRobot:
    """Friction, servo gains, backlash and delay with which ``spec`` moves as logged. Raises ConfigError.

    Args:
        method: least_squares finds all of them on whole paths; avs (irani2015) finds the friction on the head's last
            position, with the other numbers as they are and without a delay.
        said: where the logs are from, for the specification's source.
    """
    from snake_gym.simulation.identification import identify
    from snake_gym.simulation.identification.delayed_fit import identify_with_delay

    step = fine(spec, logs[0].period_s)
    coefficients = usual_coefficients(spec)
    if method == "avs":
        only = [one for one in coefficients if one.places[0].path.startswith("friction.")]
        found, delay, delay_std = identify(logs, step, only, "avs", n_threads=1), 0.0, math.nan
    else:
        best = identify_with_delay(logs, step, coefficients, _noise(), n_threads=1)
        if backlash:
            best = _with_backlash(logs, spec, coefficients, best)
        found, delay, delay_std = best.found, best.delay_s, best.delay_std_s
    source = f"{spec.name} with friction and servos identified from {said or 'logged runs'} ({method})"
    if math.isfinite(delay_std):
        source += f"; references act {1e3 * delay:.1f} ms late, which the simulation leaves out"
    # A robot with backlash needs the step that it was identified with.
    sim_dt_s = found.spec.sim_dt_s if found.spec.actuator.imperfections else spec.sim_dt_s
    named = replace(
        found.spec, name=f"{spec.name}_identified", source=source, control_dt_s=spec.control_dt_s, sim_dt_s=sim_dt_s,
        integrator="implicit" if found.spec.actuator.imperfections else spec.integrator,
    )  # fmt: skip
    return FoundRobot(named, found.values, found.relative_std, delay, delay_std, found.seconds)


def _with_backlash(
    logs: Sequence[RunLog], spec: RobotSpec, coefficients: Sequence[Coefficient], without: DelayedIdentification
) -> DelayedIdentification:
    """The fit with backlash, where it explains clearly more; its residuals are rough, so it starts from the other's."""
    from snake_gym.simulation.identification import Coefficient, Place
    from snake_gym.simulation.identification.delayed_fit import identify_with_delay

    started = [replace(one, start=without.found.values[one.name]) for one in coefficients]
    place = (Place("actuator.backlash_rad"),)
    step = fine(spec, logs[0].period_s, _BACKLASH_STEP_S)
    best = without
    for start in _BACKLASH_STARTS:
        lash = Coefficient("backlash_rad", start, 1e-4, 0.3, place)
        trial = identify_with_delay(
            logs, step, [*started, lash], _noise(), without.delay_s, n_threads=1, max_evaluations=12
        )
        if trial.misfit < best.misfit:
            best = trial
    clearly = best.misfit < _CLEARLY * without.misfit and best.found.values.get("backlash_rad", 0.0) > _SEEN_RAD
    return best if clearly else without
