"""Log of a run at the bus's own times, put on the even grid that replay and identification need."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.identification.run_log import RunLog

_START_POSE_S = 0.3
"""Latest time of a first pose that counts for the start [s]: the robot lay still."""


def resample(record: Any, from_s: float = 0.0) -> RunLog:
    """Return the log (``hardware.robot.record.RunRecord``) on an even grid of the bus's period, from ``from_s`` [s] on.
    Raises ConfigError: too short, or no pose of the head.

    References are those sent to the servos, after all safety clamps, in whole steps of their encoders.
    """
    inside = record.cycle_s >= from_s
    cycle_s = record.cycle_s[inside]
    if cycle_s.size < 10:
        raise ConfigError(f"{record.path} has {cycle_s.size} bus cycles; expected at least 10")
    joint, sent = record.joint_angle[inside], record.reference[inside]
    period = float(np.median(np.diff(cycle_s)))
    period = float(record.start.get("config", {}).get("connection", {}).get("period_s", period))
    n = round((cycle_s[-1] - cycle_s[0]) / period)
    grid: FloatArray = cycle_s[0] + period * np.arange(n + 1, dtype=np.float64)
    angle = np.stack([_resampled(grid, cycle_s, column, period) for column in joint.T], axis=1)
    # References are held until the next sample, which tells what was sent last.
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
        return resample(record, float(grid[first[0]]) - 1e-6)
    free = tuple((np.flatnonzero(np.isnan(joint).mean(axis=0) > 0.5) + 1).tolist())
    step_rad = 2.0 * math.pi / (record.start["calibration"] or {}).get("steps_per_turn", 4096)
    sent = step_rad * np.rint(sent / step_rad)
    return RunLog(period, sent[following], angle, xy, heading, free, torque_share=record.torque_share)


def _resampled(grid: FloatArray, stamps: FloatArray, values: FloatArray, period: float) -> FloatArray:
    """Return ``values`` at the grid's times, NaN in gaps of more than 2.5 periods."""
    known = np.isfinite(values)
    if known.sum() < 2:
        return np.full(grid.size, np.nan)
    at, here = stamps[known], values[known]
    found = np.interp(grid, at, here)
    after = np.clip(np.searchsorted(at, grid), 1, at.size - 1)
    found[at[after] - at[after - 1] > 2.5 * period] = np.nan
    return np.asarray(found)
