r"""Contact of links of one chain that are no neighbours, and how deep such links lie in each other.

Links are capsules. Two whose axes do not cross are as near as an end of one comes to the axis of the other; each such
*touch* is a joint k (the tail-side end of link k; N + 1: the head's tip) at a link j. Pairs that overlap also where the
chain is straight are left out: neighbours, and links with a short one between them. With the gap g and the normal n as
a step of length h begins, and a the place along the axis as a share of the link,

    v = n . (u_k - (1 - a) u_j - a u_{j+1})

is the rate of the gap, u the velocities of the joints, and the impulse p acts on the same three joints:

    p >= 0,   v' >= v_t,   p (v' - v_t) = 0,   v_t such that g' = min(g, 0) (1 - h r)

(Moreau's time stepping, as rigid contacts have it; no friction, no restitution, an overlap goes away slowly). Touches
close loops, which the elimination of links has no place for. But v' = v + W p is linear, and W p comes from the
elimination's matrices and p as the only right-hand side. So p is where p W p / 2 + (v - v_t) p is least, and is found
by conjugate gradients which stop where an impulse comes to 0 (Polyak 1969, USSR Comput. Math. Math. Phys. 9). They
start at 0 and only descend: impulses at gaps take energy, wherever the search ends.
"""

from __future__ import annotations

import math

import numpy as np

from snake_gym.physics.chain import eliminate_links, fastest_point, locate_links, substitute_back, turn_links
from snake_gym.physics.lanes import (
    AT_X, AT_Y, BETA, COS, CX, CY, E, G, HALF, JAMMED, OMEGA, OVERLAP, POS_X, POS_Y, PUSH_X, PUSH_Y, PW, PX, PY, RADIUS,
    RECORD, SIN, THETA, UWX, UWY, UX, UY, VX, VY, WW, H, sin_cos,
)  # fmt: skip
from snake_gym.physics.simd import any_lane, by_precision, kernel, load, select, splat, store

# Records of touches, in an array of their own.
NX, NY, PLACE, GAP, TARGET, IMPULSE, EXCESS, FREE, WAY, ANSWER, TOUCH = range(11)
_FAR = 1e9
"""Gap [m] of a touch in worlds that do not have it."""
_RATE_OUT, _FASTEST_OUT = 20.0, 0.05
"""Rate r [1/s] at which an overlap goes away, and the greatest speed [m/s] of it."""
_SPEEDING_UP = 4.0
"""Way of links in a step, in ways at the present speed, for which touches are looked for."""
_EXACT = (1e-8, 1e-5)
"""Speed [m/s] that is left of v_t - v', in float64 and float32."""
_TURNS = 200
"""Most directions of a search."""


@kernel
def most_touches(n):  # type: ignore[no-untyped-def]
    """Return the largest number of touches of n links."""
    return 2 * (n - 1) * (n - 2) + 1


@kernel
def curled_worlds(s, n):  # type: ignore[no-untyped-def]
    """Return in which worlds links have turned so far from each other that the chain may touch itself.

    Links within an angle S of each other go on by cos(S / 2) of their lengths at least, along the middle of it.
    """
    low = high = load(s, RECORD + THETA)
    shortest, thickest = load(s, RECORD + HALF), load(s, RECORD + RADIUS)
    for i in range(2, n + 1):
        a = i * RECORD
        low, high = min(low, load(s, a + THETA)), max(high, load(s, a + THETA))
        shortest, thickest = min(shortest, load(s, a + HALF)), max(thickest, load(s, a + RADIUS))
    _, cos = sin_cos(min(0.5 * (high - low), math.pi))
    return shortest * cos <= thickest


@kernel
def rate_of_gap(s, t, c, k, j):  # type: ignore[no-untyped-def]
    """Return v [m/s] of the touch at ``c``, of joint k and link j, after a solution."""
    here, a = k * RECORD, j * RECORD
    b, place = a + RECORD, load(t, c + PLACE)
    x = load(s, here + UX) - (load(s, a + UX) + place * (load(s, b + UX) - load(s, a + UX)))
    y = load(s, here + UY) - (load(s, a + UY) + place * (load(s, b + UY) - load(s, a + UY)))
    return load(t, c + NX) * x + load(t, c + NY) * y


