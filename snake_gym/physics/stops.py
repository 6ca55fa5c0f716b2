"""Mechanical stops of the joints: hits are foreseen, and joints held, caught and let go within an implicit step.

A joint that would pass its stop moves to it (RIGID) and stays as long as the stop has to push. A stop never pulls:
where only a pull of the stop, beyond the torque of the actuator, could keep the joint out there, it is let go.

AT_STOP is the present state of a joint's stop, with the sign of its side:

====  ============================  ===============================================================================
0     nothing                       goes on to 2 where the joint would pass its stop
1     holds since an earlier step   goes on to 0 where the stop would have to pull
2     caught the joint in this      goes on to 0 where the stop would have to pull; its rate has jumped, so the next
      step                          step is an Euler step
====  ============================  ===============================================================================

Joints change all at once until one that has been let go ``_MOST_RELEASES`` times goes in circles: from there on the
world descends (``joint_descent``).
"""

from __future__ import annotations

import math

from snake_gym.physics.actuators import ROUNDING
from snake_gym.physics.lanes import (
    AGE, AT_STOP, BASE, DESCENT, LAWS_CHANGE, LAW_K, LAW_T0, LIMIT, MU, NO_LOAD, N_RELEASED, OMEGA, OMEGA_P, RECORD,
    REL, RIGID, STOP, STOPS_CHANGE, T0, THETA, THETA_P, TRIES, VOLT, B, H, K,
)  # fmt: skip
from snake_gym.physics.simd import any_lane, by_precision, kernel, load, select, splat, store

PATIENCE = 4.0
"""Corrections of a world's contacts after which stops and contacts wait for the joints' laws to settle before each."""
_MOST_RELEASES = 2.0
"""Most times that a stop lets its joint go in a step; beyond that is a circle, and the world descends."""


@kernel
def foresee_hits(s, n, dt):  # type: ignore[no-untyped-def]
    """Set AGE = 0, no smooth past, in worlds in which a joint will meet its stop in the step to come."""
    world = (n + 1) * RECORD
    hits = splat(s, 0.0)
    for i in range(1, n):
        a = i * RECORD
        b = a + RECORD
        rate = load(s, a + OMEGA) - load(s, b + OMEGA)
        rate = rate + (rate - (load(s, a + OMEGA_P) - load(s, b + OMEGA_P)))
        ahead = load(s, a + THETA) - load(s, b + THETA) + dt * rate
        hit = (load(s, a + AT_STOP) == 0.0) & (load(s, a + RIGID) == 0.0) & (abs(ahead) > load(s, a + STOP))
        hits = select(hit, 1.0, hits)
    age = load(s, world + AGE)
    store(s, world + AGE, select((hits > 0.0) & (age > 0.0), 0.0, age))


@kernel
def passes_stop(s, n, beta):  # type: ignore[no-untyped-def]
    """Return 1 for worlds in which a joint's base would lie beyond its stop, which would throw the joint back."""
    beyond = splat(s, 0.0)
    for i in range(1, n):
        a = i * RECORD
        b = a + RECORD
        angle, stop = load(s, a + THETA) - load(s, b + THETA), load(s, a + STOP) + by_precision(s, *ROUNDING)
        base = angle + beta * (angle - (load(s, a + THETA_P) - load(s, b + THETA_P)))
        beyond = select((abs(base) > stop) & (abs(angle) <= stop), 1.0, beyond)
    return beyond


@kernel
def hold_stops(s, n):  # type: ignore[no-untyped-def]
    """Hold joints at the stop at which the last step left them."""
    h = load(s, (n + 1) * RECORD + H)
    for i in range(1, n):
        a = i * RECORD
        at = load(s, a + AT_STOP)
        store(s, a + N_RELEASED, 0.0)
        if any_lane(abs(at) > 0.0):
            side = select(at > 0.0, 1.0, select(at < 0.0, -1.0, 0.0))
            held = (side > 0.0) | (side < 0.0)
            angle = load(s, a + BASE) - load(s, a + RECORD + BASE)
            store(s, a + AT_STOP, side)
            store(s, a + RIGID, select(held, 1.0, load(s, a + RIGID)))
            store(s, a + B, select(held, (side * load(s, a + STOP) - angle) / h, load(s, a + B)))


@kernel
def available_torque(s, n, i, limited):  # type: ignore[no-untyped-def]
    """Return the impulse of the actuator of joint i at its present rate, also for a joint at its stop."""
    a = i * RECORD
    rel = load(s, a + REL)
    if not limited:
        return load(s, a + T0) - load(s, a + K) * rel
    torque = load(s, a + LAW_T0) - load(s, a + LAW_K) * rel
    along = select(torque * rel > 0.0, abs(rel), 0.0)
    volt = load(s, (n + 1) * RECORD + VOLT)
    most = load(s, (n + 1) * RECORD + H) * load(s, a + LIMIT) * (volt - along / load(s, a + NO_LOAD))
    return select(abs(torque) > most, math.copysign(1.0, torque) * most, torque)


@kernel
def revise_stops(s, n, limited):  # type: ignore[no-untyped-def]
    """Catch joints that would pass a stop, let go those it would pull; return the first joint changed, or n + 1.

    All joints change at once until one goes in circles. ``limited``: the laws have torque limits.
    """
    world = (n + 1) * RECORD
    zero, one = splat(s, 0.0), splat(s, 1.0)
    h, busy, descent = load(s, world + H), load(s, world + LAWS_CHANGE), load(s, world + DESCENT)
    waits = (load(s, world + TRIES) >= PATIENCE) & (busy > 0.0)
    free = select(waits | (descent > 0.0), zero, one)
    first = n + 1
    changed, circles = zero, zero
    for i in range(n - 1, 0, -1):
        a = i * RECORD
        at, stop, rigid = load(s, a + AT_STOP), load(s, a + STOP), load(s, a + RIGID)
        angle = load(s, a + BASE) - load(s, a + RECORD + BASE)
        ahead = angle + h * load(s, a + REL)
        surplus = load(s, a + MU) - available_torque(s, n, i, limited)
        caught = (at == 0.0) & (rigid == 0.0) & (abs(ahead) > stop) & (free > 0.0)
        let_go = (at * surplus > 0.0) & (free > 0.0)
        times = load(s, a + N_RELEASED)
        if any_lane(caught | let_go):
            first = i
            changed = select(caught | let_go, one, changed)
            circles = select(let_go & (times >= _MOST_RELEASES), one, circles)
            side = math.copysign(1.0, ahead)
            rigid = select(caught, 1.0, select(let_go, 0.0, rigid))
            store(s, a + RIGID, rigid)
            store(s, a + B, select(caught, (side * stop - angle) / h, load(s, a + B)))
            store(s, a + AT_STOP, select(caught, 2.0 * side, select(let_go, 0.0, at)))
            store(s, a + N_RELEASED, select(let_go, times + 1.0, times))
    store(s, world + STOPS_CHANGE, changed)
    store(s, world + DESCENT, max(descent, circles))
    return first


@kernel
def release_stops(s, n):  # type: ignore[no-untyped-def]
    """Clear RIGID of joints at a stop, so that the next step begins with the actuator's law."""
    for i in range(1, n):
        a = i * RECORD
        at = load(s, a + AT_STOP)
        if any_lane(abs(at) > 0.0):
            store(s, a + RIGID, select(abs(at) > 0.0, 0.0, load(s, a + RIGID)))
