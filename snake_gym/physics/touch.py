r"""Contact of links of one chain that are no neighbours, and how deep such links lie in each other.

Two capsules whose axes do not cross are as near as an end of one comes to the axis of the other. So a *touch* is one of
a joint k (the tail-side end of link k; N + 1: the head's tip), as thick as the thicker of its links, and a link j.
Those that a straight chain has, between neighbours or across a short link, are left out. With gap g as a step of
length h begins, normal n in the geometry foreseen for its end, and a the place along the axis as a share of the link,

    v = n . (u_k - (1 - a) u_j - a u_{j+1}),   g' = g + h v',   p >= 0,   v' >= v_t,   p (v' - v_t) = 0

with u the velocities of the joints, p the impulse, which acts on these three joints alike, and v_t such that g' >= 0
or that an overlap slowly goes away (Moreau's time stepping, as of rigid contacts; no friction, no restitution). Touches
close loops, for which the elimination of links has no place. But v' = v + W p is linear, and W p comes from its
matrices with p as the only right-hand side. So p is where p W p / 2 + (v - v_t) p is least, and is found by conjugate
gradients that stop where an impulse comes to 0 (Polyak 1969, USSR Comput. Math. Math. Phys. 9). They start at 0 and
only descend: impulses at gaps take energy, wherever the search ends.
"""

from __future__ import annotations

import math

import numpy as np

from snake_gym.physics.chain import eliminate_links, locate_links, substitute_back
from snake_gym.physics.contact_law import FAR
from snake_gym.physics.lanes import (
    ALONG, AT_X, AT_Y, COS, CURL_STRIDE, CX, CY, HALF, NEAREST, OMEGA, OMEGA_P, OVERLAP, PACE, POS_X, POS_Y, PUSH_X,
    PUSH_Y, PW, PX, PY, RADIUS, RECORD, SIGMA, SIN, THETA, THICK, TOTAL, UWX, UWY, UX, UY, WW, E, G, H, sin_cos,
)  # fmt: skip
from snake_gym.physics.simd import any_lane, by_precision, kernel, load, select, splat, store

# Records of touches, in an array of their own.
NX, NY, PLACE, GAP, TARGET, IMPULSE, EXCESS, MISSING, WAY, ANSWER, TOUCH = range(11)
_LARGEST_TURN = 0.1
"""Longest way of links in a step in which they touch, in half lengths of the shortest."""
_WITHIN = 6.0
"""Largest gap of a touch, in ways of links in a step: those of two links for ``_FORESIGHT``."""
_FORESIGHT = 3.0
"""Time to an impact, in steps, below which the past of a world no longer counts as smooth."""
_RATE_OUT, _FASTEST_OUT = 20.0, 0.05
"""Rate r [1/s] at which an overlap goes away, and the greatest speed [m/s] of it; not where links cross as put."""
_YIELDING = 1e-4
"""Speed by which touches yield to impulses, times the robot's mass: locked joints may leave p open."""
_EXACT = (1e-6, 1e-5)
"""Speed [m/s] that is left of v_t - v', in float64 and float32."""
_TURNS = 200
"""Most directions of a search."""


@kernel
def find_curls(s, n, pairs):  # type: ignore[no-untyped-def]
    """Set CURL_STRIDE: where links have turned so far from each other that they may touch, the longest way [m] in a
    step in which they do; else FAR. Forget all touches; return True if there may be some.

    Links within an angle S of each other go on by cos(S / 2) of their lengths at least, along the middle of it.
    """
    world = (n + 1) * RECORD
    low = high = load(s, RECORD + THETA)
    shortest, thickest = load(s, RECORD + HALF), load(s, RECORD + RADIUS)
    for i in range(2, n + 1):
        a = i * RECORD
        low, high = min(low, load(s, a + THETA)), max(high, load(s, a + THETA))
        shortest, thickest = min(shortest, load(s, a + HALF)), max(thickest, load(s, a + RADIUS))
    _, cos = sin_cos(min(0.5 * (high - low), math.pi))
    curled = shortest * cos <= thickest
    store(s, world + CURL_STRIDE, select(curled, _LARGEST_TURN * shortest, FAR))
    pairs[0, 0] = 0
    store(s, world + OVERLAP, splat(s, 0.0))
    return any_lane(curled)


@kernel
def rate_of_gap(s, t, pairs, number):  # type: ignore[no-untyped-def]
    """Return v [m/s] of a touch after a solution."""
    c, here, a = number * TOUCH, pairs[number, 0] * RECORD, pairs[number, 1] * RECORD
    b, place = a + RECORD, load(t, c + PLACE)
    x = load(s, here + UX) - (load(s, a + UX) + place * (load(s, b + UX) - load(s, a + UX)))
    y = load(s, here + UY) - (load(s, a + UY) + place * (load(s, b + UY) - load(s, a + UY)))
    return load(t, c + NX) * x + load(t, c + NY) * y


