r"""Ground friction of one link, in the link's own frame (t along, n across), acting at the link's centre.

Viscous part ``f_t = -c_t v_t`` (sibilska2022, eq. 14), Coulomb part ``f_t = -F_t sign v_t`` along each axis and in
rotation (irani2015, eq. 4-5), INDEPENDENT axes, or along the slip, COUPLED ones. A link's centre is its centre of mass,
for there the ground bears it. Viscous friction joins the link's inertia, m + h c. Scales: along a link that moves tail
first both parts are BACKWARD times as large. An independent axis with Coulomb friction slides or sticks, as SLIDING
says:

====  ===========================  ================================================================================
0     sticks                       viscous with F / REST, so that a link at rest creeps under a load f < F at
                                   REST f / F; goes on to +-2 where it is faster than REST
+-1   slides                       the constant force -F sign v; goes on to 0.25 where the speed at the step's end has
                                   the other sign
0.25  has stopped in this step     slides for the share SLID_SHARE of the step, told by the speeds at both ends, and
                                   sticks for the rest; next step: 0
+-2   broke away in this step      slides; next step: +-1
====  ===========================  ================================================================================

Where an axis stops sliding the acceleration jumps: the force is shared out at the right moment, and the next step is an
Euler step (``implicit``), because the past is another motion's.

Coupled axes: the force opposes the velocity of the link's centre (haghshenas2022, eq. 34-35), ``f_t = -F_t v_t / |v|``,
``f_n = -F_n v_n / |v|``, in rotation ``-F_r sign omega``. The implicit step treats it as viscous, through its secant
F / s at the speed s foreseen for the step's end, at least REST: that force always opposes the motion. Where the
solution is much slower or faster than foreseen, the secant is taken anew and the chain is solved again: at the speed
found or, for a link that breaks away, at the one that the load beyond the limit gives.
"""

from __future__ import annotations

import math

from snake_gym.physics.chain import locate_head
from snake_gym.physics.lanes import (
    A_N, A_R, A_T, BACKWARD, COS, CX, CY, C_N, C_R, C_T, D_N, D_R, D_T, FACING, HEIGHT, INERTIA, MASS, NEW_VX, NEW_VY,
    OMEGA, OMEGA_P, PHASE_X, PHASE_Y, POS_X, POS_Y, RECORD, RW, RX, RY, SECANT, SECANT_R, SIGMA, SIN, SLIDING_N,
    SLIDING_R, SLIDING_T, SLID_SHARE_N, SLID_SHARE_R, SLID_SHARE_T, SOL_W, THETA, VX, VX_P, VY, VY_P, WAVE_X, WAVE_Y, H,
    sin_cos,
)  # fmt: skip
from snake_gym.physics.simd import any_lane, kernel, load, n_lanes, select, splat, store

INDEPENDENT, COUPLED = 0, 1
AXES_CODES = {"independent": INDEPENDENT, "coupled": COUPLED}
REST = 1e-6
"""Speed [m/s] or [rad/s] below which Coulomb friction is viscous."""
_NEAR_REST = 10.0 * REST
"""Speed [m/s] or [rad/s] below which an axis counts as sticking when a step() begins."""
_STOPPED, _BROKEN = 0.25, 2.0
"""States of SLIDING that last for one step, see the table above."""
_OFF = 1.5
"""Error of a secant, as a factor, beyond which it is corrected within the step."""


@kernel
def add_viscous_friction(s, n):  # type: ignore[no-untyped-def]
    """Set each link's inertia along, across and in rotation with viscous friction at the step's end: m + h c."""
    h = load(s, (n + 1) * RECORD + H)
    for i in range(1, n + 1):
        a = i * RECORD
        mass = load(s, a + MASS)
        store(s, a + A_T, mass + h * load(s, a + C_T))
        store(s, a + A_N, mass + h * load(s, a + C_N))
        store(s, a + A_R, load(s, a + INERTIA) + h * load(s, a + C_R))


@kernel
def face_motion(s, n):  # type: ignore[no-untyped-def]
    """Set FACING of each link from its foreseen velocity, and add what viscous friction is more for it."""
    world, one = (n + 1) * RECORD, splat(s, 1.0)
    h, sigma = load(s, world + H), load(s, world + SIGMA)
    for i in range(1, n + 1):
        a = i * RECORD
        vx, vy = load(s, a + VX), load(s, a + VY)
        vx = vx + sigma * (vx - load(s, a + VX_P))
        vy = vy + sigma * (vy - load(s, a + VY_P))
        along = load(s, a + COS) * vx + load(s, a + SIN) * vy
        facing = select(along < 0.0, load(s, a + BACKWARD), one)
        store(s, a + FACING, facing)
        store(s, a + A_T, load(s, a + A_T) + h * (facing - one) * load(s, a + C_T))


