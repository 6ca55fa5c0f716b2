"""Imperfections of real servos, added to the law of ``actuators``: dead band, backlash, torque-speed line, supply.

* Backlash: the loop works on the motor's side of the gears, at ``phi + x``, |x| <= play (half the gap between the
  flanks), with no mass of its own. At a flank, x = +-play, torque passes in the direction in which that flank pushes;
  between them none does, and the motor follows its loop. With x_b the base of x (``implicit``) and G = h kp + kd,

      v = G (demand - rel + x_b / h) + feedforward,  w = G play / h,  torque = v - clamp(v, -w, w),
      x' = clamp(h (v / G), -play, play)

  monotone in rel, so that finding the flank cannot go in circles; play = 0 is the servo without backlash.
* Dead band: the loop does not react to errors up to the band; it brakes with kd only. A larger error counts from the
  edge of the band, so that torque does not jump.
* Torque-speed line of a DC motor: in the direction of motion at most ``limit (v - |rel| / no_load)``, against it
  ``limit v``, with v the supply's voltage as a share of the nominal one. A motor beyond its no-load speed brakes.
* Supply: ``v = 1 / (1 + r I / v_last)``, I the sum of the motors' |torque| / k_t in the last sub-step and r its
  resistance over the nominal voltage. The motor of a locked joint stalls. The load is taken as a
  conductance I / v_last, explicitly. v also scales the speed limit. It stays in (0, 1], but where the supply falls
  below about 0.8 and the speed limit acts, it oscillates from sub-step to sub-step, and motions depend on the step
  (docs/physics.md has numbers).

FLANK is the flank of the gears that pushes at present (1, -1, 0: neither; UNKNOWN: as a call begins), AT_LIMIT the
piece of the torque-speed line that holds, as in ``actuators``; a change of flank puts AT_LIMIT back to 0. Worlds that
go in circles descend (``joint_descent``).
"""

from __future__ import annotations

import math

from snake_gym.physics.actuators import NEARLY, ROUNDING, jammed_torque, put_limit
from snake_gym.physics.lanes import (
    ALPHA, AT_LIMIT, BASE, BETA, DEAD, DESCENT, DRIVE, FASTEST, FF, FLANK, GAIN, KD, KP, LASH, LASH_P, LAWS_CHANGE,
    LAW_K, LAW_T0, LIMIT, LOAD, NO_LOAD, OMEGA, OMEGA_P, PER_NM, PLAY, RECORD, REF_NOW, REL, RIGID, SIGMA, STRENGTH,
    T0, VOLT, B, H, K,
)  # fmt: skip
from snake_gym.physics.simd import any_lane, by_precision, kernel, load, select, splat, store

_EDGE = (1e-15, 1e-6)
"""Rounding of a pull, within which a flank stays, as a share of its parts, in float64 and float32."""
UNKNOWN = 3.0
"""FLANK before the first step of a call."""


@kernel
def find_flank(s, n, i, rate):  # type: ignore[no-untyped-def]
    """Return the flank of joint i that pushes at the rate ``rate``: 1, -1, or 0 for none."""
    a = i * RECORD
    play = load(s, a + PLAY)
    v = load(s, a + DRIVE) - load(s, a + GAIN) * rate
    w = load(s, a + GAIN) * play / load(s, (n + 1) * RECORD + H)
    touches = select(abs(v) > w, math.copysign(1.0, v), 0.0)
    return select(play > 0.0, touches, 1.0)


@kernel
def servo_law(s, n, i, flank):  # type: ignore[no-untyped-def]
    """Return K and T0 of joint i with the given flank pushing."""
    a = i * RECORD
    h, gain = load(s, (n + 1) * RECORD + H), load(s, a + GAIN)
    touches = abs(flank) * load(s, a + STRENGTH)
    k = h * (load(s, a + LOAD) + touches * gain)
    return k, touches * (h * load(s, a + DRIVE) - flank * gain * load(s, a + PLAY))


