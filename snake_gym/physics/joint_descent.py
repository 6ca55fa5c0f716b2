"""The joints' laws all together, found by descent: for worlds in which corrections of single laws go in circles.

Actuator with limit and backlash, dry friction and stop of a joint are together one law, a torque F(rel) that falls in
pieces as the joint's rate rises. So the step is the minimum of a convex function of the joints' rates, whose slope in
the rate of joint j is m_j - F_j(rel_j), with m_j the torque that the chain needs to move in that way. Here friction
sticks, and stops push, with a finite slope (SLOPE times the links' inertia), so that F is a function. Each correction

* solves the chain with the pieces that hold at the present rates: a step from (LINE_REL, LINE_MU) to (REL, MU);
* goes as far along it as the function falls; m is linear along it, so that this takes no further solution,

until the pieces at the end are those used. Every correction lowers the function, so there are no circles. SLOPE rises
from stage to stage. After the last one the joints that stick or are at a stop are held, and the world is solved once
more. If a law does not hold then, descent begins again, and may miss the laws by more (TOLERANCE), as a joint on the
edge between two pieces would change for ever; with joint friction, or where that does not help, it goes on steeper.
Descent also begins again, as steep as it ended, where laws no longer hold later, because contacts or ground friction
have changed.

DESCENT of a world: 0 not in use, 1 begins, 2 descends, 3 has ended, 4 has ended and the laws hold.
"""

from __future__ import annotations

import math

from snake_gym.physics.imperfections import find_flank, servo_law
from snake_gym.physics.joint_friction import put_joint_friction
from snake_gym.physics.lanes import (
    AT_LIMIT, AT_STOP, BASE, DESCENT, D_J, FLANK, HALF, INERTIA, LAWS_CHANGE, LAW_K, LAW_T0, LIMIT, LINE_MU, LINE_REL,
    MASS, MU, NO_LOAD, PW, RECORD, REL, RIGID, TOLERANCE, SLIDING_J, SLOPE, STOP, STOPS_CHANGE, T0, VOLT, WW, B, H, K,
)  # fmt: skip
from snake_gym.physics.simd import any_lane, by_precision, kernel, load, select, splat, store

BEGINS, DESCENDS, ENDED, _HOLDS = 1.0, 2.0, 3.0, 4.0
_STEEP_FIRST, _STEEPER, _STEEPEST = 1e2, 1e2, (1e6, 1e4)
"""Slope of sticking and stops per inertia of the links: first, growth, last in float64 and float32."""
_LAW_ROUNDING = (0.0, 1e-6)
"""Rounding of a piece's torque, as a share of its parts, in float64 and float32."""
_STEEPEST_AGAIN = 1e12
"""Steepest where laws do not hold after several descents: links that rest on dry ground resist more than inertia."""
_EXACT = (1e-9, 1e-5)
"""Torque, as a share of the impulses at the joint, by which pieces may miss the law, in float64 and float32."""
_RATE, _LOOSE = (1e-9, 1e-4), (1e-6, 1e-4)
"""What laws may miss after descent, in both precisions: rate [rad/s] past a stop; torque, as ``_EXACT``."""
_SLACKER, _SLACKEST = 10.0, 1e4
"""Growth of both where laws do not hold after descent, and the most of it."""
_ENOUGH = 0.1
"""Share of the slope left at which a search along the step ends."""
_TRIALS = 60


@kernel
def servo_piece(s, n, i, rel, laws):  # type: ignore[no-untyped-def]
    """Return (K, T0, piece of the torque limit, flank) of the actuator of joint i at the rate ``rel``."""
    a = i * RECORD
    world = (n + 1) * RECORD
    zero, one = splat(s, 0.0), splat(s, 1.0)
    flank = load(s, a + FLANK)
    k, t0 = load(s, a + LAW_K), load(s, a + LAW_T0)
    if laws.imperfect:
        flank = find_flank(s, n, i, rel)
        k, t0 = servo_law(s, n, i, flank)
    at = zero
    if laws.limits or laws.imperfect:
        h, limit, no_load = load(s, world + H), load(s, a + LIMIT), load(s, a + NO_LOAD)
        slope = select((limit < math.inf) & (no_load < math.inf), h * limit / no_load, zero)
        stall = h * select(limit < math.inf, load(s, world + VOLT) * limit, limit)
        high, low = stall - slope * max(rel, zero), slope * max(-rel, zero) - stall
        torque = t0 - k * rel
        over, under = max(torque, -stall) > high, min(torque, stall) < low
        forth, back = select(over, one, zero), select(under, -one, zero)
        at = select(rel > 0.0, select(over, one, back), select(under, -one, forth))
        k = select(abs(at) > 0.0, select(at * rel > 0.0, slope, zero), k)
        t0 = select(abs(at) > 0.0, at * stall, t0)
    return k, t0, at, flank


