r"""Coulomb friction of contacts, along the obstacle's surface, with the normal impulse of the same step.

A contact that slides is pulled by ``mu`` times its normal impulse, against the slip; one that sticks is held by a stiff
damper. The impulse and the slip at the step's end decide, so normal impulses and frictions are solved for in turn.
Where the link turns easily, friction changes the normal impulse so much that taking turns does not end; so the next
friction is extrapolated from the last two. Viscous friction (wang, eq. 22) acts at both.

SLIDES is the present state of a contact's friction:

=======  =======  =====================================================================================================
SLIDES   does     goes on to
=======  =======  =====================================================================================================
1, -1    slides   0 where the slip v_t' has another sign and T_IMPULSE is no more than mu times the normal impulse, or
                  where more friction only asks for more; else T_IMPULSE follows the normal impulse
0        sticks   1 or -1 where it would have to hold more than mu times the normal impulse
2        nothing  stays: friction made the contact pull, again and again, in this step
=======  =======  =====================================================================================================

What still changes after many corrections sticks: that takes energy, whatever the cone says.
"""

from __future__ import annotations

import math

from snake_gym.physics.lanes import (
    FIRM, T_STIFFNESS, T_BEFORE, IMPULSE, NX, NY, ON, T_LIMIT_BEFORE, RECORD, RESULT, T_IMPULSE, FRICTION_TRIES, SLIDES,
    SOL_W, T_ARM, UX, UY, VT, H, slot_of,
)  # fmt: skip
from snake_gym.physics.simd import any_lane, kernel, load, select, splat, store

_SLOWEST_SLIP = 1e-4
"""Slip [m/s] below which a contact begins its step sticking."""
_DROPPED = 2.0
_EXACT = 1e-4
"""Error of a sliding contact's friction that is left, as a share of it."""
_BREAKS = 8.0
"""Most corrections in a step in which contacts that stick may break loose."""
_DRIFTS = 16.0
"""Most corrections in a step in which friction follows the normal impulse."""
_NEVER = 1e300
"""T_BEFORE of a contact that has not pressed in the step yet."""
_NOTICED = 1e-3
"""Least change of friction, as a share of it, from which the next one is extrapolated."""
_LEAST_SHARE = 0.02
"""Least fall of the error per friction added; below it friction feeds on itself."""


@kernel
def tangential_velocity(s, a, c):  # type: ignore[no-untyped-def]
    """Return the slip v_t' [m/s] of the slot at ``c`` of the link at ``a`` after a solution."""
    b = a + RECORD
    return (
        load(s, c + NX) * load(s, b + UY) - load(s, c + NY) * load(s, b + UX) + load(s, c + T_ARM) * load(s, a + SOL_W)
    )


@kernel
def set_friction(s, n, c, law):  # type: ignore[no-untyped-def]
    """Set the slot's friction for the foreseen slip and the normal force of the step before."""
    world = (n + 1) * RECORD
    h, rub, slides = load(s, world + H), splat(s, 0.0), splat(s, 0.0)
    grip = h * law.viscous
    if law.coulomb > 0.0:
        slip = load(s, c + VT)
        moves = abs(slip) > _SLOWEST_SLIP
        slides = select(moves, math.copysign(1.0, slip), slides)
        rub = -slides * (law.coulomb * h * load(s, c + IMPULSE))
        grip = select(moves, grip, grip + load(s, world + FIRM))
    store(s, c + T_STIFFNESS, grip)
    store(s, c + T_IMPULSE, rub)
    store(s, c + SLIDES, slides)
    store(s, c + T_BEFORE, _NEVER)
    store(s, c + T_LIMIT_BEFORE, 0.0)


@kernel
def drop_friction(s, c, where, for_now):  # type: ignore[no-untyped-def]
    """Remove the slot's friction in the lanes ``where``: Coulomb's until the normal impulse is known again where
    ``for_now``, else all of it until the step's end."""
    store(s, c + T_STIFFNESS, select(where, 0.0, load(s, c + T_STIFFNESS)))
    store(s, c + T_IMPULSE, select(where, 0.0, load(s, c + T_IMPULSE)))
    for_good = where & (select(for_now, 1.0, 0.0) == 0.0)
    store(s, c + SLIDES, select(for_good, _DROPPED, load(s, c + SLIDES)))


