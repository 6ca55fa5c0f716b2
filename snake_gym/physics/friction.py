r"""Ground friction of one link, in the link's own frame (t along, n across), acting at the link's centre.

Viscous part ``f_t = -c_t v_t`` (sibilska2022, eq. 14), Coulomb part ``f_t = -F_t sign v_t`` along each axis and in
rotation (irani2015, eq. 4-5); for friction along the slip see ``coupled_friction``. Viscous friction joins the link's
inertia, m + h c. An axis with Coulomb friction slides or sticks, as SLIDING says:

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
"""

from __future__ import annotations

from numba import njit

from snake_gym.physics.lanes import (
    A_N, A_R, A_T, COS, C_N, C_R, C_T, D_N, D_R, D_T, INERTIA, MASS, NEW_VX, NEW_VY, OMEGA, RECORD, RW, RX, RY, SIN,
    SLIDING_N, SLIDING_R, SLIDING_T, SLID_SHARE_N, SLID_SHARE_R, SLID_SHARE_T, SOL_W, VX, VY, H,
)  # fmt: skip
from snake_gym.physics.simd import LANES, absolute, any_lane, copy_sign, load, select, splat, store

INDEPENDENT, COUPLED = 0, 1
AXES_CODES = {"independent": INDEPENDENT, "coupled": COUPLED}
REST = 1e-6
"""[m/s] and [rad/s]: speed below which Coulomb friction is viscous."""
_NEAR_REST = 10.0 * REST
"""Speed below which an axis is taken to stick when a step() begins."""
_STOPPED, _BROKEN = 0.25, 2.0
"""States of SLIDING that last for one step, see the table above."""


@njit(inline="always", error_model="numpy")
def viscous_force(vx: float, vy: float, s: float, c: float, c_t: float, c_n: float) -> tuple[float, float]:
    """Friction force (x, y) [N], world frame, on a link at angle theta (s, c = sin, cos) moving with (vx, vy) [m/s]."""
    along = -c_t * (c * vx + s * vy)
    across = -c_n * (c * vy - s * vx)
    return along * c - across * s, along * s + across * c


@njit(error_model="numpy")
def add_viscous_friction(s, n):  # type: ignore[no-untyped-def]
    """Inertia of each link along, across and in rotation, viscous friction at the step's end included: m + h c."""
    h = load(s, (n + 1) * RECORD + H)
    for i in range(1, n + 1):
        a = i * RECORD
        mass = load(s, a + MASS)
        store(s, a + A_T, mass + h * load(s, a + C_T))
        store(s, a + A_N, mass + h * load(s, a + C_N))
        store(s, a + A_R, load(s, a + INERTIA) + h * load(s, a + C_R))


@njit(error_model="numpy")
def sliding_at(speed, limit):  # type: ignore[no-untyped-def]
    """SLIDING of an axis with Coulomb force ``limit`` that moves at ``speed`` as a step() begins."""
    moves = (absolute(speed) > _NEAR_REST) & (limit > 0.0)
    return select(moves, copy_sign(splat(1.0), speed), splat(0.0))


@njit(error_model="numpy")
def begin_sliding(s, n):  # type: ignore[no-untyped-def]
    """SLIDING of every axis from the present velocities."""
    for i in range(1, n + 1):
        a = i * RECORD
        sin, cos = load(s, a + SIN), load(s, a + COS)
        vx, vy = load(s, a + VX), load(s, a + VY)
        store(s, a + SLIDING_T, sliding_at(cos * vx + sin * vy, load(s, a + D_T)))
        store(s, a + SLIDING_N, sliding_at(cos * vy - sin * vx, load(s, a + D_N)))
        store(s, a + SLIDING_R, sliding_at(load(s, a + OMEGA), load(s, a + D_R)))


@njit(error_model="numpy")
def sticks(slip):  # type: ignore[no-untyped-def]
    """Whether an axis with this SLIDING sticks."""
    return (slip == 0.0) | (slip == _STOPPED)


@njit(error_model="numpy")
def coulomb_terms(slip, slid, limit):  # type: ignore[no-untyped-def]
    """What sticking adds to the inertia of an axis, and the impulse of sliding; ``limit``: h F."""
    rest = limit * (1.0 - absolute(slid))
    zero = splat(0.0)
    sliding = select(sticks(slip), zero, copy_sign(rest, slip))
    return select(sticks(slip), rest / REST, zero), -limit * slid - sliding


@njit(error_model="numpy")
def add_coulomb_friction(s, n):  # type: ignore[no-untyped-def]
    """Coulomb friction as the step begins with it."""
    h = load(s, (n + 1) * RECORD + H)
    for i in range(1, n + 1):
        a = i * RECORD
        sin, cos = load(s, a + SIN), load(s, a + COS)
        slid = splat(0.0)
        a_t, p_t = coulomb_terms(load(s, a + SLIDING_T), slid, h * load(s, a + D_T))
        a_n, p_n = coulomb_terms(load(s, a + SLIDING_N), slid, h * load(s, a + D_N))
        a_r, p_r = coulomb_terms(load(s, a + SLIDING_R), slid, h * load(s, a + D_R))
        store(s, a + A_T, load(s, a + A_T) + a_t)
        store(s, a + A_N, load(s, a + A_N) + a_n)
        store(s, a + A_R, load(s, a + A_R) + a_r)
        store(s, a + RX, load(s, a + RX) + (p_t * cos - p_n * sin))
        store(s, a + RY, load(s, a + RY) + (p_t * sin + p_n * cos))
        store(s, a + RW, load(s, a + RW) + p_r)
        store(s, a + SLID_SHARE_T, slid)
        store(s, a + SLID_SHARE_N, slid)
        store(s, a + SLID_SHARE_R, slid)


