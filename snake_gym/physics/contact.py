r"""Contacts between links and obstacles in one implicit step: choice of the contacts that press, and their forces.

Each contact has the law of ``contact_law`` and is on (ON) or off. A contact that would pull is switched off, one that
would penetrate is switched on, and the chain is solved again, the worst contacts of a world first. Where that goes in
circles, one contact changes at a time (Murty's rule, which ends as long as the laws do not depend on which contacts
are on; so friction that a contact has brought with it and that makes it pull is dropped for the step). Rigid contacts
then carry impulses over until v_n' meets the law to 1e-9 m/s (method of multipliers). Contacts bounce no more than
leaves the robot with the energy that it had and was given; that is judged once friction has settled.

ON is the present state of a contact; RESULT, after a solution, tells the next one:

==  =======  ==================  ==================================================================================
ON  does     RESULT              goes on to
==  =======  ==================  ==================================================================================
0   nothing  gap to its target   1 where the gap is negative: the link would be further in than the law wants it
1   presses  impulse             0 where the impulse is negative: the contact would pull; without friction then, until
                                 the step's end
==  =======  ==================  ==================================================================================

TRIES counts the corrections of a world. Up to ``PATIENCE`` of them change all contacts that are nearly as bad as the
worst; from there on one contact changes at a time, and waits until joint laws (LAWS_CHANGE) have settled.
"""

from __future__ import annotations

import math

from snake_gym.physics.chain import locate_links, place_links, turn_links
from snake_gym.physics.contact_friction import drop_friction, extrapolate_friction, revise_friction, tangential_velocity
from snake_gym.physics.contact_law import FAR, add_contacts, measure_slot, normal_velocity, set_law, set_laws
from snake_gym.physics.lanes import (
    AGE, ALPHA, AT_STOP, A_N, A_R, A_T, BASE, BASE_W, BEFORE, BETA, BOUNCE, BOUNCE_TRIES, CARRY_TRIES, CONTACTS_CHANGE,
    CPW, CPX, CPY, CVX, CVY, CWW, CX, CXW, CXX, CXY, CY, CYW, CYY, DEPTH, FORCE_X, FORCE_Y, GAP, T_STIFFNESS, GX, GY,
    HALF, IMPULSE, INERTIA, JAMMED, LAWS_CHANGE, MASS, MU, NEW_VX, NEW_VY, NX, NY, OMEGA, ON, PER_H, N_IMPULSE, RECORD,
    REL, RESULT, RIGID, T_IMPULSE, FRICTION_TRIES, RW, RX, RY, SLOTS, SOL_W, N_STIFFNESS, STOPS_CHANGE, T0, TARGET,
    THETA, TOTAL, TOUCHES, TRIES, VN, VX, VX_P, VY, VY_P, WEIGHT, H, K, slot_of,
)  # fmt: skip
from snake_gym.physics.simd import any_lane, kernel, load, select, splat, store
from snake_gym.physics.stops import PATIENCE

_FORESIGHT = 2.0
"""Time to an impact, in steps, below which the past of a world no longer counts as smooth."""
_SLACK = 1e-3
"""Penetration, in half lengths of the link, up to which a contact stays off within the step."""
_ROUNDING = 1e-11
"""Penetration, in half lengths of the link, up to which a rigid contact stays off: rounding only."""
_EXACT = 1e-9
"""Velocity error [m/s] that is left at a rigid contact, and velocity of a link by a pull that is ignored."""
_HOLD = 1e9
"""Inertia given to links that are held still, in masses of the robot."""
_JAMMED = 2e-3
"""Velocity error [m/s] of a rigid contact that is exceeded only where contacts contradict each other."""
_CARRY = 6.0
"""Most times that a world's rigid contacts carry impulses over in a step."""
_PARTED = 0.01
"""Foreseen gap, in half lengths of the link, from which a contact counts as ended."""
_MARGIN = 1.0 + 1e-6
"""Share of the energy found too much that bounces come down by."""
_BOUNCES = 8.0
"""Most times in a step that bounces come down in proportion."""
_STICK = 2e-3
"""Largest pull, as velocity of the link [m/s], that is left for the next step to end."""
_WORST = 0.3
"""Share of the worst contact's error from which contacts change in the same correction."""


