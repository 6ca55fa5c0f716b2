"""Steps that worlds take in parts: where links near obstacles or each other move far, or otherwise than foreseen.

A stage of a step is prepared for what is foreseen: points move no further than LONGEST_STRIDE near obstacles, or than
CURL_STRIDE near other links, and the gaps of contacts are those of the geometry at its foreseen end. A world that moves
too fast among obstacles as the stage begins takes it in PARTS, a power of two. One whose solution is not as predicted
takes the stage again, from the same begin, in twice as many.
"""

from __future__ import annotations

import math

import numpy as np

from snake_gym.physics.broad_phase import LEAST_STRIDE, SPEEDING_UP, count_slots, look_around
from snake_gym.physics.contact_law import FAR, normal_velocity
from snake_gym.physics.implicit import LATER, finish_stage, length_of, solve_stage
from snake_gym.physics.lanes import (
    AGE, AHEAD, AT_LIMIT, AT_STOP, CURL_STRIDE, FLANK, GAP, HALF, JAMMED, LONGEST_STRIDE, NEAREST, NEW_PACE, NEW_VX,
    NEW_VY, OMEGA, OMEGA_P, ON, PACE, PARTS, PAST_ONSET, RECORD, RIGID, SIGMA, SLIDING_J, SLIDING_N, SLIDING_R,
    SLIDING_T, SOL_W, TRAVEL, VN, H, slot_of,
)  # fmt: skip
from snake_gym.physics.simd import any_lane, kernel, load, n_lanes, select, splat, store

_MOST_DIVISIONS = 10
"""Most times that a step is halved because of links that move fast near obstacles."""
_MOST_PARTS, _MOST_TRIES = 256, 8
"""Parts of a step in which worlds may no longer stray, and in which they may no longer for want of laws that hold."""
_STRAY = 0.01
"""Error of the foreseen geometry, as a share of LONGEST_STRIDE, that is left in a step."""


@kernel
def fastest_point(s, n, vx_field, vy_field, rate_field):  # type: ignore[no-untyped-def]
    """Return a bound of the speed [m/s] of any point of the links, whose centres' velocities and rates are given."""
    square, turning = splat(s, 0.0), splat(s, 0.0)
    for i in range(1, n + 1):
        a = i * RECORD
        vx, vy = load(s, a + vx_field), load(s, a + vy_field)
        square = max(square, vx * vx + vy * vy)
        reach = load(s, a + HALF) * (1.0 + abs(load(s, a + AHEAD)))
        turning = max(turning, reach * abs(load(s, a + rate_field)))
    return math.sqrt(square) + turning


@kernel
def divide_step(s, n, dt):  # type: ignore[no-untyped-def]
    """Set PARTS, the number of parts, a power of two, in which each world takes its next step dt, so that no link near
    an obstacle moves further than LONGEST_STRIDE in one. Return True if it is more than 1 in any."""
    world = (n + 1) * RECORD
    stride, longest = dt * load(s, world + PACE), load(s, world + LONGEST_STRIDE)
    if not any_lane(stride > longest):
        return False
    parts = splat(s, 1.0)
    for _ in range(_MOST_DIVISIONS):
        parts = select(stride > longest * parts, 2.0 * parts, parts)
    store(s, world + PARTS, parts)
    return True


@kernel
def rotated_more_than_predicted(s, n, counts):  # type: ignore[no-untyped-def]
    """Return in which worlds links touch, or may, whose foreseen gaps are wrong, as they turn otherwise."""
    world, zero = (n + 1) * RECORD, splat(s, 0.0)
    sigma, error = load(s, world + SIGMA), zero
    for i in range(1, n + 1):
        a = i * RECORD
        half, w = load(s, a + HALF), load(s, a + OMEGA)
        change = load(s, a + SOL_W) - w - sigma * (w - load(s, a + OMEGA_P))
        error = error + half * change * change
    h = load(s, world + H)
    error = h * h * error
    wrong = error > _STRAY * load(s, world + LONGEST_STRIDE)
    if not any_lane(wrong):
        return wrong
    touches = zero
    for i in range(1, n + 1):
        for j in range(counts[i]):
            c = slot_of(n, i, j)
            gap = load(s, c + GAP) + h * (normal_velocity(s, i * RECORD, c) - load(s, c + VN))
            touches = select((load(s, c + ON) > 0.0) | (gap < 2.0 * error), 1.0, touches)
    return wrong & (touches > 0.0)


