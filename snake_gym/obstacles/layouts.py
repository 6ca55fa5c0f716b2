"""Layouts of random fields: one kernel per kind makes features from the numbers of a ``Plan``.

Frame of the start: the robot's start point is the origin, x points ahead. Lengths [m], angles [rad]. Random numbers
come from one 64-bit seed by ``splitmix``, so that a seed means the same field everywhere.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from snake_gym.compilation import cached_njit
from snake_gym.obstacles.shapes import segment
from snake_gym.obstacles.splitmix import GOLDEN, TO_UNIT, mix

PEGBOARD, FOREST, CORRIDOR, GATES = range(4)
"""Codes of the layouts; a corridor with bends is a corridor."""

THROWS = 200
"""Places tried for a tree before it is left out."""
MAX_HEADING_RAD = math.radians(80.0)
"""Largest angle between a corridor and the way ahead: it then never meets itself."""


class Plan(NamedTuple):
    """All numbers that a layout needs, computed from a ``FieldConfig`` and a robot."""

    layout: int
    goal_m: float
    """Distance from start to goal: straight ahead, or along a corridor."""
    begin_m: float
    """Place x at which the obstacles' centres begin; they end at x = end_m."""
    end_m: float
    rear_m: float
    """Distance behind the start to which walls reach back: x = -rear_m."""
    half_width_m: float
    """Distance of the side walls' inner faces from the middle: y = +-half_width_m."""
    has_walls: bool
    wall_radius_m: float
    radius_m: float
    """Mean radius of pegs and trees."""
    radius_spread: float
    """Relative spread of the radii, which are uniform in radius_m (1 +- radius_spread)."""
    gap_m: float
    """Gap between surfaces (pegs: before the jitter; trees: at least), or free width of a corridor or gate."""
    jitter_m: float
    """Largest random shift of a peg along x and along y."""
    is_staggered: bool
    n_trees: int
    n_turns: int
    """Number of bends or gates."""
    turn_rad: float
    """Largest bend, or largest angle of the line from gate to gate."""
    first_turn_rad: float
    """Largest angle of a corridor's first piece."""
    chamber_m: float
    """Half width of the room in front of a corridor, where the robot starts."""
    chamber_end_m: float
    """Place x at which that room ends."""
    beyond_m: float
    """Length of a corridor behind the goal."""
    step_m: float
    """Grid across the field on which the openings of gates stand."""


_mix, _segment = cached_njit()(mix), cached_njit()(segment)


@cached_njit()
def uniform(state):  # type: ignore[no-untyped-def]
    """Return the next random number in [0, 1)."""
    state[0] += GOLDEN
    return float(_mix(state[0]) >> np.uint64(11)) * TO_UNIT


@cached_njit()
def put_segment(features, n, x0, y0, x1, y1, radius):  # type: ignore[no-untyped-def]
    """Write the feature around a segment as row n; return the number of rows then."""
    features[n] = np.array(_segment(x0, y0, x1, y1, radius))
    return n + 1


@cached_njit()
def random_radius(plan, state):  # type: ignore[no-untyped-def]
    """Return the radius of the next peg or tree [m]."""
    return plan.radius_m * (1.0 + plan.radius_spread * (2.0 * uniform(state) - 1.0))


@cached_njit()
def stands_apart(features, n, x, y, radius, gap):  # type: ignore[no-untyped-def]
    """Return True if a disc at (x, y) is at least ``gap`` from the surfaces of the first ``n`` discs."""
    for i in range(n):
        far = features[i, 5] + radius + gap
        if (features[i, 0] - x) ** 2 + (features[i, 1] - y) ** 2 < far * far:
            return False
    return True


