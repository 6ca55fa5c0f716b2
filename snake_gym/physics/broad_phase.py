"""Search for the obstacles' features that a link may touch soon: one look-up in the grid fills the link's slots.

A link keeps the features within the grid's skin of it; the next look-up comes before any of its points can have moved
that far. Where more than SLOTS features are so near, the nearest are kept, and the next look-up comes before a link
can have reached one of the others.
"""

from __future__ import annotations

import math

import numpy as np

from snake_gym.physics.chain import locate_links, turn_links
from snake_gym.physics.lanes import (
    AXIS_X, AXIS_Y, BEFORE, COS, CX, CY, END, FROM_X, FROM_Y, GAP, HALF, IMPULSE, LENGTH, LONGEST_STRIDE, NUMBER, PACE,
    POS_X, POS_Y, RADIUS, RECORD, ROUND, SIN, SLOTS, START_X, START_Y, TRAVEL, USED, slot_of,
)  # fmt: skip
from snake_gym.physics.simd import any_lane, kernel, load, n_lanes

_NEVER_LOOKED = 1e9
_LARGEST_TURN = 0.45
"""Longest way in a step, in half lengths of a link that is near an obstacle."""
_DEEPEST = 0.5
"""The same, in radii of link and feature together: a link that is halfway through would be pushed out behind."""
LEAST_STRIDE = 1e-4
"""Way in a step [m] that is always allowed."""
SPEEDING_UP = 1.5
"""Speed after a step, as a multiple of that before, for which a look-up holds."""


@kernel
def forget_contacts(s, n, counts):  # type: ignore[no-untyped-def]
    """Empty all slots and make the grid due for a look-up."""
    for k in range(n_lanes(s)):
        s[(n + 1) * RECORD + TRAVEL, k] = _NEVER_LOOKED
        for i in range(1, n + 1):
            for j in range(SLOTS):
                c = slot_of(n, i, j)
                s[c + USED, k] = s[c + IMPULSE, k] = 0.0
    counts[:] = 0


@kernel
def feature_distance(shape, x, y, cos, sin, half, end):  # type: ignore[no-untyped-def]
    """Return the distance [m] of a disc to a link's axis, or of a segment to the link's end (+1 head side, -1)."""
    start_x, start_y, axis_x, axis_y, length, _ = shape
    if length == 0.0:
        dx, dy = start_x - x, start_y - y
        along = min(max(dx * cos + dy * sin, -half), half)
        dx -= along * cos
        dy -= along * sin
    else:
        dx = x + end * half * cos - start_x
        dy = y + end * half * sin - start_y
        u = min(max(dx * axis_x + dy * axis_y, 0.0), length)
        dx -= u * axis_x
        dy -= u * axis_y
    return math.sqrt(dx * dx + dy * dy)


@kernel
def read_feature(feature, w, number, from_x, from_y):  # type: ignore[no-untyped-def]
    """Return the six numbers of a feature of world w, its place counted from (from_x, from_y) [m]."""
    return (
        feature[w, number, 0] - from_x, feature[w, number, 1] - from_y, feature[w, number, 2], feature[w, number, 3],
        feature[w, number, 4], feature[w, number, 5],
    )  # fmt: skip


@kernel
def fill_slot(s, c, k, shape, number, end, gap, force):  # type: ignore[no-untyped-def]
    """Write a feature into lane k of the slot at ``c``."""
    s[c + START_X, k], s[c + START_Y, k], s[c + AXIS_X, k], s[c + AXIS_Y, k], s[c + LENGTH, k], s[c + ROUND, k] = shape
    s[c + NUMBER, k], s[c + END, k], s[c + GAP, k], s[c + BEFORE, k] = number, end, gap, gap
    s[c + IMPULSE, k], s[c + USED, k] = force, 1.0


@kernel
def last_force(old, n_old, number, end):  # type: ignore[no-untyped-def]
    """Return the feature's normal force [N] before the look-up, 0 if it was in none of the ``n_old`` slots."""
    for j in range(n_old):
        if old[j, 0] == number and old[j, 1] == end:
            return old[j, 2]
    return 0.0


@kernel
def find_cell(obstacles, w, x, y):  # type: ignore[no-untyped-def]
    """Return the number of the cell that holds (x, y) [m], -1 outside the grid."""
    ix = math.floor((x - obstacles.origin_xy[w, 0]) / obstacles.cell_m)
    iy = math.floor((y - obstacles.origin_xy[w, 1]) / obstacles.cell_m)
    if ix < 0 or iy < 0 or ix >= obstacles.n_cells[w, 0] or iy >= obstacles.n_cells[w, 1]:
        return -1
    return ix * obstacles.n_cells[w, 1] + iy


