"""Task: get through a random field of obstacles to the goal.

A field comes with a route that a disc of the robot's width gets along. Progress is measured on that route: the arc
length [m] of the place nearest to the tracked point, at the step's end minus at its begin. A detour that the route
makes is progress, not loss, and the way around an obstacle pays as much as the straight one.

The target that the robot is shown is the place on the route ``lookahead_m`` ahead of the one nearest to the *measured*
tracked point; or, with ``guidance: goal``, the goal itself. Learned and classical policies are shown
the same. Scores and ends use the truth.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError, Settings
from snake_gym.config.settings import Positive
from snake_gym.obstacles.fields import Field, FieldConfig, FieldMaker, RobotExtent
from snake_gym.obstacles.grid import empty_arrays, with_ends, write_world
from snake_gym.obstacles.polyline import Routes
from snake_gym.physics.state import ChainState, Obstacles
from snake_gym.robot.measurement import Goal, centre_offset, chain_angles, head_angle_for
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.sensors import ContactSensorConfig, RangeScanConfig, SensorSuite
from snake_gym.tasks.task import BoolArray, EnvConfig, Point, Record, Scenery, Start, Task

_REACH_M = 0.5
"""How far along the route the nearest place is looked for, from the last one on."""
_OBSTACLE = "obstacle/"
"""The names of the obstacles' arrays in a state begin with it."""
_PHASES = 64
"""Moments of the wave that the robot's width is taken from."""
_LEVELS = 32
"""Steps in which fields change with the env's difficulty."""


class GoalConfig(Settings):
    """Where to go, and what is shown of it."""

    guidance: Literal["route", "goal"] = "route"
    """The target shown: a place on the route ahead of the robot, or the goal itself."""
    lookahead_m: Positive | None = None
    """How far ahead on the route; None: a third of the robot's length."""
    radius_m: Positive = 0.15
    """The goal is reached when the tracked point is this near."""
    tracked_point: Point = "head"
    """What goes along the route and to the goal: head, or centre (of mass). At the end of a corridor the goal is within
    the head's reach only."""


class FieldRewardConfig(Settings):
    """Weights of the reward terms; the reward is the sum of weight times term."""

    progress: float = 10.0
    """per metre along the route."""
    goal: float = 10.0
    """when the goal is reached."""
    effort: float = -0.01
    """per unit of squared action, summed over the action's entries."""
    energy: float = 0.0
    """per joule of positive actuator work."""
    contact: float = 0.0
    """per newton of contact force, summed over the links (mean over the step)."""


class AmongObstaclesConfig(EnvConfig):
    """Settings of every task among obstacles: their field and the goal belong to the task."""

    reward: FieldRewardConfig = dataclasses.field(default_factory=FieldRewardConfig)
    contact_sensor: ContactSensorConfig = dataclasses.field(default_factory=ContactSensorConfig)
    range_scan: RangeScanConfig = dataclasses.field(default_factory=RangeScanConfig)

    def make_sensors(self, spec: RobotSpec, n_worlds: int) -> SensorSuite:
        return SensorSuite(
            self.sensors, n_worlds, spec.n_joints, self.contact_sensor, self.range_scan, self.faults.reveal
        )

    def at_difficulty(self, difficulty: float) -> Self:
        """The field's difficulty is that share of its own, in 32 steps."""
        field: Any = self.field  # type: ignore[attr-defined]  # every task among obstacles has one
        easier = replace(field, difficulty=round(_LEVELS * difficulty) / _LEVELS * field.difficulty)
        return replace(super().at_difficulty(difficulty), field=easier)  # type: ignore[call-arg]


class ObstacleFieldConfig(AmongObstaclesConfig):
    """A planar snake robot gets through a field of obstacles, by default with 0 to 3 joints locked.

    A chain of links crawls on flat ground with anisotropic friction among pegs, trees or walls, which it may touch
    and push off from. The joints of ``faults`` fail, unknown to the policy. Every field is random and has a way
    through. The robot starts in front of it and is to bring its tracked point (centre of mass or head) to the goal
    behind it. Terminated when the goal is reached.

    It feels the contact force on each link (``contact_sensor.*``) and sees the distances to the obstacles around its
    head (``range_scan.*``). The target that it is shown is a place ahead of it on the route through the field, or the
    goal itself (``goal.guidance``).
    """

    field: FieldConfig = dataclasses.field(default_factory=FieldConfig)
    goal: GoalConfig = dataclasses.field(default_factory=GoalConfig)

    def make_task(self, spec: RobotSpec, n_worlds: int) -> Task:
        start = self.start
        extent = robot_extent(spec, start.amplitude_rad, start.phase_shift_rad, self.goal.tracked_point)
        longest = self.randomisation.longest_link()
        return ObstacleField(self.field, self.goal, self.reward, spec, extent, n_worlds, longest)


