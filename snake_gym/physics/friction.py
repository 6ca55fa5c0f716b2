"""Ground friction of one link, in the link's own frame (t along, n across; sibilska2022, eq. 14).

Viscous: ``f_t = -c_t v_t``, ``f_n = -c_n v_n``, ``tau = -c_r omega``, acting at the link's centre. The implicit step
needs the coefficients (they join the link's inertia), the explicit right-hand side needs the force.
"""

from __future__ import annotations

from numba import njit


@njit(inline="always", error_model="numpy")
def implicit_inertia(inertia: float, coefficient: float, dt: float) -> float:
    """Inertia felt by an impulse when friction acts on the velocity at the end of the step: m + dt c."""
    return inertia + dt * coefficient


@njit(inline="always", error_model="numpy")
def viscous_force(vx: float, vy: float, s: float, c: float, c_t: float, c_n: float) -> tuple[float, float]:
    """Friction force (x, y) [N], world frame, on a link at angle theta (s, c = sin, cos) moving with (vx, vy) [m/s]."""
    along = -c_t * (c * vx + s * vy)
    across = -c_n * (c * vy - s * vx)
    return along * c - across * s, along * s + across * c