@kernel
def add_touch(s, n, k, j, both, near, t, pairs):  # type: ignore[no-untyped-def]
    """Note the touch of joint k and link j in the worlds ``near``; ``both`` [m]: their radii together."""
    if not any_lane(near):
        return
    here, a, world = k * RECORD, j * RECORD, (n + 1) * RECORD
    cos, sin, length = load(s, a + COS), load(s, a + SIN), 2.0 * load(s, a + HALF)
    x, y = load(s, here + AT_X) - load(s, a + AT_X), load(s, here + AT_Y) - load(s, a + AT_Y)
    along = min(max(cos * x + sin * y, 0.0), length)
    x, y = x - along * cos, y - along * sin
    distance = math.sqrt(x * x + y * y)
    gap = distance - both
    store(s, world + OVERLAP, max(load(s, world + OVERLAP), select(near, -gap, 0.0)))
    pairs[0, 0] += 1
    number = pairs[0, 0]
    pairs[number, 0], pairs[number, 1] = k, j
    c, inverse = number * TOUCH, 1.0 / max(distance, 1e-12)
    store(t, c + NX, inverse * x)
    store(t, c + NY, inverse * y)
    store(t, c + PLACE, along / length)
    store(t, c + GAP, select(near, gap, _FAR))


@kernel
def look_for_touches(s, n, curled, margin, t, pairs):  # type: ignore[no-untyped-def]
    """Find the touches with gaps below ``margin`` [m], and maybe others, of the worlds ``curled``, and set OVERLAP.

    From the geometry SIN, COS, POS_X, POS_Y. ``pairs[c]``: joint and link of touch c, from 1; ``pairs[0, 0]``: number.
    """
    zero, world = splat(s, 0.0), (n + 1) * RECORD
    store(s, world + OVERLAP, zero)
    pairs[0, 0] = 0
    if not any_lane(curled):
        return
    for i in range(1, n + 2):
        a, side = min(i, n) * RECORD, 1.0 if i > n else -1.0
        store(s, i * RECORD + AT_X, load(s, a + POS_X) + side * load(s, a + HALF) * load(s, a + COS))
        store(s, i * RECORD + AT_Y, load(s, a + POS_Y) + side * load(s, a + HALF) * load(s, a + SIN))
    for i in range(1, n - 1):
        a = i * RECORD
        half_a, radius_a, cos_a, sin_a = load(s, a + HALF), load(s, a + RADIUS), load(s, a + COS), load(s, a + SIN)
        between = zero
        for j in range(i + 2, n + 1):
            b = j * RECORD
            between = between + 2.0 * load(s, b - RECORD + HALF)
            dx, dy = load(s, b + POS_X) - load(s, a + POS_X), load(s, b + POS_Y) - load(s, a + POS_Y)
            half_b, radius_b = load(s, b + HALF), load(s, b + RADIUS)
            both = radius_a + radius_b
            far = half_a + half_b + both + margin
            near = curled & (dx * dx + dy * dy < far * far) & (between >= both)
            if not any_lane(near):
                continue
            # The axes cross where each has its ends on both sides of the other.
            cos_b, sin_b = load(s, b + COS), load(s, b + SIN)
            turn, off_a, off_b = cos_a * sin_b - sin_a * cos_b, cos_a * dy - sin_a * dx, cos_b * dy - sin_b * dx
            cross = near & (abs(off_a) < half_b * abs(turn)) & (abs(off_b) < half_a * abs(turn))
            store(s, world + OVERLAP, max(load(s, world + OVERLAP), select(cross, both, zero)))
            add_touch(s, n, i, j, both, near, t, pairs)
            add_touch(s, n, j, i, both, near, t, pairs)
            # A joint is the next link's end, unless that is thinner, or left out of the pairs.
            c = a + RECORD
            thin = radius_a > load(s, c + RADIUS)
            add_touch(
                s, n, i + 1, j, both,
                near & (thin | (between - 2.0 * load(s, c + HALF) < load(s, c + RADIUS) + radius_b)), t, pairs
            )  # fmt: skip
            if j < n:
                c = b + RECORD
                thin = radius_b > load(s, c + RADIUS)
                near = near & (thin | (between + 2.0 * half_b < radius_a + load(s, c + RADIUS)))
            add_touch(s, n, j + 1, i, both, near, t, pairs)


