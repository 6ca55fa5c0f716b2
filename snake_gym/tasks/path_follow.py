"""Task: follow a path with a tracked point of the robot, as fast as possible or at a given speed.

The place on the path is the arc length [m] of the point of the path that is nearest to the tracked point, looked for
near the last one, so that a path may cross itself. Progress counts each piece of the path once, when the robot passes
it for the first time, and only while the tracked point is within ``follow.tolerance_m`` of the path. A piece that is
passed farther off, as by a short cut, never counts, even if the robot comes back to it. With a wanted speed, progress
is at most the way that the schedule has made.

The target that the robot is shown is the place ``lookahead_m`` ahead of the one nearest to the *measured* tracked
point. Learned and classical policies are shown the same. Scores and ends use the truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field

from snake_gym.config import Settings
from snake_gym.config.settings import Limit, Positive, PositiveShare
from snake_gym.interface.mirror import SAME, TURNED
from snake_gym.interface.observations import Seen, register_column, sin_cos
from snake_gym.obstacles.polyline import Routes
from snake_gym.robot.measurement import Goal, head_angle_for, mean_angle, tracked_point
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.tasks.paths import PathConfig, PathMaker
from snake_gym.tasks.task import BoolArray, EnvConfig, NewEpisodes, Point, Record, Scenery, Start, Step, Task

MOST_PREVIEWS = 8
_REACH_M = 0.5
"""How far along the path the nearest place is looked for, from the last one on; at most a quarter of the path."""
_PIECES = 8
"""Pieces of the path passed in a step, each of which has been near the robot or not."""
_CATCH_UP_S = 5.0
"""Time in which the commanded speed makes up for being behind the schedule."""
_FULL_CROSS_M = 0.5
"""Cross-track error that is shown as 1."""
_ROUNDING = 1e-12
"""Share of the path's length by which arc lengths of its end may differ."""

Ahead = Annotated[float, Field(ge=0.0, le=1e6)]


class FollowConfig(Settings):
    """What is shown of the path, and how it is to be followed."""

    lookahead_m: Positive | None = None
    """How far ahead the target lies; None: a third of the robot's length. On closed paths at most one lap."""
    preview_m: Annotated[tuple[Ahead, ...], Field(max_length=MOST_PREVIEWS)] = (0.0, 0.5, 1.0)
    """How far ahead the path's directions are shown, up to 8 of them; on closed paths at most one lap."""
    speed_m_s: Annotated[float, Field(ge=0.001, le=100.0)] | None = None
    """Wanted speed along the path, of the schedule; None: as fast as possible."""
    tolerance_m: Positive = 0.15
    """Progress counts while the tracked point is this near to the path."""
    success_share: PositiveShare = 0.9
    """A success is an episode in which this share of the path has counted as passed ..."""
    success_rms_m: Limit = math.inf
    """... with a cross-track error of at most this (root of the mean square over the episode)."""
    tracked_point: Point = "centre"
    """Point of the robot that is to stay on the path: centre (of mass), or head (the centre of the head link)."""


class PathRewardConfig(Settings):
    """Weights of the reward terms; the reward is the sum of weight times term."""

    progress: float = 10.0
    """per metre of the path, counted as progress_m."""
    cross_track: float = -1.0
    """per metre of distance from the path, in each step."""
    schedule: float = -0.5
    """per metre ahead of or behind the schedule, in each step; 0 without a wanted speed."""
    effort: float = -0.01
    """per unit of squared action, summed over the action's entries."""
    energy: float = 0.0
    """per joule of positive actuator work."""


