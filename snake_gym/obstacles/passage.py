"""Search for the shortest way of a disc from start to goal among features.

The clearance of a point is its distance to the nearest feature. A* (Hart, Nilsson, Raphael 1968) searches the nodes of
a square grid, 8 neighbours each, with a clearance of at least the disc's radius; the start is a node. The way found is
shortened: corners that a straight line can leave out are removed, the others are moved towards the line between their
neighbours as far as the disc allows. Every straight piece is then checked exactly against all features, so that a
route is a proof of passage. The search may miss narrow ways: it is sure to find one that leaves the disc ``0.81 step``
free on all sides, or ``0.5 step`` through a straight passage.

All coordinates are in the frame of the features, whichever that is. Lengths [m].
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from snake_gym.compilation import cached_njit
from snake_gym.config import ConfigError
from snake_gym.physics.state import FloatArray, IntArray

MAX_NODES = 4_000_000
"""Most nodes of a search; more would take seconds for each field."""

_ROOT_2 = math.sqrt(2.0)
_TIES = 1.001
"""Weight of the rest of the way, slightly above 1, so that of equal ways the one nearer to the goal goes first."""
_SLACK = 1e-9
"""Rounding [m] by which a clearance may fall short."""


class SearchSpace(NamedTuple):
    """Scratch memory of a search on up to n nodes among up to k features."""

    clearance: FloatArray
    """Distance of each node to its nearest feature (n,) [m], cut off at the largest that the search needs."""
    nearest: IntArray
    """Feature (n,) that gives the clearance; -1: none near."""
    cost: FloatArray
    """Shortest way from the start known so far (n,) [m]."""
    parent: IntArray
    """Node before on that way (n,); -1: not reached; the start's is itself."""
    heap_key: FloatArray
    """Way so far plus the least that is left (8 n,) [m], for the nodes in ``heap_node``."""
    heap_node: IntArray
    way: FloatArray
    """Corners of the way found (n + 2, 2) [m]."""


def search_space(n_nodes: int) -> SearchSpace:
    """Return memory for searches on at most ``n_nodes`` nodes. Raises ConfigError above ``MAX_NODES``."""
    if n_nodes > MAX_NODES:
        hint = "a smaller goal_distance_m or width_m, or a larger clearance_m"
        raise ConfigError(f"field: the search for a way has {n_nodes:.6g} nodes; expected at most {MAX_NODES} ({hint})")
    return SearchSpace(
        np.empty(n_nodes), np.empty(n_nodes, np.int64), np.empty(n_nodes), np.empty(n_nodes, np.int64),
        np.empty(8 * n_nodes), np.empty(8 * n_nodes, np.int64), np.empty((n_nodes + 2, 2)),
    )  # fmt: skip


def count_nodes(width_m: float, height_m: float, step_m: float) -> int:
    """Return the most nodes that a search in a rectangle of this size needs."""
    return (math.floor(width_m / step_m) + 2) * (math.floor(height_m / step_m) + 2)


def find_route(
    space: SearchSpace,
    features: FloatArray,
    radius_m: float,
    step_m: float,
    start_xy: tuple[float, float],
    goal_xy: tuple[float, float],
    bounds: tuple[float, float, float, float],
) -> FloatArray | None:
    """Return a shortest way (v, 2) [m] of a disc of ``radius_m`` among ``features`` (k, 6), or None if none is found.

    ``bounds`` (low x, low y, high x, high y) is the rectangle to search in, ``step_m`` the distance of its nodes: the
    smaller, the narrower the passages that are found. ``space`` has room for them (``count_nodes``).
    """
    corners = _find_route(space, features, radius_m, step_m, *start_xy, *goal_xy, bounds)
    return space.way[:corners].copy() if corners else None


@cached_njit()
def _point_gap(x, y, sx, sy, ax, ay, length):  # type: ignore[no-untyped-def]
    u = min(max((x - sx) * ax + (y - sy) * ay, 0.0), length)
    return math.sqrt((x - sx - u * ax) ** 2 + (y - sy - u * ay) ** 2)


@cached_njit()
def segment_gap(x0, y0, x1, y1, row):  # type: ignore[no-untyped-def]
    """Return the distance of the segment (x0, y0)-(x1, y1) and a feature; minus its radius where they cross."""
    sx, sy, ax, ay, length, radius = row
    way = math.sqrt((x1 - x0) ** 2 + (y1 - y0) ** 2)
    if way == 0.0:
        return _point_gap(x0, y0, sx, sy, ax, ay, length) - radius
    bx, by = (x1 - x0) / way, (y1 - y0) / way
    if length == 0.0:
        return _point_gap(sx, sy, x0, y0, bx, by, way) - radius
    sine = ax * by - ay * bx
    if abs(sine) > 1e-12:  # the two lines meet; within both segments?
        u = ((x0 - sx) * by - (y0 - sy) * bx) / sine
        v = ((x0 - sx) * ay - (y0 - sy) * ax) / sine
        if 0.0 <= u <= length and 0.0 <= v <= way:
            return -radius
    gap = _point_gap(x0, y0, sx, sy, ax, ay, length)
    gap = min(gap, _point_gap(x1, y1, sx, sy, ax, ay, length))
    gap = min(gap, _point_gap(sx, sy, x0, y0, bx, by, way))
    gap = min(gap, _point_gap(sx + length * ax, sy + length * ay, x0, y0, bx, by, way))
    return gap - radius


