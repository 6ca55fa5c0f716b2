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
from dataclasses import replace
from typing import Annotated, Literal, NamedTuple

import numpy as np
import pydantic

from snake_gym.config import ConfigError, Settings
from snake_gym.config.settings import NonNegative, Positive, PositiveCount, Share
from snake_gym.obstacles.grid import FieldBounds
from snake_gym.obstacles.layouts import (
    CORRIDOR,
    FOREST,
    GATES,
    MAX_HEADING_RAD,
    PEGBOARD,
    Plan,
    lay_out,
    thin_out,
    to_world,
)  # fmt: skip
from snake_gym.obstacles.passage import count_nodes, find_route, search_space, segment_gap
from snake_gym.obstacles.polyline import spread_points
from snake_gym.obstacles.shapes import LENGTH, Place, Polygon, Shape, features
from snake_gym.physics.state import FloatArray

DRAWS = 8
"""Fields drawn before obstacles are taken away."""
FieldKind = Literal["pegboard", "forest", "corridor", "bends", "gates", "list"]

STEP = 0.4
"""Step of the search for a passage, in clearances."""
NARROWEST = 2.0 + STEP
"""Narrowest corridor or opening that the search is sure to find, in clearances."""
TREE_COVER = 0.4
"""Share of a forest's area covered by circles of diameter 2 radius + gap."""
LARGEST = 1e3
"""[m], and trees per square metre: more is no field for a robot on a table or in a hall."""
Size = Annotated[float, pydantic.Field(gt=0.0, le=LARGEST)]
FINEST_M = 1e-6
MAX_ROUTE_POINTS = 10_000
MIN_ROUTE_POINTS = 32
"""Least points of a random field's route. Routes of thousands of fields had up to 0.75 corners per clearance of way."""
MAX_OBSTACLES = 20_000
"""More would take seconds for each field."""
MAX_TREE_COVER = 0.5
"""Random sequential placement jams at 0.547 (Feder, Giaever, J. Colloid Interface Sci. 78, 1980)."""


class FieldConfig(Settings):
    """Obstacles between start and goal. None: from the robot's size, and from the difficulty where it is said so."""

    kind: FieldKind = "pegboard"
    """pegboard: a lattice of pegs; forest: trees at random places; corridor: two straight walls, at an angle to the
    start; bends: a corridor with bends; gates: walls across the way, each with an opening; list: ``shapes``."""
    difficulty: Share = 0.5
    """From 0, wide and straight, to 1: sets the gap and the turns of each kind of field."""
    goal_distance_m: Size | None = None
    """Way from start to goal, along the middle of a corridor; None: 3 robot lengths."""
    width_m: Size | None = None
    """Width of pegboard, forest and gates; None: 1.5 robot lengths."""
    gap_m: Size | None = None
    """Gap from peg to peg, least gap of trees, width of a corridor, opening of gates; None: from difficulty."""
    turn_rad: Annotated[float, pydantic.Field(ge=0.0, le=MAX_HEADING_RAD)] | None = None
    """Largest bend; gates: largest angle from opening to opening. None: from difficulty."""
    obstacle_radius_m: Size | None = None
    """Radius of pegs, and of trees on average; None: 2 robot radii."""
    radius_spread: Annotated[float, pydantic.Field(ge=0.0, lt=1.0)] | None = None
    """Radii are uniform in obstacle_radius_m (1 +- this); None: 0 for pegs, 0.4 for trees."""
    jitter: Share = 0.3
    """Pegs are moved by up to this share of half the gap along each axis; 0: a regular pegboard."""
    staggered: bool = True
    """Every second column of pegs is moved by half a spacing, so that no straight lane is left."""
    density_m2: Size | None = None
    """Trees per square metre; None: as many as cover 40 % of the area with circles of diameter 2 radius + gap."""
    n_turns: PositiveCount | None = None
    """Bends or gates; None: 3, or as many as there is room for."""
    walls: bool = True
    """Walls along both sides of pegboard, forest and gates."""
    wall_radius_m: Annotated[float, pydantic.Field(ge=0.0, le=LARGEST)] | None = None
    """Half the thickness of walls; None: the robot's radius."""
    clearance_m: Annotated[float, pydantic.Field(ge=FINEST_M, le=LARGEST)] | None = None
    """Radius of the disc that is sure to get through; None: the robot's half width with its wave."""
    shapes: tuple[Shape, ...] = ()
    """Obstacles of kind list, in the frame of the start (origin: the robot's start point, x: straight ahead) [m]."""
    goal_m: tuple[Place, Place] | None = None
    """Goal of kind list, in the frame of the shapes; None: goal_distance_m straight ahead."""
    route_points: Annotated[int, pydantic.Field(ge=2, le=MAX_ROUTE_POINTS)] | None = None
    """Points of the route, corners included; None: 64, or more for long ways. Random fields need half as many."""

    def check(self) -> None:
        if (self.kind == "list") != bool(self.shapes):
            wanted = "at least one shape" if self.kind == "list" else "none, or kind: list"
            raise ValueError(f"shapes has {len(self.shapes)} shapes for kind {self.kind}; expected {wanted}")
        if self.goal_m is not None and self.kind != "list":
            raise ValueError(f"goal_m is {list(self.goal_m)} for kind {self.kind}; expected null, or kind: list")