@kernel
def foresee_contacts(s, n, counts, law):  # type: ignore[no-untyped-def]
    """Set up all contacts at the foreseen end of the step, before it is solved."""
    set_laws(s, n, law)
    for field in (TRIES, CARRY_TRIES, FRICTION_TRIES, BOUNCE_TRIES):
        store(s, (n + 1) * RECORD + field, 0.0)
    for i in range(1, n + 1):
        near = _PARTED * load(s, i * RECORD + HALF)
        for j in range(counts[i]):
            c = slot_of(n, i, j)
            measure_slot(s, n, i * RECORD, c)
            set_law(s, n, c, law)
            # A contact that pressed in the last step most likely still presses, unless it is seen to part.
            gap = load(s, c + GAP)
            likely = (gap < 0.0) | ((load(s, c + IMPULSE) > 0.0) & (gap < near))
            store(s, c + ON, select(likely, 1.0, 0.0))
        add_contacts(s, n, i, counts[i])


@kernel
def judge_contacts(s, n, counts, law):  # type: ignore[no-untyped-def]
    """Set RESULT of each slot: the impulse of a contact that is on, else its gap [m] to the target of its law.

    Return the worst pull and the worst penetration of each world, 0 where nothing is wrong.
    """
    h = load(s, (n + 1) * RECORD + H)
    pull, depth = splat(s, 0.0), splat(s, 0.0)
    for i in range(1, n + 1):
        slack = (_ROUNDING if law.rigid else _SLACK) * load(s, i * RECORD + HALF)
        stick = -(_EXACT if law.rigid else _STICK) * load(s, i * RECORD + MASS)
        for j in range(counts[i]):
            c = slot_of(n, i, j)
            vn = normal_velocity(s, i * RECORD, c)
            on = load(s, c + ON) > 0.0
            impulse = load(s, c + N_IMPULSE) - load(s, c + N_STIFFNESS) * vn
            gap = slack + h * (vn - load(s, c + TARGET))
            store(s, c + RESULT, select(on, impulse, gap))
            pull = select(on & (impulse < stick), min(pull, impulse), pull)
            depth = select(on, depth, min(depth, gap))
    return pull, depth


@kernel
def revise_contacts(s, n, counts, law, may_go_on):  # type: ignore[no-untyped-def]
    """Switch contacts off that pull and on that penetrate; return the first link that changed, or n + 1.

    Only the worst of a world change at a time: switching off two that share a load may go in circles. Where even that
    does, one contact changes at a time, the one nearest to the head (Murty's rule, which ends), and waits for joint
    laws to settle in between. A world without a solution by the last correction stands still for the step.
    """
    pull, depth = judge_contacts(s, n, counts, law)
    settled = (pull == 0.0) & (depth == 0.0)
    store(s, (n + 1) * RECORD + CONTACTS_CHANGE, select(settled, 0.0, 1.0))
    if not may_go_on:
        return 1 if any_lane(load(s, (n + 1) * RECORD + CONTACTS_CHANGE) > 0.0) else n + 1
    tries, busy = load(s, (n + 1) * RECORD + TRIES), load(s, (n + 1) * RECORD + LAWS_CHANGE)
    greedy = tries < PATIENCE
    free = select(greedy | (busy == 0.0), 1.0, 0.0)
    settled = settled & (free > 0.0)
    store(s, (n + 1) * RECORD + TRIES, select(settled | (free == 0.0), tries, tries + 1.0))
    share = select(greedy, _WORST, 0.0)
    pull, depth = share * pull, share * depth
    first, steady = n + 1, settled
    if law.coulomb > 0.0:
        first, rubs = revise_frictions(s, n, counts, law, settled)
        steady = settled & (rubs == 0.0)
    if law.restitution > 0.0:
        first = min(first, limit_restitution(s, n, counts, steady))
    for i in range(n, 0, -1):
        changed = False
        stick = -(_EXACT if law.rigid else _STICK) * load(s, i * RECORD + MASS)
        for j in range(counts[i]):
            c = slot_of(n, i, j)
            on, result = load(s, c + ON), load(s, c + RESULT)
            pulls = (on > 0.0) & (result < stick) & (result <= pull) & (free > 0.0)
            enters = (on == 0.0) & (result < 0.0) & (result <= depth) & (free > 0.0)
            free = select((pulls | enters) & (share == 0.0), 0.0, free)
            if any_lane(pulls | enters):
                changed = True
                store(s, c + ON, select(pulls, 0.0, select(enters, 1.0, on)))
                # Friction alone may make a contact pull; one that comes back late has no friction, and stays.
                drop_friction(s, c, pulls, greedy)
                plain = load(s, c + N_STIFFNESS) * load(s, c + TARGET)
                store(s, c + N_IMPULSE, select(pulls, plain, load(s, c + N_IMPULSE)))
        if changed:
            add_contacts(s, n, i, counts[i])
            first = min(first, i)
    if law.rigid:
        first = min(first, carry_impulses(s, n, counts, settled))
    return first