def robot_extent(spec: RobotSpec, amplitude_rad: float, phase_shift_rad: float, tracked_point: str) -> RobotExtent:
    """The room that a robot takes, bent as any moment of a serpenoid wave, its mean direction straight ahead.

    At the start it is measured from the line through the tracked point; the lane for the way is as wide as the wave,
    wherever the tracked point lies in it.
    """
    radius = float(spec.links("link_radius_m").max())
    half = spec.links("link_half_length_m")
    to_centre = -float(centre_offset(spec, np.zeros((1, spec.n_links)))[0, 0])
    front = float(half[-1]) + radius + (to_centre if tracked_point == "centre" else 0.0)
    phase = np.linspace(0.0, 2.0 * math.pi, _PHASES, endpoint=False)[:, None]
    joint_angle = amplitude_rad * np.sin(phase + np.arange(spec.n_joints) * phase_shift_rad)
    theta = chain_angles(joint_angle, head_angle_for(joint_angle, np.zeros(_PHASES)))
    aside = np.cumsum(np.insert(2.0 * half * np.sin(theta), 0, 0.0, axis=1), axis=1)
    point = aside[:, -1] - half[-1] * np.sin(theta[:, -1])
    if tracked_point == "centre":
        point += centre_offset(spec, theta)[:, 1]
    start = float(np.abs(aside - point[:, None]).max())
    lane = 0.5 * float(np.ptp(aside, axis=1).max())
    return RobotExtent(front, spec.length_m + 2.0 * radius - front, start + radius, radius, lane + radius)


