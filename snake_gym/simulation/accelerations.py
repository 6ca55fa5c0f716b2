"""Accelerations of W chains under given joint torques, by dense equations: what papers compare their models with.

In coordinates z = (phi, theta_N) with theta = E z, and with B from lengths and masses such that link i is at
``p + sum_j B_ij (cos theta_j, sin theta_j)``, p the centre of mass (sibilska2022, eq. 4), links and centre decouple:

    E^T (diag(I) + G_jk cos(theta_j - theta_k)) E z_ddot = E^T (Q_j - G_jk sin(theta_j - theta_k) omega_k^2) + (u, 0),
    G = B^T diag(m) B,    M p_ddot = sum_i f_i,

with f the ground friction (eq. 14) and the slope's pull on the links, Q their moments and u the joint torques. The row
of a joint whose acceleration is given says so instead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from snake_gym.physics.state import ChainParams, ChainState, FloatArray


def accelerate(
    params: ChainParams, state: ChainState, u: FloatArray, given: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """Return accelerations of the links (W, N) [rad/s^2] and the centre of mass (W, 2) [m/s^2], viscous ground.

    ``u`` (W, J): joint torques [N m]; where ``given``, joint accelerations [rad/s^2].
    """
    theta, omega, mass = state.link_angle, state.link_rate, params.mass
    n, total = theta.shape[1], mass.sum(axis=1)[:, None]
    cos, sin = np.cos(theta), np.sin(theta)
    place = 2.0 * params.half_length[:, None, :] * np.tri(n, k=-1)
    place += (params.half_length * (1.0 + params.ahead))[:, None, :] * np.eye(n)
    place -= (mass[:, :, None] * place).sum(axis=1, keepdims=True) / total[:, None]
    vx = state.centre_vel[:, :1] - np.einsum("wij,wj->wi", place, sin * omega)
    vy = state.centre_vel[:, 1:] + np.einsum("wij,wj->wi", place, cos * omega)
    along, across = cos * vx + sin * vy, cos * vy - sin * vx
    along, across = -params.c_t * np.where(along < 0.0, params.backward, 1.0) * along, -params.c_n * across
    fx = along * cos - across * sin + mass * params.body_acc[:, :1]
    fy = along * sin + across * cos + mass * params.body_acc[:, 1:]
    coupling, apart = place.swapaxes(1, 2) @ (mass[:, :, None] * place), theta[:, :, None] - theta[:, None, :]
    moment = cos * np.einsum("wij,wi->wj", place, fy) - sin * np.einsum("wij,wi->wj", place, fx) - params.c_r * omega
    moment -= np.einsum("wij,wj->wi", coupling * np.sin(apart), omega**2)
    expand = np.triu(np.ones((n, n)))
    matrix = expand.T @ (params.inertia[:, :, None] * np.eye(n) + coupling * np.cos(apart)) @ expand
    right = moment @ expand
    right[:, :-1] += u
    row, joint = np.nonzero(given)
    matrix[row, joint], right[row, joint] = np.eye(n)[joint], u[row, joint]
    acceleration = np.linalg.solve(matrix, right[..., None])[..., 0] @ expand.T
    return acceleration, np.stack([fx.sum(axis=1), fy.sum(axis=1)], axis=1) / total