@kernel
def steepness(s, n, i):  # type: ignore[no-untyped-def]
    """Return the slope of sticking and of the stops of joint i."""
    a = i * RECORD
    b = a + RECORD
    first = load(s, a + INERTIA) + load(s, a + MASS) * load(s, a + HALF) * load(s, a + HALF)
    second = load(s, b + INERTIA) + load(s, b + MASS) * load(s, b + HALF) * load(s, b + HALF)
    return load(s, (n + 1) * RECORD + SLOPE) * (first + second)


@kernel
def stop_passed(s, n, i, rel):  # type: ignore[no-untyped-def]
    """Return the side (1, -1, 0: none) of the stop that joint i passes at the rate ``rel``, and the rate to it."""
    a = i * RECORD
    h, stop = load(s, (n + 1) * RECORD + H), load(s, a + STOP)
    angle = load(s, a + BASE) - load(s, a + RECORD + BASE)
    high, low = (stop - angle) / h, (-stop - angle) / h
    side = select(rel > high, 1.0, select(rel < low, -1.0, 0.0))
    return side, select(side > 0.0, high, select(side < 0.0, low, 0.0))


@kernel
def whole_law(s, n, i, rel, laws):  # type: ignore[no-untyped-def]
    """Return K and T0 of joint i with all its laws at the rate ``rel``."""
    a = i * RECORD
    k, t0, _, _ = servo_piece(s, n, i, rel, laws)
    steep = steepness(s, n, i)
    if laws.joint_friction:
        limit = load(s, (n + 1) * RECORD + H) * load(s, a + D_J)
        slides = abs(steep * rel) >= limit
        k = select(slides, k, k + steep)
        t0 = select(slides, t0 - math.copysign(limit, rel), t0)
    if laws.stops:
        side, end = stop_passed(s, n, i, rel)
        k = k + abs(side) * steep
        t0 = t0 + abs(side) * steep * end
    return k, t0


@kernel
def joint_load(s, n, i):  # type: ignore[no-untyped-def]
    """Return the impulse at joint i in the present solution, with that of its friction."""
    a = i * RECORD
    sliding = load(s, a + SLIDING_J)
    limit = load(s, (n + 1) * RECORD + H) * load(s, a + D_J)
    return load(s, a + MU) - select(abs(sliding) == 1.0, math.copysign(limit, sliding), 0.0)


@kernel
def slope_along(s, n, share, laws):  # type: ignore[no-untyped-def]
    """Return the slope of the function along the present step after ``share`` of it."""
    total = splat(s, 0.0)
    for i in range(1, n):
        a = i * RECORD
        start, load_0 = load(s, a + LINE_REL), load(s, a + LINE_MU)
        step = load(s, a + REL) - start
        rel = start + share * step
        k, t0 = whole_law(s, n, i, rel, laws)
        missing = load_0 + share * (load(s, a + MU) - load_0) - (t0 - k * rel)
        total = total + select(load(s, a + RIGID) == 0.0, step * missing, 0.0)
    return total


@kernel
def search_along(s, n, wanted, laws):  # type: ignore[no-untyped-def]
    """Return the share of the step to take in the worlds ``wanted``, at most 1, where the function is lowest."""
    zero, one = splat(s, 0.0), splat(s, 1.0)
    low, high = zero, one
    at_low, at_high = slope_along(s, n, zero, laws), slope_along(s, n, one, laws)
    enough = _ENOUGH * abs(at_low)
    share = one
    open_ = wanted & (at_low < 0.0) & (at_high > enough)
    for trial in range(_TRIALS):
        if not any_lane(open_):
            break
        part = splat(s, 0.5)
        if trial % 2 == 0:
            part = min(max(at_low / (at_low - at_high), 0.02), 0.98)
        share = select(open_, low + part * (high - low), share)
        slope = slope_along(s, n, share, laws)
        falls = open_ & (slope < 0.0)
        rises = open_ & (slope >= 0.0)
        low, at_low = select(falls, share, low), select(falls, slope, at_low)
        high, at_high = select(rises, share, high), select(rises, slope, at_high)
        open_ = open_ & (abs(slope) > enough)
    return share


