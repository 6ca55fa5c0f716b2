"""Random fields of obstacles that a robot of given size is known to get through.

A field is laid out in the frame of the start (origin: the robot's start point, x: straight ahead), searched for a way
for a disc of the robot's clearance (``passage``), drawn again if there is none, and after ``DRAWS`` draws the obstacles
on the straight way to the goal are taken away: a field always comes out, the same one for the same generator. Then
it is turned and moved to where the robot starts (world frame). Nothing stands within ``clearance_m`` of the robot's
start.

Kinds, and what difficulty d changes linearly; C = 2 clearance_m is the width of the lane that the robot needs:

========  =========================================  =======================  ======  =======  ======
kind      obstacles                                  what d sets              d = 0   d = 0.5  d = 1
========  =========================================  =======================  ======  =======  ======
pegboard  lattice of pegs (wang)                     gap between pegs         2.2 C   1.7 C    1.2 C
forest    trees at random (Poisson discs)            least gap between trees  1.5 C   1.125 C  0.75 C
corridor  two walls, at an angle to the start        width                    2.2 C   1.7 C    1.2 C
..                                                   largest angle            7.5     18.75    30 deg
bends     corridor with n_turns bends                width                    2.2 C   1.7 C    1.2 C
..                                                   largest bend             15      37.5     60 deg
gates     n_turns walls across, an opening in each   opening                  2.2 C   1.7 C    1.2 C
..                                                   angle gate to gate       15      30       45 deg
list      ``shapes``                                 nothing
========  =========================================  =======================  ======  =======  ======

The numbers of pegs and trees grow with d because their gaps shrink. The jitter is a share of the gap: at d = 1 some
gaps of a pegboard, as of a forest, are narrower than C, and a way has to be looked for. Whatever is set by hand stays
as it is set.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.obstacles.grid import FieldBounds
from snake_gym.obstacles.layouts import CORRIDOR, MAX_HEADING_RAD, lay_out, thin_out, to_world
from snake_gym.obstacles.passage import count_nodes, find_route, search_space, segment_gap
from snake_gym.obstacles.plans import (
    STEP,
    FieldConfig,
    RobotExtent,
    check_size,
    clearance,
    count_route_points,
    goal_distance,
    make_plan,
    plan_bounds,
)
from snake_gym.obstacles.polyline import spread_points
from snake_gym.obstacles.shapes import LENGTH, Polygon, features
from snake_gym.physics.state import FloatArray

__all__ = ["DRAWS", "Field", "FieldConfig", "FieldMaker", "RobotExtent", "make_field"]


DRAWS = 8
"""Fields drawn before obstacles are taken away."""


class Field(NamedTuple):
    """One field, world frame."""

    features: FloatArray
    """(k, 6) [m], see ``shapes``."""
    start_xy: FloatArray
    """(2,) [m] the robot's start point; its start_heading is in [rad]."""
    start_heading: float
    goal_xy: FloatArray
    """(2,) [m]."""
    route: FloatArray
    """(route_points, 2) [m] from start to goal; a disc of the clearance gets along it."""
    n_draws: int
    """Fields drawn until one had a way through."""
    n_removed: int
    """Obstacles taken away because none of them had."""


