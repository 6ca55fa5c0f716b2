r"""Contact between links (capsules) and the obstacles' features, as a unilateral spring and damper taken implicitly.

A link touches a feature in one point: a disc where the link's axis comes nearest to it, a segment (edge of a polygon,
side of a capsule, wall) with the ends of the link; so a link along a wall has two contacts and one across a corner has
one. A joint counts as the end of the link behind it. With the normal n from obstacle to link, the gap g, and v_n' the
normal velocity at the end of a step of length h,

    impulse j = h k (-g') - h d v_n',   g' = g + h v_n',   j >= 0,

the gap g taken back, along the foreseen motion, from the foreseen end of the step to its start. A link that is not
there yet (g > 0) is slowed just so that it arrives: the law is ``j = STIFF (v_t - v_n')`` with STIFF = h (h k + d), or
more where that is not firm, and the target ``v_t = -g / h`` for g > 0, ``-g k / (h k + d)`` for g < 0. That is a
rank-one addition to the link's matrix: it passes through all joints in the same elimination, so that an impact meets
the chain's own effective mass (wang, eq. 12-15 treat the link as free). A contact that would pull is taken off, one
that would penetrate is put on, and the chain is solved again. Restitution (Newton's) raises v_n' to ``-e`` times the
approach.

The rigid model (wang, eq. 11-19; Moreau's time stepping) is the limit of infinite STIFF with v_t = -g / h for any g:
0 <= j, v_n' >= v_t, and j (v_n' - v_t) = 0, to 1e-9 m/s, reached by carrying impulses over (method of multipliers).

Friction along the surface: viscous (wang, eq. 22, but at the point of contact instead of the link's centre) and Coulomb
by its secant, with the normal force of the step before.
"""

from __future__ import annotations

from numba import njit

from snake_gym.physics.lanes import (
    CLOSING, CPW, CPX, CPY, CWW, CXW, CXX, CXY, CYW, CYY, DEPTH, FIRM, FORCE_X, FORCE_Y, GAP, GRIP, HALF, IMPULSE, MASS,
    NX, NY, N_ARM, ON, PER_H, PRESS, RECORD, RESULT, SOL_W, STIFF, TARGET, TOTAL, TOUCHES, T_ARM, UX, UY, VN, VT,
    WEIGHT, H, slot_of,
)  # fmt: skip
from snake_gym.physics.proximity import FAR, measure_slot
from snake_gym.physics.simd import absolute, any_lane, larger, load, select, smaller, splat, store

_SLOWEST_SLIP = 1e-4
"""[m/s] below this speed Coulomb friction at a contact is viscous."""
_SLOWEST_IMPACT = 0.02
"""[m/s] slower approaches do not bounce."""
_FORESIGHT = 2.0
"""Steps: an impact that near ends the smooth past."""
_FIRMNESS = 1e3
"""Least STIFF, in masses of the robot: what makes an impact one event at any step size."""
_SLACK = 1e-3
"""Penetration, in half lengths of the link, that does not put a contact on within the step."""
_RIGIDITY = 1e4
"""STIFF of rigid contact in masses of the robot; what it leaves of v_n' - v_t is then taken away by correction."""
_EXACT = 1e-9
"""[m/s] rigid contact: the velocity into or out of a contact that is left."""
_STICK = 2e-3
"""[m/s] a pull so small, as velocity of the link, is left for the next step to end."""
_WORST = 0.3
"""Contacts at least so bad as this share of the worst are changed in one correction."""


@njit(error_model="numpy")
def set_laws(s, n, law):  # type: ignore[no-untyped-def]
    """What the laws of all contacts of a world share in a step of length H: 1/h, STIFF and how fast gaps < 0 close."""
    world = (n + 1) * RECORD
    h, total = load(s, world + H), load(s, world + TOTAL)
    store(s, world + PER_H, 1.0 / h)
    if law.rigid:
        store(s, world + FIRM, _RIGIDITY * total)
        store(s, world + CLOSING, 1.0 / h)
    else:
        yielding = h * law.stiffness + law.damping
        store(s, world + FIRM, larger(h * yielding, _FIRMNESS * total))
        store(s, world + CLOSING, law.stiffness / yielding)


@njit(error_model="numpy")
def set_law(s, n, c, law):  # type: ignore[no-untyped-def]
    """Coefficients of the slot's impulse and surface friction for this step."""
    world = (n + 1) * RECORD
    h, stiff = load(s, world + H), load(s, world + FIRM)
    vn = load(s, c + VN)
    gap = load(s, c + GAP) - h * vn
    target = -gap * select(gap > 0.0, load(s, world + PER_H), load(s, world + CLOSING))
    impact = (vn < -_SLOWEST_IMPACT) & (load(s, c + GAP) < 0.0)
    target = larger(target, select(impact, -law.restitution * vn, target))
    store(s, c + STIFF, stiff)
    store(s, c + TARGET, target)
    store(s, c + PRESS, stiff * target)
    grip = splat(law.viscous)
    if law.coulomb > 0.0:
        grip = grip + law.coulomb * load(s, c + IMPULSE) / larger(absolute(load(s, c + VT)), splat(_SLOWEST_SLIP))
    store(s, c + GRIP, h * grip)