@kernel
def revise_facing(s, n, coupled):  # type: ignore[no-untyped-def]
    """Correct FACING of links that move the other way than foreseen; return the first one, or n + 1."""
    h = load(s, (n + 1) * RECORD + H)
    first = n + 1
    for i in range(n, 0, -1):
        a = i * RECORD
        along = load(s, a + COS) * load(s, a + NEW_VX) + load(s, a + SIN) * load(s, a + NEW_VY)
        was = load(s, a + FACING)
        now = select(along < 0.0, load(s, a + BACKWARD), select(along > 0.0, 1.0, was))
        if any_lane(abs(now - was) > 0.0):
            first = i
            friction = load(s, a + C_T)
            if coupled:
                friction = friction + load(s, a + D_T) / load(s, a + SECANT)
            a_t = load(s, a + A_T)
            store(s, a + FACING, now)
            # Worlds without a change keep their values to the last bit.
            store(s, a + A_T, select(abs(now - was) > 0.0, a_t + h * (now - was) * friction, a_t))
    return first


@kernel
def lay_patches(s, n, ids, count, patches):  # type: ignore[no-untyped-def]
    """Scale the friction of each link for the place of its middle; see ``state.Patches``.

    It acts for a whole call of the stepper, and on the parameters: they have to be loaded anew for the next call. The
    block's angles and centre of mass become those in ``patches``.
    """
    world = (n + 1) * RECORD
    for k in range(n_lanes(s)):
        w = ids[min(k, count - 1)]
        wave = math.pi / patches.size_m
        s[world + WAVE_X, k] = wave * math.cos(patches.direction[w])
        s[world + WAVE_Y, k] = wave * math.sin(patches.direction[w])
        s[world + PHASE_X, k] = patches.phase[w, 0]
        s[world + PHASE_Y, k] = patches.phase[w, 1]
        s[world + HEIGHT, k] = patches.height[w]
        for i in range(n):
            s[(i + 1) * RECORD + THETA, k] = patches.link_angle[w, i]
        s[world + CX, k] = patches.centre_xy[w, 0]
        s[world + CY, k] = patches.centre_xy[w, 1]
    locate_head(s, n)
    wave_x, wave_y, height = load(s, world + WAVE_X), load(s, world + WAVE_Y), load(s, world + HEIGHT)
    for i in range(1, n + 1):
        a = i * RECORD
        x, y = load(s, a + POS_X), load(s, a + POS_Y)
        along, _ = sin_cos(wave_x * x + wave_y * y + load(s, world + PHASE_X))
        across, _ = sin_cos(wave_x * y - wave_y * x + load(s, world + PHASE_Y))
        factor = 1.0 + height * along * across
        for field in (C_T, C_N, C_R, D_T, D_N, D_R):
            store(s, a + field, factor * load(s, a + field))


@kernel
def sliding_at(speed, limit):  # type: ignore[no-untyped-def]
    """Return SLIDING of an axis with Coulomb force ``limit`` that moves at ``speed`` as a step() begins."""
    moves = (abs(speed) > _NEAR_REST) & (limit > 0.0)
    return select(moves, math.copysign(1.0, speed), 0.0)


@kernel
def begin_sliding(s, n):  # type: ignore[no-untyped-def]
    """Set SLIDING of every axis from the present velocities."""
    for i in range(1, n + 1):
        a = i * RECORD
        sin, cos = load(s, a + SIN), load(s, a + COS)
        vx, vy = load(s, a + VX), load(s, a + VY)
        store(s, a + SLIDING_T, sliding_at(cos * vx + sin * vy, load(s, a + D_T)))
        store(s, a + SLIDING_N, sliding_at(cos * vy - sin * vx, load(s, a + D_N)))
        store(s, a + SLIDING_R, sliding_at(load(s, a + OMEGA), load(s, a + D_R)))


@kernel
def sticks(slip):  # type: ignore[no-untyped-def]
    """Return true where an axis with the SLIDING ``slip`` sticks."""
    return (slip == 0.0) | (slip == _STOPPED)


@kernel
def coulomb_terms(slip, slid, limit, backward):  # type: ignore[no-untyped-def]
    """Return the inertia that sticking adds to an axis and the impulse of sliding; ``limit`` is h F.

    ``backward``: factor of the limit where the axis slides the negative way.
    """
    left = 1.0 - abs(slid)
    back = backward * limit
    rest = max(limit, back) * left
    sliding = select(sticks(slip), 0.0, select(slip < 0.0, -back, limit) * left)
    return select(sticks(slip), rest / REST, 0.0), -select(slid < 0.0, back, limit) * slid - sliding