class FieldMaker:
    """Makes the fields of one config for robots of one size; holds the memory that this takes (one thread at a time).

    Raises ConfigError, when it is made, for settings that this robot cannot use.
    """

    def __init__(self, config: FieldConfig, robot: RobotExtent) -> None:
        self.config = config
        self.robot = robot
        self.clearance_m = clearance(config, robot)
        self.step_m = STEP * self.clearance_m
        self.bounds: FieldBounds
        """What every field stays within: the room to reserve for it."""
        way = goal_distance(config, robot)
        if config.kind == "list":
            self._goal = np.array(config.goal_m if config.goal_m is not None else (way, 0.0))
            way = float(np.hypot(*self._goal))
            self._list = features(config.shapes)
            low, high = self._frame_list()
        else:
            self._plan = make_plan(config, robot)
            self._goal = np.zeros(2)
            self.bounds = plan_bounds(self._plan)
            low, high = self._frame_plan()
        self._frame = (low[0], low[1], high[0], high[1])
        check_size(self.bounds)
        self._buffer = np.empty((self.bounds.max_features, 6))
        self._space = search_space(count_nodes(high[0] - low[0], high[1] - low[1], self.step_m))
        if config.kind == "list":
            route = self._find_list_route()
            self.route_points = count_route_points(config, self.clearance_m, way, len(route))
            self._list_route = spread_points(route, self.route_points)
        else:
            self.route_points = count_route_points(config, self.clearance_m, way)

    def make(
        self, rng: np.random.Generator, start_xy: tuple[float, float] = (0.0, 0.0), heading_rad: float = 0.0
    ) -> Field:
        """A new field for a robot that starts at ``start_xy`` [m] and looks along ``heading_rad``; world frame.

        Takes one number from ``rng``, whatever the kind.
        """
        seed = int(rng.integers(0, 1 << 63))
        if self.config.kind == "list":
            rows, route, n_draws, n_removed = self._list.copy(), self._list_route.copy(), 1, 0
        else:
            rows, route, n_draws, n_removed = self._draw(seed)
            route = spread_points(route, self.route_points)
        x, y = start_xy
        to_world(rows, route, float(x), float(y), float(heading_rad))
        return Field(rows, route[0].copy(), float(heading_rad), route[-1].copy(), route, n_draws, n_removed)

    def _draw(self, seed: int) -> tuple[FloatArray, FloatArray, int, int]:
        """Features and route in the frame of the start, the number of draws and of obstacles taken away."""
        for draw in range(DRAWS):
            n, n_movable = lay_out(self._plan, np.uint64(seed + draw), self._buffer, self._goal)
            route = self._search(self._buffer[:n])
            if route is not None:
                return self._buffer[:n].copy(), route, draw + 1, 0
        room = self.clearance_m + 0.5 * self.step_m
        kept = thin_out(self._buffer, n, n_movable, self._goal[0], self._goal[1], room)
        route = self._search(self._buffer[:kept])
        if route is None:
            raise RuntimeError(f"no way through a {self.config.kind} with seed {seed}, even after thinning")
        return self._buffer[:kept].copy(), route, DRAWS, n - kept

    def _search(self, rows: FloatArray) -> FloatArray | None:
        goal = (self._goal[0], self._goal[1])
        return find_route(self._space, rows, self.clearance_m, self.step_m, (0.0, 0.0), goal, self._frame)

    def _frame_plan(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Corners of the rectangle that a way is searched in, frame of the start."""
        plan, margin = self._plan, 2.0 * self.step_m
        if plan.layout != CORRIDOR:
            return (-margin, -plan.half_width_m), (plan.goal_m + margin, plan.half_width_m)
        heading = min(plan.first_turn_rad + plan.n_turns * plan.turn_rad, MAX_HEADING_RAD)
        wide = max((plan.goal_m - plan.begin_m) * math.sin(heading) + 0.5 * plan.gap_m, plan.chamber_m)
        return (-margin, -wide), (plan.goal_m + margin, wide)

    def _frame_list(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Corners of the rectangle for a list of shapes, which are checked; sets ``bounds``."""
        self._check_list()
        rows, ends = self._list, self._list[:, :2] + self._list[:, 2:4] * self._list[:, LENGTH : LENGTH + 1]
        points = np.concatenate([rows[:, :2], ends])
        radius = float(rows[:, 5].max())
        low, high = points.min(axis=0) - radius, points.max(axis=0) + radius
        n_segments = int(np.count_nonzero(rows[:, LENGTH]))
        extent, length = float(np.hypot(*(high - low))), float(rows[:, LENGTH].sum())
        self.bounds = FieldBounds(len(rows), extent, length, radius, n_segments)
        margin = 2.0 * self.clearance_m + 2.0 * self.step_m
        low = np.minimum(np.minimum(low, 0.0), self._goal) - margin
        high = np.maximum(np.maximum(high, 0.0), self._goal) + margin
        return (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))

    def _check_list(self) -> None:
        robot = self.robot
        for i, shape in enumerate(self.config.shapes):
            gap = min(segment_gap(-robot.rear_m, 0.0, robot.front_m, 0.0, row) for row in features(shape))
            if gap < robot.half_width_m or (isinstance(shape, Polygon) and shape.contains(0.0, 0.0)):
                raise ConfigError(
                    f"field.shapes[{i}] stands where the robot starts; expected nothing within "
                    f"{robot.half_width_m:g} m of the line from [{-robot.rear_m:g}, 0] to [{robot.front_m:g}, 0]"
                )

    def _find_list_route(self) -> FloatArray:
        route = self._search(self._list)
        if route is None:
            raise ConfigError(
                f"field.shapes leave no way to the goal [{self._goal[0]:g}, {self._goal[1]:g}] for a disc of radius "
                f"{self.clearance_m:g} m; expected one (see field.clearance_m)"
            )
        return route


@lru_cache(maxsize=32)
def _maker(config: FieldConfig, robot: RobotExtent) -> FieldMaker:
    return FieldMaker(config, robot)


def make_field(
    config: FieldConfig,
    rng: np.random.Generator,
    robot: RobotExtent,
    start_xy: tuple[float, float] = (0.0, 0.0),
    heading_rad: float = 0.0,
) -> Field:
    """A new field for a robot that starts at ``start_xy`` [m] and looks along ``heading_rad``; world frame.

    For many fields keep a ``FieldMaker``: it also says how much room its fields need.
    """
    return _maker(config, robot).make(rng, start_xy, heading_rad)
