r"""Implicit step: linearly implicit, second order in dt between events, stable for any friction, gain or lock.

Every step is a backward Euler step of length h from a *base*, x' = base + h dx'/dt, with the base taken from the
present state x and the one before, x_p: ``base = ALPHA x - BETA x_p``. For link i with velocity v_i
(world frame), rate omega_i and friction C_i,

    (M_i + h C_i) v_i' = M_i (ALPHA v_i - BETA v_i,p) + h F_i + joint impulses,

joints closed in the geometry theta* foreseen for the step's end, joint laws (``actuators``) and contacts (``contact``)
at the step's end. Centripetal terms need no term of their own: they are the difference of velocities that fit joints
in different geometries. The choice of (ALPHA, BETA, h) makes the method:

* Most steps are ``BDF2`` 4/3, 1/3, 2/3 dt: second order, L-stable, one solution per step.
* The first step after the commands have changed has no smooth past. It takes two solutions (Alexander's L-stable SDIRK
  method of order 2, gamma = 1 - 1/sqrt 2): 1, 0, gamma dt, then, from its result, 1 + sqrt 2, sqrt 2, gamma dt.
* Where the velocity has jumped (a joint locks, an impact) or the acceleration has (sliding ends), the next step of the
  worlds concerned is a backward Euler step: 1, 0, dt; so is one in which a joint is foreseen to meet its stop.

Torque limits, joint stops, joint friction, breaking Coulomb friction and contacts are found by solving again with the
law that holds; impulses of links that touch each other (``touch``) are part of every solution.
"""

from __future__ import annotations

import math

import numpy as np

from snake_gym.physics.actuators import (
    MUSCLE, begin_limits, count_work, load_joints, lock_joints, note_torques, revise_limits,
)  # fmt: skip
from snake_gym.physics.chain import eliminate_links, locate_links, substitute_back
from snake_gym.physics.contact import foresee_contacts, hold_links, revise_contacts, settle_contacts, touching_worlds
from snake_gym.physics.contact_law import FAR, foresee_velocities
from snake_gym.physics.friction import (
    COUPLED, add_coulomb_friction, add_coupled_friction, add_viscous_friction, face_motion,
    revise_coulomb_friction, revise_coupled_friction, revise_facing, settle_sliding,
)  # fmt: skip
from snake_gym.physics.imperfections import load_servos, move_servos, revise_servos
from snake_gym.physics.joint_descent import BEGINS, DESCENDS, descend, end_descent
from snake_gym.physics.joint_friction import begin_joint_friction, revise_joint_friction, settle_joint_friction
from snake_gym.physics.lanes import (
    AGE, ALPHA, AT_STOP, BASE, BASE_W, BETA, COS, CURL_STRIDE, CVX, CVY, CX, CX_P, CY, CY_P, DESCENT, FAULT, F_KIND,
    F_OFF, F_ON, GX, GY, INERTIA, JAMMED, LAWS_CHANGE, MASS, NEW_VX, NEW_VY, OMEGA, OMEGA_P, RECORD, RW, RX, RY, SIGMA,
    SIN, SOL_W, STOOD_STILL, STOPS_CHANGE, SUM_X, SUM_Y, THETA, THETA_P, TOTAL, TRIES, VX, VX_P, VY, VY_P, WEIGHT, H,
    sin_cos,
)  # fmt: skip
from snake_gym.physics.muscles import load_muscles, move_muscles, revise_muscles
from snake_gym.physics.simd import any_lane, by_precision, kernel, load, select, splat, store
from snake_gym.physics.stops import foresee_hits, hold_stops, passes_stop, release_stops, revise_stops
from snake_gym.physics.touch import find_touches, note_touches, press_links

FIRST, SECOND, LATER = 0, 1, 2
"""Stages: the two of the first step after a change of commands, and every later step."""
GAMMA = 1.0 - 1.0 / math.sqrt(2.0)
_SDIRK_BETA = (math.sqrt(2.0), float(np.float32(1.0 + math.sqrt(2.0))) - 1.0)
_BDF_BETA = (1.0 / 3.0, float(np.float32(4.0 / 3.0)) - 1.0)
"""BETA in float64 and in float32, there such that ALPHA - BETA is 1 to the last bit: else angles would drift."""
_EVENT = -2.0
"""AGE of a world in which a fault begins or ends: its velocities may jump in this step and the next."""
_ROUNDS = 40
"""Most corrections of the laws within a step without torque limits, joint stops, joint friction, imperfect servos."""
_JOINT_ROUNDS = 400
"""Most corrections with any of these."""
_GROUND_ROUNDS = 100
"""Corrections after which the secants of coupled Coulomb friction stay. Off by a little, it still only takes energy."""
_FACING_ROUNDS = 20
"""Corrections after which no link is taken to move the other way any more, where friction differs backward."""
_CIRCLES, _DRY_CIRCLES = 20, 8
"""Corrections after which a world whose joint laws still change descends (``joint_descent``); with joint friction."""


