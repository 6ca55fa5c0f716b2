"""Task: visit targets one after another with a tracked point of the robot.

Progress is the way made towards the current target, [m]: distance at the step's start minus distance at its end, both
to the target that was current during the step; it is what all reward and all benchmarks count. Truth is used here, not
measurements.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field

from snake_gym.config import Settings, check_order
from snake_gym.config.settings import PositiveCount
from snake_gym.interface.mirror import SAME, TURNED
from snake_gym.interface.observations import NEAR_M, Seen, register_column
from snake_gym.robot.measurement import mean_angle, tracked_point
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.tasks.task import BoolArray, Coordinate, EnvConfig, NewEpisodes, Point, Record, Start, Step, Task

PAPER_TARGETS = ((1.0, 1.0), (3.0, 1.0), (4.0, 0.0), (6.0, -1.0), (8.0, -1.0))
"""[m] sibilska2022, Table 2 (recomputed)."""

Distance = Annotated[float, Field(gt=0.0, le=1e6)]


class CourseConfig(Settings):
    """Where the targets are."""

    kind: Literal["random", "paper", "list"] = "random"
    """random: each target at a random direction and distance from the last; paper: sibilska2022; list: targets."""
    targets: tuple[tuple[Coordinate, Coordinate], ...] = ()
    """[m] for kind list."""
    n_targets: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Length of a random course; every world holds all its targets."""
    min_distance_m: Distance = 1.0
    """Random course: shortest way from one target to the next."""
    max_distance_m: Distance = 2.0
    """Random course: longest way from one target to the next."""
    max_turn_rad: Annotated[float, Field(ge=0.0, le=math.pi)] = math.pi
    """Random course: largest change of direction from one target to the next."""
    radius_m: Distance = 0.1
    """A target is reached when the tracked point is this near."""
    success_targets: PositiveCount = 3
    """Random course: targets for a success; on other courses it is all of them."""
    tracked_point: Point = "centre"
    """Point of the robot that is to reach the targets: centre (of mass), or head (the centre of the head link)."""
    lookahead: Annotated[int, Field(ge=0, le=8)] = 0
    """Number of further targets, after the current one, that the policy is shown."""

    def check(self) -> None:
        if self.kind == "list" and not self.targets:
            raise ValueError("course.targets is empty; expected at least one [x, y] for course.kind list")
        if self.kind != "list" and self.targets:
            raise ValueError(f"course.targets is given for course.kind {self.kind}; expected course.kind list for them")
        if self.kind == "random" and self.success_targets > max(self.n_targets, CourseConfig.success_targets):
            raise ValueError(
                f"course.success_targets is {self.success_targets}; expected <= {self.n_targets}, n_targets"
            )
        check_order(self, "min_distance_m", "max_distance_m")


class RewardConfig(Settings):
    """Weights of the reward terms; the reward is the sum of weight times term."""

    progress: float = 10.0
    """per metre towards the current target."""
    target: float = 2.0
    """per target reached."""
    effort: float = -0.01
    """per unit of squared action, summed over the action's entries."""
    energy: float = 0.0
    """per joule of positive actuator work."""


class WaypointsConfig(EnvConfig):
    """A planar snake robot visits targets, by default with 0 to 3 joints locked.

    A chain of links crawls on flat ground with anisotropic friction by moving its joints; those of ``faults`` fail,
    unknown to the policy. It is to bring its tracked point (centre of mass or head) to one target after another.
    Terminated when the course is complete.

    With ``course.lookahead`` it also sees the next targets after the current one, relative to its measured tracked
    point and heading.
    """

    course: CourseConfig = field(default_factory=CourseConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)

    def at_difficulty(self, difficulty: float) -> Self:
        """Random courses turn by that share of their largest turn."""
        course = replace(self.course, max_turn_rad=difficulty * self.course.max_turn_rad)
        return replace(super().at_difficulty(difficulty), course=course)

    def make_task(self, spec: RobotSpec, n_worlds: int) -> Task:
        return Waypoints(self.course, n_worlds, self.reward)


def _register_next(number: int) -> str:
    name = f"next_target_{number}"

    @register_column(
        name, "1", f"sine and cosine of mean link angle minus bearing of target {number} after the current one (at the "
        f"course's end: the last), and its distance / {NEAR_M:g} m, at most 1", 3, bound=1.0,
        needs=f"course.lookahead of {number} or more", mirror=(TURNED, SAME, SAME),
    )  # fmt: skip
    def next_target(seen: Seen) -> FloatArray:
        point = tracked_point(seen.layout.spec, seen.measurement, seen.layout.point)
        way = seen.signals["next_targets_xy"][:, number - 1] - point
        error = mean_angle(seen.measurement) - np.arctan2(way[:, 1], way[:, 0])
        return np.stack([np.sin(error), np.cos(error), np.hypot(way[:, 0], way[:, 1]) / NEAR_M], axis=1)

    return name