@cached_njit()
def _is_free(x0, y0, x1, y1, features, radius):  # type: ignore[no-untyped-def]
    """Return True if the disc can go straight from (x0, y0) to (x1, y1)."""
    mx, my, half = 0.5 * (x0 + x1), 0.5 * (y0 + y1), 0.5 * math.sqrt((x1 - x0) ** 2 + (y1 - y0) ** 2)
    for i in range(features.shape[0]):
        sx, sy, ax, ay, length, thick = features[i]
        far = half + radius + thick
        u = min(max((mx - sx) * ax + (my - sy) * ay, 0.0), length)
        dx, dy = mx - sx - u * ax, my - sy - u * ay
        if dx * dx + dy * dy < far * far and segment_gap(x0, y0, x1, y1, features[i]) < radius - _SLACK:
            return False
    return True


@cached_njit()
def _map_clearance(space, features, far, low_x, low_y, n_x, n_y, step):  # type: ignore[no-untyped-def]
    """Set the distance of every node to its nearest feature, where it is below ``far``."""
    space.clearance[: n_x * n_y] = far
    space.nearest[: n_x * n_y] = -1
    for i in range(features.shape[0]):
        sx, sy, ax, ay, length, radius = features[i]
        reach = radius + far
        left = max(math.ceil((sx + min(0.0, length * ax) - reach - low_x) / step), 0)
        right = min(math.floor((sx + max(0.0, length * ax) + reach - low_x) / step), n_x - 1)
        bottom = max(math.ceil((sy + min(0.0, length * ay) - reach - low_y) / step), 0)
        top = min(math.floor((sy + max(0.0, length * ay) + reach - low_y) / step), n_y - 1)
        for ix in range(left, right + 1):
            dx = low_x + ix * step - sx
            for iy in range(bottom, top + 1):
                dy = low_y + iy * step - sy
                u = min(max(dx * ax + dy * ay, 0.0), length)
                ex, ey = dx - u * ax, dy - u * ay
                square = ex * ex + ey * ey
                node = ix * n_y + iy
                if square < (radius + space.clearance[node]) ** 2:
                    space.clearance[node] = math.sqrt(square) - radius
                    space.nearest[node] = i