@kernel
def choose_method(s, n, stage, dt, stops):  # type: ignore[no-untyped-def]
    """Set ALPHA, BETA, SIGMA and H of this step for each world."""
    world = (n + 1) * RECORD
    smooth = load(s, world + AGE) > (math.inf if stage == FIRST else 0.0)
    if stops and stage == SECOND:
        smooth = smooth & (passes_stop(s, n, math.sqrt(2.0)) == 0.0)
    sdirk, bdf = by_precision(s, *_SDIRK_BETA), by_precision(s, *_BDF_BETA)
    beta = splat(s, sdirk if stage == SECOND else bdf)
    store(s, world + ALPHA, select(smooth, 1.0 + beta, 1.0))
    store(s, world + BETA, select(smooth, beta, 0.0))
    store(s, world + SIGMA, select(smooth, 0.0 if stage == SECOND else 1.0, 0.0))
    store(s, world + H, select(smooth, GAMMA * dt if stage == SECOND else 2.0 / 3.0 * dt, length_of(stage, dt)))


@kernel
def load_links(s, n):  # type: ignore[no-untyped-def]
    """Set geometry, base and momenta of the links."""
    world = (n + 1) * RECORD
    alpha, beta = load(s, world + ALPHA), load(s, world + BETA)
    sigma, h = load(s, world + SIGMA), load(s, world + H)
    gx, gy = h * load(s, world + GX), h * load(s, world + GY)
    for i in range(1, n + 1):
        a = i * RECORD
        w, w_p = load(s, a + OMEGA), load(s, a + OMEGA_P)
        base = alpha * load(s, a + THETA) - beta * load(s, a + THETA_P)
        sin, cos = sin_cos(base + h * (w + sigma * (w - w_p)))
        base_w = alpha * w - beta * w_p
        mass = load(s, a + MASS)
        store(s, a + BASE, base)
        store(s, a + BASE_W, base_w)
        store(s, a + SIN, sin)
        store(s, a + COS, cos)
        store(s, a + RX, mass * (alpha * load(s, a + VX) - beta * load(s, a + VX_P) + gx))
        store(s, a + RY, mass * (alpha * load(s, a + VY) - beta * load(s, a + VY_P) + gy))
        store(s, a + RW, load(s, a + INERTIA) * base_w)


@kernel
def base_of_centre(s, n):  # type: ignore[no-untyped-def]
    """Return the base (x, y) [m] of the centre of mass: its place without the step's own velocity."""
    world = (n + 1) * RECORD
    alpha, beta = load(s, world + ALPHA), load(s, world + BETA)
    x = alpha * load(s, world + CX) - beta * load(s, world + CX_P)
    y = alpha * load(s, world + CY) - beta * load(s, world + CY_P)
    return x, y


@kernel
def begin_friction(s, n, laws):  # type: ignore[no-untyped-def]
    """Add ground friction in the state in which the step begins."""
    add_viscous_friction(s, n)
    if laws.one_way:
        face_motion(s, n)
    if laws.coulomb and laws.axes == COUPLED:
        add_coupled_friction(s, n)
    elif laws.coulomb:
        add_coulomb_friction(s, n)


@kernel
def begin_joints(s, n, laws):  # type: ignore[no-untyped-def]
    """Set the joint laws in the state in which the step begins."""
    if laws.kind == MUSCLE:
        load_muscles(s, n, laws.muscle)
    elif laws.imperfect:
        load_servos(s, n)
    else:
        load_joints(s, n, laws.kind)
    if laws.limits and not laws.imperfect:
        begin_limits(s, n)
    if any_lane(load(s, (n + 1) * RECORD + AGE) < _EVENT + 0.5):
        lock_joints(s, n)
    if laws.stops:
        hold_stops(s, n)
    if laws.joint_friction:
        begin_joint_friction(s, n)


@kernel
def begin_contacts(s, n, counts, laws):  # type: ignore[no-untyped-def]
    """Set up the contacts in the state in which the step begins."""
    foresee_velocities(s, n)
    world = (n + 1) * RECORD
    x, y = base_of_centre(s, n)
    h = load(s, world + H)
    locate_links(s, n, (x + h * load(s, world + CVX), y + h * load(s, world + CVY)))
    foresee_contacts(s, n, counts, laws.contact)