@kernel
def hold_links(s, n):  # type: ignore[no-untyped-def]
    """Hold the links of worlds whose joint laws, stops or contacts still change where they are.

    The cause are jams of many contacts, stops and saturated joints: a few in some millions of steps of wild motion.
    """
    world = (n + 1) * RECORD
    jammed = load(s, world + LAWS_CHANGE) + load(s, world + STOPS_CHANGE) + load(s, world + CONTACTS_CHANGE) > 0.0
    if not any_lane(jammed):
        return
    store(s, world + JAMMED, select(jammed, 1.0, 0.0))
    hold = _HOLD * load(s, world + TOTAL)
    # The velocity jumps in this step and in the next.
    store(s, world + AGE, select(jammed, -2.0, load(s, world + AGE)))
    # The base is the present state, not the state foreseen.
    store(s, world + ALPHA, select(jammed, 1.0, load(s, world + ALPHA)))
    store(s, world + BETA, select(jammed, 0.0, load(s, world + BETA)))
    for i in range(1, n + 1):
        a = i * RECORD
        store(s, a + BASE, select(jammed, load(s, a + THETA), load(s, a + BASE)))
        for field in (A_T, A_N, A_R):
            store(s, a + field, select(jammed, hold, load(s, a + field)))
        for field in (RX, RY, RW, CXX, CYY, CWW, CXY, CXW, CYW, CPX, CPY, CPW):
            store(s, a + field, select(jammed, 0.0, load(s, a + field)))
        caught = jammed & (abs(load(s, a + AT_STOP)) > 0.0)
        for field in (RIGID, T0, K, AT_STOP):
            store(s, a + field, select(caught, 0.0, load(s, a + field)))
        for j in range(SLOTS):
            c = slot_of(n, i, j)
            store(s, c + ON, select(jammed, 0.0, load(s, c + ON)))
            store(s, c + GAP, select(jammed, load(s, c + BEFORE), load(s, c + GAP)))
            store(s, c + VN, select(jammed, 0.0, load(s, c + VN)))


@kernel
def energy_excess(s, n):  # type: ignore[no-untyped-def]
    """Return the kinetic energy of the solution [J] beyond what the step began with and joints and slope have put in.

    Velocities are those of the links, in which the step without contact is dissipative whatever its length.
    """
    world = (n + 1) * RECORD
    alpha, beta, h = load(s, world + ALPHA), load(s, world + BETA), load(s, world + H)
    gx, gy = h * load(s, world + GX), h * load(s, world + GY)
    excess = splat(s, 0.0)
    for i in range(1, n + 1):
        a = i * RECORD
        mass = load(s, a + MASS)
        vx, vy, w, base_w = load(s, a + NEW_VX), load(s, a + NEW_VY), load(s, a + SOL_W), load(s, a + BASE_W)
        base_x = alpha * load(s, a + VX) - beta * load(s, a + VX_P)
        base_y = alpha * load(s, a + VY) - beta * load(s, a + VY_P)
        moved = 0.5 * (vx * vx + vy * vy - base_x * base_x - base_y * base_y) - gx * vx - gy * vy
        excess = excess + mass * moved + 0.5 * load(s, a + INERTIA) * (w * w - base_w * base_w)
        if i < n:
            excess = excess - load(s, a + MU) * load(s, a + REL)
    return excess