@cached_njit()
def _push(key, node, size, new_key, new_node):  # type: ignore[no-untyped-def]
    """Put an entry on the heap (smallest key first) of ``size`` entries."""
    i = size
    while i > 0 and key[(i - 1) // 2] > new_key:
        key[i], node[i] = key[(i - 1) // 2], node[(i - 1) // 2]
        i = (i - 1) // 2
    key[i], node[i] = new_key, new_node


@cached_njit()
def _pop(key, node, size):  # type: ignore[no-untyped-def]
    """Take the first of ``size`` entries off the heap and return its node."""
    first, last_key, last_node = node[0], key[size - 1], node[size - 1]
    i = 0
    while 2 * i + 1 < size - 1:
        child = 2 * i + 1
        if child + 1 < size - 1 and key[child + 1] < key[child]:
            child += 1
        if key[child] >= last_key:
            break
        key[i], node[i] = key[child], node[child]
        i = child
    key[i], node[i] = last_key, last_node
    return first


@cached_njit()
def _edge_is_free(space, features, radius, a, b, ax, ay, bx, by, exact):  # type: ignore[no-untyped-def]
    """Return True if the disc can go from node a to its neighbour b; not ``exact``: test nearest features only."""
    if exact:
        return _is_free(ax, ay, bx, by, features, radius)
    i, j = space.nearest[a], space.nearest[b]
    if i >= 0 and segment_gap(ax, ay, bx, by, features[i]) < radius - _SLACK:
        return False
    return j < 0 or j == i or segment_gap(ax, ay, bx, by, features[j]) >= radius - _SLACK


@cached_njit()
def _search(space, features, radius, step, low_x, low_y, n_x, n_y, first, goal_x, goal_y, exact):  # type: ignore
    """Run A* from node ``first``; return the last node, from which the goal is straight ahead within a cell, or -1."""
    cost, parent, key, queue, clearance = space.cost, space.parent, space.heap_key, space.heap_node, space.clearance
    # A convex obstacle at least this far from both nodes of an edge is at least the radius from all of the edge
    # (Pythagoras: the edge's nearest point is at most half an edge from a node).
    ample = math.sqrt(radius * radius + 0.5 * step * step)
    cost[: n_x * n_y] = np.inf
    parent[: n_x * n_y] = -1
    cost[first], parent[first] = 0.0, first
    _push(key, queue, 0, 0.0, first)
    size = 1
    while size > 0:
        node = _pop(key, queue, size)
        size -= 1
        ix, iy = node // n_y, node % n_y
        x, y = low_x + ix * step, low_y + iy * step
        if cost[node] < 0.0:
            continue
        way, cost[node] = cost[node], -1.0  # done: no shorter way can come
        near = max(abs(goal_x - x), abs(goal_y - y)) <= step
        if near and _is_free(x, y, goal_x, goal_y, features, radius):
            return node
        for jx in range(max(ix - 1, 0), min(ix + 1, n_x - 1) + 1):
            for jy in range(max(iy - 1, 0), min(iy + 1, n_y - 1) + 1):
                other = jx * n_y + jy
                length = step if jx == ix or jy == iy else _ROOT_2 * step
                if clearance[other] < radius or way + length >= cost[other]:
                    continue
                px, py = low_x + jx * step, low_y + jy * step
                tight = min(clearance[node], clearance[other]) < ample
                if tight and not _edge_is_free(space, features, radius, node, other, x, y, px, py, exact):
                    continue
                cost[other], parent[other] = way + length, node
                dx, dy = abs(goal_x - px), abs(goal_y - py)
                left = _TIES * (max(dx, dy) + (_ROOT_2 - 1.0) * min(dx, dy))
                _push(key, queue, size, way + length + left, other)
                size += 1
    return -1


@cached_njit()
def _leave_out(way, n, features, radius):  # type: ignore[no-untyped-def]
    """Drop corners that a straight line can leave out, as far as is free from each; return the number left."""
    kept = 1
    for i in range(1, n - 1):
        if not _is_free(way[kept - 1, 0], way[kept - 1, 1], way[i + 1, 0], way[i + 1, 1], features, radius):
            way[kept] = way[i]
            kept += 1
    way[kept] = way[n - 1]
    return kept + 1


@cached_njit()
def _pull(way, n, features, radius):  # type: ignore[no-untyped-def]
    """Move each corner towards the line between its neighbours as far as the disc can follow."""
    for i in range(1, n - 1):
        ax, ay, bx, by = way[i - 1, 0], way[i - 1, 1], way[i + 1, 0], way[i + 1, 1]
        x, y = way[i]
        square = (bx - ax) ** 2 + (by - ay) ** 2
        u = min(max(((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / max(square, 1e-18), 0.0), 1.0)
        dx, dy = ax + u * (bx - ax) - x, ay + u * (by - ay) - y
        low, high = 0.0, 1.0
        for _ in range(7):
            mid = 0.5 * (low + high)
            px, py = x + mid * dx, y + mid * dy
            if _is_free(ax, ay, px, py, features, radius) and _is_free(px, py, bx, by, features, radius):
                low = mid
            else:
                high = mid
        way[i, 0], way[i, 1] = x + low * dx, y + low * dy


@cached_njit()
def _trace(space, features, radius, step, low_x, low_y, n_y, first, last):  # type: ignore[no-untyped-def]
    """Write the way found between the ends in ``way[:2]`` as corners, shorten it, return their number; 0: not free."""
    way, parent = space.way, space.parent
    goal_x, goal_y = way[1]
    n, node = 2, last
    while node != first:
        n, node = n + 1, parent[node]
    way[n - 1, 0], way[n - 1, 1] = goal_x, goal_y
    node = last
    for i in range(n - 2, 0, -1):
        way[i, 0], way[i, 1] = low_x + (node // n_y) * step, low_y + (node % n_y) * step
        node = parent[node]
    for _ in range(3):
        n = _leave_out(way, n, features, radius)
        _pull(way, n, features, radius)
    n = _leave_out(way, n, features, radius)
    for i in range(n - 1):
        if not _is_free(way[i, 0], way[i, 1], way[i + 1, 0], way[i + 1, 1], features, radius):
            return 0
    return n


@cached_njit()
def _find_route(space, features, radius, step, start_x, start_y, goal_x, goal_y, bounds):  # type: ignore[no-untyped-def]
    """Write corners to ``space.way``; return their number, 0 if there is no way."""
    left, down = math.floor((start_x - bounds[0]) / step), math.floor((start_y - bounds[1]) / step)
    low_x, low_y = start_x - left * step, start_y - down * step
    n_x, n_y = math.floor((bounds[2] - low_x) / step) + 1, math.floor((bounds[3] - low_y) / step) + 1
    way = space.way
    if _is_free(start_x, start_y, goal_x, goal_y, features, radius):
        way[0, 0], way[0, 1], way[1, 0], way[1, 1] = start_x, start_y, goal_x, goal_y
        return 2
    _map_clearance(space, features, radius + _ROOT_2 * step, low_x, low_y, n_x, n_y, step)
    first, n = left * n_y + down, 0
    for exact in (False, True):  # the exact search takes longer and is hardly ever needed
        way[0, 0], way[0, 1], way[1, 0], way[1, 1] = start_x, start_y, goal_x, goal_y
        last = _search(space, features, radius, step, low_x, low_y, n_x, n_y, first, goal_x, goal_y, exact)
        if last < 0:
            break
        n = _trace(space, features, radius, step, low_x, low_y, n_y, first, last)
        if n > 0:
            break
    return n