@kernel
def add_coulomb_friction(s, n):  # type: ignore[no-untyped-def]
    """Add Coulomb friction to the links in the state in which the step begins."""
    h, one = load(s, (n + 1) * RECORD + H), splat(s, 1.0)
    for i in range(1, n + 1):
        a = i * RECORD
        sin, cos = load(s, a + SIN), load(s, a + COS)
        slid = splat(s, 0.0)
        a_t, p_t = coulomb_terms(load(s, a + SLIDING_T), slid, h * load(s, a + D_T), load(s, a + BACKWARD))
        a_n, p_n = coulomb_terms(load(s, a + SLIDING_N), slid, h * load(s, a + D_N), one)
        a_r, p_r = coulomb_terms(load(s, a + SLIDING_R), slid, h * load(s, a + D_R), one)
        store(s, a + A_T, load(s, a + A_T) + a_t)
        store(s, a + A_N, load(s, a + A_N) + a_n)
        store(s, a + A_R, load(s, a + A_R) + a_r)
        store(s, a + RX, load(s, a + RX) + (p_t * cos - p_n * sin))
        store(s, a + RY, load(s, a + RY) + (p_t * sin + p_n * cos))
        store(s, a + RW, load(s, a + RW) + p_r)
        for field in (SLID_SHARE_T, SLID_SHARE_N, SLID_SHARE_R):
            store(s, a + field, slid)


@kernel
def next_sliding(slip, slid, before, after, limit, backward, may_break):  # type: ignore[no-untyped-def]
    """Return SLIDING and SLID_SHARE that follow from the speeds at the step's begin and end."""
    slides = (abs(slip) == 1.0) | (abs(slip) == _BROKEN)
    stops = slides & (slip * after < 0.0)
    # Sticking has the slope of the larger limit; the smaller one is met at its share of REST.
    end = REST * select(after < 0.0, backward, 1.0) / max(1.0, backward)
    breaks = sticks(slip) & (abs(after) > end) & (limit > 0.0) & may_break
    # Sliding on would have led from ``before`` to ``after``: the axis has slid for this share of the step.
    share = select(slip * before > 0.0, before / (before - after), 0.0)
    slid = select(stops & (abs(slip) == 1.0), math.copysign(share, slip), slid)
    return select(stops, _STOPPED, select(breaks, math.copysign(_BROKEN, after), slip)), slid


@kernel
def revise_axis(s, a, axis, before, after, h, backward, may_break):  # type: ignore[no-untyped-def]
    """Set the law of one axis for the speeds found; return (it changes, change of inertia, change of impulse)."""
    slip, slid, limit = load(s, a + SLIDING_T + axis), load(s, a + SLID_SHARE_T + axis), h * load(s, a + D_T + axis)
    new_slip, new_slid = next_sliding(slip, slid, before, after, limit, backward, may_break)
    changes = abs(new_slip - slip) > 0.0
    inertia, impulse = coulomb_terms(slip, slid, limit, backward)
    new_inertia, new_impulse = coulomb_terms(new_slip, new_slid, limit, backward)
    store(s, a + SLIDING_T + axis, new_slip)
    store(s, a + SLID_SHARE_T + axis, new_slid)
    return changes, select(changes, new_inertia - inertia, 0.0), select(changes, new_impulse - impulse, 0.0)


@kernel
def revise_coulomb_friction(s, n, may_break):  # type: ignore[no-untyped-def]
    """Let axes stick that have stopped and slide that broke away; return the first link changed, or n + 1."""
    h = load(s, (n + 1) * RECORD + H)
    first = n + 1
    one = splat(s, 1.0)
    breaking = splat(s, 1.0 if may_break else 0.0) > 0.0
    for i in range(n, 0, -1):
        a = i * RECORD
        sin, cos, w = load(s, a + SIN), load(s, a + COS), load(s, a + SOL_W)
        new_x, new_y, vx, vy = load(s, a + NEW_VX), load(s, a + NEW_VY), load(s, a + VX), load(s, a + VY)
        sin_0, cos_0 = sin - h * w * cos, cos + h * w * sin
        along, across = cos * new_x + sin * new_y, cos * new_y - sin * new_x
        along_0, across_0 = cos_0 * vx + sin_0 * vy, cos_0 * vy - sin_0 * vx
        turns_t, a_t, p_t = revise_axis(s, a, 0, along_0, along, h, load(s, a + BACKWARD), breaking)
        turns_n, a_n, p_n = revise_axis(s, a, 1, across_0, across, h, one, breaking)
        turns_r, a_r, p_r = revise_axis(s, a, 2, load(s, a + OMEGA), w, h, one, breaking)
        if any_lane(turns_t | turns_n | turns_r):
            first = i
            store(s, a + A_T, load(s, a + A_T) + a_t)
            store(s, a + A_N, load(s, a + A_N) + a_n)
            store(s, a + A_R, load(s, a + A_R) + a_r)
            store(s, a + RX, load(s, a + RX) + (p_t * cos - p_n * sin))
            store(s, a + RY, load(s, a + RY) + (p_t * sin + p_n * cos))
            store(s, a + RW, load(s, a + RW) + p_r)
    return first


