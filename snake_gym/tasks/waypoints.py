"""Task: visit targets one after another with a tracked point of the robot.

Progress is the way made towards the current target, [m]: distance at the step's start minus distance at its end, both
to the target that was current during the step; it is what all reward and all benchmarks count. Truth is used here, not
measurements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import choose
from snake_gym.config.errors import show
from snake_gym.physics.state import ChainState, Obstacles
from snake_gym.robot.measurement import POINTS, Goal
from snake_gym.robot.spec import FloatArray
from snake_gym.tasks.task import BoolArray, Scenery, Start

PAPER_TARGETS = ((1.0, 1.0), (3.0, 1.0), (4.0, 0.0), (6.0, -1.0), (8.0, -1.0))
"""[m] sibilska2022, Table 2 (recomputed)."""

FARTHEST_M = 1e6
"""Largest coordinate or distance: from there on a position is no finer than 1e-10 m."""
MAX_TARGETS = 10_000
"""Longest random course: every world holds all its targets."""

Point = Literal["centre", "head"]


@dataclass(frozen=True)
class CourseConfig:
    """Where the targets are."""

    kind: Literal["random", "paper", "list"] = "random"
    """random: each target at a random direction and distance from the last; paper: sibilska2022; list: targets."""
    targets: tuple[tuple[float, float], ...] = ()
    """[m] for kind list."""
    n_targets: int = 64
    """Length of a random course."""
    min_distance_m: float = 1.0
    max_distance_m: float = 2.0
    max_turn_rad: float = math.pi
    """Random course: largest change of direction from one target to the next."""
    radius_m: float = 0.1
    """A target is reached when the tracked point is this near."""
    success_targets: int = 3
    """Random course: an episode with at least so many targets counts as a success; else all targets must be reached."""
    tracked_point: Point = "centre"

    def __post_init__(self) -> None:
        if self.kind == "list" and not self.targets:
            raise ValueError("course.targets is empty; expected at least one [x, y] for course.kind list")
        if not (np.abs(np.array(self.targets, dtype=float)) <= FARTHEST_M).all():
            raise ValueError(f"course.targets is {list(self.targets)}; expected finite numbers within {FARTHEST_M:g} m")
        if not 0.0 < self.min_distance_m <= self.max_distance_m <= FARTHEST_M:
            raise ValueError(
                f"course.min_distance_m is {self.min_distance_m:g}, max_distance_m {self.max_distance_m:g}; "
                f"expected 0 < min <= max <= {FARTHEST_M:g}"
            )
        if not 0.0 < self.radius_m <= FARTHEST_M:
            raise ValueError(f"course.radius_m is {self.radius_m:g}; expected > 0 and <= {FARTHEST_M:g}")
        if not 1 <= self.n_targets <= MAX_TARGETS:
            raise ValueError(f"course.n_targets is {show(self.n_targets)}; expected 1 to {MAX_TARGETS}")
        if self.success_targets < 1:
            raise ValueError(f"course.success_targets is {show(self.success_targets)}; expected >= 1")
        if not 0.0 <= self.max_turn_rad <= math.pi:
            raise ValueError(f"course.max_turn_rad is {self.max_turn_rad:g}; expected in [0, pi]")
        choose(self.tracked_point, POINTS, "course.tracked_point")


@dataclass(frozen=True)
class RewardConfig:
    """Weights of the reward terms; the reward is the sum of weight times term."""

    progress: float = 10.0
    """per metre towards the current target."""
    target: float = 2.0
    """per target reached."""
    effort: float = -0.01
    """per unit of squared action, summed over the action's entries."""
    energy: float = 0.0
    """per joule of positive actuator work."""

    def __post_init__(self) -> None:
        for f in fields(self):
            if not math.isfinite(getattr(self, f.name)):
                raise ValueError(f"reward.{f.name} is {getattr(self, f.name):g}; expected a finite number")


