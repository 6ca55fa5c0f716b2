"""Joint laws: actuators and joint faults, per joint, cast into ``mu = T0 - K rel`` or ``rel = B`` (RIGID).

Kinds of actuator, with the commanded angle phi_ref and a torque u (for ACCELERATION an angular acceleration):

    u = feedforward + kp (phi_ref - phi) - kd phi_dot

TORQUE and POSITION clamp u to the torque limit and the rate that the loop demands, ``kp/kd (phi_ref - phi)``, to the
speed limit, which does not act on feedforward. In the implicit step of length h the angle and rate on the right are
those at its end, so stiff servos need no smaller step: ``K = h (h kp + kd)``, and the demanded rate is
``kp (phi_ref - phi) / (h kp + kd)`` with phi the base of the step (see ``implicit``). A saturated joint pushes with the
limit: K = 0.

Faults: LOCKED holds the joint where it is (rel = 0), FREE leaves viscous friction only, WEAK scales u and its limit,
SLOW the speed limit, OFFSET shifts phi_ref. SLIPPED: the joint's horn slips on the servo's shaft, at SLIP_RAD_S, until
it is off its place by the offset, and back at the fault's end. The loop has the shaft's angle and rate, phi - SLIP
and phi_dot - SLIP_RATE, so that the joint moves and the shaft stays, but for the load. A joint that is held or without
power does not slip. Two faults of a joint act together: shares multiply, shifts add up, LOCKED comes before all.
A fault acts in every sub-step that starts in [onset, end); a joint locks at the angle it had at the onset.

A torque limit is found by solving again with the law that holds. AT_LIMIT is the present piece of ``clamp(T0 - K rel)``
in a joint's law, with the sign of the torque; between steps only 0 and 1 are left:

====  ==========================  =================================================================================
0     the law itself              goes on to 0.5 where its torque exceeds the limit
0.5   a chord from the law's      goes on to 1 where the chord's torque is near the limit, to a new chord where it is
      zero to the limit           not, and back to 0 where the law's torque is within the limit
1     the limit, a constant       goes back to 0 where the law's torque is within the limit
====  ==========================  =================================================================================

Worlds that go in circles all the same descend (``joint_descent``).
"""

from __future__ import annotations

import math

from snake_gym.physics.faults import FREE, LOCKED, OFFSET, SLIPPED, SLOW, WEAK
from snake_gym.physics.lanes import (
    AT_LIMIT, AT_STOP, BASE, BASE_W, BETA, C_FREE, DEAD, DESCENT, FASTEST, FAULT, FF, F_KIND, F_LATE, F_OFF, F_OFFSET,
    F_ON, F_STRENGTH, KD, KP, LAWS_CHANGE, LAW_K, LAW_T0, LIMIT, LOAD, MEAN_RATE, MEAN_TORQUE, MU, OMEGA, OMEGA_P,
    PAST_ONSET, RECORD, REF, REF_NOW, REL, RIGID, SHIFT, SIGMA, SLIP, SLIP_RATE, SLOWED, SQUARE, STOP, STRENGTH, S_MAX,
    T0, THETA, T_MAX, VOLT, WEIGHT, WORK, B, H, K,
)  # fmt: skip
from snake_gym.physics.simd import any_lane, by_precision, kernel, load, select, splat, store

ACCELERATION, TORQUE, POSITION, MUSCLE = 0, 1, 2, 3
NEARLY = 0.1
"""Largest miss of a chord, as a share of the torque limit, at which the limit replaces it."""
ROUNDING = (1e-9, 1e-5)
"""Share of a limit, or angle [rad], that counts for nothing, in float64 and float32."""
SLIP_RAD_S = 0.2
"""Speed at which a horn slips on its shaft."""
ACTUATOR_CODES = {"acceleration": ACCELERATION, "torque": TORQUE, "position": POSITION, "muscle": MUSCLE}


