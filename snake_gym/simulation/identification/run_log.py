"""A logged run of a robot, simulated or real: what was commanded and what was measured, at a fixed period; ``resample``
puts a log at the bus's own times on such a grid.

Sample 0 is the first measurement; command k is held from sample k to sample k + 1. The run begins at rest: the mean of
the first ``n_rest`` samples gives the starting pose, so that one noisy reading does not turn the whole path.
Frames as in ``robot.measurement``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.robot.spec import FloatArray

_START_POSE_S = 0.3
"""Latest time of a first pose that counts for the start [s]: the robot lay still."""


@dataclass(frozen=True, eq=False)
class RunLog:
    """One run of T control periods with J joints."""

    period_s: float
    reference_rad: FloatArray
    """(T, J) joint references."""
    joint_angle_rad: FloatArray
    """(T + 1, J) encoders; NaN where an encoder says nothing (the potentiometer of a servo without power)."""
    head_xy_m: FloatArray
    """(T + 1, 2) centre of the head link, world frame; NaN while the pose source has lost it."""
    head_angle_rad: FloatArray
    """(T + 1,) orientation of the head link, world frame."""
    free_joints: tuple[int, ...] = ()
    """Joints without power, numbered from 1 at the tail."""
    n_rest: int = 1
    """Samples at the start during which the robot lay still."""
    torque_share: float = 1.0
    """Share of the actuators' torque limit that this run was held to."""

    def __post_init__(self) -> None:
        n_periods, n_joints = self.reference_rad.shape
        shapes = {"joint_angle_rad": (n_joints,), "head_xy_m": (2,), "head_angle_rad": ()}
        for name, rest in shapes.items():
            shape = getattr(self, name).shape
            if shape != (n_periods + 1, *rest):
                raise ConfigError(f"log: {name} has shape {shape}; expected {(n_periods + 1, *rest)}")

    @property
    def n_periods(self) -> int:
        """Number of control periods, T."""
        return self.reference_rad.shape[0]

    def start(self) -> tuple[FloatArray, FloatArray, float]:
        """Joint angles (J,) [rad], head position (2,) [m] and head angle [rad] at rest.

        A joint without a reading starts where its reference is: it had power until then.
        """
        still = slice(0, self.n_rest)
        seen = np.isfinite(self.joint_angle_rad[still])
        total = np.where(seen, self.joint_angle_rad[still], 0.0).sum(axis=0)
        joints = np.where(seen.any(axis=0), total / np.maximum(seen.sum(axis=0), 1), self.reference_rad[0])
        position, heading = self.head_xy_m[still], self.head_angle_rad[still]
        known = np.isfinite(position).all(axis=1) & np.isfinite(heading)
        if not known.any():
            raise ConfigError("log: no pose among the samples at rest; expected at least one")
        return joints, position[known].mean(axis=0), float(heading[known].mean())


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
