"""Random thicket of pegs around a robot: it stands jammed between them, and there is a way out.

First pegs are set next to the robot's links, in random order on either side, each ``jam_m`` from the robot; then the
disc around them is filled at random (Poisson discs). No two pegs are nearer to each other than ``gap_m``, so that a
disc that is narrower than the gap by the factor ``NARROWEST / 2`` gets between any of them, and such a disc stands free
around the middle of the head. The way out is searched (``passage``) from there to a place just outside, in a random
direction. A thicket without one that the search finds is drawn again, and after ``DRAWS`` draws the pegs on the
straight way are taken away: a thicket always comes out, the same one for the same generator.

Frame: world; the middle of the robot's body is the origin. What difficulty d changes linearly, with R = the largest
radius of the robot's links:

=========================================  =======  =======  ======
what d sets                                d = 0    d = 0.5  d = 1
=========================================  =======  =======  ======
least gap between pegs                     10 R     6.5 R    3 R
distance of the pegs next to the robot     R        0.55 R   0.1 R
largest angle from the heading to the way  30       75       120 deg
=========================================  =======  =======  ======
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np
import pydantic

from snake_gym.compilation import cached_njit
from snake_gym.config import ConfigError, Settings
from snake_gym.config.settings import NonNegative, Positive, Share
from snake_gym.obstacles.fields import (
    MAX_ROUTE_POINTS,
    NARROWEST,
    STEP,
    Field,
    RobotExtent,
    WaySearch,
    blend,
    count_route_points,
    or_default,
)
from snake_gym.obstacles.grid import FieldBounds
from snake_gym.obstacles.layouts import THROWS, put_segment, random_radius, stands_apart, to_world, uniform
from snake_gym.obstacles.polyline import spread_points
from snake_gym.physics.state import FloatArray

COVER = 0.45
"""Share of the thicket's area covered by circles of diameter 2 obstacle_radius_m + gap_m, were it filled alone."""
GAP, JAM, TURN = (10.0, 3.0), (1.0, 0.1), (30.0, 120.0)
"""What difficulty sets, at 0 and at 1: gap and jam in robot radii, turn in degrees."""
_TRIES = 20
"""Places tried at each flank of a link."""
_ROUNDING_M = 1e-9


class ThicketConfig(Settings):
    """Pegs around the robot. None: from the robot's size, and from the difficulty where it is said so."""

    difficulty: Share = 0.9
    """From 0, wide, to 1, narrow: sets gap, jam and turn."""
    radius_m: Positive | None = None
    """Radius of the thicket, in which all pegs lie; None: the robot's length."""
    gap_m: Positive | None = None
    """Least gap from peg to peg; None: from difficulty."""
    jam_m: NonNegative | None = None
    """Distance of the nearest pegs from the robot's sides as it starts, but from its head; None: from difficulty. It
    leaves room for pegs next to the ends of a straight robot."""
    turn_rad: Annotated[float, pydantic.Field(ge=0.0, le=math.pi)] | None = None
    """Largest angle between the robot's heading and the direction of the way out; None: from difficulty."""
    obstacle_radius_m: Positive | None = None
    """Mean radius of the pegs; None: 2 robot radii."""
    radius_spread: Annotated[float, pydantic.Field(ge=0.0, lt=1.0)] = 0.3
    """Radii are uniform in obstacle_radius_m (1 +- this)."""
    route_points: Annotated[int, pydantic.Field(ge=2, le=MAX_ROUTE_POINTS)] | None = None
    """Points of the route, corners included; None: as many as a long way may need."""


class ThicketPlan(NamedTuple):
    """All numbers that a layout needs, [m]."""

    outer_m: float
    """Radius of the thicket."""
    gap_m: float
    near_m: float
    """Least distance of a peg's surface from the middle line of a link."""
    head_room_m: float
    """The same of the head link."""
    radius_m: float
    """Mean radius of the pegs."""
    radius_spread: float
    n_fill: int
    """Pegs that the disc is filled with."""


@cached_njit()
def _fits(plan, x, y, radius, body, middle_x, middle_y, features, n):  # type: ignore[no-untyped-def]
    """Return True if a peg may stand at (x, y): within the disc, off the robot, off the first ``n`` pegs."""
    if math.hypot(x - middle_x, y - middle_y) + radius > plan.outer_m:
        return False
    for i in range(len(body) - 1):
        dx, dy = body[i + 1, 0] - body[i, 0], body[i + 1, 1] - body[i, 1]
        u = ((x - body[i, 0]) * dx + (y - body[i, 1]) * dy) / (dx * dx + dy * dy)
        u = min(max(u, 0.0), 1.0)
        room = plan.head_room_m if i == len(body) - 2 else plan.near_m
        if math.hypot(x - body[i, 0] - u * dx, y - body[i, 1] - u * dy) < room + radius - _ROUNDING_M:
            return False
    return stands_apart(features, n, x, y, radius, plan.gap_m)


@cached_njit()
def _jam(plan, state, body, middle_x, middle_y, features):  # type: ignore[no-untyped-def]
    """Write pegs next to the links but the head, as near as may be, flanks in random order; return their number."""
    flanks = np.arange(2 * (len(body) - 2))
    n = 0
    for k in range(len(flanks)):
        other = k + int(uniform(state) * (len(flanks) - k))
        flanks[k], flanks[other] = flanks[other], flanks[k]
        i, side = flanks[k] // 2, 1.0 - 2.0 * (flanks[k] % 2)
        dx, dy = body[i + 1, 0] - body[i, 0], body[i + 1, 1] - body[i, 1]
        length = math.hypot(dx, dy)
        for _ in range(_TRIES):
            radius, u = random_radius(plan, state), uniform(state)
            off = side * (plan.near_m + radius) / length
            x, y = body[i, 0] + u * dx - off * dy, body[i, 1] + u * dy + off * dx
            if _fits(plan, x, y, radius, body, middle_x, middle_y, features, n):
                n = put_segment(features, n, x, y, x, y, radius)
                break
    return n


