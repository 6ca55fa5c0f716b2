r"""One call of the stepper for one world, in plain NumPy with dense matrices: the physics to read first.

The kernels solve these equations in O(N) for many worlds at once (``chain``, ``implicit``, ``actuators``); they agree
with this module to rounding (tests/physics/test_reference.py). Here is the default robot: viscous ground, servos with
torque and speed limits, and faults of joints. Coulomb friction, stops, contacts, muscles, imperfect servos, and faults
that begin within a call are in the kernels alone.

Frame and signs: world x-y plane; link 1 is the tail, link N the head; t_i = (cos theta_i, sin theta_i),
n_i = (-sin theta_i, cos theta_i); phi_i = theta_i - theta_{i+1}; the torque mu_i turns link i by +mu_i and link i+1 by
-mu_i (Liljebäck et al.; sibilska2022, eq. 1-16). J = N - 1 joints.

The velocities of all links, V = (v_x, v_y, omega) (3N,), follow from q = (omega, v_c) (N+2,), the link rates and the
velocity of the centre of mass: V = A q, where A closes the joints. A step of length h solves for q' at its end,

    A^T (M + h C) A q' = A^T (M V^ + h F) + D^T mu,    mu = clip(T0 - K rel'),   rel' = D q',

with masses M, ground friction C, slope F and joint impulses mu; then x' = x^ + h dx'/dt. The base x^ = alpha x - beta
x_before of angles, places and velocities makes the method (``implicit``): BDF2, or SDIRK in a call's first step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from snake_gym.physics.faults import FREE, LOCKED, OFFSET, SLOW, WEAK
from snake_gym.physics.state import ChainParams, FloatArray, IntArray

GAMMA = 1.0 - 1.0 / math.sqrt(2.0)
"""Length of each stage of a call's first step, as a share of it."""


class Motion(NamedTuple):
    """Moving state of one chain."""

    theta: FloatArray
    """Link angles (N,) [rad]."""
    omega: FloatArray
    """Link rates (N,) [rad/s]."""
    velocity: FloatArray
    """Velocities of the links' centres of mass (2, N) [m/s], world frame."""
    centre: FloatArray
    """Centre of mass (2,) [m], world frame."""
    centre_velocity: FloatArray
    """Its velocity (2,) [m/s]."""


class Method(NamedTuple):
    """One implicit solution of length ``h`` [s] from the base ``alpha`` x - ``beta`` x_before."""

    alpha: float
    beta: float
    h: float
    change: float
    """1: rates are foreseen to change as in the last step; 0: to stay."""


class Servos(NamedTuple):
    """What each joint's servo does under its fault, (J,) each."""

    reference: FloatArray
    """Angle that it aims at [rad]."""
    kp: FloatArray
    """Gain of the joint error [N m/rad]."""
    kd: FloatArray
    """Gain of the joint rate [N m s/rad]."""
    torque_limit: FloatArray
    """[N m]"""
    damping: FloatArray
    """Viscous friction of a joint without power [N m s/rad]."""
    locked: FloatArray
    """True where the joint is held at its angle."""
    speed_limit: FloatArray
    """[rad/s]"""


def fail(params: ChainParams, reference: FloatArray, kind: IntArray, strength: FloatArray, shift: FloatArray) -> Servos:
    """Return the servos under faults that act all the time; all arguments (J,).

    ``kind``: codes of ``physics.faults``; ``strength``: share that a WEAK joint keeps of its torque, a SLOW one of its
    speed; ``shift`` [rad]: how far an OFFSET joint aims from its reference.
    """
    powered = np.where((kind == LOCKED) | (kind == FREE), 0.0, np.where(kind == WEAK, strength, 1.0))
    return Servos(
        reference + np.where(kind == OFFSET, shift, 0.0),
        powered * params.kp,
        powered * params.kd,
        powered * params.torque_limit,
        np.where(kind == FREE, params.free_damping, 0.0),
        kind == LOCKED,
        params.speed_limit * np.where(kind == SLOW, strength, 1.0),
    )


def close_joints(params: ChainParams) -> FloatArray:
    """Return G (N, N): link centres minus centre of mass are G cos theta, G sin theta [m].

    sibilska2022, eq. 4, ``x_{i+1} - x_i = l_i cos theta_i + l_{i+1} cos theta_{i+1}``, closed by ``sum m_i x_i = M p``.
    Departure: a link's centre of mass may lie ahead of its middle.
    """
    front, rear = params.half_length * (1.0 - params.ahead), params.half_length * (1.0 + params.ahead)
    n = front.size
    between = np.diag(front)[:-1] + np.diag(rear)[1:]  # from centre i to joint i, from joint i to centre i + 1
    neighbours = np.eye(n)[1:] - np.eye(n)[:-1]
    return np.linalg.inv(np.vstack([neighbours, params.mass / params.mass.sum()]))[:, :-1] @ between


def velocity_matrix(params: ChainParams, theta: FloatArray) -> FloatArray:
    """Return A (3N, N+2): velocities of all links from link rates and the velocity of the centre (eq. 12)."""
    g, n = close_joints(params), theta.size
    one, zero = np.ones((n, 1)), np.zeros((n, 1))
    return np.block([
        [-g * np.sin(theta), one, zero],
        [g * np.cos(theta), zero, one],
        [np.eye(n), zero, zero],
    ])  # fmt: skip


