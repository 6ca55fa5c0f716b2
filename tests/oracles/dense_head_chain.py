"""Oracle: eq. 24-29 of sibilska2022 written out as dense matrices, for head coordinates q = (phi, theta_N, p_head).

Equal links, viscous anisotropic friction, joint accelerations given. Shares no code with ``papers``: the
whole N + 2 system is assembled with H (eq. 2) and solved for (theta_N'', p'') and the joint torques.
Frame: world x-y, ``phi_i = theta_i - theta_{i+1}``.
Departures: eq. 27 prints ``diag(H phi_bar)`` where the rates are meant; eq. 29 has joint torques as B u, here unknown.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def accelerate_head_chain(
    theta: FloatArray,
    theta_dot: FloatArray,
    head_dot: FloatArray,
    phi_ddot: FloatArray,
    mass: float,
    half_length: float,
    c_t: float,
    c_n: float,
    head_mass: float,
) -> tuple[FloatArray, FloatArray]:
    """Link accelerations (N,) and head acceleration (2,) of one robot.

    ``theta``, ``theta_dot`` (N,), ``head_dot`` (2,), ``phi_ddot`` (N - 1,); ``head_mass`` is the factor of I_2 in the
    last block of eq. 26: m as printed, N m as it was used.
    """
    n = len(theta)
    m, half, inertia = mass, half_length, mass * half_length**2 / 3.0
    d = np.eye(n)[:-1] - np.eye(n)[1:]
    a_sum = np.eye(n)[:-1] + np.eye(n)[1:]
    a = np.zeros(n)
    a[-1] = 1.0
    h = np.triu(np.ones((n, n)))
    s, c = np.diag(np.sin(theta)), np.diag(np.cos(theta))
    ddt = np.linalg.inv(d @ d.T)
    v, k = a_sum.T @ ddt @ a_sum, a_sum.T @ ddt @ d

    ca = np.linalg.inv(np.vstack([d, a]))[:, :-1] @ a_sum
    x_dot = half * ca @ s @ theta_dot + head_dot[0]
    y_dot = -half * ca @ c @ theta_dot + head_dot[1]
    f_x = -((c_t * c**2 + c_n * s**2) @ x_dot + (c_t - c_n) * s @ c @ y_dot)
    f_y = -((c_t - c_n) * s @ c @ x_dot + (c_t * s**2 + c_n * c**2) @ y_dot)

    m_theta = inertia * np.eye(n) + m * half**2 * (s @ v @ s + c @ v @ c)
    w = m * half**2 * (s @ v @ c - c @ v @ s)
    v_p = a @ d.T @ ddt @ a_sum
    m_p = m * half * np.vstack([v_p @ s, -v_p @ c])
    w_p = m * half * np.vstack([v_p @ c, v_p @ s])
    g_p = a - a @ d.T @ ddt @ d
    zero = np.zeros(n)

    m_bar = np.block([[h.T @ m_theta @ h, np.zeros((n, 2))], [-m_p @ h, head_mass * np.eye(2)]])
    w_bar = np.concatenate([h.T @ w @ theta_dot**2, -w_p @ theta_dot**2])
    g_bar = np.block([[-half * h.T @ s @ k, half * h.T @ c @ k], [-g_p, zero], [zero, -g_p]])
    b_bar = np.vstack([np.eye(n - 1), np.zeros((3, n - 1))])

    # Unknowns: q'' and the joint torques; N - 1 further rows give the joint accelerations.
    system = np.block([[m_bar, -b_bar], [np.eye(n - 1, n + 2), np.zeros((n - 1, n - 1))]])
    right = np.concatenate([-w_bar - g_bar @ np.concatenate([f_x, f_y]), phi_ddot])
    q_ddot = np.linalg.solve(system, right)[: n + 2]
    return h @ q_ddot[:n], q_ddot[n:]