class PathFollowConfig(EnvConfig):
    """A planar snake robot follows a path, by default with 0 to 3 joints locked.

    A chain of links crawls on flat ground with anisotropic friction by moving its joints; those of ``faults`` fail,
    unknown to the policy. The path begins at its tracked point (centre of mass or head): a line, circle, square, random
    spline or recorded points. Progress counts the path that it passes within ``follow.tolerance_m``, each piece once,
    and with a wanted speed (``follow.speed_m_s``) no more than the schedule has made by then. Terminated when the end
    of the path, or of one lap, is reached.

    It is shown the place on the path ``follow.lookahead_m`` ahead as its target, and its distance from the path and the
    path's direction at one or several places ahead, all from measurements.
    """

    path: PathConfig = field(default_factory=PathConfig)
    follow: FollowConfig = field(default_factory=FollowConfig)
    reward: PathRewardConfig = field(default_factory=PathRewardConfig)

    def at_difficulty(self, difficulty: float) -> Self:
        """Paths bend, and turn from the robot's heading, by that share of their largest bend and turn."""
        path = self.path
        easier = replace(path, max_turn_rad=difficulty * path.max_turn_rad)
        if path.kind == "spline":
            easier = replace(easier, max_bend_rad=difficulty * path.max_bend_rad)
        return replace(super().at_difficulty(difficulty), path=easier)

    def make_task(self, spec: RobotSpec, n_worlds: int) -> Task:
        return PathFollow(self.path, self.follow, self.reward, spec, n_worlds)


@register_column(
    "cross_track", "m", "distance of the tracked point from the path, positive to its left", scale=1.0 / _FULL_CROSS_M,
    bound=2.0, mirror=TURNED,
)  # fmt: skip
def cross_track(seen: Seen) -> FloatArray:
    layout = seen.layout
    point = tracked_point(layout.spec, seen.measurement, layout.point)
    return _signed_distance(point - seen.signals["path_xy"], seen.signals["path_direction"][:, 0])[:, None]


def _register_preview(number: int) -> str:
    name = f"path_direction_{number}"

    @register_column(
        name, "1", f"sine and cosine of mean link angle minus the path's direction at preview place {number}", 2,
        bound=1.0, needs=f"{number} or more places in follow.preview_m", mirror=(TURNED, SAME),
    )  # fmt: skip
    def direction(seen: Seen) -> FloatArray:
        ahead = seen.signals["path_direction"][:, number]
        return sin_cos(mean_angle(seen.measurement) - np.arctan2(ahead[:, 1], ahead[:, 0]))

    return name


PREVIEWS = tuple(_register_preview(number) for number in range(1, MOST_PREVIEWS + 1))


@register_column(
    "behind_schedule", "m", "way that the schedule is ahead of the place on the path", needs="follow.speed_m_s",
    mirror=SAME,
)  # fmt: skip
def behind_schedule(seen: Seen) -> FloatArray:
    return seen.signals["behind_m"][:, None]


def _signed_distance(gap: FloatArray, direction: FloatArray) -> FloatArray:
    """Return the length (M,) of ``gap`` (M, 2), positive to the left of ``direction`` (M, 2)."""
    side = direction[:, 0] * gap[:, 1] - direction[:, 1] * gap[:, 0]
    return np.copysign(np.hypot(gap[:, 0], gap[:, 1]), side)