@kernel
def note_self_overlap(s, n, t, pairs):  # type: ignore[no-untyped-def]
    """Set OVERLAP, the deepest overlap of two links [m], from the geometry SIN, COS, POS_X, POS_Y; 0: none."""
    look_for_touches(s, n, curled_worlds(s, n), splat(s, 0.0), t, pairs)
    pairs[0, 0] = 0


@kernel
def find_touches(s, n, past, t, pairs):  # type: ignore[no-untyped-def]
    """Find the touches of a step before it is solved; ``past`` [s]: length of the step before."""
    world, zero = (n + 1) * RECORD, splat(s, 0.0)
    store(s, PX, zero)
    store(s, PY, zero)
    pairs[0, 0] = 0
    curled = curled_worlds(s, n)
    if not any_lane(curled):
        return
    h, beta = load(s, world + H), load(s, world + BETA)
    turn_links(s, n)
    locate_links(s, n, (load(s, world + CX), load(s, world + CY)))
    margin = load(s, RECORD + RADIUS) + _SPEEDING_UP * h * fastest_point(s, n, VX, VY, OMEGA)
    look_for_touches(s, n, curled, margin, t, pairs)
    for number in range(1, pairs[0, 0] + 1):
        c = number * TOUCH
        gap = load(t, c + GAP)
        overlap = min(gap, zero)
        left = overlap + h * min(-_RATE_OUT * overlap, _FASTEST_OUT)
        before = select(beta > 0.0, past * beta * rate_of_gap(s, t, c, pairs[number, 0], pairs[number, 1]), zero)
        store(t, c + GAP, gap + before)
        store(t, c + TARGET, (left - gap - before) / h)
        store(t, c + IMPULSE, zero)
    push_joints(s, n, t, pairs, IMPULSE)


@kernel
def push_joints(s, n, t, pairs, field):  # type: ignore[no-untyped-def]
    """Let the impulses in ``field`` of the touches act on the joints."""
    zero = splat(s, 0.0)
    for i in range(n + 1):
        store(s, i * RECORD + PUSH_X, zero)
        store(s, i * RECORD + PUSH_Y, zero)
    for number in range(1, pairs[0, 0] + 1):
        c, k, j = number * TOUCH, pairs[number, 0], pairs[number, 1]
        press, place = load(t, c + field), load(t, c + PLACE)
        x, y = press * load(t, c + NX), press * load(t, c + NY)
        # Joint k lies at the head-side end of link k - 1.
        for link, share in ((k - 1, splat(s, 1.0)), (j - 1, place - 1.0), (j, -place)):
            a = link * RECORD
            store(s, a + PUSH_X, load(s, a + PUSH_X) + share * x)
            store(s, a + PUSH_Y, load(s, a + PUSH_Y) + share * y)
    store(s, PX, load(s, PUSH_X))
    store(s, PY, load(s, PUSH_Y))


@kernel
def answer_pushes(s, n):  # type: ignore[no-untyped-def]
    """Solve for the joints' velocities by PUSH alone, by the matrices of the last elimination (``chain``)."""
    px, py, pr = load(s, PX), load(s, PY), splat(s, 0.0)
    for i in range(1, n + 1):
        a = i * RECORD
        pw = pr + 2.0 * load(s, a + HALF) * (load(s, a + SIN) * px - load(s, a + COS) * py)
        e = load(s, a + G) * pw
        px = px + load(s, a + PUSH_X) - load(s, a + UWX) * e
        py = py + load(s, a + PUSH_Y) - load(s, a + UWY) * e
        pr = pw - load(s, a + WW) * e
        store(s, a + E, e)
        store(s, a + PW, pw)
    store(s, n * RECORD + PX, px)
    store(s, n * RECORD + PY, py)
    substitute_back(s, n)