@kernel
def engage_joints(s, n, kind, step, dt, n_slots):  # type: ignore[no-untyped-def]
    """Set the coefficients of every joint law for faults, in ``n_slots`` slots, as they stand in sub-step ``step``.

    While a horn slips, it has to be called once in every sub-step, of length ``dt`` (``worlds.next_event``).
    """
    for i in range(1, n):
        a = i * RECORD
        one, zero = splat(s, 1.0), splat(s, 0.0)
        strength, slowed, shift, late, slipped = one, one, zero, zero, zero
        locked, free = zero > 0.0, zero > 0.0
        for slot in range(n_slots):
            f = a + slot * FAULT
            failed = (load(s, f + F_ON) <= step) & (load(s, f + F_OFF) > step)
            fault = select(failed, load(s, f + F_KIND), zero)
            begins = (fault == LOCKED) & (load(s, f + F_ON) == step)
            late = select(begins, load(s, f + F_LATE), late)
            locked = locked | (fault == LOCKED)
            free = free | (fault == FREE)
            strength = strength * select(fault == WEAK, load(s, f + F_STRENGTH), one)
            slowed = slowed * select(fault == SLOW, load(s, f + F_STRENGTH), one)
            shift = shift + select(fault == OFFSET, load(s, f + F_OFFSET), zero)
            slipped = slipped + select(fault == SLIPPED, load(s, f + F_OFFSET), zero)
        strength = select(locked | free, zero, strength)
        driven = splat(s, 1.0 if kind == ACCELERATION else 0.0)
        store(s, a + RIGID, select(locked, 1.0, select(free, 0.0, driven)))
        store(s, a + PAST_ONSET, late * (load(s, a + OMEGA) - load(s, a + RECORD + OMEGA)))
        store(s, a + AT_STOP, select(locked, 0.0, load(s, a + AT_STOP)))
        store(s, a + LIMIT, select(strength > 0.0, strength * load(s, a + T_MAX), math.inf))
        store(s, a + STRENGTH, strength)
        store(s, a + SLOWED, slowed)
        store(s, a + FASTEST, slowed * load(s, a + S_MAX))
        slip, rate = load(s, a + SLIP), load(s, a + SLIP_RATE)
        left = select(strength > 0.0, slipped - slip, zero)
        is_last = abs(left) <= SLIP_RAD_S * dt
        new_rate = select(is_last, left / dt, math.copysign(SLIP_RAD_S, left))
        slip = select(is_last & (strength > 0.0), slipped, slip + dt * new_rate)
        store(s, a + SLIP, slip)
        store(s, a + SLIP_RATE, new_rate)
        store(s, a + FF, load(s, a + FF) + load(s, a + KD) * (new_rate - rate))
        store(s, a + SHIFT, shift + slip)
        store(s, a + REF_NOW, load(s, a + REF) + load(s, a + SHIFT))
        store(s, a + LOAD, select(free, load(s, a + C_FREE), 0.0))


@kernel
def lock_joints(s, n):  # type: ignore[no-untyped-def]
    """Bring joints that have just locked back to the angle that they had at the onset, a part of a sub-step ago."""
    h = load(s, (n + 1) * RECORD + H)
    for i in range(1, n):
        a = i * RECORD
        back = load(s, a + PAST_ONSET)
        store(s, a + B, select(abs(back) > 0.0, -back / h, load(s, a + B)))
        store(s, a + PAST_ONSET, 0.0)


@kernel
def clamp(x, limit):  # type: ignore[no-untyped-def]
    """Return x, held between -limit and limit."""
    return min(max(x, -limit), limit)