@kernel
def load_servos(s, n):  # type: ignore[no-untyped-def]
    """Set the joint laws of one implicit step. Dead bands are judged at its foreseen end.

    Flanks and limits are those with which the last step ended; the first flanks of a call are foreseen.
    """
    world = (n + 1) * RECORD
    h, sigma = load(s, world + H), load(s, world + SIGMA)
    alpha, beta, volt = load(s, world + ALPHA), load(s, world + BETA), load(s, world + VOLT)
    for i in range(1, n):
        a = i * RECORD
        b = a + RECORD
        rate = load(s, a + OMEGA) - load(s, b + OMEGA)
        rate = rate + sigma * (rate - (load(s, a + OMEGA_P) - load(s, b + OMEGA_P)))
        lash = alpha * load(s, a + LASH) - beta * load(s, a + LASH_P)
        error = load(s, a + REF_NOW) - (load(s, a + BASE) - load(s, b + BASE))
        foreseen = error - h * rate - load(s, a + LASH)
        dead = load(s, a + DEAD)
        kp = select(abs(foreseen) >= dead, load(s, a + KP), 0.0)
        kd = load(s, a + KD)
        fastest = select(kd > 0.0, kd * volt * load(s, a + FASTEST), math.inf)
        fast = kp * (abs(foreseen) - dead) > fastest
        gain = select(fast, kd, h * kp + kd)
        pull = select(fast, math.copysign(fastest, foreseen), kp * (error - lash - math.copysign(dead, foreseen)))
        drive = pull + gain * lash / h + load(s, a + FF)
        store(s, a + DRIVE, drive)
        store(s, a + GAIN, gain)
        flank = load(s, a + FLANK)
        flank = select(flank == UNKNOWN, find_flank(s, n, i, rate), flank)
        k, t0 = servo_law(s, n, i, flank)
        store(s, a + FLANK, flank)
        store(s, a + LAW_K, k)
        store(s, a + LAW_T0, t0)
        limit, no_load, at = load(s, a + LIMIT), load(s, a + NO_LOAD), load(s, a + AT_LIMIT)
        stall = h * select(limit < math.inf, volt * limit, 0.0)
        held = (abs(at) == 1.0) & (limit < math.inf) & (at * (t0 - k * rate) > stall)
        slope = select((at * rate > 0.0) & (no_load < math.inf), h * limit / no_load, 0.0)
        store(s, a + K, select(held, slope, k))
        store(s, a + T0, select(held, at * stall, t0))
        store(s, a + AT_LIMIT, select(held, at, 0.0))
        store(s, a + B, 0.0)


@kernel
def revise_servos(s, n):  # type: ignore[no-untyped-def]
    """Revise flanks that have met or parted and torques beyond the line; return the first joint changed, or n + 1."""
    first = n + 1
    plain = select(load(s, (n + 1) * RECORD + DESCENT) == 0.0, 1.0, 0.0)
    busy = splat(s, 0.0)
    for i in range(n - 1, 0, -1):
        # Both calls always run: the result of one world may not depend on the needs of another.
        moved = revise_flank(s, n, i, plain)
        changes = (moved > 0.0) | (limit_servo(s, n, i, plain) > 0.0)
        if any_lane(changes):
            first = i
            busy = select(changes, 1.0, busy)
    store(s, (n + 1) * RECORD + LAWS_CHANGE, busy)
    return first


@kernel
def revise_flank(s, n, i, free):  # type: ignore[no-untyped-def]
    """Set the flank of joint i anew; return 1 in the worlds where it changed, and begin there without a limit."""
    a = i * RECORD
    was, pull = load(s, a + FLANK), load(s, a + GAIN) * load(s, a + REL)
    flank = find_flank(s, n, i, load(s, a + REL))
    edge = abs(load(s, a + DRIVE) - pull) - load(s, a + GAIN) * load(s, a + PLAY) / load(s, (n + 1) * RECORD + H)
    beyond = abs(edge) > by_precision(s, *_EDGE) * (abs(load(s, a + DRIVE)) + abs(pull))
    changes = (abs(flank - was) > 0.0) & (free > 0.0) & beyond
    if any_lane(changes):
        k, t0 = servo_law(s, n, i, flank)
        store(s, a + FLANK, select(changes, flank, was))
        store(s, a + LAW_K, select(changes, k, load(s, a + LAW_K)))
        store(s, a + LAW_T0, select(changes, t0, load(s, a + LAW_T0)))
        store(s, a + K, select(changes, k, load(s, a + K)))
        store(s, a + T0, select(changes, t0, load(s, a + T0)))
        store(s, a + AT_LIMIT, select(changes, 0.0, load(s, a + AT_LIMIT)))
    return select(changes, 1.0, 0.0)