class RobotExtent(Settings):
    """What a field has to know of a robot: its size, and the room that it takes at the start."""

    front_m: NonNegative
    """Way from the start point to the tip of the head, robot stretched."""
    rear_m: NonNegative
    """Way from the start point to the tip of the tail."""
    half_width_m: NonNegative
    """Largest distance of any part of the robot from the line straight ahead, at the start."""
    radius_m: NonNegative
    """Radius of its links."""
    clearance_m: Positive
    """Half width of the lane that it needs when it moves: its wave's and its radius."""

    @property
    def length_m(self) -> float:
        return self.front_m + self.rear_m


def blend(d: float, easy: float, hard: float) -> float:
    """Return the number at difficulty ``d`` between those at 0 and 1."""
    return easy + d * (hard - easy)


def or_default(value: float | None, default: float) -> float:
    """Return a setting, or the default where it is None."""
    return float(default if value is None else value)  # an int would compile every kernel once more


def count_route_points(wanted: int | None, clearance_m: float, way_m: float, n_corners: int | None = None) -> int:
    """Points of a field's route, ``wanted`` unless that is None; ``n_corners`` are its corners where they are known.

    Raises ConfigError for fewer than the corners, or than those of a random field may need.
    """
    least = max(MIN_ROUTE_POINTS, math.ceil(way_m / clearance_m)) if n_corners is None else n_corners
    if wanted is None:
        return max(64, math.ceil(2.0 * way_m / clearance_m), least)
    if wanted < least:
        raise ConfigError(
            f"field.route_points is {wanted}; expected at least {least}, or null: the route may have as "
            f"many corners ({way_m:.4g} m long, with a clearance of {clearance_m:.4g} m)"
        )
    return wanted


