r"""Coulomb friction of contacts, along the obstacle's surface, with the normal impulse of the same step.

A contact that slides is pulled by ``mu`` times its normal impulse, against the slip; one that sticks is held by a stiff
damper. The impulse and the slip at the step's end decide, so normal impulses and frictions are solved for in turn.
Viscous friction (wang, eq. 22) acts at both.

SLIDES is the present state of a contact's friction:

=======  =======  =====================================================================================================
SLIDES   does     goes on to
=======  =======  =====================================================================================================
1, -1    slides   0 where the slip v_t' has another sign; else RUB follows the normal impulse
0        sticks   1 or -1 where it would have to hold more than mu times the normal impulse
2        nothing  stays: friction made the contact pull, again and again, in this step
=======  =======  =====================================================================================================

What still changes after many corrections sticks: that takes energy, whatever the cone says.
"""

from __future__ import annotations

from snake_gym.physics.lanes import (
    FIRM, GRIP, IMPULSE, NX, NY, ON, RECORD, RESULT, RUB, RUBBED, SLIDES, SOL_W, T_ARM, UX, UY, VT, H, slot_of,
)  # fmt: skip
from snake_gym.physics.simd import absolute, any_lane, copy_sign, kernel, larger, load, select, splat, store

_SLOWEST_SLIP = 1e-4
"""Slip [m/s] below which a contact begins its step sticking."""
_DROPPED = 2.0
_EXACT = 1e-4
"""Error of a sliding contact's friction that is left, as a share of it."""
_BREAKS = 8.0
"""Most corrections in a step in which contacts that stick may break loose."""
_DRIFTS = 16.0
"""Most corrections in a step in which friction follows the normal impulse."""


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
    h, rub, slides = load(s, world + H), splat(0.0), splat(0.0)
    grip = h * law.viscous
    if law.coulomb > 0.0:
        slip = load(s, c + VT)
        moves = absolute(slip) > _SLOWEST_SLIP
        slides = select(moves, copy_sign(splat(1.0), slip), slides)
        rub = -slides * (law.coulomb * h * load(s, c + IMPULSE))
        grip = select(moves, grip, grip + load(s, world + FIRM))
    store(s, c + GRIP, grip)
    store(s, c + RUB, rub)
    store(s, c + SLIDES, slides)


@kernel
def drop_friction(s, c, where, for_now):  # type: ignore[no-untyped-def]
    """Remove the slot's friction in the lanes ``where``: Coulomb's until the normal impulse is known again where
    ``for_now``, else all of it until the step's end."""
    zero = splat(0.0)
    store(s, c + GRIP, select(where, zero, load(s, c + GRIP)))
    store(s, c + RUB, select(where, zero, load(s, c + RUB)))
    for_good = where & (select(for_now, splat(1.0), zero) == 0.0)
    store(s, c + SLIDES, select(for_good, splat(_DROPPED), load(s, c + SLIDES)))


@kernel
def revise_friction(s, n, i, count, law, settled):  # type: ignore[no-untyped-def]
    """Correct the friction of link i's contacts in the worlds ``settled``; return 1 where it has changed."""
    a, world = i * RECORD, (n + 1) * RECORD
    times, viscous, zero = load(s, world + RUBBED), load(s, world + H) * law.viscous, splat(0.0)
    changed = zero
    for j in range(count):
        c = slot_of(n, i, j)
        slip, slides, rub = tangential_velocity(s, a, c), load(s, c + SLIDES), load(s, c + RUB)
        firm = load(s, world + FIRM)
        cone = law.coulomb * larger(load(s, c + RESULT), zero)
        on = settled & (load(s, c + ON) > 0.0)
        sliding = on & (absolute(slides) == 1.0)
        stops = sliding & (slides * slip < 0.0)
        follows = sliding & (slides * slip >= 0.0) & (absolute(absolute(rub) - cone) > _EXACT * cone)
        follows = follows & (times < _DRIFTS)
        breaks = on & (slides == 0.0) & (firm * absolute(slip) > (1.0 + _EXACT) * cone) & (times < _BREAKS)
        slides = select(stops, zero, select(breaks, copy_sign(splat(1.0), slip), slides))
        changes = stops | follows | breaks
        if any_lane(changes):
            store(s, c + SLIDES, slides)
            store(s, c + RUB, select(stops, zero, select(follows | breaks, -slides * cone, rub)))
            grip = select(stops, viscous + firm, select(breaks, viscous, load(s, c + GRIP)))
            store(s, c + GRIP, grip)
            changed = select(changes, splat(1.0), changed)
    return changed