@kernel
def prediction_failed(s, n, counts, dt, skin, parts):  # type: ignore[no-untyped-def]
    """Set PARTS to 2 in the worlds whose solution for the step dt is not what it was prepared for, to 1 in the others.

    That is: points near obstacles move further than LONGEST_STRIDE, or than the look-up held for; or points further
    than CURL_STRIDE with a gap of two links below half that way; or links at obstacles turn otherwise than foreseen, so
    that gaps are not what they were taken for; or no laws have been found that hold. Return True if it failed in any.
    It never does in ``_MOST_PARTS`` parts of a step, however it turns out.
    """
    world = (n + 1) * RECORD
    pace = fastest_point(s, n, NEW_VX, NEW_VY, SOL_W)
    store(s, world + NEW_PACE, pace)
    unseen = (load(s, world + TRAVEL) + dt * pace > skin) & (pace > SPEEDING_UP * load(s, world + PACE))
    unseen = unseen & (dt * pace > LEAST_STRIDE)
    longest, curl = load(s, world + LONGEST_STRIDE), load(s, world + CURL_STRIDE)
    far = unseen | (dt * pace > longest) | ((dt * pace > curl) & (load(s, world + NEAREST) < 0.5 * dt * pace))
    if counts[0] > 0:
        far = far | rotated_more_than_predicted(s, n, counts)
    if parts < _MOST_TRIES:
        far = far | ((load(s, world + JAMMED) > 0.0) & (min(longest, curl) < FAR))
    if parts >= _MOST_PARTS or not any_lane(far):
        return False
    store(s, world + PARTS, select(far, 2.0, 1.0))
    return True


@kernel
def note_pace(s, n, dt):  # type: ignore[no-untyped-def]
    """Add the way of the step dt just solved to TRAVEL, and keep its speed."""
    world = (n + 1) * RECORD
    pace = load(s, world + NEW_PACE)
    store(s, world + PACE, pace)
    store(s, world + TRAVEL, load(s, world + TRAVEL) + dt * pace)


@kernel
def copy_scratch(to, s):  # type: ignore[no-untyped-def]
    """Copy a scratch array."""
    for i in range(s.shape[0]):
        store(to, i, load(s, i))


@kernel
def copy_lane(to, s, k):  # type: ignore[no-untyped-def]
    """Copy lane k of a scratch array."""
    for i in range(s.shape[0]):
        to[i, k] = s[i, k]


@kernel
def copy_laws(to, s, n):  # type: ignore[no-untyped-def]
    """Copy what a solution changes and the next one begins with: states of joints, sliding and smoothness."""
    world = (n + 1) * RECORD
    store(to, world + AGE, load(s, world + AGE))
    for i in range(1, n + 1):
        a = i * RECORD
        for field in (RIGID, AT_STOP, AT_LIMIT, FLANK, PAST_ONSET, SLIDING_J, SLIDING_T, SLIDING_N, SLIDING_R):
            store(to, a + field, load(s, a + field))


@kernel
def take_stage(  # type: ignore[no-untyped-def]
    s, n, ids, count, stage, dt, obstacles, counts, old, spare, touches, laws
):
    """Advance a block by one stage, in parts where links move far or otherwise than foreseen (see above).

    Each lane takes it in its number of PARTS, a power of two, or more if its prediction failed. All lanes take all
    numbers that occur, from the same begin, and keep the result of their own: no world depends on its neighbours.
    ``spare`` (3, rows, lanes): room for the begin, the results, and the laws with which the stage begins.
    """
    parts_of = (n + 1) * RECORD + PARTS
    begin, result, laws_before = spare[0], spare[1], spare[2]
    divided = divide_step(s, n, length_of(stage, dt))
    if divided:
        copy_scratch(begin, s)
    else:
        copy_laws(laws_before, s, n)
    parts, left = np.int64(1), n_lanes(s)
    while left > 0:
        if not divided or any_lane(load(begin, parts_of) == float(parts)):
            if parts > 1:
                copy_scratch(s, begin)
                count_slots(s, n, counts)
            divided = take_parts(
                s, begin, laws_before, n, ids, count, stage, dt, parts, divided, obstacles, counts, old, touches, laws
            )
            if not divided:
                return
            for k in range(n_lanes(s)):
                if begin[parts_of, k] == parts:
                    if s[parts_of, k] > parts:
                        begin[parts_of, k] = 2.0 * parts
                    else:
                        left -= 1
                        copy_lane(result, s, k)
        parts *= 2
    copy_scratch(s, result)
    count_slots(s, n, counts)


@kernel
def take_parts(  # type: ignore[no-untyped-def]
    s, begin, laws_before, n, ids, count, stage, dt, parts, divided, obstacles, counts, old, touches, laws
):
    """Advance a block by one stage in ``parts`` parts; PARTS becomes larger than this where a prediction failed.

    Return ``divided``, whether the lanes have different PARTS. Where that is so only now, ``begin`` is set to what the
    stage begins with: links not yet moved, laws as before the solution.
    """
    world = (n + 1) * RECORD
    length = length_of(stage, dt) / parts
    strayed = splat(s, 0.0)
    if parts > 1:
        stage, dt = LATER, length
        store(s, world + AGE, min(load(s, world + AGE), 0.0))
    for part in range(parts):
        if part > 0 and laws.obstacles:
            look_around(s, n, ids, count, length, obstacles, counts, old)
        solve_stage(s, n, stage, dt, counts, touches, laws)
        if prediction_failed(s, n, counts, length, obstacles.skin_m if laws.obstacles else FAR, parts):
            strayed = max(strayed, load(s, world + PARTS) - 1.0)
            if not divided:
                copy_scratch(begin, s)
                copy_laws(begin, laws_before, n)
                divided = True
        note_pace(s, n, length)
        finish_stage(s, n, stage, dt, counts, touches, laws)
    if parts > 1:
        store(s, world + AGE, min(load(s, world + AGE), 0.0))
    store(s, world + PARTS, parts * (1.0 + strayed))
    return divided