@kernel
def revise_joints(s, n, laws):  # type: ignore[no-untyped-def]
    """Correct the joint laws that do not hold; return the first joint changed, or n + 1."""
    first = n + 1
    if laws.kind == MUSCLE:
        first = min(first, revise_muscles(s, n, laws.muscle))
    if laws.imperfect:
        first = min(first, revise_servos(s, n))
    elif laws.limits:
        first = min(first, revise_limits(s, n))
    if laws.stops:
        first = min(first, revise_stops(s, n, laws.limits or laws.imperfect))
    if laws.joint_friction:
        first = min(first, revise_joint_friction(s, n, laws.limits or laws.imperfect, laws.stops))
    return min(first, descend(s, n, laws))


@kernel
def begin_circles(s, n):  # type: ignore[no-untyped-def]
    """Let worlds descend whose joint laws still change."""
    world = (n + 1) * RECORD
    descent = load(s, world + DESCENT)
    changes = load(s, world + LAWS_CHANGE) + load(s, world + STOPS_CHANGE) > 0.0
    store(s, world + DESCENT, select(changes & (descent == 0.0), BEGINS, descent))


@kernel
def solve_links(s, n, first, touching, touches):  # type: ignore[no-untyped-def]
    """Solve for rates and velocities under the present laws; no touches: links before ``first`` have not changed."""
    eliminate_links(s, 1 if touches[1][0, 0] > 0 else first, n, touching, False)
    substitute_back(s, n)
    press_links(s, n, touching, *touches)