@njit(error_model="numpy")
def press_link(s, n, i, count):  # type: ignore[no-untyped-def]
    """Sum of what the link's touching slots add to its matrix and right-hand side, at its head-side end."""
    a = i * RECORD
    zero = splat(0.0)
    xx, xy, yy, xw, yw, ww = zero, zero, zero, zero, zero, zero
    px, py, pw = zero, zero, zero
    for j in range(count):
        c = slot_of(n, i, j)
        on = load(s, c + ON)
        stiff = on * load(s, c + STIFF)
        press = on * load(s, c + PRESS)
        grip = on * load(s, c + GRIP)
        nx, ny = load(s, c + NX), load(s, c + NY)
        arm, side = load(s, c + N_ARM), load(s, c + T_ARM)
        xx = xx + stiff * nx * nx + grip * ny * ny
        xy = xy + (stiff - grip) * nx * ny
        yy = yy + stiff * ny * ny + grip * nx * nx
        xw = xw + stiff * nx * arm - grip * ny * side
        yw = yw + stiff * ny * arm + grip * nx * side
        ww = ww + stiff * arm * arm + grip * side * side
        px = px + press * nx
        py = py + press * ny
        pw = pw + press * arm
    store(s, a + CXX, xx)
    store(s, a + CXY, xy)
    store(s, a + CYY, yy)
    store(s, a + CXW, xw)
    store(s, a + CYW, yw)
    store(s, a + CWW, ww)
    store(s, a + CPX, px)
    store(s, a + CPY, py)
    store(s, a + CPW, pw)


@njit(error_model="numpy")
def foresee_contacts(s, n, counts, law):  # type: ignore[no-untyped-def]
    """Contacts at the foreseen end of the step, before it is solved."""
    set_laws(s, n, law)
    for i in range(1, n + 1):
        for j in range(counts[i]):
            c = slot_of(n, i, j)
            measure_slot(s, n, i * RECORD, c)
            set_law(s, n, c, law)
            # What pressed in the last step most likely presses still.
            likely = (load(s, c + GAP) < 0.0) | ((load(s, c + IMPULSE) > 0.0) & (load(s, c + GAP) < FAR))
            store(s, c + ON, select(likely, splat(1.0), splat(0.0)))
        press_link(s, n, i, counts[i])


@njit(error_model="numpy")
def judge_contacts(s, n, counts, law):  # type: ignore[no-untyped-def]
    """Into RESULT of each slot the impulse if it is on, else how far it falls short of one; the least per world.

    What is off falls short by the length [m] that it keeps from the target of its law.
    """
    h = load(s, (n + 1) * RECORD + H)
    pull, depth = splat(0.0), splat(0.0)
    for i in range(1, n + 1):
        slack = (0.0 if law.rigid else _SLACK) * load(s, i * RECORD + HALF)
        for j in range(counts[i]):
            c = slot_of(n, i, j)
            vn = normal_velocity(s, i * RECORD, c)
            on = load(s, c + ON) > 0.0
            impulse = load(s, c + PRESS) - load(s, c + STIFF) * vn
            gap = slack + h * (vn - load(s, c + TARGET))
            store(s, c + RESULT, select(on, impulse, gap))
            pull = select(on, smaller(pull, impulse), pull)
            depth = select(on, depth, smaller(depth, gap))
    return pull, depth


