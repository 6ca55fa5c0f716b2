"""Oracle: a chain with position servos on viscous or dry ground, by Lagrange's equations in tight tolerances.

Coordinates: link angles theta (N,) and centre of mass p (2,). With ``x_i = p_x + sum_j P_ij cos theta_j`` (likewise y
with sin; P follows from the half lengths and masses), ``G = P^T diag(m) P`` and inertias J,

    sum_k (J_j delta_jk + G_jk cos(theta_j - theta_k)) theta_k'' + G_jk sin(theta_j - theta_k) theta_k'^2 = Q_j
    Q_j = tau_j + u_j - u_{j-1} + sum_i P_ij (cos theta_j f_yi - sin theta_j f_xi),   sum_i m_i p'' = sum_i f_i.

A link's mass may have its centre off the middle, where the ground bears the link, and friction along it may be larger
when it moves tail first. Dry friction is regularised: ``-F tanh(v / v_0)`` along each axis,
``-F_i v_i / sqrt(|v|^2 + v_0^2)`` along the slip. A chain at rest creeps at about v_0 times its share of the limit: a
run has converged where halving v_0 changes nothing.

Integration: LSODA (BDF of order 1 to 5 with error control), begun anew at every change of the references.
Shares no code with ``snake_gym.physics``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.integrate import odeint

from snake_gym.robot.spec import FloatArray, RobotSpec

_ATOL_SHARE = 1e-3


class DryChain(NamedTuple):
    """One robot in SI units; arrays (N,) or (J,) but for P and G (N, N)."""

    mass: FloatArray
    inertia: FloatArray
    place: FloatArray
    """P [m]."""
    coupling: FloatArray
    """G [kg m^2]."""
    c_t: FloatArray
    c_n: FloatArray
    c_r: FloatArray
    dry_t: FloatArray
    dry_n: FloatArray
    dry_r: FloatArray
    backward: FloatArray
    """Factor of friction along links that move tail first [1]."""
    is_coupled: bool
    rest: float
    """Speed v_0 [m/s] or [rad/s] of the regularisation."""
    kp: FloatArray
    kd: FloatArray
    most: FloatArray
    """Torque limits [N m]."""
    fastest: FloatArray
    """Speed limits [rad/s]."""
    dead: FloatArray
    """Dead bands [rad]."""


def chain_of(spec: RobotSpec, rest: float, ahead: FloatArray | float = 0.0) -> DryChain:
    """Return the chain of a robot; masses have their centres ``ahead`` (N,) half lengths ahead of the middles."""
    half, mass = spec.links("link_half_length_m"), spec.links("link_mass_kg")
    place = np.tril(np.tile(2.0 * half, (spec.n_links, 1)))  # centres from the tail's end: 2 l of each link before
    place[np.diag_indices_from(place)] = half * (1.0 + ahead)
    place -= mass @ place / mass.sum()
    weight = 9.81 * np.cos(spec.incline_rad) * mass
    return DryChain(
        mass, spec.inertia(), place, place.T @ (mass[:, None] * place),
        *(spec.links(f"friction.{name}") for name in ("tangential_ns_m", "normal_ns_m", "rotational_nms_rad")),
        weight * spec.links("friction.tangential_coulomb"), weight * spec.links("friction.normal_coulomb"),
        spec.links("friction.rotational_coulomb_nm"), spec.links("friction.backward"),
        spec.friction.coulomb_axes == "coupled", rest,
        *(spec.joints(f"actuator.{name}") for name in ("kp", "kd", "torque_limit_nm", "speed_limit_rad_s")),
        spec.joints("actuator.dead_band_rad"),
    )  # fmt: skip


@njit(cache=True)
def slope(y, _, chain, reference):  # type: ignore[no-untyped-def]
    """Return the derivative of y = (theta, theta', p, p', positive work of the servos) (2 N + 5,)."""
    n = chain.mass.size
    theta, rate, velocity = y[:n], y[n : 2 * n], y[2 * n + 2 : 2 * n + 4]
    out = np.zeros_like(y)
    sin, cos = np.sin(theta), np.cos(theta)
    vx = velocity[0] - chain.place @ (sin * rate)
    vy = velocity[1] + chain.place @ (cos * rate)
    v_t, v_n = cos * vx + sin * vy, cos * vy - sin * vx
    if chain.is_coupled:
        speed = np.sqrt(v_t**2 + v_n**2 + chain.rest**2)
        sign_t, sign_n = v_t / speed, v_n / speed
    else:
        sign_t, sign_n = np.tanh(v_t / chain.rest), np.tanh(v_n / chain.rest)
    f_t = (-chain.c_t * v_t - chain.dry_t * sign_t) * np.where(v_t < 0.0, chain.backward, 1.0)
    f_n = -chain.c_n * v_n - chain.dry_n * sign_n
    f_x, f_y = cos * f_t - sin * f_n, sin * f_t + cos * f_n
    load = -chain.c_r * rate - chain.dry_r * np.tanh(rate / chain.rest)
    load += cos * (f_y @ chain.place) - sin * (f_x @ chain.place)
    for i in range(n - 1):
        error = reference[i] - (theta[i] - theta[i + 1])
        wanted = chain.kp[i] * (error - min(max(error, -chain.dead[i]), chain.dead[i]))
        loop = chain.kd[i] * chain.fastest[i]
        wanted = min(max(wanted, -loop), loop) - chain.kd[i] * (rate[i] - rate[i + 1])
        torque = min(max(wanted, -chain.most[i]), chain.most[i])
        out[2 * n + 4] += max(torque * (rate[i] - rate[i + 1]), 0.0)
        load[i] += torque
        load[i + 1] -= torque
    system = np.empty((n, n))
    for j in range(n):
        for k in range(n):
            sin_jk, cos_jk = sin[j] * cos[k] - cos[j] * sin[k], cos[j] * cos[k] + sin[j] * sin[k]
            system[j, k] = chain.coupling[j, k] * cos_jk
            load[j] -= chain.coupling[j, k] * sin_jk * rate[k] ** 2
        system[j, j] += chain.inertia[j]
    out[:n] = rate
    out[n : 2 * n] = np.linalg.solve(system, load)
    out[2 * n : 2 * n + 2] = velocity
    out[2 * n + 2] = f_x.sum() / chain.mass.sum()
    out[2 * n + 3] = f_y.sum() / chain.mass.sum()
    return out


@njit(cache=True)
def jacobian(y, t, chain, reference):  # type: ignore[no-untyped-def]
    """Return d slope / d y (M, M) by differences that are small against v_0."""
    n = chain.mass.size
    out = np.empty((y.size, y.size))
    begun = slope(y, t, chain, reference)
    for k in range(y.size):
        moves = n <= k < 2 * n or 2 * n + 2 <= k < 2 * n + 4
        width = 1e-3 * chain.rest if moves else 1e-8
        other = y.copy()
        other[k] += width
        out[:, k] = (slope(other, t, chain, reference) - begun) / (other[k] - y[k])
    return out


def run_gait(
    spec: RobotSpec, references: FloatArray, rest: float = 1e-5, rtol: float = 1e-8, ahead: FloatArray | float = 0.0
) -> FloatArray:
    """Return the centre of mass (K + 1, 2) [m] under references (K, J) [rad], one for each control step.

    The robot begins at rest in the shape of the first, the head link along x and the centre at the origin. Raises
    RuntimeError where the tolerance cannot be kept.
    """
    return follow_gait(spec, references, rest, rtol, ahead)[:, 2 * spec.n_links : 2 * spec.n_links + 2]


def follow_gait(
    spec: RobotSpec, references: FloatArray, rest: float = 1e-5, rtol: float = 1e-8, ahead: FloatArray | float = 0.0
) -> FloatArray:
    """Return what ``run_gait`` goes through, the y of ``slope`` (K + 1, 2 N + 5)."""
    chain, n = chain_of(spec, rest, ahead), spec.n_links
    theta = np.append(np.cumsum(references[0][::-1])[::-1], 0.0)
    track = [np.concatenate([theta, np.zeros(n + 5)])]
    for reference in references:
        found, report = odeint(
            slope, track[-1], (0.0, spec.control_dt_s), (chain, np.ascontiguousarray(reference)), jacobian, rtol=rtol,
            atol=_ATOL_SHARE * rtol, mxstep=1_000_000, full_output=True,
        )  # fmt: skip
        if report["message"] != "Integration successful.":
            raise RuntimeError(f"the oracle's integration failed: {report['message']}")
        track.append(found[-1])
    return np.array(track)