@kernel
def pieces_hold(s, n, laws):  # type: ignore[no-untyped-def]
    """Return 1 in the worlds in which the laws hold at the rates and torques of the present solution."""
    holds = splat(s, 1.0)
    for i in range(1, n):
        a = i * RECORD
        rel, mu = load(s, a + REL), load(s, a + MU)
        k, t0 = whole_law(s, n, i, rel, laws)
        met = abs(mu) + abs(load(s, a + PW)) + abs(load(s, a + WW) * rel)
        slack = by_precision(s, *_EXACT) * met + by_precision(s, *_LAW_ROUNDING) * (abs(t0) + abs(k * rel))
        misses = (abs(mu - (t0 - k * rel)) > slack) & (load(s, a + RIGID) == 0.0)
        holds = select(misses, 0.0, holds)
    return holds


@kernel
def has_laws(s, a):  # type: ignore[no-untyped-def]
    """Return True where the joint with record ``a`` is not held by anything but its own friction or stop."""
    return (load(s, a + RIGID) == 0.0) | (abs(load(s, a + AT_STOP)) > 0.0) | (load(s, a + SLIDING_J) == 2.0)


@kernel
def laws_hold(s, n, laws):  # type: ignore[no-untyped-def]
    """Return 1 in the worlds whose joints obey their laws, with those held that stick or are at a stop."""
    holds = splat(s, 1.0)
    slack = load(s, (n + 1) * RECORD + TOLERANCE)
    rate = by_precision(s, *_RATE) * slack
    for i in range(1, n):
        a = i * RECORD
        rel, mu = load(s, a + REL), joint_load(s, n, i)
        k, t0, _, _ = servo_piece(s, n, i, rel, laws)
        most, least = t0 - k * rel, t0 - k * rel
        if laws.joint_friction:
            limit = load(s, (n + 1) * RECORD + H) * load(s, a + D_J)
            stirs = slack * limit / steepness(s, n, i)
            most = most + select(rel > stirs, -limit, limit)
            least = least + select(rel < -stirs, limit, -limit)
        if laws.stops:
            ahead, _ = stop_passed(s, n, i, rel + rate)
            behind, _ = stop_passed(s, n, i, rel - rate)
            beyond, end = stop_passed(s, n, i, rel)
            holds = select((abs(rel - end) > rate) & (abs(beyond) > 0.0) & has_laws(s, a), 0.0, holds)
            least = select(ahead > 0.0, -math.inf, least)
            most = select(behind < 0.0, math.inf, most)
        met = abs(mu) + abs(load(s, a + PW)) + abs(load(s, a + WW) * rel)
        miss = max(mu - most, least - mu)
        holds = select((miss > by_precision(s, *_LOOSE) * slack * met) & has_laws(s, a), 0.0, holds)
    return holds


@kernel
def begin_descent(s, n, begins, laws):  # type: ignore[no-untyped-def]
    """Begin at the present solution in the worlds ``begins``; friction and stops become part of the joints' laws."""
    world = (n + 1) * RECORD
    steep, slack, failed = load(s, world + SLOPE), load(s, world + TOLERANCE), load(s, world + DESCENT) == ENDED
    steeper = min(_STEEPER * steep, _STEEPEST_AGAIN)
    # Not far from the end of the last descent where contacts or ground friction have changed since.
    again = select(load(s, world + DESCENT) == _HOLDS, by_precision(s, *_STEEPEST), _STEEP_FIRST)
    slacker = min(_SLACKER * slack, _SLACKEST)
    if laws.joint_friction:  # what sticks at a finite slope may not stick when held, which a steeper one tells
        slacker = select(steep < _STEEPEST_AGAIN, slack, slacker)
        steeper = select(failed, steeper, again)
    else:
        steeper = select(failed & (slack >= _SLACKEST), steeper, again)
    slacker = select(failed, slacker, 1.0)
    store(s, world + SLOPE, select(begins, steeper, steep))
    store(s, world + TOLERANCE, select(begins, slacker, slack))
    for i in range(1, n):
        a = i * RECORD
        here = begins & has_laws(s, a)
        store(s, a + LINE_REL, select(begins, load(s, a + REL), load(s, a + LINE_REL)))
        store(s, a + LINE_MU, select(begins, joint_load(s, n, i), load(s, a + LINE_MU)))
        if laws.joint_friction:
            was = load(s, a + SLIDING_J)
            put_joint_friction(s, n, i, was, select(here, 0.0, was))
        store(s, a + RIGID, select(here, 0.0, load(s, a + RIGID)))
        if not (laws.limits or laws.imperfect):
            store(s, a + LAW_K, select(begins, load(s, a + K), load(s, a + LAW_K)))
            store(s, a + LAW_T0, select(begins, load(s, a + T0), load(s, a + LAW_T0)))


