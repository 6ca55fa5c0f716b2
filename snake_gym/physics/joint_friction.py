"""Dry friction of the joints within an implicit step: Coulomb's law, with an actuator and without one.

A sliding joint passes a constant torque, the largest one D_J, between its links, against its motion. A sticking joint
is held (RIGID, rate 0) as long as this takes no more than D_J on top of the actuator's torque. So friction takes energy
at any step, and a joint below its limit does not creep. Joints that are held otherwise (locked, at a stop, driven by
their acceleration) have none.

SLIDING_J is the present state of a joint, which a step begins with according to the joint's rate; it is found by
correction, as torque limits are:

====  =========================  =======================================================================================
0     held otherwise             goes on to 2 where a stop lets the joint go
1     slides, the rate is        goes on to 2 where the rate has turned round; to the other sign where the joint lands
-1    positive or negative       on its stop with that rate
2     sticks                     goes on to 1 or -1 where holding takes more than D_J
====  =========================  =======================================================================================

Worlds that go in circles descend (``joint_descent``).
"""

from __future__ import annotations

import math

from snake_gym.physics.actuators import ROUNDING, clamp
from snake_gym.physics.lanes import (
    AT_STOP, BASE, DESCENT, D_J, MU, OMEGA, RECORD, REL, RIGID, RW, SLIDING_J, STOP, STOPS_CHANGE, B, H,
)  # fmt: skip
from snake_gym.physics.simd import any_lane, by_precision, kernel, load, select, splat, store
from snake_gym.physics.stops import available_torque

_LANDING = 1e-9
"""Rate [rad/s] above which a joint at its stop moves there; below it rests."""


@kernel
def put_joint_friction(s, n, i, was, state):  # type: ignore[no-untyped-def]
    """Bring joint i from the state ``was`` of its friction into another."""
    a = i * RECORD
    b = a + RECORD
    h, zero, one = load(s, (n + 1) * RECORD + H), splat(s, 0.0), splat(s, 1.0)
    limit = h * load(s, a + D_J)
    before = select(abs(was) == 1.0, math.copysign(limit, was), zero)
    after = select(abs(state) == 1.0, math.copysign(limit, state), zero)
    changes = abs(after - before) > 0.0
    store(s, a + RW, select(changes, load(s, a + RW) - (after - before), load(s, a + RW)))
    store(s, b + RW, select(changes, load(s, b + RW) + (after - before), load(s, b + RW)))
    angle = load(s, a + BASE) - load(s, b + BASE)
    sticks, stuck = state == 2.0, was == 2.0
    # A base beyond a stop is the only one from which a sticking joint moves.
    back = (clamp(angle, load(s, a + STOP)) - angle) / h
    store(s, a + RIGID, select(sticks, one, select(stuck, zero, load(s, a + RIGID))))
    store(s, a + B, select(sticks, back, load(s, a + B)))
    store(s, a + SLIDING_J, state)


@kernel
def begin_joint_friction(s, n):  # type: ignore[no-untyped-def]
    """Begin a step with joints that slide as they move and stick where they rest."""
    zero = splat(s, 0.0)
    for i in range(1, n):
        a = i * RECORD
        rate = load(s, a + OMEGA) - load(s, a + RECORD + OMEGA)
        acts = (load(s, a + D_J) > 0.0) & (load(s, a + RIGID) == 0.0)
        moves = select(abs(rate) > 0.0, math.copysign(1.0, rate), 2.0)
        put_joint_friction(s, n, i, zero, select(acts, moves, zero))


@kernel
def revise_joint_friction(s, n, limited, stops):  # type: ignore[no-untyped-def]
    """Let joints stick whose rate has turned round and slide that broke away; return the first changed, or n + 1.

    ``limited``: the laws have torque limits; ``stops``: the joints have stops.
    """
    world = (n + 1) * RECORD
    zero, one, stick = splat(s, 0.0), splat(s, 1.0), splat(s, 2.0)
    h, plain = load(s, world + H), load(s, world + DESCENT) == 0.0
    changed = zero
    first = n + 1
    for i in range(n - 1, 0, -1):
        a = i * RECORD
        was, limit, rel = load(s, a + SLIDING_J), h * load(s, a + D_J), load(s, a + REL)
        holding = load(s, a + MU) - available_torque(s, n, i, limited)
        breaks = (was == 2.0) & (abs(holding) > limit * (1.0 + by_precision(s, *ROUNDING)))
        turned = (abs(was) == 1.0) & (was * rel < 0.0)
        lands = turned & (abs(load(s, a + AT_STOP)) > 0.0) & (abs(rel) > _LANDING)
        turns = turned & (load(s, a + AT_STOP) == 0.0)
        let_go = (was == 0.0) & (limit > 0.0) & (load(s, a + RIGID) == 0.0)
        changes = (breaks | turns | lands | let_go) & plain
        if any_lane(changes):
            first = i
            changed = select(changes, one, changed)
            state = select(breaks, math.copysign(one, -holding), select(lands, -was, stick))
            put_joint_friction(s, n, i, was, select(changes, state, was))
    store(s, world + STOPS_CHANGE, max(changed, load(s, world + STOPS_CHANGE) if stops else zero))
    return first


@kernel
def settle_joint_friction(s, n, limited):  # type: ignore[no-untyped-def]
    """Leave joints to their actuators again; return 1 in the worlds in which one has come to rest or turned round.

    The torque MU of a sticking joint becomes that of its actuator alone, as it is in a sliding one.
    """
    ended = splat(s, 0.0)
    for i in range(1, n):
        a = i * RECORD
        state = load(s, a + SLIDING_J)
        rate = load(s, a + OMEGA) - load(s, a + RECORD + OMEGA)
        sticks = state == 2.0
        if any_lane(sticks):
            store(s, a + MU, select(sticks, available_torque(s, n, i, limited), load(s, a + MU)))
            store(s, a + RIGID, select(sticks, 0.0, load(s, a + RIGID)))
        stops = (sticks & (abs(rate) > 0.0)) | ((abs(state) == 1.0) & (state * rate < 0.0))
        ended = select(stops, 1.0, ended)
    return ended