class PathFollow(Task):
    """Paths and progress of W worlds; ``index`` is 1 where the end is reached."""

    stream = "path"
    columns = ("cross_track", *PREVIEWS, "behind_schedule")
    moves_target = False
    records = {  # noqa: RUF012
        "progress_m": Record("m", "path passed within the tolerance so far, at most the schedule's way"),
        "passed_m": Record("m", "path passed within the tolerance so far"),
        "arc_m": Record("m", "arc length of the place on the path now, at most `route_m`"),
        "furthest_m": Record("m", "largest arc length so far"),
        "cross_track_error_m": Record("m", "distance from the path now, positive to its left"),
        "mean_cross_track_m": Record("m", "mean size of the cross-track error so far"),
        "rms_cross_track_m": Record("m", "root of the mean squared cross-track error so far"),
        "schedule_m": Record("m", "arc length of the schedule now, at most the path's; 0 without a wanted speed"),
        "schedule_error_m": Record("m", "way ahead of the schedule now, negative behind; 0 without a wanted speed"),
        "mean_schedule_error_m": Record("m", "mean size of the schedule error so far"),
        "time_to_goal_s": Record("s", "when the end was reached; inf until then", math.inf),
        "route_m": Record("m", "length of the path"),
        "is_success": Record(
            "bool", "`follow.success_share` of the path is passed, near enough to it (`follow.success_*`)", False
        ),
    }

    def __init__(
        self, path: PathConfig, follow: FollowConfig, reward: PathRewardConfig, spec: RobotSpec, n_worlds: int
    ) -> None:
        super().__init__(reward, n_worlds, 0, tracked_point=follow.tracked_point)
        self.config, self._dt_s = follow, spec.control_dt_s
        self._lookahead_m = spec.length_m / 3.0 if follow.lookahead_m is None else follow.lookahead_m
        self._preview_m: Sequence[float] = follow.preview_m
        self.maker = PathMaker(path, _REACH_M + max(self._lookahead_m, *follow.preview_m, 0.0))
        self.n_random = self.maker.n_random
        self.routes = Routes(n_worlds, self.maker.n_route)
        self.arrays["path_xy"] = self.routes.xy
        self.scenario = {"path_xy": self.routes.xy[:, : self.maker.n_points]}
        self.length_m = self.maker.length_m
        """[m] of the path, without its run-out."""
        self._reach_m = min(_REACH_M, 0.25 * self.length_m)
        self._is_closed = path.is_closed
        self._most_m = math.inf if path.is_closed else self.length_m
        """[m] largest arc length of a place: a lap goes on at its beginning, beyond an open path's end is none."""
        if path.is_closed:
            self._lookahead_m = min(self._lookahead_m, self.length_m)
            self._preview_m = [min(way, self.length_m) for way in follow.preview_m]
        self.shown_m: FloatArray = self.keep("shown_m", 0.0)
        """(W,) [m] arc length nearest to the measured point, past an open path's end plus the way beyond it; ``arc_m``
        is that of the true point."""
        self.steps = self.keep("steps", 0)
        self.commands_speed = follow.speed_m_s is not None
        schedule = ("behind_schedule",) if self.commands_speed else ()
        self.columns = ("cross_track", *PREVIEWS[: len(follow.preview_m)], *schedule)

    def begin(self, new: NewEpisodes) -> Start:
        """New paths from the origin; the mean of the link angles is ``heading``."""
        self.routes.xy[new.rows] = self.maker.make(new.config.path, new.heading, new.u)
        self.routes.restored(new.rows)
        self.record["route_m"][new.rows] = self.length_m
        return Start(np.zeros((new.rows.size, 2)), head_angle_for(new.joint_angle, new.heading))

    def evaluate(self, step: Step) -> tuple[dict[str, FloatArray], BoolArray]:
        record, point, time_s = self.record, step.point_xy, step.state.time_s
        going = step.live & (self.index == 0)
        near = self.routes.nearest(point, record["arc_m"], self._reach_m, most_m=self._most_m)
        found = np.where(going, near, record["arc_m"])
        arc = np.where(self._is_end(found), self.length_m, found)
        error = _signed_distance(point - self.routes.place(found), self.routes.tangent(found))
        self.steps += going
        self._note(record, going, time_s, arc, error)

        new = arc - record["furthest_m"]
        share = self._share_near(step.before_xy, point, record["furthest_m"], new)
        record["passed_m"] += np.where(going, share * np.maximum(new, 0.0), 0.0)
        record["furthest_m"] += np.where(going, np.maximum(new, 0.0), 0.0)
        progress = np.minimum(record["passed_m"], record["schedule_m"]) if self.commands_speed else record["passed_m"]
        made = progress - record["progress_m"]
        record["progress_m"][:] = progress

        ended = going & (arc >= self.length_m)
        self.index[ended] = 1
        record["time_to_goal_s"][ended] = time_s[ended]
        passed = record["passed_m"] >= self.config.success_share * self.length_m
        record["is_success"][:] = passed & (record["rms_cross_track_m"] <= self.config.success_rms_m)
        terms = {
            "progress": made,
            "cross_track": np.abs(error) * going,
            "schedule": np.abs(record["schedule_error_m"]) * going,
            **step.efforts(),
        }
        return terms, self.index > 0

    def update_goal(self, measured_xy: FloatArray, rows: Any) -> None:
        """Move the target that is shown along the path."""
        last = np.minimum(self.shown_m[rows], self._most_m)
        found = self.routes.nearest(measured_xy, last, self._reach_m, rows, self._most_m)
        if not self._is_closed:
            gap = measured_xy - self.routes.place(found, rows)
            beyond = np.clip((gap * self.routes.tangent(found, rows)).sum(axis=1), 0.0, self._reach_m)
            found += np.where(self._is_end(found), beyond, 0.0)
        self.shown_m[rows] = found

    def goal(self) -> Goal:
        """The place ahead of the shown one, with a speed that catches up with the schedule, if there is one."""
        speed = None
        if self.config.speed_m_s is not None:
            speed = np.maximum(self.config.speed_m_s + self._behind_m() / _CATCH_UP_S, 0.0)
        return Goal(self.routes.place(self.shown_m + self._lookahead_m), self.index == 0, speed)

    def signals(self) -> dict[str, FloatArray]:
        """The place on the path nearest to the measured point, the directions there and ahead; the schedule, if any."""
        ahead, place = (0.0, *self._preview_m), np.minimum(self.shown_m, self._most_m)
        directions = np.stack([self.routes.tangent(self.shown_m + way) for way in ahead], axis=1)
        shown = {"path_xy": self.routes.place(place), "path_direction": directions}
        return {**shown, "behind_m": self._behind_m()} if self.commands_speed else shown

    def scenery(self, world: int) -> Scenery:
        return Scenery(np.zeros((0, 6)), self.routes.xy[world, : self.maker.n_points].copy())

    def restored(self) -> None:
        self.routes.restored()

    def _behind_m(self) -> FloatArray:
        """Return the way (W,) that the schedule is ahead of the shown place."""
        return np.asarray(self.record["schedule_m"] - np.minimum(self.shown_m, self._most_m))

    def _is_end(self, arc: FloatArray) -> BoolArray:
        return arc >= (1.0 - _ROUNDING) * self.length_m

    def _share_near(self, begin_xy: FloatArray, end_xy: FloatArray, arc: FloatArray, way: FloatArray) -> FloatArray:
        """Return which share (W,) of the path from ``arc`` on, ``way`` long (W,), lies within the tolerance of the line
        that the tracked point has gone in this step."""
        moved = end_xy - begin_xy
        square = np.maximum((moved * moved).sum(axis=1), 1e-300)
        near = np.zeros(arc.size)
        for part in range(_PIECES):
            gap = self.routes.place(arc + (part + 0.5) / _PIECES * way) - begin_xy
            along = np.clip((gap * moved).sum(axis=1) / square, 0.0, 1.0)
            near += np.hypot(*(gap - along[:, None] * moved).T) <= self.config.tolerance_m
        return near / _PIECES

    def _note(
        self, record: dict[str, FloatArray], going: BoolArray, time_s: FloatArray, arc: FloatArray, error: FloatArray
    ) -> None:
        """Write the present errors and their means into the records of the worlds that are ``going`` (W,)."""
        n = np.maximum(self.steps, 1)
        wanted = np.minimum((self.config.speed_m_s or 0.0) * time_s, self.length_m)
        ahead = arc - wanted if self.commands_speed else np.zeros_like(arc)
        mean, rms, off = (record[name] for name in ("mean_cross_track_m", "rms_cross_track_m", "mean_schedule_error_m"))
        square = rms * rms
        new = {
            "arc_m": arc, "cross_track_error_m": error, "schedule_m": wanted, "schedule_error_m": ahead,
            "mean_cross_track_m": mean + (np.abs(error) - mean) / n,
            "rms_cross_track_m": np.sqrt(np.maximum(square + (error * error - square) / n, 0.0)),
            "mean_schedule_error_m": off + (np.abs(ahead) - off) / n,
        }  # fmt: skip
        for name, values in new.items():
            np.copyto(record[name], values, where=going)