@kernel
def end_descent(s, n, ends, laws):  # type: ignore[no-untyped-def]
    """Give the joints of the worlds ``ends`` the pieces that hold; hold those that stick or are at a stop."""
    for i in range(1, n):
        a = i * RECORD
        here = ends & (load(s, a + RIGID) == 0.0)
        rel = load(s, a + REL)
        k, t0, at_limit, flank = servo_piece(s, n, i, rel, laws)
        side, end = splat(s, 0.0), splat(s, 0.0)
        if laws.stops:
            side, end = stop_passed(s, n, i, rel)
        stopped = abs(side) > 0.0
        if laws.imperfect:
            law_k, law_t0 = servo_law(s, n, i, flank)
            store(s, a + LAW_K, select(here, law_k, load(s, a + LAW_K)))
            store(s, a + LAW_T0, select(here, law_t0, load(s, a + LAW_T0)))
        for field, value in ((K, k), (T0, t0), (AT_LIMIT, at_limit), (FLANK, flank)):
            store(s, a + field, select(here, value, load(s, a + field)))
        if laws.joint_friction:
            limit = load(s, (n + 1) * RECORD + H) * load(s, a + D_J)
            slides = abs(steepness(s, n, i) * rel) >= limit
            state = select(slides, math.copysign(1.0, rel), select(stopped, 0.0, 2.0))
            was = load(s, a + SLIDING_J)
            put_joint_friction(s, n, i, was, select(here, select(limit > 0.0, state, 0.0), was))
        if laws.stops:
            at = load(s, a + AT_STOP)
            side = select(at == side, side, 2.0 * side)
            store(s, a + AT_STOP, select(here, side, at))
            store(s, a + RIGID, select(here & stopped, 1.0, load(s, a + RIGID)))
            store(s, a + B, select(here & stopped, end, load(s, a + B)))


@kernel
def descend(s, n, laws):  # type: ignore[no-untyped-def]
    """Correct the joints' laws in worlds that descend; return the first link that changed, or n + 1."""
    world = (n + 1) * RECORD
    phase, steep = load(s, world + DESCENT), load(s, world + SLOPE)
    if not any_lane(phase > 0.0):
        return n + 1
    begins = (phase == BEGINS) | ((phase >= ENDED) & (laws_hold(s, n, laws) == 0.0))
    goes_on, holds = phase == DESCENDS, pieces_hold(s, n, laws)
    share = search_along(s, n, goes_on & (holds == 0.0), laws)
    stage_ends = goes_on & (holds > 0.0)
    steepest = by_precision(s, *_STEEPEST)
    ends = stage_ends & (steep >= steepest)
    for i in range(1, n):
        a = i * RECORD
        for start, end in ((LINE_REL, REL), (LINE_MU, MU)):
            was = load(s, a + start)
            store(s, a + start, select(goes_on, was + share * (load(s, a + end) - was), was))
    end_descent(s, n, ends, laws)
    begin_descent(s, n, begins, laws)
    store(s, world + SLOPE, select(stage_ends & (steep < steepest), steep * _STEEPER, load(s, world + SLOPE)))
    after = select(ends, ENDED, select(phase == ENDED, _HOLDS, phase))
    store(s, world + DESCENT, select(begins, DESCENDS, after))
    takes = select(begins | goes_on, 1.0, 0.0) - select(ends, 1.0, 0.0)
    for i in range(1, n):
        a = i * RECORD
        here = (takes > 0.0) & (load(s, a + RIGID) == 0.0)
        k, t0 = whole_law(s, n, i, load(s, a + LINE_REL), laws)
        store(s, a + K, select(here, k, load(s, a + K)))
        store(s, a + T0, select(here, t0, load(s, a + T0)))
    changes = begins | goes_on
    store(s, world + LAWS_CHANGE, select(changes, 1.0, select(phase > 0.0, 0.0, load(s, world + LAWS_CHANGE))))
    store(s, world + STOPS_CHANGE, select(phase > 0.0, 0.0, load(s, world + STOPS_CHANGE)))
    return 1 if any_lane(changes) else n + 1