@kernel
def limit_restitution(s, n, counts, settled):  # type: ignore[no-untyped-def]
    """Take so much of the bounce in the worlds ``settled`` that it makes no energy; return the first link changed.

    Newton's law lets each contact bounce by itself; where others hold at the same time, that may create energy, and so
    may the turn of links within the step, and friction (Kane and Levinson). Bounces come down in proportion, by the
    work that the last bit of each does, then by more, and are gone after ``_BOUNCES`` corrections. Friction has settled
    before each.
    """
    world, zero = (n + 1) * RECORD, splat(s, 0.0)
    excess = select(settled, energy_excess(s, n), zero)
    if not any_lane(excess > 0.0):
        return n + 1
    work = zero
    for i in range(1, n + 1):
        for j in range(counts[i]):
            c = slot_of(n, i, j)
            bounce, result = load(s, c + BOUNCE), load(s, c + RESULT)
            vn = normal_velocity(s, i * RECORD, c)
            presses = (load(s, c + ON) > 0.0) & (bounce > 0.0) & (result > 0.0)
            work = work + select(presses, result * vn * bounce / max(vn - load(s, c + VN), _EXACT), zero)
    times = load(s, world + BOUNCE_TRIES)
    haste = max((times - 1.0) * (times - 1.0), 1.0)
    kept = 1.0 - _MARGIN * haste * excess / max(work, 1e-35)
    kept = select((excess > 0.0) & (work > 0.0), max(kept, zero), 1.0)
    kept = select((excess > 0.0) & (times >= _BOUNCES), zero, kept)
    store(s, world + BOUNCE_TRIES, times + select(kept < 1.0, 1.0, zero))
    first = n + 1
    for i in range(n, 0, -1):
        changed = False
        for j in range(counts[i]):
            c = slot_of(n, i, j)
            lost = (1.0 - kept) * load(s, c + BOUNCE)
            if any_lane(lost > 0.0):
                changed = True
                store(s, c + TARGET, load(s, c + TARGET) - lost)
                store(s, c + N_IMPULSE, load(s, c + N_IMPULSE) - load(s, c + N_STIFFNESS) * lost)
                store(s, c + BOUNCE, load(s, c + BOUNCE) - lost)
        if changed:
            add_contacts(s, n, i, counts[i])
            first = i
    return first


@kernel
def revise_frictions(s, n, counts, law, settled):  # type: ignore[no-untyped-def]
    """Correct the friction of contacts in the worlds ``settled``.

    Return the first link that changed, or n + 1, and 1 in the lanes in which one has.
    """
    first, rubs = n + 1, splat(s, 0.0)
    share, feeds = extrapolate_friction(s, n, counts, law, settled)
    for i in range(n, 0, -1):
        rubbed = revise_friction(s, n, i, counts[i], law, settled, share, feeds)
        if any_lane(rubbed > 0.0):
            add_contacts(s, n, i, counts[i])
            first, rubs = i, max(rubs, rubbed)
    store(s, (n + 1) * RECORD + FRICTION_TRIES, load(s, (n + 1) * RECORD + FRICTION_TRIES) + rubs)
    return first, rubs


@kernel
def carry_impulses(s, n, counts, settled):  # type: ignore[no-untyped-def]
    """Carry over the impulses of rigid contacts so that v_n' comes to the target, in the worlds ``settled``.

    Return the first link that changed, or n + 1. By the method of multipliers each correction leaves about
    (mass felt) / N_STIFFNESS of the velocity error before. Where contacts contradict each other, as in a jam, it would
    not end: those keep the error that their stiffness leaves.
    """
    first = n + 1
    world = (n + 1) * RECORD
    times, moved = load(s, world + CARRY_TRIES), splat(s, 0.0)
    may = settled & (times < _CARRY)
    for i in range(n, 0, -1):
        changed = False
        for j in range(counts[i]):
            c = slot_of(n, i, j)
            on, stiff, target = load(s, c + ON), load(s, c + N_STIFFNESS), load(s, c + TARGET)
            miss = abs(normal_velocity(s, i * RECORD, c) - target)
            moves = (on > 0.0) & (miss > _EXACT) & (miss < _JAMMED) & may
            if any_lane(moves):
                changed = True
                press = load(s, c + RESULT) + stiff * target
                store(s, c + N_IMPULSE, select(moves, press, load(s, c + N_IMPULSE)))
                moved = select(moves, 1.0, moved)
        if changed:
            add_contacts(s, n, i, counts[i])
            first = i
    store(s, world + CARRY_TRIES, times + moved)
    return first