@kernel
def judge_friction(s, n, a, c, law, settled):  # type: ignore[no-untyped-def]
    """Judge the friction of the slot at ``c`` of the link at ``a`` after a solution, in the worlds ``settled``.

    Return the way in which it slides or is to slide, the Coulomb friction that acted, mu times the normal impulse, and
    the lanes in which friction follows the normal impulse, breaks loose, or sticks from now on.
    """
    world = (n + 1) * RECORD
    times, firm, slides = load(s, world + FRICTION_TRIES), load(s, world + FIRM), load(s, c + SLIDES)
    slip, rub = tangential_velocity(s, a, c), load(s, c + T_IMPULSE)
    held = rub - select(load(s, c + T_STIFFNESS) >= firm, firm * slip, 0.0)
    press = law.coulomb * load(s, c + RESULT)
    cone = max(press, 0.0)
    on = settled & (load(s, c + ON) > 0.0)
    sliding = on & (abs(slides) == 1.0)
    excess = abs(rub) - cone
    # Less friction than the law's has already turned the slip around; more may have done so wrongly.
    stops = sliding & (slides * slip < 0.0) & ((excess <= _EXACT * cone) | (times >= _DRIFTS))
    follows = sliding & (abs(excess) > _EXACT * cone) & (times < _DRIFTS)
    follows = follows & (select(stops, 1.0, 0.0) == 0.0)
    breaks = on & (slides == 0.0) & (firm * abs(slip) > (1.0 + _EXACT) * cone) & (times < _BREAKS)
    way = select(breaks, math.copysign(1.0, slip), slides)
    return way, held, press, follows, breaks, stops


@kernel
def compare_friction(s, c, way, held, press):  # type: ignore[no-untyped-def]
    """Return how the slot's friction and its error have changed since the solution before."""
    known = load(s, c + T_BEFORE) < _NEVER
    moved = select(known, held - load(s, c + T_BEFORE), 0.0)
    return moved, select(known, -way * (press - load(s, c + T_LIMIT_BEFORE)) - moved, 0.0)


@kernel
def extrapolate_friction(s, n, counts, law, settled):  # type: ignore[no-untyped-def]
    """Return the share of the last change that friction leaves out or adds, and 1 where friction feeds on itself.

    The error is what Coulomb's law asks for less what has acted. It is linear in the friction of all contacts, so the
    share that would have made it least, had it been left out, takes one contact to its law at once, and several by
    their common part (Anderson's acceleration of depth one). Where more friction makes the error larger, no friction of
    a contact that slides meets the law.
    """
    zero = splat(s, 0.0)
    share, change, square, along, size = zero, zero, zero, zero, zero
    for i in range(1, n + 1):
        for j in range(counts[i]):
            c = slot_of(n, i, j)
            way, held, press, follows, breaks, _ = judge_friction(s, n, i * RECORD, c, law, settled)
            moved, gain = compare_friction(s, c, way, held, press)
            counted = select(follows | breaks, 1.0, zero)
            share = share + counted * gain * (-way * press - held)
            change = change + counted * gain * gain
            square = square + counted * moved * moved
            along = along + counted * moved * gain
            size = size + counted * press * press
    feeds = along > -_LEAST_SHARE * square
    known = square > _NOTICED * _NOTICED * size
    share = select(known & (change > 0.0) & (along <= -_LEAST_SHARE * square), share / change, zero)
    return share, select(known & feeds, 1.0, zero)


@kernel
def revise_friction(s, n, i, count, law, settled, share, feeds):  # type: ignore[no-untyped-def]
    """Correct the friction of link i's contacts in the worlds ``settled``; return 1 where it has changed.

    ``share``, ``feeds``: see ``extrapolate_friction``.
    """
    a, world = i * RECORD, (n + 1) * RECORD
    viscous, zero = load(s, world + H) * law.viscous, splat(s, 0.0)
    changed = zero
    for j in range(count):
        c = slot_of(n, i, j)
        way, held, press, follows, breaks, stops = judge_friction(s, n, a, c, law, settled)
        moved, gain = compare_friction(s, c, way, held, press)
        on = load(s, c + ON) > 0.0
        store(s, c + T_BEFORE, select(on, held, load(s, c + T_BEFORE)))
        store(s, c + T_LIMIT_BEFORE, select(on, press, load(s, c + T_LIMIT_BEFORE)))
        rub = -way * press - share * (moved + gain)
        stops = stops | (follows & (feeds > 0.0) & (moved * gain > -_LEAST_SHARE * moved * moved))
        changes = stops | follows | breaks
        if any_lane(changes):
            rub = select(follows | breaks, -way * max(-way * rub, zero), load(s, c + T_IMPULSE))
            store(s, c + T_IMPULSE, select(stops, zero, rub))
            store(s, c + SLIDES, select(stops, zero, select(changes, way, load(s, c + SLIDES))))
            grip = select(breaks, viscous, load(s, c + T_STIFFNESS))
            store(s, c + T_STIFFNESS, select(stops, viscous + load(s, world + FIRM), grip))
            changed = select(changes, 1.0, changed)
    return changed