@kernel
def limit_servo(s, n, i, free):  # type: ignore[no-untyped-def]
    """Set or release the torque limit of joint i at its speed; return 1 in the worlds where the law changed.

    A torque beyond the line often belongs to a flank that does not push in the end, so a limit must be released again.
    Chords come first, as with the servo without imperfections (``actuators.revise_limits``).
    """
    a = i * RECORD
    world = (n + 1) * RECORD
    h, volt = load(s, world + H), load(s, world + VOLT)
    limit, no_load = load(s, a + LIMIT), load(s, a + NO_LOAD)
    rel, was = load(s, a + REL), load(s, a + AT_LIMIT)
    law_k, law_t0 = load(s, a + LAW_K), load(s, a + LAW_T0)
    torque = law_t0 - law_k * rel
    slope = select((limit < math.inf) & (no_load < math.inf) & (torque * rel > 0.0), h * limit / no_load, 0.0)
    stall = h * select(limit < math.inf, volt * limit, limit)
    bound = stall - slope * abs(rel)
    slack = by_precision(s, *ROUNDING) * select(limit < math.inf, stall, 0.0)
    over = (abs(torque) > bound + slack) & (load(s, a + RIGID) == 0.0)
    given = load(s, a + T0) - load(s, a + K) * rel
    near = (abs(was) == 0.5) & (abs(abs(given) - bound) < NEARLY * stall) & (given * torque > 0.0)
    # Where the line falls below zero the motor brakes, and no chord leads there.
    at = select(over, select(near | (law_k == 0.0) | (bound <= 0.0), 1.0, 0.5), 0.0)
    # A joint may be on the line already, also where that has fallen below zero.
    wrong = (abs(was) < select(given * torque < 0.0, 2.0, 1.0)) & (was * math.copysign(1.0, torque) < 1.0)
    other_slope = (abs(was) == 1.0) & (abs(load(s, a + K) - slope) > 0.0)
    changes = ((over & (wrong | other_slope)) | ((abs(was) > 0.0) & (at == 0.0))) & (free > 0.0)
    at = select(other_slope & over, 1.0, at)
    if any_lane(changes):
        put_limit(s, a, changes, at, torque, bound, (stall, slope))
    return select(changes, 1.0, 0.0)


@kernel
def move_servos(s, n, keeps_past):  # type: ignore[no-untyped-def]
    """Take over the motors' positions in their play, and set the supply's voltage for the next sub-step."""
    world = (n + 1) * RECORD
    h, volt = load(s, world + H), load(s, world + VOLT)
    drop = splat(s, 0.0)
    for i in range(1, n):
        a = i * RECORD
        rel, play, gain = load(s, a + REL), load(s, a + PLAY), load(s, a + GAIN)
        torque = load(s, a + T0) - (load(s, a + K) - h * load(s, a + LOAD)) * rel
        # A joint at its stop is stalled: its law is not in use, and its motor pulls with at most the limit.
        stall = select(load(s, a + LIMIT) < math.inf, volt * load(s, a + LIMIT), math.inf)
        pull = min(abs(torque) / h, stall) + abs(jammed_torque(s, n, i))
        drop = drop + pull * load(s, a + PER_NM)
        lash, flank = load(s, a + LASH), load(s, a + FLANK)
        follows = min(max(h * (load(s, a + DRIVE) / gain - rel), -play), play)
        ahead = select(abs(flank) > 0.0, flank * play, follows)
        if not keeps_past:
            store(s, a + LASH_P, lash)
        store(s, a + LASH, select((gain > 0.0) & (load(s, a + STRENGTH) > 0.0), ahead, lash))
    store(s, world + VOLT, 1.0 / (1.0 + drop / volt))