@kernel
def load_joints(s, n, kind):  # type: ignore[no-untyped-def]
    """Set the joint laws of one implicit step; rates and angles inside the law are those at the step's end.

    The angle foreseen for the step's end tells if the speed limit acts.
    """
    h, sigma = load(s, (n + 1) * RECORD + H), load(s, (n + 1) * RECORD + SIGMA)
    for i in range(1, n):
        a = i * RECORD
        b = a + RECORD
        push = load(s, a + STRENGTH)
        error = load(s, a + REF_NOW) - (load(s, a + BASE) - load(s, b + BASE))
        kp, kd = load(s, a + KP), load(s, a + KD)
        store(s, a + K, h * load(s, a + LOAD))
        if kind == ACCELERATION:
            rate = load(s, a + BASE_W) - load(s, b + BASE_W)
            u = load(s, a + FF) + kp * error
            # A locked joint (push = 0) holds still; without this line it would keep its rate.
            held = select(push == 0.0, 0.0, rate)
            rate = (held + h * push * u) / (1.0 + h * push * (kd + h * kp))
            # The joint turns no further than its stop; one that is beyond it turns no further out.
            angle = load(s, a + BASE) - load(s, b + BASE)
            present, stop = load(s, a + THETA) - load(s, b + THETA), load(s, a + STOP)
            lowest = (min(-stop, present) - angle) / h
            highest = (max(stop, present) - angle) / h
            store(s, a + B, min(max(rate, lowest), highest))
            store(s, a + T0, 0.0)
        else:
            ahead = load(s, a + OMEGA) - load(s, b + OMEGA)
            ahead = ahead + sigma * (ahead - (load(s, a + OMEGA_P) - load(s, b + OMEGA_P)))
            fastest = select(kd > 0.0, kd * load(s, a + FASTEST), math.inf)
            fast = abs(kp * (error - h * ahead)) > fastest
            drive = select(fast, math.copysign(fastest, error - h * ahead), kp * error)
            store(s, a + K, load(s, a + K) + h * push * select(fast, kd, h * kp + kd))
            store(s, a + T0, h * push * (drive + load(s, a + FF)))
            store(s, a + B, 0.0)


@kernel
def begin_limits(s, n):  # type: ignore[no-untyped-def]
    """Begin with the torque limit at joints that the last step left at it."""
    h = load(s, (n + 1) * RECORD + H)
    for i in range(1, n):
        a = i * RECORD
        law_k, law_t0, at = load(s, a + K), load(s, a + T0), load(s, a + AT_LIMIT)
        held = abs(at) == 1.0
        store(s, a + LAW_K, law_k)
        store(s, a + LAW_T0, law_t0)
        store(s, a + AT_LIMIT, select(held, at, 0.0))
        store(s, a + T0, select(held, math.copysign(h * load(s, a + LIMIT), at), law_t0))
        store(s, a + K, select(held, 0.0, law_k))


@kernel
def put_limit(s, a, changes, at, torque, bound, line):  # type: ignore[no-untyped-def]
    """Give the joint with record ``a``, where it ``changes``, the piece ``at`` of its law (see AT_LIMIT above).

    ``bound`` is the torque where a chord ends, ``line`` the limit (torque at rest, slope).
    """
    stall, slope = line
    law_k, law_t0 = load(s, a + LAW_K), load(s, a + LAW_T0)
    chord = bound / abs(torque)
    t0 = select(at == 0.0, law_t0, select(at == 1.0, math.copysign(stall, torque), law_t0 * chord))
    k = select(at == 0.0, law_k, select(at == 1.0, slope, law_k * chord))
    store(s, a + AT_LIMIT, select(changes, math.copysign(at, torque), load(s, a + AT_LIMIT)))
    store(s, a + T0, select(changes, t0, load(s, a + T0)))
    store(s, a + K, select(changes, k, load(s, a + K)))


@kernel
def revise_limits(s, n):  # type: ignore[no-untyped-def]
    """Use the torque limit where the law asks for more, else the law; return the first joint changed, or n + 1.

    ``clamp(T0 - K rel)`` is monotone in rel, but jumps between its three pieces may go in circles. A joint that
    exceeds its limit first gets the chord from the law's zero, rel = T0 / K, to the limit at the present rate. The
    chord cannot overshoot (the iteration of Kacanov); the constant limit follows when the chord is close to it.
    """
    h, plain = load(s, (n + 1) * RECORD + H), load(s, (n + 1) * RECORD + DESCENT) == 0.0
    first = n + 1
    busy = splat(s, 0.0)
    for i in range(n - 1, 0, -1):
        a = i * RECORD
        limit, rel, was = h * load(s, a + LIMIT), load(s, a + REL), load(s, a + AT_LIMIT)
        law_k, law_t0 = load(s, a + LAW_K), load(s, a + LAW_T0)
        torque = law_t0 - law_k * rel
        # At the limit, a float32 torque that is less by rounding is no reason to leave it again.
        held = select(abs(was) == 1.0, by_precision(s, 1.0, 1.0 - ROUNDING[1]), 1.0)
        over = (abs(torque) > held * limit) & (load(s, a + RIGID) == 0.0)
        given = load(s, a + T0) - load(s, a + K) * rel
        excess = abs(given) - limit
        near = (abs(was) == 0.5) & (abs(excess) < NEARLY * limit) & (given * torque > 0.0)
        # A law without a slope has no chord, and cannot go in circles.
        at = select(over, select(near | (law_k == 0.0), 1.0, 0.5), 0.0)
        wrong = abs(was) < select(given * torque < 0.0, 2.0, 1.0)
        changes = ((over & wrong) | ((abs(was) > 0.0) & (at == 0.0))) & plain
        if any_lane(changes):
            first = i
            busy = select(changes, 1.0, busy)
            put_limit(s, a, changes, at, torque, limit, (limit, splat(s, 0.0)))
    store(s, (n + 1) * RECORD + LAWS_CHANGE, busy)
    return first