def _make_plan(config: FieldConfig, robot: RobotExtent) -> Plan:
    """The numbers of a layout (any kind but list). Raises ConfigError for what cannot be built."""
    kind, d, c = config.kind, config.difficulty, or_default(config.clearance_m, robot.clearance_m)
    is_tree, is_corridor = kind == "forest", kind in ("corridor", "bends")
    layout = {"pegboard": PEGBOARD, "forest": FOREST, "corridor": CORRIDOR, "bends": CORRIDOR, "gates": GATES}[kind]
    radius = or_default(config.obstacle_radius_m, max(2.0 * robot.radius_m, 0.01 * robot.length_m))
    spread = or_default(config.radius_spread, 0.4 if is_tree else 0.0)
    wall = or_default(config.wall_radius_m, robot.radius_m)
    gap = or_default(config.gap_m, 2.0 * c * (blend(d, 1.5, 0.75) if is_tree else blend(d, 2.2, NARROWEST / 2.0)))
    turn = or_default(config.turn_rad, math.radians(blend(d, 15.0, 45.0 if kind == "gates" else 60.0)))
    goal = or_default(config.goal_distance_m, 3.0 * robot.length_m)
    half_width = 0.5 * or_default(config.width_m, 1.5 * robot.length_m)
    begin, end = robot.front_m + c, goal - (1.0 + STEP) * c  # free of obstacles' surfaces: before and behind
    chamber = max(robot.half_width_m + c, 0.5 * gap)
    n_trees = 0
    chamber_end = begin
    if is_corridor:
        begin += max(chamber - 0.5 * gap, 0.0)
        end = goal
    elif kind != "gates":
        begin, end = begin + radius * (1.0 + spread), end - radius * (1.0 + spread)
    if not end > begin:
        raise ConfigError(
            f"field.goal_distance_m is {goal:g}; expected more than {goal + begin - end:.4g} (room for the robot's "
            f"start, for obstacles, and around the goal, with a clearance of {c:.4g} m)"
        )
    if not is_corridor:
        _check_width(half_width, robot, c, gap if kind == "gates" else 2.0 * radius * (1.0 + spread))
    if is_tree:
        n_trees = _count_trees(config, (end - begin) * 2.0 * half_width, 2.0 * radius + gap)
    n_turns = 0
    if is_corridor or kind == "gates":
        n_turns = _count_turns(config, gap, c, wall, goal - begin)
    return Plan(
        layout=layout, goal_m=goal, begin_m=begin, end_m=end, rear_m=robot.rear_m + c, half_width_m=half_width,
        has_walls=config.walls, wall_radius_m=wall, radius_m=radius, radius_spread=spread, gap_m=gap,
        jitter_m=0.5 * config.jitter * gap, is_staggered=config.staggered, n_trees=n_trees, n_turns=n_turns,
        turn_rad=turn, first_turn_rad=0.5 * turn if kind == "corridor" else 0.0, chamber_m=chamber,
        chamber_end_m=chamber_end, beyond_m=max(0.5 * gap, (1.0 + STEP) * c) + wall, step_m=STEP * c,
    )  # fmt: skip


def _check_width(half_width: float, robot: RobotExtent, c: float, obstacle: float) -> None:
    least = 2.0 * max(robot.half_width_m + c, (1.0 + STEP) * c, 0.5 * obstacle)
    if half_width < 0.5 * least:
        raise ConfigError(f"field.width_m is {2.0 * half_width:g}; expected at least {least:.4g} for this robot")


def _count_trees(config: FieldConfig, area: float, distance: float) -> int:
    circle = 0.25 * math.pi * distance**2
    density = or_default(config.density_m2, TREE_COVER / circle)
    if density * circle > MAX_TREE_COVER:
        raise ConfigError(
            f"field.density_m2 is {density:g}; expected at most {MAX_TREE_COVER / circle:.4g} for trees with centres "
            f"about {distance:.3g} m apart (smaller gap_m or obstacle_radius_m make room for more)"
        )
    return max(round(density * area), 1)


def _count_turns(config: FieldConfig, gap: float, c: float, wall: float, way: float) -> int:
    """Bends or gates on ``way`` [m]."""
    if gap < NARROWEST * c * (1.0 - 1e-9):
        raise ConfigError(
            f"field.gap_m is {gap:g}; expected at least {NARROWEST * c:.4g} ({NARROWEST / 2.0:g} times the width of "
            f"{2.0 * c:.4g} m that has to get through; see field.clearance_m)"
        )
    if config.kind == "corridor":
        return 0
    least = NARROWEST * c + 2.0 * wall if config.kind == "gates" else gap + 2.0 * wall
    n_turns = max(min(3, math.floor(way / least) - 1), 1) if config.n_turns is None else config.n_turns
    piece = way / (n_turns + 1)
    if piece < least:
        raise ConfigError(
            f"field.n_turns is {n_turns}: the turns are {piece:.3g} m apart; expected at least {least:.3g} m (fewer "
            "turns, a smaller gap_m or a larger goal_distance_m)"
        )
    return n_turns