@kernel
def choose_way(s, n, t, pairs, same, square_before):  # type: ignore[no-untyped-def]
    """Set WAY, the direction in which impulses change next. Return the square of the steepest one, the worst error
    [m/s], and 1 in the worlds in which the same impulses as before are free to change."""
    square, worst = splat(s, 0.0), splat(s, 0.0)
    moves = load(s, (n + 1) * RECORD + JAMMED) == 0.0
    for number in range(1, pairs[0, 0] + 1):
        c = number * TOUCH
        excess = load(t, c + EXCESS)
        free = select(((load(t, c + IMPULSE) > 0.0) | (excess < 0.0)) & moves, 1.0, 0.0)
        same = select(free == load(t, c + FREE), same, 0.0)
        store(t, c + FREE, free)
        worst = max(worst, free * abs(excess))
        square = square + free * excess * excess
    share = same * square / square_before
    for number in range(1, pairs[0, 0] + 1):
        c = number * TOUCH
        store(t, c + WAY, load(t, c + FREE) * (share * load(t, c + WAY) - load(t, c + EXCESS)))
    return square, worst


@kernel
def press_links(s, n, touching, t, pairs):  # type: ignore[no-untyped-def]
    """Find the impulses of the touches and solve the step with them; ``touching``: see ``chain.eliminate_links``."""
    zero, tiny = splat(s, 0.0), by_precision(s, 1e-200, 1e-30)
    for number in range(1, pairs[0, 0] + 1):
        c = number * TOUCH
        excess = rate_of_gap(s, t, c, pairs[number, 0], pairs[number, 1]) - load(t, c + TARGET)
        store(t, c + EXCESS, excess)
        store(t, c + WAY, zero)
    same, square = zero, splat(s, 1.0)
    for turn in range(_TURNS):
        square, worst = choose_way(s, n, t, pairs, same, max(square, tiny))
        goes_on = worst > by_precision(s, *_EXACT)
        if not any_lane(goes_on):
            if turn == 0:
                return
            break
        push_joints(s, n, t, pairs, WAY)
        answer_pushes(s, n)
        slope, curve = zero, zero
        for number in range(1, pairs[0, 0] + 1):
            c = number * TOUCH
            answer = rate_of_gap(s, t, c, pairs[number, 0], pairs[number, 1])
            store(t, c + ANSWER, answer)
            slope = slope - load(t, c + WAY) * load(t, c + EXCESS)
            curve = curve + load(t, c + WAY) * answer
        wanted = select(goes_on & (curve > 0.0), max(slope, zero) / max(curve, tiny), zero)
        step = wanted
        for number in range(1, pairs[0, 0] + 1):
            c = number * TOUCH
            way = load(t, c + WAY)
            step = select(way < 0.0, min(step, -load(t, c + IMPULSE) / min(way, -tiny)), step)
        for number in range(1, pairs[0, 0] + 1):
            c = number * TOUCH
            press, way = load(t, c + IMPULSE), load(t, c + WAY)
            ends = (way < 0.0) & (-press / min(way, -tiny) <= step) & goes_on
            store(t, c + IMPULSE, select(ends, zero, press + step * way))
            store(t, c + EXCESS, load(t, c + EXCESS) + step * load(t, c + ANSWER))
        same = select(step < wanted, zero, 1.0)
    push_joints(s, n, t, pairs, IMPULSE)
    eliminate_links(s, np.int64(1), n, touching, True)
    substitute_back(s, n)


@kernel
def note_touches(s, n, dt, jumped, t, pairs):  # type: ignore[no-untyped-def]
    """Return 1 for worlds with a jump, also where links touch or, in two more steps dt, soon will."""
    h = load(s, (n + 1) * RECORD + H)
    for number in range(1, pairs[0, 0] + 1):
        c = number * TOUCH
        rate = rate_of_gap(s, t, c, pairs[number, 0], pairs[number, 1])
        ahead = load(t, c + GAP) + h * rate + 2.0 * dt * min(rate, 0.0)
        jumped = select((load(t, c + IMPULSE) > 0.0) | (ahead < 0.0), 1.0, jumped)
    return jumped