NEXT_TARGETS = tuple(_register_next(number) for number in range(1, 9))


class Waypoints(Task):
    """Targets and progress of W worlds."""

    stream = "course"
    columns = NEXT_TARGETS
    reach_m = math.inf
    """Distance from the origin, along x and along y, that random courses keep within."""
    records = {  # noqa: RUF012
        "progress_m": Record("m", "way made towards the targets so far, all targets together"),
        "time_to_first_target_s": Record("s", "when the first target was reached; inf until then", math.inf),
        "last_target_time_s": Record("s", "when the last target so far was reached; inf until then", math.inf),
        "targets_reached": Record("1", "targets reached so far", 0),
        "is_success": Record("bool", "enough targets reached (`course.success_targets`, or the whole course)", False),
    }

    def __init__(self, config: CourseConfig, n_worlds: int, reward: RewardConfig | None = None) -> None:
        self._fixed = {"paper": PAPER_TARGETS, "list": config.targets}.get(config.kind)
        n_targets = config.n_targets if self._fixed is None else len(self._fixed)
        super().__init__(reward or RewardConfig(), n_worlds, n_targets, config.radius_m, config.tracked_point)
        self.columns = tuple(name for name in self.columns if name not in NEXT_TARGETS[config.lookahead :])
        self.n_random = 2 * n_targets if self._fixed is None else 0
        self._lookahead = config.lookahead
        self._n_success = min(config.success_targets, n_targets) if self._fixed is None else n_targets

    def begin(self, new: NewEpisodes) -> Start:
        """New courses, from the origin in the direction ``heading``; any joint angles will do."""
        config: CourseConfig = new.config.course
        start = Start(np.zeros((new.rows.size, 2)), new.heading)
        if self._fixed is not None:
            self.targets_xy[new.rows] = self._fixed
            return start
        turn = (2.0 * new.u[:, : self.n_targets] - 1.0) * config.max_turn_rad
        reach = config.max_distance_m - config.min_distance_m
        distance = config.min_distance_m + new.u[:, self.n_targets : 2 * self.n_targets] * reach
        direction = new.heading[:, None] + np.cumsum(turn, axis=1)
        leg = distance[..., None] * np.stack([np.cos(direction), np.sin(direction)], axis=-1)
        if math.isfinite(self.reach_m):
            leg = turned_back(leg, self.reach_m)
        self.targets_xy[new.rows] = start.point_xy[:, None, :] + np.cumsum(leg, axis=1)
        return start

    def evaluate(self, step: Step) -> tuple[dict[str, FloatArray], BoolArray]:
        target, record, time_s = step.goal.target_xy_w, self.record, step.state.time_s
        gap_before, gap = target - step.before_xy, target - step.point_xy
        counting = step.live & step.goal.active
        distance = np.hypot(gap[:, 0], gap[:, 1])
        made = np.where(counting, np.hypot(gap_before[:, 0], gap_before[:, 1]) - distance, 0.0)
        reached = counting & (distance <= self.radius_m)
        record["progress_m"] += made
        if reached.any():
            first = reached & (self.index == 0)
            record["time_to_first_target_s"][first] = time_s[first]
            record["last_target_time_s"][reached] = time_s[reached]
            self.index[reached] += 1
            record["targets_reached"][:] = self.index
            record["is_success"][:] = self.index >= self._n_success
        terms = {"progress": made, "target": reached.astype(np.float64), **step.efforts()}
        return terms, self.index >= self.n_targets

    def signals(self) -> dict[str, FloatArray]:
        """The next targets, if any are shown."""
        if self._lookahead == 0:
            return {}
        ahead = self.index[:, None] + np.arange(1, self._lookahead + 1)
        return {"next_targets_xy": self.targets_xy[self.rows[:, None], np.minimum(ahead, self.n_targets - 1)]}


def turned_back(leg: FloatArray, reach_m: float) -> FloatArray:
    """Return legs (W, n, 2) [m] of courses from the origin that stay within ``reach_m`` [m] along x and along y.

    From where a leg would leave on, the course is mirrored. No leg may be longer than ``reach_m``.
    """
    at, way, kept = np.zeros_like(leg[:, 0]), np.ones_like(leg[:, 0]), np.empty_like(leg)
    for i in range(leg.shape[1]):
        way[np.abs(at + way * leg[:, i]) > reach_m] *= -1.0
        kept[:, i] = way * leg[:, i]
        at += kept[:, i]
    return kept
