r"""Coulomb friction along the slip: the force on a link opposes the velocity of its centre (haghshenas2022, eq. 34-35).

``f_t = -F_t v_t / |v|``, ``f_n = -F_n v_n / |v|``, in rotation ``-F_r sign omega``. The implicit step treats it as
viscous, through its secant F / s at the speed s foreseen for the step's end: that force always opposes the motion. It
is viscous below REST, so that a link at rest creeps under a load f < F at no more than REST f / F. Where the solution
is much slower or faster than foreseen, the secant is taken anew and the chain is solved again: at the speed found or,
for a link that breaks away, at the one that the load beyond the limit gives.
"""

from __future__ import annotations

from numba import njit

from snake_gym.physics.friction import REST
from snake_gym.physics.lanes import (
    A_N, A_R, A_T, D_N, D_R, D_T, MASS, NEW_VX, NEW_VY, OMEGA, OMEGA_P, RECORD, SECANT, SECANT_R, SIGMA, SOL_W, VX,
    VX_P, VY, VY_P, H,
)  # fmt: skip
from snake_gym.physics.simd import absolute, any_lane, larger, load, select, splat, square_root, store

_OFF = 1.5
"""A secant that is wrong by more than this factor is corrected within the step."""


@njit(error_model="numpy")
def add_coupled_friction(s, n):  # type: ignore[no-untyped-def]
    """Add the secants of Coulomb friction at the foreseen speeds to the links' inertias."""
    world = (n + 1) * RECORD
    h, sigma = load(s, world + H), load(s, world + SIGMA)
    rest = splat(REST)
    for i in range(1, n + 1):
        a = i * RECORD
        vx, vy, w = load(s, a + VX), load(s, a + VY), load(s, a + OMEGA)
        vx = vx + sigma * (vx - load(s, a + VX_P))
        vy = vy + sigma * (vy - load(s, a + VY_P))
        w = w + sigma * (w - load(s, a + OMEGA_P))
        speed, spin = larger(square_root(vx * vx + vy * vy), rest), larger(absolute(w), rest)
        store(s, a + SECANT, speed)
        store(s, a + SECANT_R, spin)
        store(s, a + A_T, load(s, a + A_T) + h * load(s, a + D_T) / speed)
        store(s, a + A_N, load(s, a + A_N) + h * load(s, a + D_N) / speed)
        store(s, a + A_R, load(s, a + A_R) + h * load(s, a + D_R) / spin)


@njit(error_model="numpy")
def new_secant(free, limit, speed, used):  # type: ignore[no-untyped-def]
    """Speed for the secant, given the one used and the one that came out.

    ``free``: inertia without the secant's part; ``limit``: impulse of the Coulomb force.
    """
    # The load was (free + limit / used) speed; what is beyond the limit moves the free inertia.
    let_go = speed + limit * (speed / used - 1.0) / free
    faster = (speed > _OFF * used) & (limit > 0.0)
    slower = (speed * _OFF < used) & (used > REST) & (limit > 0.0)
    return select(faster, let_go, select(slower, larger(speed, splat(REST)), used))


@njit(error_model="numpy")
def revise_coupled_friction(s, n):  # type: ignore[no-untyped-def]
    """Correct secants that are far off; returns the first link with one, or n + 1."""
    h = load(s, (n + 1) * RECORD + H)
    first = n + 1
    for i in range(n, 0, -1):
        a = i * RECORD
        vx, vy = load(s, a + NEW_VX), load(s, a + NEW_VY)
        d_t, d_n, d_r = h * load(s, a + D_T), h * load(s, a + D_N), h * load(s, a + D_R)
        was, was_r = load(s, a + SECANT), load(s, a + SECANT_R)
        a_t, a_n, a_r = load(s, a + A_T), load(s, a + A_N), load(s, a + A_R)
        most = larger(d_t, d_n)
        now = new_secant(load(s, a + MASS), most, square_root(vx * vx + vy * vy), was)
        now_r = new_secant(a_r - d_r / was_r, d_r, absolute(load(s, a + SOL_W)), was_r)
        changes = (absolute(now - was) > 0.0) | (absolute(now_r - was_r) > 0.0)
        if any_lane(changes):
            first = i
            # Where nothing changes, not even the rounding may.
            store(s, a + SECANT, now)
            store(s, a + SECANT_R, now_r)
            store(s, a + A_T, select(changes, a_t + (d_t / now - d_t / was), a_t))
            store(s, a + A_N, select(changes, a_n + (d_n / now - d_n / was), a_n))
            store(s, a + A_R, select(changes, a_r + (d_r / now_r - d_r / was_r), a_r))
    return first