@kernel
def add_touch(s, n, k, j, margin, t, pairs):  # type: ignore[no-untyped-def]
    """Note the touch of joint k and link j if its gap is below ``margin`` [m], and the depth of overlap in OVERLAP."""
    here, a, world, zero = k * RECORD, j * RECORD, (n + 1) * RECORD, splat(s, 0.0)
    length, both = 2.0 * load(s, a + HALF), load(s, here + THICK) + load(s, a + RADIUS)
    x, y = load(s, here + AT_X) - load(s, a + AT_X), load(s, here + AT_Y) - load(s, a + AT_Y)
    way = max(load(s, a + ALONG) - load(s, here + ALONG), load(s, here + ALONG) - load(s, a + RECORD + ALONG))
    crosses = j < k - 1 < n
    far = length + both + margin + (2.0 * load(s, here + HALF) if crosses else zero)
    near = (load(s, world + CURL_STRIDE) < FAR) & (way >= both) & (x * x + y * y < far * far)
    if not any_lane(near):
        return
    cos, sin = load(s, a + COS), load(s, a + SIN)
    along, off = cos * x + sin * y, cos * y - sin * x
    overlap = load(s, world + OVERLAP)
    if crosses:  # links k and j, axis through axis
        turn_x = 2.0 * load(s, here + HALF) * (cos * load(s, here + COS) + sin * load(s, here + SIN))
        turn_y = 2.0 * load(s, here + HALF) * (cos * load(s, here + SIN) - sin * load(s, here + COS))
        at = along * turn_y - off * turn_x
        within = (at * turn_y > 0.0) & (abs(at) < length * abs(turn_y)) & (off * (off + turn_y) < 0.0)
        overlap = max(overlap, select(near & within, load(s, here + RADIUS) + load(s, a + RADIUS), zero))
    off_x = along - min(max(along, zero), length)
    distance = math.sqrt(off_x * off_x + off * off)
    gap = distance - both
    store(s, world + OVERLAP, max(overlap, select(near, -gap, zero)))
    near = near & (gap < margin)
    if any_lane(near):
        pairs[0, 0] += 1
        number, inverse = pairs[0, 0], 1.0 / max(distance, 1e-12)
        pairs[number, 0], pairs[number, 1] = k, j
        c = number * TOUCH
        store(t, c + NX, inverse * (off_x * cos - off * sin))
        store(t, c + NY, inverse * (off_x * sin + off * cos))
        store(t, c + PLACE, (along - off_x) / length)
        store(t, c + GAP, select(near, gap, FAR))


@kernel
def look_for_touches(s, n, margin, t, pairs):  # type: ignore[no-untyped-def]
    """Find the touches with gaps below ``margin`` [m] in the geometry SIN, COS, POS_X, POS_Y of worlds with curls.

    ``pairs[c]``: joint and link of touch c, from 1; ``pairs[0, 0]``: number.
    """
    pairs[0, 0] = 0
    way = splat(s, 0.0)
    for k in range(1, n + 2):
        a, side = min(k, n) * RECORD, 1.0 if k > n else -1.0
        store(s, k * RECORD + AT_X, load(s, a + POS_X) + side * load(s, a + HALF) * load(s, a + COS))
        store(s, k * RECORD + AT_Y, load(s, a + POS_Y) + side * load(s, a + HALF) * load(s, a + SIN))
        store(s, k * RECORD + ALONG, way)
        way = way + 2.0 * load(s, a + HALF)
        store(s, k * RECORD + THICK, max(load(s, a + RADIUS), load(s, max(k - 1, 1) * RECORD + RADIUS)))
    for k in range(1, n + 2):
        for j in range(1, n + 1):
            if (j < k - 1 or j > k) and not (k == 1 and j == 2) and not (k > n and j == n - 1):
                add_touch(s, n, k, j, margin, t, pairs)


@kernel
def note_self_overlap(s, n, t, pairs):  # type: ignore[no-untyped-def]
    """Set OVERLAP, the deepest overlap of two links [m], from the geometry SIN, COS, POS_X, POS_Y; 0: none."""
    if find_curls(s, n, pairs):
        look_for_touches(s, n, splat(s, 0.0), t, pairs)
        pairs[0, 0] = 0


@kernel
def foresee_joints(s, n):  # type: ignore[no-untyped-def]
    """Set the velocities UX, UY that joints are foreseen to have, less that of the head's tip."""
    world, ux, uy = (n + 1) * RECORD, splat(s, 0.0), splat(s, 0.0)
    store(s, world + UX, ux)
    store(s, world + UY, uy)
    for i in range(n, 0, -1):
        a = i * RECORD
        w = load(s, a + OMEGA)
        turn = 2.0 * load(s, a + HALF) * (w + load(s, world + SIGMA) * (w - load(s, a + OMEGA_P)))
        ux, uy = ux + turn * load(s, a + SIN), uy - turn * load(s, a + COS)
        store(s, a + UX, ux)
        store(s, a + UY, uy)