@njit(error_model="numpy")
def revise_contacts(s, n, counts, law, may_engage):  # type: ignore[no-untyped-def]
    """Take contacts off that pull, put those on that penetrate; returns the first link that changed, or n + 1.

    Only the worst of a world go at a time: taking off two that share a load at once may go in circles.
    """
    pull, depth = judge_contacts(s, n, counts, law)
    h = load(s, (n + 1) * RECORD + H)
    if not may_engage:
        depth = splat(-FAR)
    first = n + 1
    for i in range(n, 0, -1):
        changed = False
        stick = -(0.0 if law.rigid else _STICK) * load(s, i * RECORD + MASS)
        for j in range(counts[i]):
            c = slot_of(n, i, j)
            on, result, known = load(s, c + ON), load(s, c + RESULT), load(s, c + IMPULSE)
            pulls = (on > 0.0) & (result < stick) & (result <= _WORST * pull)
            enters = (on == 0.0) & (result < 0.0) & (result <= _WORST * depth)
            # The first impulse of a contact is the first that its friction knows of.
            begins = (on > 0.0) & (result > 0.0) & (known == 0.0) & (splat(law.coulomb) > 0.0)
            if any_lane(pulls | enters | begins):
                changed = True
                store(s, c + ON, select(pulls, splat(0.0), select(enters, splat(1.0), on)))
                force = result * load(s, (n + 1) * RECORD + PER_H)
                grip = law.viscous + law.coulomb * force / larger(absolute(load(s, c + VT)), splat(_SLOWEST_SLIP))
                store(s, c + GRIP, select(begins, h * grip, load(s, c + GRIP)))
                store(s, c + IMPULSE, select(begins, force, known))
        if changed:
            press_link(s, n, i, counts[i])
            first = i
    if law.rigid and first > n:
        return harden_contacts(s, n, counts)
    return first


@njit(error_model="numpy")
def harden_contacts(s, n, counts):  # type: ignore[no-untyped-def]
    """Rigid contact: carry over the impulse so that v_n' comes to the target; first link changed, or n + 1.

    The method of multipliers: each correction leaves about (mass felt) / STIFF of the velocity before.
    """
    first = n + 1
    for i in range(n, 0, -1):
        changed = False
        for j in range(counts[i]):
            c = slot_of(n, i, j)
            on, stiff, target = load(s, c + ON), load(s, c + STIFF), load(s, c + TARGET)
            miss = absolute(normal_velocity(s, i * RECORD, c) - target)
            moves = (on > 0.0) & (miss > _EXACT)
            if any_lane(moves):
                changed = True
                press = load(s, c + RESULT) + stiff * target
                store(s, c + PRESS, select(moves, press, load(s, c + PRESS)))
        if changed:
            press_link(s, n, i, counts[i])
            first = i
    return first


@njit(error_model="numpy")
def normal_velocity(s, a, c):  # type: ignore[no-untyped-def]
    """v_n' of the slot at ``c`` of the link at ``a`` after a solution."""
    b = a + RECORD
    return (
        load(s, c + NX) * load(s, b + UX) + load(s, c + NY) * load(s, b + UY) + load(s, c + N_ARM) * load(s, a + SOL_W)
    )


@njit(error_model="numpy")
def touching_worlds(s, n, counts, dt):  # type: ignore[no-untyped-def]
    """1 in the lanes in which a link touches something, or is about to in a step dt: their past will not be smooth."""
    h = load(s, (n + 1) * RECORD + H)
    touched, one = splat(0.0), splat(1.0)
    for i in range(1, n + 1):
        for j in range(counts[i]):
            c = slot_of(n, i, j)
            vn = normal_velocity(s, i * RECORD, c)
            ahead = load(s, c + GAP) + h * (vn - load(s, c + VN)) + _FORESIGHT * dt * smaller(vn, splat(0.0))
            touched = select((load(s, c + ON) > 0.0) | (ahead < 0.0), one, touched)
    return touched


@njit(error_model="numpy")
def settle_contacts(s, n, counts):  # type: ignore[no-untyped-def]
    """Add up the forces, contacts and penetrations of the step just solved."""
    world = (n + 1) * RECORD
    h, per_h, weight = load(s, world + H), load(s, world + PER_H), load(s, world + WEIGHT)
    zero = splat(0.0)
    depth, touches = load(s, world + DEPTH), zero
    for i in range(1, n + 1):
        a = i * RECORD
        b = a + RECORD
        fx, fy = load(s, a + FORCE_X), load(s, a + FORCE_Y)
        for j in range(counts[i]):
            c = slot_of(n, i, j)
            on = load(s, c + ON)
            nx, ny = load(s, c + NX), load(s, c + NY)
            vn = normal_velocity(s, a, c)
            vt = nx * load(s, b + UY) - ny * load(s, b + UX) + load(s, c + T_ARM) * load(s, a + SOL_W)
            force = on * larger(load(s, c + PRESS) - load(s, c + STIFF) * vn, zero) * per_h
            slide = -on * load(s, c + GRIP) * vt * per_h
            store(s, c + IMPULSE, force)
            fx = fx + weight * (force * nx - slide * ny)
            fy = fy + weight * (force * ny + slide * nx)
            depth = larger(depth, -(load(s, c + GAP) + h * (vn - load(s, c + VN))))
            touches = touches + select(force > 0.0, splat(1.0), zero)
        store(s, a + FORCE_X, fx)
        store(s, a + FORCE_Y, fy)
    store(s, world + DEPTH, depth)
    store(s, world + TOUCHES, load(s, world + TOUCHES) + weight * touches)
