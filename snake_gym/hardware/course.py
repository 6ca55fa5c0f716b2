"""Targets for a robot that knows its pose from measurements alone.

The counterpart of the Waypoints task on hardware: there is no truth to score with, so targets are reached, and progress
is made, by what was measured. While the pose is lost no target is reached and no progress is counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from snake_gym.robot.measurement import Goal, Measurement, tracked_point
from snake_gym.robot.spec import FloatArray, RobotSpec


@dataclass(frozen=True)
class CourseConfig:
    """Where the robot shall go."""

    targets: tuple[tuple[float, float], ...] = ((1.0, 0.0),)
    """[m] world frame of the pose source, in order."""
    radius_m: float = 0.1
    """A target is reached when the tracked point is this near."""
    tracked_point: Literal["centre", "head"] = "centre"

    def __post_init__(self) -> None:
        shape = np.array(self.targets, dtype=float).shape
        if len(shape) != 2 or shape[0] < 1 or shape[1] != 2 or not np.isfinite(np.array(self.targets)).all():
            raise ValueError(f"course.targets is {self.targets!r}; expected at least one [x, y] of finite numbers [m]")
        if not (math.isfinite(self.radius_m) and self.radius_m > 0.0):
            raise ValueError(f"course.radius_m is {self.radius_m:g}; expected finite and > 0")
        if self.tracked_point not in ("centre", "head"):
            raise ValueError(f"course.tracked_point is {self.tracked_point!r}; expected 'centre' or 'head'")


class MeasuredCourse:
    """One robot's way along the targets."""

    def __init__(self, config: CourseConfig, spec: RobotSpec) -> None:
        self.config = config
        self._spec = spec
        self.targets_xy: FloatArray = np.array(config.targets, dtype=np.float64)
        self.index = 0
        """Current target; equal to the number of targets reached."""
        self.progress_m = 0.0
        self._last_xy: FloatArray | None = None

    @property
    def complete(self) -> bool:
        return self.index >= len(self.targets_xy)

    @property
    def distance_m(self) -> float:
        """From where the tracked point was last seen to the current target; NaN: not seen yet."""
        return math.nan if self._last_xy is None else float(np.hypot(*(self.goal().target_xy_w[0] - self._last_xy)))

    def begin(self, measurement: Measurement, targets: Sequence[Sequence[float]] | None = None) -> None:
        """Start at the first target, from where the robot is; ``targets`` replaces those of the settings."""
        if targets is not None:
            self.targets_xy = np.array(targets, dtype=np.float64)
        self.index, self.progress_m = 0, 0.0
        self._last_xy = self._point(measurement) if measurement.pose_valid[0] else None

    def goal(self) -> Goal:
        """Current target (1, 2) [m]; inactive when the course is complete."""
        current = min(self.index, len(self.targets_xy) - 1)
        return Goal(self.targets_xy[current][None].copy(), np.array([not self.complete]))

    def advance(self, measurement: Measurement) -> tuple[float, bool]:
        """Progress of one step [m] towards the target, and whether it was reached."""
        if self.complete or not measurement.pose_valid[0]:
            return 0.0, False
        here = self._point(measurement)
        target = self.targets_xy[self.index]
        distance = float(np.hypot(*(target - here)))
        made = 0.0 if self._last_xy is None else float(np.hypot(*(target - self._last_xy))) - distance
        self._last_xy = here
        self.progress_m += made
        reached = distance <= self.config.radius_m
        self.index += int(reached)
        return made, reached

    def _point(self, measurement: Measurement) -> FloatArray:
        return tracked_point(self._spec, measurement, self.config.tracked_point)[0].copy()