@kernel
def count_work(s, n, dt, length):  # type: ignore[no-untyped-def]
    """Add the positive part of each joint's work in one stage, of ``length`` [s], of a step ``dt`` to WORK [J].

    It is that of the mean torque and the mean rate of the step. They follow from those of the step before and the
    values at its end, mixed as momenta and angles are, so that they fit the impulse and the angle turned. Values at
    ends of steps would not: after a jump of the reference they miss a fifth of the work at steps of 10 ms. The two
    stages of a first step count as one, with the covariance of torque and rate in it.
    """
    world = (n + 1) * RECORD
    h, smooth = load(s, world + H), load(s, world + BETA) > 0.0
    per_h, span = 1.0 / h, select(smooth, dt, length)
    kept = select(smooth, 1.0 - h / span, 0.0)
    for i in range(1, n):
        a = i * RECORD
        torque, rate = per_h * load(s, a + MU), load(s, a + REL)
        torque_before, rate_before = load(s, a + MEAN_TORQUE), load(s, a + MEAN_RATE)
        mean_torque, mean_rate = torque + kept * (torque_before - torque), rate + kept * (rate_before - rate)
        power, counted = mean_torque * mean_rate, splat(s, 0.0)
        if length < dt:
            power = power + kept * (1.0 - kept) * (torque_before - torque) * (rate_before - rate)
            counted = select(smooth, (dt - length) * max(torque_before * rate_before, 0.0), 0.0)
        store(s, a + WORK, load(s, a + WORK) + span * max(power, 0.0) - counted)
        store(s, a + MEAN_TORQUE, mean_torque)
        store(s, a + MEAN_RATE, mean_rate)


@kernel
def jammed_torque(s, n, i):  # type: ignore[no-untyped-def]
    """Return the torque [N m] with which the motor of joint i stalls where the joint is locked, else 0."""
    a = i * RECORD
    kd, volt = load(s, a + KD), load(s, (n + 1) * RECORD + VOLT)
    error = load(s, a + REF_NOW) - (load(s, a + THETA) - load(s, a + RECORD + THETA))
    error = error - clamp(error, load(s, a + DEAD))
    fastest = select(kd > 0.0, kd * volt * load(s, a + FASTEST), math.inf)
    torque = clamp(clamp(load(s, a + KP) * error, fastest), volt * load(s, a + T_MAX))
    return select((load(s, a + RIGID) > 0.0) & (load(s, a + STRENGTH) == 0.0), torque, 0.0)


@kernel
def note_torques(s, n):  # type: ignore[no-untyped-def]
    """Add the square of each motor's torque, over the time of one step, to SQUARE [N^2 m^2 s].

    What a stop adds is no load of the motor, which pulls with at most its limit; in a locked joint it stalls.
    """
    world = (n + 1) * RECORD
    h, weight, volt = load(s, world + H), load(s, world + WEIGHT), load(s, world + VOLT)
    for i in range(1, n):
        a = i * RECORD
        law = clamp((load(s, a + T0) - load(s, a + K) * load(s, a + REL)) / h, volt * load(s, a + LIMIT))
        torque = select(load(s, a + STRENGTH) > 0.0, law, jammed_torque(s, n, i))
        store(s, a + SQUARE, load(s, a + SQUARE) + weight * torque * torque)
