"""Which features of the obstacles a link may touch soon: one look into the grid per link, into the link's slots.

A link keeps the features that are within the grid's skin of it; the grid is looked at again before any of its points
can have moved that far. Where more than SLOTS are so near, the nearest are kept.
"""

from __future__ import annotations

import math

from numba import njit

from snake_gym.physics.chain import locate_links, turn_links
from snake_gym.physics.lanes import (
    AXIS_X, AXIS_Y, COS, CX, CY, END, GAP, HALF, IMPULSE, LENGTH, NUMBER, POS_X, POS_Y, RADIUS, RECORD, ROUND, SIN,
    SLOTS, START_X, START_Y, TRAVEL, USED, slot_of,
)  # fmt: skip
from snake_gym.physics.simd import LANES, load

_NEVER_LOOKED = 1e9


@njit(error_model="numpy")
def forget_contacts(s, n, counts):  # type: ignore[no-untyped-def]
    """Empty slots, and the grid due to be looked at."""
    for k in range(LANES):
        s[(n + 1) * RECORD + TRAVEL + k] = _NEVER_LOOKED
        for i in range(1, n + 1):
            for j in range(SLOTS):
                c = slot_of(n, i, j) + k
                s[c + USED] = 0.0
                s[c + IMPULSE] = 0.0
    counts[:] = 0


@njit(error_model="numpy")
def feature_gap(feature, x, y, cos, sin, half, radius, end):  # type: ignore[no-untyped-def]
    """Gap [m] between a feature and a link: a disc and its whole axis, a segment and its end (+1 head side, -1)."""
    start_x, start_y, axis_x, axis_y, length, around = feature
    if length == 0.0:
        along = (start_x - x) * cos + (start_y - y) * sin
        along = min(max(along, -half), half)
        return math.hypot(x + along * cos - start_x, y + along * sin - start_y) - radius - around
    ox = x + end * half * cos - start_x
    oy = y + end * half * sin - start_y
    u = min(max(ox * axis_x + oy * axis_y, 0.0), length)
    return math.hypot(ox - u * axis_x, oy - u * axis_y) - radius - around


@njit(error_model="numpy")
def fill_slot(s, c, feature, number, end, gap, force):  # type: ignore[no-untyped-def]
    """Write a feature into the lane that ``c`` points to."""
    s[c + START_X], s[c + START_Y] = feature[0], feature[1]
    s[c + AXIS_X], s[c + AXIS_Y] = feature[2], feature[3]
    s[c + LENGTH], s[c + ROUND] = feature[4], feature[5]
    s[c + NUMBER], s[c + END], s[c + GAP] = number, end, gap
    s[c + IMPULSE] = force
    s[c + USED] = 1.0


@njit(error_model="numpy")
def last_force(old, number, end):  # type: ignore[no-untyped-def]
    """Normal force that the feature pressed with before the look, 0 if it was in no slot."""
    for j in range(SLOTS):
        if old[j, 0] == number and old[j, 1] == end:
            return old[j, 2]
    return 0.0


@njit(error_model="numpy")
def collect_link(s, n, i, k, obstacles, w, old):  # type: ignore[no-untyped-def]
    """Fill the slots of link i in lane k from the grid of world w; returns how many are used."""
    a = i * RECORD + k
    x, y = s[a + POS_X], s[a + POS_Y]
    for j in range(SLOTS):
        c = slot_of(n, i, j) + k
        used = s[c + USED] > 0.0
        old[j, 0] = s[c + NUMBER] if used else -1.0
        old[j, 1] = s[c + END]
        old[j, 2] = s[c + IMPULSE]
        s[c + USED] = 0.0
    ix = math.floor((x - obstacles.origin_xy[w, 0]) / obstacles.cell_m)
    iy = math.floor((y - obstacles.origin_xy[w, 1]) / obstacles.cell_m)
    if ix < 0 or iy < 0 or ix >= obstacles.n_cells[w, 0] or iy >= obstacles.n_cells[w, 1]:
        return 0
    cell = int(ix) * obstacles.n_cells[w, 1] + int(iy)
    count = 0
    for item in range(obstacles.cell_start[w, cell], obstacles.cell_start[w, cell + 1]):
        number = obstacles.cell_item[w, item]
        feature = obstacles.feature[w, number]
        # Ends shared with the link behind are that link's; only the tail has one of its own.
        for side in range(2 if i == 1 and feature[4] > 0.0 else 1):
            end = 1.0 - 2.0 * side
            gap = feature_gap(feature, x, y, s[a + COS], s[a + SIN], s[a + HALF], s[a + RADIUS], end)
            if gap < obstacles.skin_m:
                slot = count if count < SLOTS else farthest_slot(s, n, i, k, gap)
                if slot >= 0:
                    fill_slot(s, slot_of(n, i, slot) + k, feature, number, end, gap, last_force(old, number, end))
                    count = min(count + 1, SLOTS)
    return count


@njit(error_model="numpy")
def farthest_slot(s, n, i, k, gap):  # type: ignore[no-untyped-def]
    """The used slot with the widest gap if that is wider than ``gap``, else -1."""
    widest, at = gap, -1
    for j in range(SLOTS):
        c = slot_of(n, i, j) + k
        if s[c + GAP] > widest:
            widest, at = s[c + GAP], j
    return at


@njit(error_model="numpy")
def look_around(s, n, ids, count, obstacles, counts, old):  # type: ignore[no-untyped-def]
    """Refill the slots of the lanes that may have moved by the skin; ``counts[i]`` slots of link i are then in use.

    ``counts[0]``: the largest of them.
    """
    world = (n + 1) * RECORD
    due = False
    for k in range(LANES):
        due = due or s[world + TRAVEL + k] > 0.5 * obstacles.skin_m
    if not due:
        return
    turn_links(s, n)
    locate_links(s, n, (load(s, world + CX), load(s, world + CY)))
    for k in range(LANES):
        if s[world + TRAVEL + k] > 0.5 * obstacles.skin_m:
            s[world + TRAVEL + k] = 0.0
            for i in range(1, n + 1):
                collect_link(s, n, i, k, obstacles, ids[min(k, count - 1)], old)
    counts[0] = 0
    for i in range(1, n + 1):
        counts[i] = 0
        for j in range(SLOTS):
            for k in range(LANES):
                if s[slot_of(n, i, j) + k + USED] > 0.0:
                    counts[i] = max(counts[i], j + 1)
        counts[0] = max(counts[0], counts[i])