@cached_njit()
def _set_pegs(plan, state, features):  # type: ignore[no-untyped-def]
    """Write a lattice of pegs with a random phase, each moved by the jitter; return the number of pegs in the field."""
    across = 2.0 * plan.radius_m + plan.gap_m
    along = across * math.sqrt(0.75) if plan.is_staggered else across
    n_columns = math.floor((plan.end_m - plan.begin_m) / along) + 1
    n_rows = math.ceil(2.0 * plan.half_width_m / across) + 2
    spare = plan.end_m - plan.begin_m - (n_columns - 1) * along
    x0, phase = plan.begin_m + uniform(state) * spare, uniform(state)
    n = 0
    for column in range(n_columns):
        shift = phase + (0.5 * (column % 2) if plan.is_staggered else 0.0)
        for row in range(n_rows):
            x = x0 + column * along + plan.jitter_m * (2.0 * uniform(state) - 1.0)
            y = -plan.half_width_m + (row + shift - 1.0) * across + plan.jitter_m * (2.0 * uniform(state) - 1.0)
            x = min(max(x, plan.begin_m), plan.end_m)
            radius = random_radius(plan, state)
            if abs(y) + radius <= plan.half_width_m:
                n = put_segment(features, n, x, y, x, y, radius)
    return n


@cached_njit()
def _plant_trees(plan, state, features):  # type: ignore[no-untyped-def]
    """Write trees by dart throwing (Poisson discs), at least the gap apart; leave out those without a place."""
    n = 0
    for _ in range(plan.n_trees):
        radius = random_radius(plan, state)
        for _ in range(THROWS):
            x = plan.begin_m + uniform(state) * (plan.end_m - plan.begin_m)
            y = (2.0 * uniform(state) - 1.0) * (plan.half_width_m - radius)
            if stands_apart(features, n, x, y, radius, plan.gap_m):
                n = put_segment(features, n, x, y, x, y, radius)
                break
    return n


@cached_njit()
def _side_walls(plan, n, features):  # type: ignore[no-untyped-def]
    """Write walls along both sides of the field if it has any; return the number of rows then."""
    if plan.has_walls:
        y, end = plan.half_width_m + plan.wall_radius_m, plan.goal_m + plan.beyond_m
        n = put_segment(features, n, -plan.rear_m, y, end, y, plan.wall_radius_m)
        n = put_segment(features, n, -plan.rear_m, -y, end, -y, plan.wall_radius_m)
    return n


@cached_njit()
def _build_gates(plan, state, features):  # type: ignore[no-untyped-def]
    """Write walls across the field with one opening each, shifted from the last by 0.4 to 1 of turn_rad's shift."""
    spacing = (plan.goal_m - plan.begin_m) / (plan.n_turns + 1)
    edge = plan.half_width_m + plan.wall_radius_m
    room = plan.half_width_m - 0.5 * plan.gap_m
    y, n = 0.0, 0
    for gate in range(plan.n_turns):
        shift = spacing * math.tan(plan.turn_rad) * (0.4 + 0.6 * uniform(state))
        side = 1.0 if uniform(state) < 0.5 else -1.0
        if abs(y + side * shift) > room:
            side = -side
        y = min(max(y + side * shift, -room), room)
        y = math.floor(abs(y) / plan.step_m) * plan.step_m * (1.0 if y >= 0.0 else -1.0)
        x, half = plan.begin_m + (gate + 1) * spacing, 0.5 * plan.gap_m + plan.wall_radius_m
        if y - half > -edge:
            n = put_segment(features, n, x, -edge, x, y - half, plan.wall_radius_m)
        if y + half < edge:
            n = put_segment(features, n, x, y + half, x, edge, plan.wall_radius_m)
    return _side_walls(plan, n, features)


@cached_njit()
def _draw_headings(plan, state, headings):  # type: ignore[no-untyped-def]
    """Draw the direction of each piece of a corridor; a bend that would turn too far from ahead goes the other way."""
    headings[0] = (2.0 * uniform(state) - 1.0) * plan.first_turn_rad
    for i in range(plan.n_turns):
        turn = plan.turn_rad * (0.7 + 0.3 * uniform(state)) * (1.0 if uniform(state) < 0.5 else -1.0)
        if abs(headings[i] + turn) > MAX_HEADING_RAD:
            turn = -turn
        headings[i + 1] = headings[i] + turn