@kernel
def settle_sliding(s, n):  # type: ignore[no-untyped-def]
    """Set SLIDING of each axis for the next step, 1, 0 or -1; return 1 in the worlds in which one has changed."""
    changed = splat(s, 0.0)
    for i in range(1, n + 1):
        for axis in (SLIDING_T, SLIDING_N, SLIDING_R):
            slip = load(s, i * RECORD + axis)
            settled = select(sticks(slip), 0.0, math.copysign(1.0, slip))
            changed = select(abs(slip - settled) > 0.0, 1.0, changed)
            store(s, i * RECORD + axis, settled)
    return changed


@kernel
def add_coupled_friction(s, n):  # type: ignore[no-untyped-def]
    """Add the secants of Coulomb friction at the foreseen speeds to the links' inertias."""
    world = (n + 1) * RECORD
    h, sigma = load(s, world + H), load(s, world + SIGMA)
    for i in range(1, n + 1):
        a = i * RECORD
        vx, vy, w = load(s, a + VX), load(s, a + VY), load(s, a + OMEGA)
        vx = vx + sigma * (vx - load(s, a + VX_P))
        vy = vy + sigma * (vy - load(s, a + VY_P))
        w = w + sigma * (w - load(s, a + OMEGA_P))
        speed, spin = max(math.sqrt(vx * vx + vy * vy), REST), max(abs(w), REST)
        store(s, a + SECANT, speed)
        store(s, a + SECANT_R, spin)
        store(s, a + A_T, load(s, a + A_T) + h * load(s, a + FACING) * load(s, a + D_T) / speed)
        store(s, a + A_N, load(s, a + A_N) + h * load(s, a + D_N) / speed)
        store(s, a + A_R, load(s, a + A_R) + h * load(s, a + D_R) / spin)


@kernel
def new_secant(free, limit, speed, used):  # type: ignore[no-untyped-def]
    """Return the speed for the secant, given the one used and the one that came out.

    ``free``: inertia without the secant's part; ``limit``: impulse of the Coulomb force.
    """
    # The load was (free + limit / used) speed; the part beyond the limit moves the free inertia.
    let_go = speed + limit * (speed / used - 1.0) / free
    faster = (speed > _OFF * used) & (limit > 0.0)
    slower = (speed * _OFF < used) & (used > REST) & (limit > 0.0)
    return select(faster, let_go, select(slower, max(speed, REST), used))


@kernel
def revise_coupled_friction(s, n):  # type: ignore[no-untyped-def]
    """Correct secants that are far off; return the first link with one, or n + 1."""
    h = load(s, (n + 1) * RECORD + H)
    first = n + 1
    for i in range(n, 0, -1):
        a = i * RECORD
        vx, vy = load(s, a + NEW_VX), load(s, a + NEW_VY)
        d_t = h * load(s, a + FACING) * load(s, a + D_T)
        d_n, d_r = h * load(s, a + D_N), h * load(s, a + D_R)
        was, was_r = load(s, a + SECANT), load(s, a + SECANT_R)
        a_t, a_n, a_r = load(s, a + A_T), load(s, a + A_N), load(s, a + A_R)
        most = max(d_t, d_n)
        now = new_secant(load(s, a + MASS), most, math.sqrt(vx * vx + vy * vy), was)
        now_r = new_secant(a_r - d_r / was_r, d_r, abs(load(s, a + SOL_W)), was_r)
        changes = (abs(now - was) > 0.0) | (abs(now_r - was_r) > 0.0)
        if any_lane(changes):
            first = i
            # Worlds without a change keep their values to the last bit.
            store(s, a + SECANT, now)
            store(s, a + SECANT_R, now_r)
            store(s, a + A_T, select(changes, a_t + (d_t / now - d_t / was), a_t))
            store(s, a + A_N, select(changes, a_n + (d_n / now - d_n / was), a_n))
            store(s, a + A_R, select(changes, a_r + (d_r / now_r - d_r / was_r), a_r))
    return first
