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
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from snake_gym.config import ConfigError, Settings
from snake_gym.config.settings import Positive
from snake_gym.obstacles.fields import Field, FieldConfig, FieldMaker, RobotExtent
from snake_gym.obstacles.grid import empty_arrays, with_ends, write_world
from snake_gym.obstacles.polyline import Routes
from snake_gym.physics.state import ChainState, Obstacles
from snake_gym.robot.measurement import Goal, centre_offset, chain_angles, head_angle_for
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.sensors import ContactSensorConfig, RangeScanConfig, SensorSuite
from snake_gym.tasks.task import BoolArray, EnvConfig, NewEpisodes, Point, Record, Scenery, Start, Step, Task

_REACH_M = 0.5
"""How far along the route the nearest place is looked for, from the last one on."""
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
    """Settings of every task among obstacles; those of ``field`` and ``goal`` are the task's own."""

    reward: FieldRewardConfig = dataclasses.field(default_factory=FieldRewardConfig)
    contact_sensor: ContactSensorConfig = dataclasses.field(default_factory=ContactSensorConfig)
    range_scan: RangeScanConfig = dataclasses.field(default_factory=RangeScanConfig)

    @abstractmethod
    def make_maker(self, spec: RobotSpec) -> Any:
        """What makes fields with these settings. Raises ConfigError where the robot does not fit in them."""

    def load_robot(self) -> RobotSpec:
        """The robot's specification, checked against the other settings, the field among them."""
        spec = super().load_robot()
        self.make_maker(spec)
        return spec

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

    def make_maker(self, spec: RobotSpec) -> FieldMaker:
        start = self.start
        extent = robot_extent(spec, start.amplitude_rad, start.phase_shift_rad, self.goal.tracked_point)
        return FieldMaker(self.field, extent)

    def make_task(self, spec: RobotSpec, n_worlds: int) -> Task:
        return ObstacleField(self, spec, n_worlds, self.goal.radius_m, self.goal.tracked_point)


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
    """Fields, routes and progress of W worlds, in which a robot is done within ``radius_m`` of the goal."""

    stream = "obstacles"
    score = "is_success"
    n_random = 1
    records = {  # noqa: RUF012
        "progress_m": Record("m", "way made along the route so far"),
        "time_to_goal_s": Record("s", "when the goal was reached; inf until then", math.inf),
        "n_contacts": Record("1", "places of contact now, mean over the step"),
        "contact_force_n": Record("N", "contact forces now, mean over the step, summed over the links"),
        "contact_time_s": Record("s", "time with at least one contact so far, in whole steps"),
        "contact_impulse_ns": Record("N s", "contact forces of all links over time so far"),
        "penetration_m": Record("m", "deepest penetration into an obstacle so far"),
        "route_m": Record("m", "length of the route"),
        "is_success": Record("bool", "the goal has been reached", False),
    }

    def __init__(self, config: Any, spec: RobotSpec, n_worlds: int, radius_m: float, tracked_point: Point) -> None:
        super().__init__(config.reward, n_worlds, 1, radius_m, tracked_point)
        field, goal = config.field, config.goal
        self.guidance: Literal["route", "goal"] = goal.guidance
        self.moves_target = self.guidance == "goal"
        self.maker: Any = config.make_maker(spec)
        self._makers, self._spec = {field: self.maker}, spec
        half_length, radius = spec.links("link_half_length_m").max(), spec.links("link_radius_m").max()
        skin = float(half_length)
        self._grid_reach_m = float(config.randomisation.highest("link_length") * half_length + radius) + skin
        bounds = self.maker.bounds
        for level in range(_LEVELS):  # room for the easiest fields that there are
            with suppress(ConfigError):
                bounds = self.maker.bounds_down_to(level / _LEVELS * field.difficulty)
                break
        self._arrays = empty_arrays(n_worlds, bounds.with_ends(), self._grid_reach_m, skin)
        self.obstacles: Obstacles = Obstacles(*self._arrays)
        self.routes = Routes(n_worlds, self.maker.route_points)
        self.n_features = self.keep("n_features", 0)
        self.shown_m: FloatArray = self.keep("shown_m", 0.0)
        """(W,) [m] arc length nearest to the measured point; ``progress_m`` is that of the true one."""
        named = self.obstacles._asdict().items()
        self.arrays |= {f"obstacle/{name}": values for name, values in named if isinstance(values, np.ndarray)}
        self.arrays["route_xy"] = self.routes.xy
        self.scenario = {"obstacles": self.obstacles.feature, "route_xy": self.routes.xy}
        self._dt_s = spec.control_dt_s
        self._lookahead_m = spec.length_m / 3.0 if goal.lookahead_m is None else goal.lookahead_m

    def begin(self, new: NewEpisodes) -> Start:
        rows = new.rows
        if new.config.field not in self._makers:
            self._makers[new.config.field] = new.config.make_maker(self._spec)
        self.maker = self._makers[new.config.field]
        rngs = [np.random.default_rng(int(number * 2.0**53)) for number in new.u[:, 0].tolist()]
        start, fields = self.draw_fields(new, rngs)
        for world, field in zip(rows.tolist(), fields, strict=True):
            write_world(self._arrays, world, with_ends(field.features), self._grid_reach_m)
            self.n_features[world] = len(field.features)
            self.routes.xy[world] = field.route
            self.targets_xy[world, 0] = field.goal_xy
        self.routes.restored(rows)
        self.record["route_m"][rows] = self.routes.length_m[rows]
        return start

    def draw_fields(self, new: NewEpisodes, rngs: Sequence[np.random.Generator]) -> tuple[Start, Iterable[Field]]:
        """Return where the robots of new episodes start, and their fields, each by its generator."""
        ahead = zip(rngs, new.heading.tolist(), strict=True)
        start = Start(np.zeros((new.rows.size, 2)), head_angle_for(new.joint_angle, new.heading))
        return start, (self.maker.make(rng, (0.0, 0.0), heading) for rng, heading in ahead)

    def has_reached(self, state: ChainState, point: FloatArray) -> BoolArray:
        """Return which robots (W,) with tracked points ``point`` (W, 2) [m] are done."""
        gap = self.targets_xy[:, 0] - point
        return np.hypot(gap[:, 0], gap[:, 1]) <= self.radius_m

    def evaluate(self, step: Step) -> tuple[dict[str, FloatArray], BoolArray]:
        record, state, point, live = self.record, step.state, step.point_xy, step.live
        going = live & (self.index == 0)
        progress = record["progress_m"]
        made = np.where(going, self.routes.nearest(point, progress, _REACH_M) - progress, 0.0)
        reached = going & self.has_reached(state, point)
        self.index[reached] = 1
        force = np.hypot(state.contact_force[..., 0], state.contact_force[..., 1]).sum(axis=1) * live
        progress += made
        record["is_success"][reached] = True
        record["time_to_goal_s"][reached] = state.time_s[reached]
        record["contact_force_n"][:], record["n_contacts"][:] = force, state.n_contacts * live
        record["contact_time_s"] += self._dt_s * (record["n_contacts"] > 0.0)
        record["contact_impulse_ns"] += self._dt_s * force
        np.maximum(record["penetration_m"], state.penetration_m, out=record["penetration_m"], where=live)
        terms = {"progress": made, "goal": reached.astype(np.float64), **step.efforts(), "contact": force}
        return terms, self.index > 0

    def update_goal(self, measured_xy: FloatArray, rows: Any) -> None:
        """Move the target that is shown along the route."""
        if self.guidance == "route":
            self.shown_m[rows] = self.routes.nearest(measured_xy, self.shown_m[rows], _REACH_M, rows)

    def goal(self) -> Goal:
        if self.guidance == "goal":
            return super().goal()
        return Goal(self.routes.place(self.shown_m + self._lookahead_m), self.index == 0)

    def scenery(self, world: int) -> Scenery:
        return Scenery(self.obstacles.feature[world, : self.n_features[world]].copy(), self.routes.xy[world].copy())

    def restored(self) -> None:
        self.routes.restored()