@kernel
def empty_slots(s, n, i, k, n_old, old):  # type: ignore[no-untyped-def]
    """Move feature, end and force of the first ``n_old`` slots of link i, lane k to ``old``; -1: no feature."""
    for j in range(n_old):
        c = slot_of(n, i, j)
        old[j, 0] = s[c + NUMBER, k] if s[c + USED, k] > 0.0 else -1.0
        old[j, 1], old[j, 2] = s[c + END, k], s[c + IMPULSE, k]
        s[c + USED, k] = 0.0


@kernel
def collect_link(s, n, i, k, obstacles, w, n_old, old):  # type: ignore[no-untyped-def]
    """Fill the slots of link i in lane k, of which the first ``n_old`` may be in use, from the grid of world w.

    Return the gap [m] up to which no feature is left out.
    """
    a = i * RECORD
    nearest_left_out = obstacles.skin_m
    x, y = s[a + POS_X, k], s[a + POS_Y, k]
    from_x, from_y = np.float64(s[(n + 1) * RECORD + FROM_X, k]), np.float64(s[(n + 1) * RECORD + FROM_Y, k])
    empty_slots(s, n, i, k, n_old, old)
    cell = find_cell(obstacles, w, x + from_x, y + from_y)
    if cell < 0:
        return nearest_left_out
    count = 0
    for item in range(obstacles.cell_start[w, cell], obstacles.cell_start[w, cell + 1]):
        number = obstacles.cell_item[w, item]
        shape = read_feature(obstacles.feature, w, number, from_x, from_y)
        # A joint belongs to the link behind it, unless that is thinner.
        for side in range(2 if shape[4] > 0.0 and (i == 1 or s[a + RADIUS, k] > s[a - RECORD + RADIUS, k]) else 1):
            end = 1.0 - 2.0 * side
            distance = feature_distance(shape, x, y, s[a + COS, k], s[a + SIN, k], s[a + HALF, k], end)
            gap = distance - s[a + RADIUS, k] - shape[5]
            if gap < obstacles.skin_m:
                slot, left_out = count, obstacles.skin_m
                if count == SLOTS:
                    slot, left_out = farthest_slot(s, n, i, k, gap)
                if slot >= 0:
                    fill_slot(s, slot_of(n, i, slot), k, shape, number, end, gap, last_force(old, n_old, number, end))
                    count = min(count + 1, SLOTS)
                nearest_left_out = min(nearest_left_out, left_out)
    return nearest_left_out


@kernel
def farthest_slot(s, n, i, k, gap):  # type: ignore[no-untyped-def]
    """Return the slot with the widest gap if that is wider than ``gap``, else -1; and the wider of the two gaps."""
    widest, at = gap, -1
    for j in range(SLOTS):
        c = slot_of(n, i, j)
        if s[c + GAP, k] > widest:
            widest, at = s[c + GAP, k], j
    return at, widest


@kernel
def look_around(s, n, ids, count, dt, obstacles, counts, old):  # type: ignore[no-untyped-def]
    """Refill the slots of lanes that may move by the skin in a step dt, and count them (``count_slots``)."""
    world = (n + 1) * RECORD
    travel = load(s, world + TRAVEL) + SPEEDING_UP * dt * load(s, world + PACE)
    if not any_lane(travel > obstacles.skin_m):
        return
    turn_links(s, n)
    locate_links(s, n, (load(s, world + CX), load(s, world + CY)))
    for k in range(n_lanes(s)):
        if s[world + TRAVEL, k] + SPEEDING_UP * dt * s[world + PACE, k] > obstacles.skin_m:
            reach = obstacles.skin_m
            for i in range(1, n + 1):
                reach = min(reach, collect_link(s, n, i, k, obstacles, ids[min(k, count - 1)], counts[i], old))
            s[world + TRAVEL, k] = obstacles.skin_m - max(reach, 0.0)
            s[world + LONGEST_STRIDE, k] = longest_stride(s, n, k, obstacles.skin_m)
    count_slots(s, n, counts)


@kernel
def longest_stride(s, n, k, skin):  # type: ignore[no-untyped-def]
    """Return how far [m] links in lane k may move in a step: never through a feature, and little against their size."""
    longest = skin
    for i in range(1, n + 1):
        a = i * RECORD
        for j in range(SLOTS):
            c = slot_of(n, i, j)
            if s[c + USED, k] > 0.0:
                thick = s[a + RADIUS, k] + s[c + ROUND, k]
                longest = min(longest, _LARGEST_TURN * s[a + HALF, k], max(_DEEPEST * thick, LEAST_STRIDE))
    return longest


@kernel
def count_slots(s, n, counts):  # type: ignore[no-untyped-def]
    """Set ``counts[i]``, the slots in use of link i in any lane; ``counts[0]`` is the largest of these numbers."""
    counts[0] = 0
    for i in range(1, n + 1):
        counts[i] = 0
        for j in range(SLOTS):
            for k in range(n_lanes(s)):
                if s[slot_of(n, i, j) + USED, k] > 0.0:
                    counts[i] = max(counts[i], j + 1)
        counts[0] = max(counts[0], counts[i])
