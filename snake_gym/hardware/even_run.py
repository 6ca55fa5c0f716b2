"""A log of the robot on an even grid of bus cycles, as replays and identification want it.

References are those that were sent to the servos, after all safety clamps, in whole steps of their encoders.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.hardware.imposed import Imposed, speed_limits
from snake_gym.hardware.run_record import RunRecord
from snake_gym.robot.spec import FloatArray

_START_POSE_S = 0.3
"""The first pose counts for the start if it came so soon: the robot lay still."""


class EvenRun(NamedTuple):
    """T periods of a run with J joints; the fields of ``simulation.identification.RunLog``."""

    period_s: float
    reference_rad: FloatArray
    """(T, J) held from sample k to sample k + 1."""
    joint_angle_rad: FloatArray
    """(T + 1, J); NaN where an encoder said nothing."""
    head_xy_m: FloatArray
    """(T + 1, 2); NaN without a pose."""
    head_angle_rad: FloatArray
    """(T + 1,)."""
    free_joints: tuple[int, ...]
    """Joints that were lost most of the time, from 1 at the tail."""
    torque_share: float
    """Share of the servos' stall torque that the run used; 1 where the log does not say."""
    speed_limit_rad_s: tuple[float, ...]
    """(J,) greatest speeds that the servos were given; inf: their own."""


def to_even_run(record: RunRecord, from_s: float = 0.0, to_s: float = math.inf) -> EvenRun:
    """The log on an even grid of the bus's period. Raises ConfigError: limp, too short, or no pose at its start."""

    if record.is_limp:
        raise ConfigError(f"{record.path} is of a limp robot, without references; expected a run under a policy")
    inside = (record.cycle_s >= from_s) & (record.cycle_s <= to_s)
    cycle_s = record.cycle_s[inside]
    if cycle_s.size < 10:
        raise ConfigError(f"{record.path} has {cycle_s.size} bus cycles; expected at least 10")
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
            raise ConfigError(f"{record.path} has no pose of the head; expected one to start from")
        return to_even_run(record, float(grid[first[0]]) - 1e-6, to_s)
    free = tuple((np.flatnonzero(np.isnan(joint).mean(axis=0) > 0.5) + 1).tolist())
    step_rad = 2.0 * math.pi / (record.start["calibration"] or {}).get("steps_per_turn", 4096)
    sent = step_rad * np.rint(sent / step_rad)
    imposed = record.imposed or Imposed()
    speed = speed_limits(imposed, joint.shape[1])
    return EvenRun(period, sent[following], angle, xy, heading, free, imposed.torque_limit, speed)


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
