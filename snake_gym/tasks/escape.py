"""Task: get out of a thicket of pegs in which the robot stands jammed.

Pegs stand all around the robot's own start shape, and close to it; joints may fail while it is there. A route leads
from its head out of the thicket and straight on, as far as the robot is long and more: progress on it, and the place
on it that is shown, are those of ``obstacle_field``.

The robot is out when every part of every link is beyond a distance from the thicket's middle, not its head alone: a
robot whose tail is still jammed is not free to go anywhere, and failed joints hold the tail as often as the head. The
middle of the thicket is that of the robot's links at the start, and the origin.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from snake_gym.config import ConfigError, Settings
from snake_gym.config.settings import Positive
from snake_gym.obstacles.fields import Field
from snake_gym.obstacles.thicket import ThicketConfig, ThicketMaker
from snake_gym.physics.state import ChainState
from snake_gym.robot.measurement import chain_angles, head_angle_for
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.tasks.obstacle_field import AmongObstaclesConfig, GoalConfig, ObstacleField, robot_extent
from snake_gym.tasks.task import BoolArray, NewEpisodes, Record, Start, Task

_BEYOND = 1.5
"""Way that a route goes on beyond the distance at which the robot is out, in robot lengths."""


class ExitConfig(Settings):
    """When the robot is out, and what is shown of the way."""

    distance_m: Positive | None = None
    """The robot is out when all of it is farther than this from the middle of the thicket; None: the thicket's radius.
    At least half the robot's length."""
    guidance: Literal["route", "goal"] = "route"
    """The target shown: a place on the route ahead of the robot (route), or the route's end, far outside (goal)."""
    lookahead_m: Positive | None = None
    """How far ahead on the route; None: a third of the robot's length."""


class EscapeConfig(AmongObstaclesConfig):
    """A planar snake robot gets out of a thicket of pegs, by default with 0 to 3 joints locked.

    Pegs stand all around the robot and close to its sides, which it may touch and push off from. The joints of
    ``faults`` fail, unknown to the policy. Every thicket is random and has a way out that a disc wider than the robot
    gets along. Terminated when the whole robot is farther than `goal.distance_m` from the middle of the thicket, which
    is the middle of the robot's links at the start, and the origin.

    It feels the contact force on each link (``contact_sensor.*``) and sees the distances to the pegs around its head
    (``range_scan.*``). The target that it is shown is a place ahead of it on the route out, or the route's end
    (``goal.guidance``). The tracked point is the head.
    """

    field: ThicketConfig = dataclasses.field(default_factory=ThicketConfig)
    goal: ExitConfig = dataclasses.field(default_factory=ExitConfig)

    def make_maker(self, spec: RobotSpec) -> ThicketMaker:
        spec.check_among_obstacles()
        wanted, half = self.goal.distance_m, 0.5 * spec.length_m
        if wanted is not None and wanted < half:
            raise ConfigError(
                f"goal.distance_m is {wanted:g}; expected at least half the robot's length, {half:g}: it would be out "
                "where it begins"
            )
        extent = robot_extent(spec, self.start.amplitude_rad, self.start.phase_shift_rad, "head")
        thicket = self.field.radius_m or extent.length_m
        end_m = max(wanted or thicket, thicket) + _BEYOND * extent.length_m
        return ThicketMaker(self.field, extent, spec.n_links, end_m)

    def make_task(self, spec: RobotSpec, n_worlds: int) -> Task:
        return Escape(self, spec, n_worlds)


class Escape(ObstacleField):
    """Thickets, routes and progress of W worlds."""

    records = {  # noqa: RUF012
        **ObstacleField.records,
        "time_to_goal_s": Record("s", "when all of the robot was out; inf until then", math.inf),
        "is_success": Record("bool", "all of the robot is out of the thicket", False),
    }

    def __init__(self, config: EscapeConfig, spec: RobotSpec, n_worlds: int) -> None:
        super().__init__(config, spec, n_worlds, GoalConfig.radius_m, "head")
        wanted = config.goal.distance_m
        self.distance_m = float(self.maker.radius_m if wanted is None else wanted)
        """Distance from the middle beyond which the robot is out."""

    def draw_fields(self, new: NewEpisodes, rngs: Sequence[np.random.Generator]) -> tuple[Start, Iterable[Field]]:
        head_angle = head_angle_for(new.joint_angle, new.heading)
        ends = self.link_ends(chain_angles(new.joint_angle, head_angle), np.zeros((new.rows.size, 2)), new.rows)
        centre = 0.5 * (ends[:, :-1] + ends[:, 1:])
        body = ends - centre.mean(axis=1)[:, None]
        n_points = self.routes.xy.shape[1]
        fields = (
            self.maker.make(rng, one, ahead, n_points)
            for rng, one, ahead in zip(rngs, body, new.heading.tolist(), strict=True)
        )
        return Start(0.5 * (body[:, -2] + body[:, -1]), head_angle), fields

    def link_ends(self, link_angle: FloatArray, head_xy: FloatArray, rows: Any = slice(None)) -> FloatArray:
        """Return the ends of the true links (M, N + 1, 2) [m], from the tip of the tail to that of the head."""
        along = np.stack([np.cos(link_angle), np.sin(link_angle)], axis=-1)
        along *= 2.0 * self.robot.params.half_length[rows][..., None]
        ends = np.empty((along.shape[0], along.shape[1] + 1, 2))
        ends[:, -1] = head_xy + 0.5 * along[:, -1]
        ends[:, :-1] = ends[:, -1:] - np.cumsum(along[:, ::-1], axis=1)[:, ::-1]
        return ends

    def has_reached(self, state: ChainState, point: FloatArray) -> BoolArray:
        ends = self.link_ends(state.link_angle, state.head_xy)
        step = np.diff(ends, axis=1)
        share = np.clip(-(ends[:, :-1] * step).sum(axis=-1) / (step * step).sum(axis=-1), 0.0, 1.0)
        nearest = ends[:, :-1] + share[..., None] * step
        clear = np.hypot(nearest[..., 0], nearest[..., 1]) - self.robot.params.radius
        return np.asarray(clear.min(axis=1) > self.distance_m)