@cached_njit()
def _build_corridor(plan, state, features, goal):  # type: ignore[no-untyped-def]
    """Write a room for the start, two walls along a line of n_turns + 1 equal pieces, and an end behind the goal."""
    headings = np.empty(plan.n_turns + 1)
    _draw_headings(plan, state, headings)
    piece = (plan.goal_m - plan.begin_m) / (plan.n_turns + 1)
    off, n = 0.5 * plan.gap_m + plan.wall_radius_m, 0
    ends = np.empty((2, 2))
    for k in range(2):
        side = 1.0 - 2.0 * k
        wide = side * (plan.chamber_m + plan.wall_radius_m)
        n = put_segment(features, n, -plan.rear_m, wide, plan.chamber_end_m, wide, plan.wall_radius_m)
        last_x, last_y = plan.chamber_end_m, wide
        x, y, before = plan.begin_m, 0.0, 0.0
        for i in range(plan.n_turns + 2):
            after = headings[min(i, plan.n_turns)]
            reach = side * off / math.cos(0.5 * (after - before))  # to the corner, along the middle of the bend
            normal = 0.5 * (before + after)
            corner_x, corner_y = x - reach * math.sin(normal), y + reach * math.cos(normal)
            n = put_segment(features, n, last_x, last_y, corner_x, corner_y, plan.wall_radius_m)
            last_x, last_y = corner_x, corner_y
            if i == plan.n_turns:
                goal[0], goal[1] = x + piece * math.cos(after), y + piece * math.sin(after)
            length = piece + (plan.beyond_m if i == plan.n_turns else 0.0)
            x, y, before = x + length * math.cos(after), y + length * math.sin(after), after
        ends[k, 0], ends[k, 1] = last_x, last_y
    return put_segment(features, n, ends[0, 0], ends[0, 1], ends[1, 0], ends[1, 1], plan.wall_radius_m)


@cached_njit()
def lay_out(plan, seed, features, goal):  # type: ignore[no-untyped-def]
    """Fill ``features`` and ``goal``; return (rows written, rows at the front that may be removed again)."""
    state = np.empty(1, np.uint64)
    state[0] = seed
    goal[0], goal[1] = plan.goal_m, 0.0
    if plan.layout == CORRIDOR:
        return _build_corridor(plan, state, features, goal), 0
    if plan.layout == GATES:
        return _build_gates(plan, state, features), 0
    n = _set_pegs(plan, state, features) if plan.layout == PEGBOARD else _plant_trees(plan, state, features)
    return _side_walls(plan, n, features), n


@cached_njit()
def thin_out(features, n, n_movable, goal, clearance):  # type: ignore[no-untyped-def]
    """Remove those of the first ``n_movable`` obstacles that are nearer than ``clearance`` to the straight way to the
    goal; return the rows left."""
    goal_x, goal_y = goal
    way, kept = math.hypot(goal_x, goal_y), 0
    for i in range(n):
        x, y = features[i, 0], features[i, 1]
        u = min(max((x * goal_x + y * goal_y) / way, 0.0), way)
        gap = math.hypot(x - u * goal_x / way, y - u * goal_y / way) - features[i, 5]
        if i >= n_movable or gap >= clearance:
            features[kept] = features[i]
            kept += 1
    return kept


@cached_njit()
def to_world(features, route, x, y, heading):  # type: ignore[no-untyped-def]
    """Turn features and route by ``heading`` about the origin and move them by (x, y), in place."""
    c, s = math.cos(heading), math.sin(heading)
    for i in range(features.shape[0]):
        sx, sy, ax, ay = features[i, 0], features[i, 1], features[i, 2], features[i, 3]
        features[i, 0], features[i, 1] = x + c * sx - s * sy, y + s * sx + c * sy
        features[i, 2], features[i, 3] = c * ax - s * ay, s * ax + c * ay
    for i in range(route.shape[0]):
        px, py = route[i, 0], route[i, 1]
        route[i, 0], route[i, 1] = x + c * px - s * py, y + s * px + c * py