@cached_njit()
def _grow(plan, seed, body, middle_x, middle_y, features):  # type: ignore[no-untyped-def]
    """Write the pegs of a thicket; return their number."""
    state = np.empty(1, np.uint64)
    state[0] = seed
    n = _jam(plan, state, body, middle_x, middle_y, features)
    for _ in range(plan.n_fill):
        radius = random_radius(plan, state)
        for _ in range(THROWS):
            far, angle = (plan.outer_m - radius) * math.sqrt(uniform(state)), 2.0 * math.pi * uniform(state)
            x, y = middle_x + far * math.cos(angle), middle_y + far * math.sin(angle)
            if _fits(plan, x, y, radius, body, middle_x, middle_y, features, n):
                n = put_segment(features, n, x, y, x, y, radius)
                break
    return n


class ThicketMaker:
    """Makes the thickets of one config for robots of one size; holds the memory that this takes (one thread at a time).

    ``end_m``: distance from the middle at which routes end, straight on from the way out.

    Raises ConfigError, when it is made, for settings that this robot cannot use.
    """

    def __init__(self, config: ThicketConfig, robot: RobotExtent, n_links: int, end_m: float) -> None:
        self.end_m = end_m
        d, width = config.difficulty, robot.radius_m
        self.radius_m = or_default(config.radius_m, robot.length_m)
        peg = or_default(config.obstacle_radius_m, 2.0 * width)
        gap = or_default(config.gap_m, width * blend(d, *GAP))
        jam = or_default(config.jam_m, width * blend(d, *JAM))
        self._turn = or_default(config.turn_rad, math.radians(blend(d, *TURN)))
        if gap < NARROWEST * width * (1.0 - 1e-9):
            raise ConfigError(
                f"field.gap_m is {gap:g}; expected at least {NARROWEST * width:.4g} ({NARROWEST / 2.0:g} times the "
                f"robot's width of {2.0 * width:.4g} m)"
            )
        largest = peg * (1.0 + config.radius_spread)
        least = 0.5 * robot.length_m + gap + 2.0 * largest
        if self.radius_m < least:
            raise ConfigError(f"field.radius_m is {self.radius_m:g}; expected at least {least:.4g} for this robot")
        most = math.sqrt((self.radius_m - largest) ** 2 - (0.5 * robot.length_m) ** 2) - largest - width
        if jam > most:
            raise ConfigError(
                f"field.jam_m is {jam:g}; expected at most {most:.4g} for this robot in a thicket of radius "
                f"{self.radius_m:g}: pegs next to its ends would stand outside"
            )
        near = width + jam
        self.clearance_m = gap / NARROWEST
        """Radius of the disc that is sure to get out."""
        n_fill = max(round(COVER * (2.0 * self.radius_m / (2.0 * peg + gap)) ** 2), 1)
        self._plan = ThicketPlan(self.radius_m, gap, near, max(near, 0.5 * gap), peg, config.radius_spread, n_fill)
        n_most = n_fill + 2 * (n_links - 1)
        self.bounds = FieldBounds(n_most, 2.0 * self.radius_m, 0.0, largest)
        narrowest = or_default(config.gap_m, width * GAP[1]) / NARROWEST  # as many points, whatever the difficulty
        self.route_points = count_route_points(config.route_points, narrowest, 2.0 * self.radius_m)
        self._reach_m = self.radius_m + 2.0 * (self.clearance_m + STEP * self.clearance_m)
        self._ways = WaySearch(self.clearance_m, self.bounds, 2.0 * self._reach_m, 2.0 * self._reach_m)

    def bounds_down_to(self, difficulty: float) -> FieldBounds:
        """Return the bounds of this maker's fields and easier ones: those have no more pegs."""
        return self.bounds

    def make(self, rng: np.random.Generator, body_xy: FloatArray, heading_rad: float, route_points: int) -> Field:
        """Return a new thicket with a route of ``route_points`` for a robot with its middle at the origin.

        ``body_xy`` (N + 1, 2) [m]: the ends of its links, from the tip of the tail to that of the head. The route
        begins at the middle of the head link. Takes two numbers from ``rng``.
        """
        seed, turn = int(rng.integers(0, 1 << 63)), float(rng.uniform(-self._turn, self._turn))
        head = 0.5 * (body_xy[-2] + body_xy[-1])
        body, middle = body_xy - head, -head  # what searches and thins out begins at the origin
        ahead = np.array([math.cos(heading_rad + turn), math.sin(heading_rad + turn)])
        way_out = middle + (self.radius_m + (1.0 + STEP) * self.clearance_m) * ahead

        def grow(seed: np.uint64, rows: FloatArray) -> tuple[int, int]:
            n = _grow(self._plan, seed, body, middle[0], middle[1], rows)
            return n, n

        (low_x, low_y), (high_x, high_y) = (middle - self._reach_m).tolist(), (middle + self._reach_m).tolist()
        field = self._ways.draw(seed + 1, grow, way_out, (low_x, low_y, high_x, high_y), route_points - 1)
        route = spread_points(np.concatenate([field.route, [middle + self.end_m * ahead]]), route_points)
        to_world(field.features, route, float(head[0]), float(head[1]), 0.0)
        return field._replace(route=route)
