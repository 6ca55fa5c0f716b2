"""Overlap of a chain with itself: how deep two links, capsules from joint to joint, lie in each other.

Links do not touch each other in this physics; a chain that folds onto itself goes through itself, and this says so.
Left out are pairs that overlap also where the chain is straight: neighbours, and links with a short one between them.
"""

from __future__ import annotations

import math

from snake_gym.physics.lanes import COS, HALF, OVERLAP, POS_X, POS_Y, RADIUS, RECORD, SIN, THETA, sin_cos
from snake_gym.physics.simd import any_lane, kernel, load, select, splat, store


@kernel
def _square_distance(x, y, cos, sin, half):  # type: ignore[no-untyped-def]
    """Return the square distance of the point (x, y) from a segment along (cos, sin), both relative to its middle."""
    along = min(max(cos * x + sin * y, -half), half)
    dx, dy = x - along * cos, y - along * sin
    return dx * dx + dy * dy


@kernel
def _axis_distance(s, a, b, dx, dy):  # type: ignore[no-untyped-def]
    """Return the distance of the axes of the links with records a and b, (dx, dy) from the middle of a to that of b."""
    half_a, half_b = load(s, a + HALF), load(s, b + HALF)
    cos_a, sin_a, cos_b, sin_b = load(s, a + COS), load(s, a + SIN), load(s, b + COS), load(s, b + SIN)
    ax, ay, bx, by = half_a * cos_a, half_a * sin_a, half_b * cos_b, half_b * sin_b
    least = _square_distance(dx + bx, dy + by, cos_a, sin_a, half_a)
    least = min(least, _square_distance(dx - bx, dy - by, cos_a, sin_a, half_a))
    least = min(least, _square_distance(ax - dx, ay - dy, cos_b, sin_b, half_b))
    least = min(least, _square_distance(-ax - dx, -ay - dy, cos_b, sin_b, half_b))
    # The axes cross where each has its ends on both sides of the other.
    turn, off_a, off_b = cos_a * sin_b - sin_a * cos_b, cos_a * dy - sin_a * dx, cos_b * dy - sin_b * dx
    b_on_both_sides = (off_a + half_b * turn) * (off_a - half_b * turn) < 0.0
    a_on_both_sides = (off_b + half_a * turn) * (off_b - half_a * turn) < 0.0
    return math.sqrt(select(b_on_both_sides & a_on_both_sides, 0.0, least))


@kernel
def runs_straight(s, n):  # type: ignore[no-untyped-def]
    """Return True if the links' directions are so near to each other in all worlds that no chain can overlap itself.

    Links within an angle S of each other go on by cos(S / 2) of their lengths at least, along the middle of it.
    """
    low = high = load(s, RECORD + THETA)
    shortest, thickest = load(s, RECORD + HALF), load(s, RECORD + RADIUS)
    for i in range(2, n + 1):
        a = i * RECORD
        low, high = min(low, load(s, a + THETA)), max(high, load(s, a + THETA))
        shortest, thickest = min(shortest, load(s, a + HALF)), max(thickest, load(s, a + RADIUS))
    spread = 0.5 * (high - low)
    _, cos = sin_cos(min(spread, math.pi))
    return not any_lane(shortest * cos <= thickest)


@kernel
def note_self_overlap(s, n):  # type: ignore[no-untyped-def]
    """Set OVERLAP, the deepest overlap of two links [m], from the geometry SIN, COS, POS_X, POS_Y; 0: none."""
    deepest = splat(s, 0.0)
    store(s, (n + 1) * RECORD + OVERLAP, deepest)
    if runs_straight(s, n):
        return
    for i in range(1, n - 1):
        a = i * RECORD
        x, y, reach, radius = load(s, a + POS_X), load(s, a + POS_Y), load(s, a + HALF), load(s, a + RADIUS)
        between = splat(s, 0.0)
        for j in range(i + 2, n + 1):
            b = j * RECORD
            between = between + 2.0 * load(s, b - RECORD + HALF)
            dx, dy = load(s, b + POS_X) - x, load(s, b + POS_Y) - y
            both = radius + load(s, b + RADIUS)
            far = reach + load(s, b + HALF) + both
            near = (dx * dx + dy * dy < far * far) & (between >= both)
            if any_lane(near):
                depth = both - _axis_distance(s, a, b, dx, dy)
                deepest = select(near, max(deepest, depth), deepest)
    store(s, (n + 1) * RECORD + OVERLAP, deepest)
