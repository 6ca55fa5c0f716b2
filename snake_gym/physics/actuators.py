"""Joint laws: actuators and joint faults, per joint, cast into ``mu = T0 - K rel`` or ``rel = B`` (RIGID).

Kinds of actuator (u is a torque, or for ACCELERATION an angular acceleration), phi_ref the commanded angle:

    u = feedforward + kp (phi_ref - phi) - kd phi_dot

TORQUE and POSITION clamp u to the torque limit; POSITION also clamps the rate that its loop demands,
``kp/kd (phi_ref - phi)``, to the speed limit. In the implicit step the angle and rate on the right are those at its
end, so stiff servos cost no smaller step: ``K = dt (dt kp + kd)``, demanded rate ``kp (phi_ref - phi) / (dt kp + kd)``.
A saturated joint pushes with the limit: K = 0.

Faults: LOCKED holds the joint where it is (rel = 0), FREE leaves viscous friction only, WEAK scales u and its limit.
A fault acts in every sub-step that starts in [onset, end).
"""

from __future__ import annotations

import math

from numba import njit

from snake_gym.physics.faults import FREE, LOCKED, WEAK
from snake_gym.physics.lanes import (
    C_FREE, DEMAND, F_KIND, F_OFF, F_ON, F_STRENGTH, FF, GAIN, KD, KP, LIMIT, LOAD, MU, OMEGA, PUSH, RECORD, REF, REL,
    RIGID, S_MAX, T0, T_MAX, THETA, WORK, B, K,
)  # fmt: skip
from snake_gym.physics.simd import absolute, any_lane, copy_sign, larger, load, select, smaller, splat, store

ACCELERATION, TORQUE, POSITION = 0, 1, 2
ACTUATOR_CODES = {"acceleration": ACCELERATION, "torque": TORQUE, "position": POSITION}


@njit(error_model="numpy")
def engage_joints(s, n, kind, step, dt):  # type: ignore[no-untyped-def]
    """Set the coefficients of every joint law for faults as they stand in sub-step ``step`` (dt = 0: explicit law)."""
    for i in range(1, n):
        a = i * RECORD
        failed = (load(s, a + F_ON) <= step) & (load(s, a + F_OFF) > step)
        fault = select(failed, load(s, a + F_KIND), splat(0.0))
        locked = fault == LOCKED
        free = fault == FREE
        strength = select(fault == WEAK, load(s, a + F_STRENGTH), splat(1.0))
        strength = select(locked | free, splat(0.0), strength)
        driven = splat(1.0 if kind == ACCELERATION else 0.0)
        kp = load(s, a + KP)
        gain = dt * kp + load(s, a + KD)
        store(s, a + RIGID, select(locked, splat(1.0), select(free, splat(0.0), driven)))
        store(s, a + GAIN, gain)
        store(s, a + DEMAND, select(gain > 0.0, kp / gain, splat(0.0)))
        store(s, a + LIMIT, select(strength > 0.0, strength * load(s, a + T_MAX), splat(math.inf)))
        store(s, a + PUSH, strength)
        store(s, a + LOAD, select(free, load(s, a + C_FREE), splat(0.0)))


@njit(error_model="numpy")
def clamp(x, limit):  # type: ignore[no-untyped-def]
    """x, held between -limit and limit."""
    return smaller(larger(x, -limit), limit)


@njit(error_model="numpy")
def load_joints_implicit(s, n, kind, dt):  # type: ignore[no-untyped-def]
    """Joint laws of one linearly-implicit step; rates and angles inside the law are those at the step's end."""
    for i in range(1, n):
        a = i * RECORD
        b = a + RECORD
        push = load(s, a + PUSH)
        error = load(s, a + REF) - (load(s, a + THETA) - load(s, b + THETA))
        store(s, a + K, dt * load(s, a + LOAD))
        if kind == ACCELERATION:
            rate = load(s, a + OMEGA) - load(s, b + OMEGA)
            kp = push * load(s, a + KP)
            kd = push * load(s, a + KD)
            u = push * load(s, a + FF) + kp * error
            # A locked joint (push = 0) holds still; without that it would keep the rate it has.
            held = select(push == 0.0, splat(0.0), rate)
            store(s, a + B, (held + dt * u) / (1.0 + dt * (kd + dt * kp)))
            store(s, a + T0, splat(0.0))
        else:
            demand = clamp(load(s, a + DEMAND) * error, load(s, a + S_MAX))
            stiffness = dt * push * load(s, a + GAIN)
            store(s, a + K, load(s, a + K) + stiffness)
            store(s, a + T0, stiffness * demand + dt * push * load(s, a + FF))
            store(s, a + B, splat(0.0))


@njit(error_model="numpy")
def saturate_joints(s, n, dt):  # type: ignore[no-untyped-def]
    """Replace the law of joints whose torque exceeds its limit by that limit; returns the first of them, or 0."""
    first = 0
    for i in range(1, n):
        a = i * RECORD
        limit = dt * load(s, a + LIMIT)
        torque = load(s, a + T0) - load(s, a + K) * load(s, a + REL)
        over = (absolute(torque) > limit) & (load(s, a + RIGID) == 0.0)
        if any_lane(over):
            first = i if first == 0 else first
            store(s, a + T0, select(over, copy_sign(limit, torque), load(s, a + T0)))
            store(s, a + K, select(over, splat(0.0), load(s, a + K)))
    return first


@njit(error_model="numpy")
def load_joints_explicit(s, n, kind):  # type: ignore[no-untyped-def]
    """Joint laws of the explicit right-hand side: torques T0 or, where RIGID, relative accelerations B."""
    for i in range(1, n):
        a = i * RECORD
        b = a + RECORD
        rate = load(s, a + OMEGA) - load(s, b + OMEGA)
        error = load(s, a + REF) - (load(s, a + THETA) - load(s, b + THETA))
        kd = load(s, a + KD)
        fastest = select(kd > 0.0, kd * load(s, a + S_MAX), splat(math.inf))
        u = load(s, a + PUSH) * (load(s, a + FF) + clamp(load(s, a + KP) * error, fastest) - kd * rate)
        store(s, a + K, splat(0.0))
        if kind == ACCELERATION:
            store(s, a + B, u)
            store(s, a + T0, -load(s, a + LOAD) * rate)
        else:
            store(s, a + B, splat(0.0))
            store(s, a + T0, clamp(u, load(s, a + LIMIT)) - load(s, a + LOAD) * rate)


@njit(error_model="numpy")
def count_work(s, n):  # type: ignore[no-untyped-def]
    """Add the positive part of each joint's work in one implicit step (impulse MU times rate REL) to WORK [J]."""
    for i in range(1, n):
        a = i * RECORD
        store(s, a + WORK, load(s, a + WORK) + larger(load(s, a + MU) * load(s, a + REL), splat(0.0)))