class Waypoints:
    """Targets and progress of W worlds: a ``Task``."""

    purpose = "course"
    score = "progress_m"
    obstacles: Obstacles | None = None

    def __init__(self, config: CourseConfig, n_worlds: int, reward: RewardConfig | None = None) -> None:
        self.config = config
        self.tracked_point: str = config.tracked_point
        self.radius_m = config.radius_m
        weights = RewardConfig() if reward is None else reward
        self.weights: Mapping[str, float] = {f.name: getattr(weights, f.name) for f in fields(weights)}
        fixed = {"paper": PAPER_TARGETS, "list": config.targets}.get(config.kind)
        self.n_targets = config.n_targets if fixed is None else len(fixed)
        self.targets_xy: FloatArray = np.zeros((n_worlds, self.n_targets, 2))
        if fixed is not None:
            self.targets_xy[:] = np.array(fixed)
        self.index = np.zeros(n_worlds, np.int64)
        """(W,) current target; equal to the number of targets reached."""
        self.progress_m: FloatArray = np.zeros(n_worlds)
        self.first_target_s: FloatArray = np.full(n_worlds, np.inf)
        """(W,) [s] when the first target was reached, inf until then; last_target_s likewise."""
        self.last_target_s: FloatArray = np.full(n_worlds, np.inf)
        self._rows = np.arange(n_worlds)
        self._goal = Goal(np.zeros((n_worlds, 2)), np.zeros(n_worlds, bool))
        self.choose_targets()

    @property
    def n_random(self) -> int:
        """Random numbers that ``begin`` needs per world."""
        return 2 * self.n_targets if self.config.kind == "random" else 0

    @property
    def n_success(self) -> int:
        """Targets that make an episode a success."""
        return min(self.config.success_targets, self.n_targets) if self.config.kind == "random" else self.n_targets

    def begin(self, joint_angle: FloatArray, heading: FloatArray, u: FloatArray, rows: Any) -> Start:
        """New courses for the worlds of ``rows`` (M indices), from the origin in the direction ``heading`` (M,) [rad].

        Args:
            joint_angle: (M, J) [rad]; any shape will do.
            u: (M, n_random) numbers in [0, 1).
        """
        config = self.config
        start = Start(np.zeros((heading.size, 2)), heading)
        if config.kind == "random":
            turn = (2.0 * u[:, : self.n_targets] - 1.0) * config.max_turn_rad
            reach = config.max_distance_m - config.min_distance_m
            distance = config.min_distance_m + u[:, self.n_targets :] * reach
            direction = heading[:, None] + np.cumsum(turn, axis=1)
            leg = distance[..., None] * np.stack([np.cos(direction), np.sin(direction)], axis=-1)
            self.targets_xy[rows] = start.point_xy[:, None, :] + np.cumsum(leg, axis=1)
        self.index[rows] = 0
        self.progress_m[rows] = 0.0
        self.first_target_s[rows] = np.inf
        self.last_target_s[rows] = np.inf
        self.choose_targets()
        return start

    def point(self, state: ChainState) -> FloatArray:
        """True position (W, 2) [m] of the tracked point."""
        return state.head_xy if self.config.tracked_point == "head" else state.centre_xy

    def aim(self, measured_xy: FloatArray, rows: Any) -> None:
        """Nothing to choose: the targets are known, in whatever place the robot is."""

    def goal(self) -> Goal:
        """Current target of every world; inactive where the course is complete. Not to be written to."""
        return self._goal

    def choose_targets(self) -> None:
        """Make ``goal`` follow from ``index`` and ``targets_xy`` after these were written to."""
        current = np.minimum(self.index, self.n_targets - 1)
        self._goal = Goal(self.targets_xy[self._rows, current], self.index < self.n_targets)

    def evaluate(
        self, before_xy: FloatArray, state: ChainState, action: FloatArray, work_j: FloatArray, live: BoolArray
    ) -> tuple[dict[str, FloatArray], BoolArray]:
        """Raw reward terms of one step and which worlds completed their course; moves targets on. See ``Task``."""
        goal = self.goal()
        gap_before = goal.target_xy_w - before_xy
        gap = goal.target_xy_w - self.point(state)
        counting = live & goal.active
        distance = np.hypot(gap[:, 0], gap[:, 1])
        made = np.where(counting, np.hypot(gap_before[:, 0], gap_before[:, 1]) - distance, 0.0)
        reached = counting & (distance <= self.config.radius_m)
        self.progress_m += made
        if reached.any():
            self.index[reached] += 1
            self.last_target_s[reached] = state.time_s[reached]
            first = reached & np.isinf(self.first_target_s)
            self.first_target_s[first] = state.time_s[first]
            self.choose_targets()
        terms = {
            "progress": made,
            "target": reached.astype(np.float64),
            "effort": (action * action).sum(axis=1) * live,
            "energy": work_j * live,
        }
        return terms, self.index >= self.n_targets

    def infos(self) -> dict[str, NDArray[Any]]:
        """See ``Task``."""
        return {
            "progress_m": self.progress_m.copy(),
            "targets_reached": self.index.copy(),
            "time_to_first_target_s": self.first_target_s.copy(),
            "last_target_time_s": self.last_target_s.copy(),
            "is_success": self.index >= self.n_success,
        }

    def scenario(self) -> dict[str, NDArray[Any]]:
        """The courses."""
        return {"targets_xy": self.targets_xy.copy()}

    def scenery(self, world: int) -> Scenery | None:
        """A plane."""
        return None

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """See ``Task``."""
        return {
            "targets_xy": self.targets_xy, "target_index": self.index, "progress_m": self.progress_m,
            "first_target_s": self.first_target_s, "last_target_s": self.last_target_s,
        }  # fmt: skip

    def check_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Any will do: nothing in them follows from the others."""

    def restored(self) -> None:
        """See ``Task``."""
        self.choose_targets()