class ObstacleField(Task):
    """Fields, routes and progress of W worlds; ``extent`` is the robot's size at the start and under way.

    ``longest_link``: largest factor by which a link may be longer than the specification's.
    """

    stream = "obstacles"
    score = "is_success"
    records = {  # noqa: RUF012
        "progress_m": Record("m", "way made along the route so far"),
        "time_to_goal_s": Record("s", "when the goal was reached; inf until then", math.inf),
        "n_contacts": Record("1", "places of contact now, mean over the step"),
        "contact_force_n": Record("N", "contact forces now, mean over the step, summed over the links"),
        "contact_time_s": Record("s", "time with at least one contact so far, in whole steps"),
        "contact_impulse_ns": Record("N s", "contact forces of all links over time so far"),
        "penetration_m": Record("m", "deepest penetration into an obstacle so far"),
    }
    further_infos = {  # noqa: RUF012
        "route_m": ("m", "length of the route"),
        "is_success": ("bool", "the goal has been reached"),
    }

    def __init__(
        self,
        field: Any,
        goal: GoalConfig,
        reward: FieldRewardConfig,
        spec: RobotSpec,
        extent: RobotExtent,
        n_worlds: int,
        longest_link: float = 1.0,
    ) -> None:
        super().__init__(reward, n_worlds, 1, goal.radius_m, goal.tracked_point)
        self.config = goal
        self._spec, self._extent = spec, extent
        self._makers: dict[Any, Any] = {}
        self.maker = self._maker_of(field)
        half_length, radius = spec.links("link_half_length_m").max(), spec.links("link_radius_m").max()
        skin = float(half_length)
        self._grid_reach_m = float(longest_link * half_length + radius) + skin
        bounds = self.maker.bounds
        for level in range(_LEVELS):  # room for the easiest fields that there are
            with suppress(ConfigError):
                bounds = self.maker.bounds_down_to(level / _LEVELS * field.difficulty)
                break
        self._arrays = empty_arrays(n_worlds, bounds.with_ends(), self._grid_reach_m, skin)
        self.obstacles: Obstacles = Obstacles(*self._arrays)
        self.n_features = np.zeros(n_worlds, np.int64)
        self.routes = Routes(n_worlds, self.maker.route_points)
        self.shown_m: FloatArray = np.zeros(n_worlds)
        """(W,) [m] arc length nearest to the measured point; ``progress_m`` is that of the true one."""
        self._dt_s = spec.control_dt_s
        self._lookahead_m = spec.length_m / 3.0 if goal.lookahead_m is None else goal.lookahead_m
        self._goal = Goal(np.zeros((n_worlds, 2)), np.ones(n_worlds, bool))

    @property
    def n_random(self) -> int:
        return 1

    def make_maker(self, field: Any) -> Any:
        """Return what makes the fields of these settings."""
        return FieldMaker(field, self._extent)

    def follow(self, config: EnvConfig) -> None:
        self.maker = self._maker_of(config.field)  # type: ignore[attr-defined]

    def _maker_of(self, field: Any) -> Any:
        if field not in self._makers:
            self._makers[field] = self.make_maker(field)
        return self._makers[field]

    def draw_fields(
        self, joint_angle: FloatArray, heading: FloatArray, rngs: Iterable[np.random.Generator], rows: Any
    ) -> tuple[Start, Iterable[Field]]:
        """Return where the robots of ``rows`` start and their new fields, each by its generator; see ``begin``."""
        fields = (self.maker.make(rng, (0.0, 0.0), ahead) for rng, ahead in zip(rngs, heading.tolist(), strict=True))
        return Start(np.zeros((rows.size, 2)), head_angle_for(joint_angle, heading)), fields

    def begin(self, joint_angle: FloatArray, heading: FloatArray, u: FloatArray, rows: NDArray[np.int64]) -> Start:
        rngs = (np.random.default_rng(int(number * 2.0**53)) for number in u[:, 0].tolist())
        start, fields = self.draw_fields(joint_angle, heading, rngs, rows)
        for world, field in zip(rows.tolist(), fields, strict=True):
            write_world(self._arrays, world, with_ends(field.features), self._grid_reach_m)
            self.n_features[world] = len(field.features)
            self.routes.xy[world] = field.route
            self.targets_xy[world, 0] = field.goal_xy
        self.routes.restored(rows)
        self.restart(rows)
        self.shown_m[rows] = 0.0
        return start

    def update_goal(self, measured_xy: FloatArray, rows: Any) -> None:
        """Move the target that is shown along the route."""
        if self.config.guidance == "route":
            self.shown_m[rows] = self.routes.nearest(measured_xy, self.shown_m[rows], _REACH_M, rows)
        self._show(rows)

    @property
    def target_moves(self) -> bool:
        return self.config.guidance != "route" and super().target_moves

    def move_target(self, world: int, xy: Any) -> None:
        """Move the goal, where it is shown itself; a route leads to where it was."""
        if self.config.guidance == "route":
            raise ConfigError("the target is a place on the route; goal.guidance=goal makes it one that can be moved")
        super().move_target(world, xy)

    def has_reached(self, state: ChainState, point: FloatArray) -> BoolArray:
        """Return which robots (W,), whose tracked points are ``point`` (W, 2) [m], have done what they are to do."""
        gap = self.targets_xy[:, 0] - point
        return np.hypot(gap[:, 0], gap[:, 1]) <= self.radius_m

    def evaluate(
        self, before_xy: FloatArray, state: ChainState, action: FloatArray, work_j: FloatArray, live: BoolArray
    ) -> tuple[dict[str, FloatArray], BoolArray]:
        point = self.point(state)
        going = live & (self.index == 0)
        made = np.where(going, self.routes.nearest(point, self.progress_m, _REACH_M) - self.progress_m, 0.0)
        reached = going & self.has_reached(state, point)
        self.index[reached] = 1
        force = np.hypot(state.contact_force[..., 0], state.contact_force[..., 1]).sum(axis=1) * live
        record = self.record
        record["progress_m"] += made
        record["time_to_goal_s"][reached] = state.time_s[reached]
        record["contact_force_n"][:], record["n_contacts"][:] = force, state.n_contacts * live
        record["contact_time_s"] += self._dt_s * (record["n_contacts"] > 0.0)
        record["contact_impulse_ns"] += self._dt_s * force
        np.maximum(record["penetration_m"], state.penetration_m, out=record["penetration_m"], where=live)
        terms = {
            "progress": made,
            "goal": reached.astype(np.float64),
            "effort": (action * action).sum(axis=1) * live,
            "energy": work_j * live,
            "contact": force,
        }
        return terms, self.index > 0

    def infos(self) -> dict[str, NDArray[Any]]:
        return {**super().infos(), "route_m": self.routes.length_m.copy()}

    def scenario(self) -> dict[str, NDArray[Any]]:
        return {"obstacles": self.obstacles.feature.copy(), "route_xy": self.routes.xy.copy()}

    def scenery(self, world: int) -> Scenery | None:
        return Scenery(self.obstacles.feature[world, : self.n_features[world]].copy(), self.routes.xy[world].copy())

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        obstacles = {_OBSTACLE + name: v for name, v in self.obstacles._asdict().items() if isinstance(v, np.ndarray)}
        return {
            **super().state_arrays(), "n_features": self.n_features, "route_xy": self.routes.xy,
            "shown_m": self.shown_m, **obstacles,
        }  # fmt: skip

    def restored(self) -> None:
        self.routes.restored()
        self._show(slice(None))

    def _show(self, rows: Any) -> None:
        target = self._goal.target_xy_w.copy()
        if self.config.guidance == "route":
            target[rows] = self.routes.place(self.shown_m[rows] + self._lookahead_m, rows)
        else:
            target[rows] = self.targets_xy[rows, 0]
        self._goal = Goal(target, self.index == 0)