@kernel
def find_touches(s, n, dt, t, pairs):  # type: ignore[no-untyped-def]
    """Find the touches of a stage of a step dt before it is solved, in the geometry SIN, COS foreseen for its end.

    So each impulse acts along the line between the points that it presses on, and turns nothing.
    """
    world = (n + 1) * RECORD
    locate_links(s, n, (load(s, world + CX), load(s, world + CY)))
    foresee_joints(s, n)
    h = load(s, world + H)
    look_for_touches(s, n, _WITHIN * max(load(s, world + CURL_STRIDE), dt * load(s, world + PACE)), t, pairs)
    out = select(load(s, world + OVERLAP) < load(s, RECORD + RADIUS), _FASTEST_OUT, 0.0)  # 0: links cross
    for number in range(1, pairs[0, 0] + 1):
        c = number * TOUCH
        gap = load(t, c + GAP) - h * rate_of_gap(s, t, pairs, number)
        store(t, c + GAP, gap)
        store(t, c + TARGET, select(gap > 0.0, -gap / h, min(-_RATE_OUT * gap, out)))


@kernel
def push_joints(s, n, t, pairs, field):  # type: ignore[no-untyped-def]
    """Let the impulses in ``field`` of the touches act on the joints."""
    for i in range(n + 1):
        store(s, i * RECORD + PUSH_X, splat(s, 0.0))
        store(s, i * RECORD + PUSH_Y, splat(s, 0.0))
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
def press_links(s, n, touching, t, pairs):  # type: ignore[no-untyped-def]
    """Find the impulses of the touches and solve the step with them; ``touching``: see ``chain.eliminate_links``."""
    world, zero, tiny = (n + 1) * RECORD, splat(s, 0.0), by_precision(s, 1e-200, 1e-30)
    yielding = _YIELDING / load(s, world + TOTAL)
    nearest, touches = splat(s, FAR), range(1, pairs[0, 0] + 1)
    for number in touches:  # from none: a world that is solved again for its neighbours only ends where it was
        c = number * TOUCH
        store(t, c + EXCESS, rate_of_gap(s, t, pairs, number) - load(t, c + TARGET))
        store(t, c + IMPULSE, zero)
        store(t, c + WAY, zero)
    conjugate, square = zero, splat(s, 1.0)
    pressed = False
    for _ in range(_TURNS):
        before, square, worst = max(square, tiny), zero, zero
        for number in touches:
            c = number * TOUCH
            excess = load(t, c + EXCESS)
            missing = select((load(t, c + IMPULSE) > 0.0) | (excess < 0.0), -excess, zero)
            store(t, c + MISSING, missing)
            square, worst = square + missing * missing, max(worst, abs(missing))
        goes_on = worst > by_precision(s, *_EXACT)
        if not any_lane(goes_on):
            break
        pressed = True
        for number in touches:
            c = number * TOUCH
            missing = load(t, c + MISSING)
            way = missing + conjugate * square / before * load(t, c + WAY)
            store(t, c + WAY, select(missing == 0.0, zero, way))
        push_joints(s, n, t, pairs, WAY)
        answer_pushes(s, n)
        slope, curve, step = zero, zero, splat(s, math.inf)
        for number in touches:
            c = number * TOUCH
            way = load(t, c + WAY)
            answer = rate_of_gap(s, t, pairs, number) + yielding * way
            store(t, c + ANSWER, answer)
            slope = slope - way * load(t, c + EXCESS)
            curve = curve + way * answer
            step = select(way < 0.0, min(step, -load(t, c + IMPULSE) / min(way, -tiny)), step)
        wanted = select(goes_on & (curve > 0.0), max(slope, zero) / max(curve, tiny), zero)
        step = min(step, wanted)
        for number in touches:
            c = number * TOUCH
            press, way = load(t, c + IMPULSE), load(t, c + WAY)
            ends = (way < 0.0) & (-press / min(way, -tiny) <= step) & goes_on
            store(t, c + IMPULSE, select(ends, zero, press + step * way))
            store(t, c + EXCESS, load(t, c + EXCESS) + step * load(t, c + ANSWER))
        conjugate = select(step < wanted, zero, 1.0)
    if pressed:
        push_joints(s, n, t, pairs, IMPULSE)
        eliminate_links(s, np.int64(1), n, touching, True)
        substitute_back(s, n)
        store(s, PX, zero)
        store(s, PY, zero)
    for number in touches:
        nearest = min(nearest, load(t, number * TOUCH + GAP) + load(s, world + H) * rate_of_gap(s, t, pairs, number))
    store(s, world + NEAREST, nearest)


@kernel
def note_touches(s, dt, jumped, t, pairs):  # type: ignore[no-untyped-def]
    """Return 1 for worlds with a jump, also where links touch or, at this speed, soon will (step dt)."""
    for number in range(1, pairs[0, 0] + 1):
        ahead = load(t, number * TOUCH + GAP) + _FORESIGHT * dt * min(rate_of_gap(s, t, pairs, number), 0.0)
        jumped = select((load(t, number * TOUCH + IMPULSE) > 0.0) | (ahead < 0.0), 1.0, jumped)
    return jumped