@njit(error_model="numpy")
def next_sliding(slip, slid, before, after, limit, may_break):  # type: ignore[no-untyped-def]
    """SLIDING and SLID_SHARE that the speeds at the step's ends ask for."""
    slides = (absolute(slip) == 1.0) | (absolute(slip) == _BROKEN)
    stops = slides & (slip * after < 0.0)
    breaks = sticks(slip) & (absolute(after) > REST) & (limit > 0.0) & may_break
    # Sliding on would have led from ``before`` to ``after``: the share of the step in which it has stopped.
    share = select(slip * before > 0.0, before / (before - after), splat(0.0))
    slid = select(stops & (absolute(slip) == 1.0), copy_sign(share, slip), slid)
    return select(stops, splat(_STOPPED), select(breaks, copy_sign(splat(_BROKEN), after), slip)), slid


@njit(error_model="numpy")
def revise_axis(s, a, axis, before, after, h, may_break):  # type: ignore[no-untyped-def]
    """Law of one axis for the speeds found: (it changes, change of its inertia, change of its impulse)."""
    slip, slid, limit = load(s, a + SLIDING_T + axis), load(s, a + SLID_SHARE_T + axis), h * load(s, a + D_T + axis)
    new_slip, new_slid = next_sliding(slip, slid, before, after, limit, may_break)
    changes = absolute(new_slip - slip) > 0.0
    inertia, impulse = coulomb_terms(slip, slid, limit)
    new_inertia, new_impulse = coulomb_terms(new_slip, new_slid, limit)
    store(s, a + SLIDING_T + axis, new_slip)
    store(s, a + SLID_SHARE_T + axis, new_slid)
    zero = splat(0.0)
    return (
        changes,
        select(changes, new_inertia - inertia, zero),
        select(changes, new_impulse - impulse, zero),
    )


@njit(error_model="numpy")
def revise_coulomb_friction(s, n, may_break):  # type: ignore[no-untyped-def]
    """Let stick what has stopped and slide what has broken away; the first link changed, or n + 1."""
    h = load(s, (n + 1) * RECORD + H)
    first = n + 1
    breaking = splat(1.0 if may_break else 0.0) > 0.0
    for i in range(n, 0, -1):
        a = i * RECORD
        sin, cos, w = load(s, a + SIN), load(s, a + COS), load(s, a + SOL_W)
        new_x, new_y, vx, vy = load(s, a + NEW_VX), load(s, a + NEW_VY), load(s, a + VX), load(s, a + VY)
        sin_0, cos_0 = sin - h * w * cos, cos + h * w * sin
        along, across = cos * new_x + sin * new_y, cos * new_y - sin * new_x
        along_0, across_0 = cos_0 * vx + sin_0 * vy, cos_0 * vy - sin_0 * vx
        turns_t, a_t, p_t = revise_axis(s, a, 0, along_0, along, h, breaking)
        turns_n, a_n, p_n = revise_axis(s, a, LANES, across_0, across, h, breaking)
        turns_r, a_r, p_r = revise_axis(s, a, 2 * LANES, load(s, a + OMEGA), w, h, breaking)
        if any_lane(turns_t | turns_n | turns_r):
            first = i
            store(s, a + A_T, load(s, a + A_T) + a_t)
            store(s, a + A_N, load(s, a + A_N) + a_n)
            store(s, a + A_R, load(s, a + A_R) + a_r)
            store(s, a + RX, load(s, a + RX) + (p_t * cos - p_n * sin))
            store(s, a + RY, load(s, a + RY) + (p_t * sin + p_n * cos))
            store(s, a + RW, load(s, a + RW) + p_r)
    return first


@njit(error_model="numpy")
def settled_sliding(slip):  # type: ignore[no-untyped-def]
    """SLIDING for the next step: 1, 0 or -1."""
    return select(sticks(slip), splat(0.0), copy_sign(splat(1.0), slip))


@njit(error_model="numpy")
def settle_sliding(s, n):  # type: ignore[no-untyped-def]
    """Which axes slide from here on; returns in which worlds one has changed."""
    changed = splat(0.0)
    for i in range(1, n + 1):
        a = i * RECORD
        slip_t, slip_n, slip_r = load(s, a + SLIDING_T), load(s, a + SLIDING_N), load(s, a + SLIDING_R)
        t, w, r = settled_sliding(slip_t), settled_sliding(slip_n), settled_sliding(slip_r)
        change = absolute(slip_t - t) + absolute(slip_n - w) + absolute(slip_r - r)
        changed = select(change > 0.0, splat(1.0), changed)
        store(s, a + SLIDING_T, t)
        store(s, a + SLIDING_N, w)
        store(s, a + SLIDING_R, r)
    return changed