def ground_friction(params: ChainParams, theta: FloatArray) -> FloatArray:
    """Return C (3N, 3N): forces and torques of viscous ground are -C V (eq. 14; rotation: wang, eq. 8)."""
    cos, sin = np.cos(theta), np.sin(theta)
    along, across, zero = params.c_t, params.c_n, np.zeros((theta.size, theta.size))
    cross = np.diag((along - across) * sin * cos)
    return np.block([
        [np.diag(along * cos**2 + across * sin**2), cross, zero],
        [cross, np.diag(along * sin**2 + across * cos**2), zero],
        [zero, zero, np.diag(params.c_r)],
    ])  # fmt: skip


def servo_impulse(now: Motion, before: Motion, servos: Servos, method: Method) -> tuple[FloatArray, FloatArray]:
    """Return T0 [N m s] and K [N m s^2/rad] (J,) of the joint laws; angle and rate in them are those at the step's end.

    ``u = k_p (phi_ref - phi) - k_d dphi/dt``; the position loop asks for no more than the speed limit:
    ``|k_p (phi_ref - phi)| <= k_d dphi_max``, judged by the angle that is foreseen.
    """
    h = method.h
    base = -np.diff(method.alpha * now.theta - method.beta * before.theta)
    rate, rate_before = -np.diff(now.omega), -np.diff(before.omega)
    error = servos.reference - base
    foreseen = error - h * (rate + method.change * (rate - rate_before))
    fastest = np.where(servos.kd > 0.0, servos.kd * servos.speed_limit, math.inf)
    fast = np.abs(servos.kp * foreseen) > fastest
    t0 = np.where(fast, np.copysign(fastest, foreseen), servos.kp * error)
    return h * t0, h * (servos.damping + servos.kd + np.where(fast, 0.0, h * servos.kp))


def solve(
    params: ChainParams, now: Motion, before: Motion, servos: Servos, method: Method
) -> tuple[Motion, FloatArray]:
    """Return the motion at the end of one step, and the joint torques (J,) [N m]."""
    alpha, beta, h, change = method
    n = now.theta.size
    theta = alpha * now.theta - beta * before.theta
    foreseen = theta + h * (now.omega + change * (now.omega - before.omega))
    a = velocity_matrix(params, foreseen)
    inertia = np.concatenate([params.mass, params.mass, params.inertia])
    base = alpha * np.append(now.velocity, now.omega) - beta * np.append(before.velocity, before.omega)
    slope = np.append(np.repeat(params.body_acc, n), np.zeros(n))
    matrix = a.T @ (np.diag(inertia) + h * ground_friction(params, foreseen)) @ a
    right = a.T @ (inertia * (base + h * slope))
    turn = np.hstack([np.eye(n)[:-1] - np.eye(n)[1:], np.zeros((n - 1, 2))])  # D: rates of the joints from q
    law_t0, law_k = servo_impulse(now, before, servos, method)
    limit = h * np.where(servos.torque_limit > 0.0, servos.torque_limit, math.inf)
    held = np.flatnonzero(servos.locked)
    clipped = np.zeros(n - 1)  # -1, 1: the joint's torque is at its limit
    while True:
        t0 = np.where(clipped == 0.0, law_t0, np.copysign(limit, clipped))
        k = np.where(clipped == 0.0, law_k, 0.0)
        system = np.zeros((n + 2 + held.size, n + 2 + held.size))
        system[: n + 2, : n + 2] = matrix + turn.T @ np.diag(k) @ turn
        system[: n + 2, n + 2 :] = -turn[held].T  # a locked joint: its impulse is unknown, its rate is 0
        system[n + 2 :, : n + 2] = turn[held]
        solution = np.linalg.solve(system, np.append(right + turn.T @ t0, np.zeros(held.size)))
        q, rel = solution[: n + 2], turn @ solution[: n + 2]
        impulse = law_t0 - law_k * rel
        wrong = np.where(clipped == 0.0, np.abs(impulse) > limit, clipped * impulse < limit)
        if not wrong.any():  # else the first joint with a wrong law gets the other one (Murty's rule)
            break
        joint = np.argmax(wrong)
        clipped[joint] = 0.0 if clipped[joint] else np.sign(impulse[joint])
    torque = t0 - k * rel
    torque[held] = solution[n + 2 :]
    velocity = (a @ q)[: 2 * n].reshape(2, n)
    centre = alpha * now.centre - beta * before.centre + h * q[n:]
    return Motion(theta + h * q[:n], q[:n], velocity, centre, q[n:]), torque / h


def step(
    params: ChainParams, motion: Motion, servos: Servos, step_s: float, n_substeps: int
) -> tuple[Motion, FloatArray]:
    """Return the motion after ``n_substeps`` steps of ``step_s`` [s], and the last joint torques (J,) [N m].

    ``params``: one world's, without its first axis. ``motion.velocity`` is set anew from the rates.
    """
    q = np.append(motion.omega, motion.centre_velocity)
    begin = motion._replace(velocity=(velocity_matrix(params, motion.theta) @ q)[: -q.size + 2].reshape(2, -1))
    # A new command has no smooth past: two stages of Alexander's L-stable SDIRK, then BDF2.
    root = math.sqrt(2.0)
    between, _ = solve(params, begin, begin, servos, Method(1.0, 0.0, GAMMA * step_s, 0.0))
    now, torque = solve(params, between, begin, servos, Method(1.0 + root, root, GAMMA * step_s, 0.0))
    before = begin
    for _ in range(n_substeps - 1):
        method = Method(4.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0 * step_s, 1.0)
        (now, torque), before = solve(params, now, before, servos, method), now
    return now, torque
