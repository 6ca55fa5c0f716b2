r"""Ground friction of one link, in the link's own frame (t along, n across), acting at the link's centre.

Viscous part ``f_t = -c_t v_t`` (sibilska2022, eq. 14); Coulomb part ``f_t = -F_t v_t / s_t`` with s_t the speed along
the axis (irani2015, eq. 4-5) or, coupled, the speed of the centre (haghshenas2022, eq. 34-35). The implicit step treats
both as viscous: the Coulomb part through its secant F / s at the speed s foreseen for the step's end. That force
always opposes the motion. It is viscous below REST, so that a link at rest creeps under a load f < F at no more than
REST f / F. Where the solution is much faster than foreseen (the link breaks away, and the secant would brake it with a
multiple of F), the secant is taken anew at the speed that the load left over gives, and the chain is solved again.
"""

from __future__ import annotations

from numba import njit

from snake_gym.physics.lanes import (
    A_N, A_R, A_T, COS, C_N, C_R, C_T, D_N, D_R, D_T, INERTIA, MASS, NEW_VX, NEW_VY, OMEGA, OMEGA_P, RECORD, SIGMA, SIN,
    SOL_W, S_N, S_R, S_T, VX, VX_P, VY, VY_P, H,
)  # fmt: skip
from snake_gym.physics.simd import absolute, any_lane, larger, load, select, splat, square_root, store

INDEPENDENT, COUPLED = 0, 1
AXES_CODES = {"independent": INDEPENDENT, "coupled": COUPLED}
REST = 1e-6
"""[m/s] and [rad/s]: speed below which Coulomb friction is viscous."""
_BREAKS_AWAY = 1.5
"""A Coulomb force that exceeds its limit by more than this factor is corrected within the step."""


@njit(inline="always", error_model="numpy")
def viscous_force(vx: float, vy: float, s: float, c: float, c_t: float, c_n: float) -> tuple[float, float]:
    """Friction force (x, y) [N], world frame, on a link at angle theta (s, c = sin, cos) moving with (vx, vy) [m/s]."""
    along = -c_t * (c * vx + s * vy)
    across = -c_n * (c * vy - s * vx)
    return along * c - across * s, along * s + across * c


@njit(error_model="numpy")
def slow_links(s, n):  # type: ignore[no-untyped-def]
    """Inertia of each link along, across and in rotation, viscous friction at the step's end included: m + h c."""
    h = load(s, (n + 1) * RECORD + H)
    for i in range(1, n + 1):
        a = i * RECORD
        mass = load(s, a + MASS)
        store(s, a + A_T, mass + h * load(s, a + C_T))
        store(s, a + A_N, mass + h * load(s, a + C_N))
        store(s, a + A_R, load(s, a + INERTIA) + h * load(s, a + C_R))


@njit(error_model="numpy")
def grip_links(s, n, axes):  # type: ignore[no-untyped-def]
    """Add the secants of Coulomb friction at the foreseen speeds to the links' inertias."""
    world = (n + 1) * RECORD
    h, sigma = load(s, world + H), load(s, world + SIGMA)
    rest = splat(REST)
    for i in range(1, n + 1):
        a = i * RECORD
        sin, cos = load(s, a + SIN), load(s, a + COS)
        vx, vy, w = load(s, a + VX), load(s, a + VY), load(s, a + OMEGA)
        vx = vx + sigma * (vx - load(s, a + VX_P))
        vy = vy + sigma * (vy - load(s, a + VY_P))
        w = w + sigma * (w - load(s, a + OMEGA_P))
        along, across = absolute(cos * vx + sin * vy), absolute(cos * vy - sin * vx)
        if axes == COUPLED:
            along = square_root(vx * vx + vy * vy)
            across = along
        along, across, spin = larger(along, rest), larger(across, rest), larger(absolute(w), rest)
        store(s, a + S_T, along)
        store(s, a + S_N, across)
        store(s, a + S_R, spin)
        store(s, a + A_T, load(s, a + A_T) + h * load(s, a + D_T) / along)
        store(s, a + A_N, load(s, a + A_N) + h * load(s, a + D_N) / across)
        store(s, a + A_R, load(s, a + A_R) + h * load(s, a + D_R) / spin)


@njit(error_model="numpy")
def new_secant(inertia, h, limit, speed, used):  # type: ignore[no-untyped-def]
    """Speed for the secant, given the one used and the one that came out: the load beyond the limit, let go."""
    let_go = h * limit * (speed / used - 1.0) / inertia
    return select((speed > _BREAKS_AWAY * used) & (limit > 0.0), larger(speed, let_go), used)


@njit(error_model="numpy")
def release_links(s, n, axes):  # type: ignore[no-untyped-def]
    """Correct the secants of links that break away; returns the first such link, or n + 1."""
    h = load(s, (n + 1) * RECORD + H)
    first = n + 1
    for i in range(n, 0, -1):
        a = i * RECORD
        sin, cos = load(s, a + SIN), load(s, a + COS)
        vx, vy = load(s, a + NEW_VX), load(s, a + NEW_VY)
        along, across = absolute(cos * vx + sin * vy), absolute(cos * vy - sin * vx)
        if axes == COUPLED:
            along = square_root(vx * vx + vy * vy)
            across = along
        mass, d_t, d_n, d_r = load(s, a + MASS), load(s, a + D_T), load(s, a + D_N), load(s, a + D_R)
        was_t, was_n, was_r = load(s, a + S_T), load(s, a + S_N), load(s, a + S_R)
        s_t = new_secant(mass, h, d_t, along, was_t)
        s_n = new_secant(mass, h, d_n, across, was_n)
        if axes == COUPLED:
            s_t = larger(s_t, s_n)
            s_n = s_t
        s_r = new_secant(load(s, a + INERTIA), h, d_r, absolute(load(s, a + SOL_W)), was_r)
        breaks = (s_t > was_t) | (s_n > was_n) | (s_r > was_r)
        if any_lane(breaks):
            first = i
            a_t = mass + h * (load(s, a + C_T) + d_t / s_t)
            a_n = mass + h * (load(s, a + C_N) + d_n / s_n)
            a_r = load(s, a + INERTIA) + h * (load(s, a + C_R) + d_r / s_r)
            store(s, a + S_T, s_t)
            store(s, a + S_N, s_n)
            store(s, a + S_R, s_r)
            # Where nothing breaks, not even the rounding may change.
            store(s, a + A_T, select(breaks, a_t, load(s, a + A_T)))
            store(s, a + A_N, select(breaks, a_n, load(s, a + A_N)))
            store(s, a + A_R, select(breaks, a_r, load(s, a + A_R)))
    return first