def _plan_bounds(plan: Plan) -> FieldBounds:
    """What every field of this plan stays within."""
    thick = max(plan.radius_m * (1.0 + plan.radius_spread), plan.wall_radius_m)
    reach = plan.rear_m + plan.goal_m + plan.beyond_m
    if plan.layout == CORRIDOR:
        off = 0.5 * plan.gap_m + plan.wall_radius_m
        side = plan.chamber_m + plan.wall_radius_m
        corner = off / math.cos(0.5 * MAX_HEADING_RAD)
        per_side = reach + side + 2.0 * corner * (plan.n_turns + 2)
        n_pieces = 2 * (plan.n_turns + 3) + 1
        across = reach + 2.0 * (side + corner + thick)
        return FieldBounds(n_pieces, across, 2.0 * (per_side + corner), thick, n_pieces)
    extent = math.hypot(reach + 2.0 * thick, 2.0 * (plan.half_width_m + 2.0 * plan.wall_radius_m))
    walls, n_walls = 2.0 * reach * plan.has_walls, 2 * int(plan.has_walls)
    if plan.layout == GATES:
        across = 2.0 * (plan.half_width_m + plan.wall_radius_m)
        n_pieces = 2 * plan.n_turns + n_walls
        return FieldBounds(n_pieces, extent, walls + across * plan.n_turns, thick, n_pieces)
    if plan.layout == FOREST:
        return FieldBounds(plan.n_trees + n_walls, extent, walls, thick, n_walls)
    across = 2.0 * plan.radius_m + plan.gap_m
    along = across * math.sqrt(0.75) if plan.is_staggered else across
    n_pegs = (math.floor((plan.end_m - plan.begin_m) / along) + 1) * (math.ceil(2.0 * plan.half_width_m / across) + 2)
    return FieldBounds(n_pegs + n_walls, extent, walls, thick, n_walls)


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
        self.clearance_m = or_default(config.clearance_m, robot.clearance_m)
        self.step_m = STEP * self.clearance_m
        self.bounds: FieldBounds
        """What every field stays within: the room to reserve for it."""
        way = or_default(config.goal_distance_m, 3.0 * robot.length_m)
        if config.kind == "list":
            self._goal = np.array(config.goal_m if config.goal_m is not None else (way, 0.0))
            way = float(np.hypot(*self._goal))
            self._list = features(config.shapes)
            low, high = self._frame_list()
        else:
            self._plan = _make_plan(config, robot)
            self._goal = np.zeros(2)
            self.bounds = _plan_bounds(self._plan)
            low, high = self._frame_plan()
        self._frame = (low[0], low[1], high[0], high[1])
        if self.bounds.max_features > MAX_OBSTACLES:
            raise ConfigError(
                f"field: there is room for {self.bounds.max_features} obstacles; expected at most {MAX_OBSTACLES} (a "
                "larger gap_m or obstacle_radius_m, or a smaller goal_distance_m or width_m)"
            )
        self._buffer = np.empty((self.bounds.max_features, 6))
        self._space = search_space(count_nodes(high[0] - low[0], high[1] - low[1], self.step_m))
        if config.kind == "list":
            route = self._find_list_route()
            self.route_points = count_route_points(config.route_points, self.clearance_m, way, len(route))
            self._list_route = spread_points(route, self.route_points)
        else:
            self.route_points = count_route_points(config.route_points, self.clearance_m, way)

    def bounds_down_to(self, difficulty: float) -> FieldBounds:
        """Return the bounds of this maker's fields and of fields of any difficulty from ``difficulty`` to its own.

        Gaps are wider in easier fields, and turns at most as many.
        """
        if self.config.kind == "list":
            return self.bounds
        easiest = _make_plan(replace(self.config, difficulty=difficulty), self.robot)
        wide = _plan_bounds(easiest._replace(n_turns=self._plan.n_turns))
        return FieldBounds(*(max(pair) for pair in zip(self.bounds, wide, strict=True)))  # type: ignore[arg-type]

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