@kernel
def solve_step(s, n, dt, counts, touches, laws):  # type: ignore[no-untyped-def]
    """Solve for rates and velocities at the step's end; worlds whose laws the corrections do not settle stand still."""
    for field in (DESCENT, LAWS_CHANGE, STOPS_CHANGE, TRIES, JAMMED):
        store(s, (n + 1) * RECORD + field, 0.0)
    load_links(s, n)
    if any_lane(load(s, (n + 1) * RECORD + CURL_STRIDE) < FAR):
        find_touches(s, n, dt, *touches)
    begin_friction(s, n, laws)
    begin_joints(s, n, laws)
    touching = laws.obstacles and counts[0] > 0
    if touching:
        begin_contacts(s, n, counts, laws)
    solve_links(s, n, np.int64(1), touching, touches)
    joints = laws.stops or laws.limits or laws.imperfect or laws.joint_friction
    rounds = _JOINT_ROUNDS if joints else _ROUNDS
    circles = _DRY_CIRCLES if laws.joint_friction else _CIRCLES
    for correction in range(rounds):
        first = revise_joints(s, n, laws)
        if laws.one_way and correction < _FACING_ROUNDS:
            first = min(first, revise_facing(s, n, laws.coulomb and laws.axes == COUPLED))
        if laws.coulomb and laws.axes == COUPLED:
            if correction < _GROUND_ROUNDS:
                first = min(first, revise_coupled_friction(s, n))
        elif laws.coulomb:
            first = min(first, revise_coulomb_friction(s, n, correction < _ROUNDS // 2))
        if touching:
            first = min(first, revise_contacts(s, n, counts, laws.contact, correction < rounds - 1))
        if first > n:
            return
        if correction >= circles and joints:
            begin_circles(s, n)
        if correction == rounds - 1:
            end_descent(s, n, load(s, (n + 1) * RECORD + DESCENT) == DESCENDS, laws)
            hold_links(s, n)
            first = 1
        solve_links(s, n, first, touching, touches)


@kernel
def weigh_step(s, n, stage, dt, jumped):  # type: ignore[no-untyped-def]
    """Set WEIGHT, the time that the step stands for, and AGE, the smooth steps before the next one."""
    world = (n + 1) * RECORD
    age = load(s, world + AGE)
    smooth = (age > 0.0) & (jumped == 0.0)
    if stage == FIRST:
        store(s, world + WEIGHT, select(smooth, (1.0 - GAMMA) * dt, GAMMA * dt))
        store(s, world + AGE, select(smooth, age, min(age, 0.0)))
    elif stage == SECOND:
        store(s, world + WEIGHT, select(age > 0.0, GAMMA * dt, (1.0 - GAMMA) * dt))
        store(s, world + AGE, select(smooth, age, min(age + 1.0, 0.0)))
    else:
        store(s, world + WEIGHT, dt)
        store(s, world + AGE, select(jumped == 0.0, age + 1.0, min(age + 1.0, 0.0)))


@kernel
def move_links(s, n, stage):  # type: ignore[no-untyped-def]
    """Take over the solution; the state before becomes the past, except in the second half of a step."""
    world = (n + 1) * RECORD
    h = load(s, world + H)
    x, y = base_of_centre(s, n)
    for i in range(1, n + 1):
        a = i * RECORD
        if stage != SECOND:
            store(s, a + THETA_P, load(s, a + THETA))
            store(s, a + OMEGA_P, load(s, a + OMEGA))
            store(s, a + VX_P, load(s, a + VX))
            store(s, a + VY_P, load(s, a + VY))
        rate = load(s, a + SOL_W)
        store(s, a + THETA, load(s, a + BASE) + h * rate)
        store(s, a + OMEGA, rate)
        store(s, a + VX, load(s, a + NEW_VX))
        store(s, a + VY, load(s, a + NEW_VY))
    if stage != SECOND:
        store(s, world + CX_P, load(s, world + CX))
        store(s, world + CY_P, load(s, world + CY))
    vx = load(s, RECORD + SUM_X) / load(s, world + TOTAL)
    vy = load(s, RECORD + SUM_Y) / load(s, world + TOTAL)
    store(s, world + CVX, vx)
    store(s, world + CVY, vy)
    store(s, world + CX, x + h * vx)
    store(s, world + CY, y + h * vy)


@kernel
def note_hits(s, n, jumped):  # type: ignore[no-untyped-def]
    """Return 1 for worlds with a jump, also where a joint has met its stop; its rate jumps now and in the next step."""
    world = (n + 1) * RECORD
    hits = splat(s, 0.0)
    for i in range(1, n):
        hits = select(abs(load(s, i * RECORD + AT_STOP)) == 2.0, 1.0, hits)
    if any_lane(hits > 0.0):
        age = load(s, world + AGE)
        store(s, world + AGE, select(hits > 0.0, min(age, -2.0), age))
    return select(hits > 0.0, 1.0, jumped)


@kernel
def solve_stage(s, n, stage, dt, counts, touches, laws):  # type: ignore[no-untyped-def]
    """Solve one stage of an implicit step of a block of worlds; the state stays as it is."""
    if laws.stops and stage == LATER:
        foresee_hits(s, n, dt)
    choose_method(s, n, stage, dt, laws.stops)
    solve_step(s, n, dt, counts, touches, laws)


@kernel
def finish_stage(s, n, stage, dt, counts, touches, laws):  # type: ignore[no-untyped-def]
    """Move a block of worlds as solved."""
    touching = laws.obstacles and counts[0] > 0
    jumped = touching_worlds(s, n, counts, dt) if touching else splat(s, 0.0)
    if laws.stops:
        jumped = note_hits(s, n, jumped)
        release_stops(s, n)
    if laws.joint_friction:
        jumped = select(settle_joint_friction(s, n, laws.limits or laws.imperfect) > 0.0, 1.0, jumped)
    if laws.coulomb and laws.axes != COUPLED:
        jumped = select(settle_sliding(s, n) > 0.0, 1.0, jumped)
    jumped = note_touches(s, dt, jumped, *touches)
    weigh_step(s, n, stage, dt, jumped)
    world = (n + 1) * RECORD
    store(s, world + STOOD_STILL, load(s, world + STOOD_STILL) + load(s, world + JAMMED))
    if touching:
        settle_contacts(s, n, counts)
    if laws.servo_faults:
        note_torques(s, n)
    if laws.kind == MUSCLE:
        move_muscles(s, n, laws.muscle, stage == SECOND, length_of(stage, dt))
    else:
        count_work(s, n, dt, length_of(stage, dt))
    if laws.imperfect:
        move_servos(s, n, stage == SECOND)
    move_links(s, n, stage)


@kernel
def length_of(stage, dt):  # type: ignore[no-untyped-def]
    """Return the time [s] that a stage of a step dt takes."""
    if stage == FIRST:
        return GAMMA * dt
    return (1.0 - GAMMA) * dt if stage == SECOND else dt


@kernel
def note_events(s, n, step, n_slots):  # type: ignore[no-untyped-def]
    """Mark the past of worlds as not smooth in which a fault begins or ends in sub-step ``step``."""
    world = (n + 1) * RECORD
    changes = splat(s, 0.0)
    for i in range(1, n):
        a = i * RECORD
        for slot in range(n_slots):
            f = a + slot * FAULT
            edge = (load(s, f + F_ON) == step) | (load(s, f + F_OFF) == step)
            changes = select(edge & (load(s, f + F_KIND) > 0.0), 1.0, changes)
    if any_lane(changes > 0.0):
        store(s, world + AGE, select(changes > 0.0, _EVENT, load(s, world + AGE)))