@kernel
def touching_worlds(s, n, counts, dt):  # type: ignore[no-untyped-def]
    """Return 1 in the lanes in which a link touches something or soon will (step dt): their past is not smooth."""
    h = load(s, (n + 1) * RECORD + H)
    touched, one = splat(s, 0.0), splat(s, 1.0)
    for i in range(1, n + 1):
        for j in range(counts[i]):
            c = slot_of(n, i, j)
            vn = normal_velocity(s, i * RECORD, c)
            ahead = load(s, c + GAP) + h * (vn - load(s, c + VN)) + _FORESIGHT * dt * min(vn, 0.0)
            touched = select((load(s, c + ON) > 0.0) | (ahead < 0.0), one, touched)
    return touched


@kernel
def settle_contacts(s, n, counts):  # type: ignore[no-untyped-def]
    """Add up the forces, contacts and penetrations of the step just solved."""
    world = (n + 1) * RECORD
    h, per_h, weight = load(s, world + H), load(s, world + PER_H), load(s, world + WEIGHT)
    zero = splat(s, 0.0)
    depth, touches = load(s, world + DEPTH), zero
    for i in range(1, n + 1):
        a = i * RECORD
        fx, fy = load(s, a + FORCE_X), load(s, a + FORCE_Y)
        for j in range(counts[i]):
            c = slot_of(n, i, j)
            on = load(s, c + ON)
            nx, ny = load(s, c + NX), load(s, c + NY)
            vn = normal_velocity(s, a, c)
            vt = tangential_velocity(s, a, c)
            force = on * max(load(s, c + N_IMPULSE) - load(s, c + N_STIFFNESS) * vn, zero) * per_h
            slide = on * (load(s, c + T_IMPULSE) - load(s, c + T_STIFFNESS) * vt) * per_h
            store(s, c + IMPULSE, force)
            fx = fx + weight * (force * nx - slide * ny)
            fy = fy + weight * (force * ny + slide * nx)
            gap = load(s, c + GAP) + h * (vn - load(s, c + VN))
            store(s, c + BEFORE, select(load(s, c + GAP) < FAR, gap, FAR))
            depth = max(depth, -gap)
            touches = touches + select(force > 0.0, 1.0, zero)
        store(s, a + FORCE_X, fx)
        store(s, a + FORCE_Y, fy)
    store(s, world + DEPTH, depth)
    store(s, world + TOUCHES, load(s, world + TOUCHES) + weight * touches)


@kernel
def note_depth(s, n, counts):  # type: ignore[no-untyped-def]
    """Let DEPTH be no less than the deepest overlap where the links are now; a step knows its own by foresight only."""
    world = (n + 1) * RECORD
    turn_links(s, n)
    locate_links(s, n, (load(s, world + CX), load(s, world + CY)))
    depth = load(s, world + DEPTH)
    for i in range(1, n + 1):
        for j in range(counts[i]):
            c = slot_of(n, i, j)
            measure_slot(s, n, i * RECORD, c)
            depth = max(depth, -load(s, c + GAP))
    store(s, world + DEPTH, depth)


@kernel
def kinetic_energy(s, n):  # type: ignore[no-untyped-def]
    """Return the kinetic energy [J] of the links as they move."""
    energy = splat(s, 0.0)
    for i in range(1, n + 1):
        a = i * RECORD
        vx, vy, w = load(s, a + VX), load(s, a + VY), load(s, a + OMEGA)
        energy = energy + 0.5 * (load(s, a + MASS) * (vx * vx + vy * vy) + load(s, a + INERTIA) * w * w)
    return energy


@kernel
def keep_energy(s, n):  # type: ignore[no-untyped-def]
    """Slow worlds that have touched something by the energy that closing their joints anew would give them.

    Links move as fits the joints in the geometry that was foreseen. After an impact that is not the one in which the
    step has ended, and the rates alone, which are what is kept, may stand for more energy there.
    """
    world = (n + 1) * RECORD
    had = kinetic_energy(s, n)
    place_links(s, n)
    has = kinetic_energy(s, n)
    slower = (load(s, world + TOUCHES) > 0.0) & (has > had)
    share = select(slower, math.sqrt(had / max(has, 1e-35)), 1.0)
    for i in range(1, n + 1):
        store(s, i * RECORD + OMEGA, share * load(s, i * RECORD + OMEGA))
    for field in (CVX, CVY):
        store(s, world + field, share * load(s, world + field))
