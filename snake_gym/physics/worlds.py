"""Copies of worlds into the lanes of a block and back, and the sub-steps in which a block's faults begin or end."""

from __future__ import annotations

import math

import numpy as np

from snake_gym.physics.faults import HEALTHY, hash_number
from snake_gym.physics.imperfections import UNKNOWN
from snake_gym.physics.lanes import (
    ADD_LEFT, ADD_RIGHT, AGE, AHEAD, ARM, AT_LIMIT, AT_STOP, BACKWARD, CVX, CVY, CX, CY, C_FREE, C_N, C_R, C_T,
    DEAD, DEPTH, D_J, D_N, D_R, D_T, FACING, FAULT, FAULT_SLOTS, FF, FLANK, FORCE_X, FORCE_Y, FROM_TURNS, FROM_X,
    FROM_Y, F_KIND, F_LATE, F_OFF, F_OFFSET, F_ON, F_STRENGTH, GX, GY, H, HALF, HEAD_X, HEAD_Y, INERTIA, KD, KP,
    LASH, MASS, MEAN_RATE, MEAN_TORQUE, MU, NO_LOAD, OMEGA, OVERLAP, PER_NM, PLAY, P_LEFT, P_RIGHT, RADIUS, RECORD,
    REF, REF_NOW, SHIFT, SLIP, SLIP_RATE, SQUARE, STOOD_STILL, STOP, S_MAX, THETA, TOTAL, TOUCHES, T_MAX, VOLT,
    WORK,
)  # fmt: skip
from snake_gym.physics.simd import any_lane, by_precision, kernel, load, n_lanes, store

_hash_number = kernel(hash_number)
_LINK_FIELDS = (MASS, INERTIA, HALF, AHEAD, C_T, C_N, C_R, D_T, D_N, D_R, BACKWARD, RADIUS)
_JOINT_FIELDS = (KP, KD, T_MAX, S_MAX, C_FREE, STOP, DEAD, PLAY, NO_LOAD, D_J, PER_NM)
"""Fields of ``ChainParams`` before and after ``body_acc``, in its order."""
_LAST_LINK, _FIRST_JOINT = len(_LINK_FIELDS), len(_LINK_FIELDS) + 1
"""Ends of these in it."""
_NEVER = 1e18
"""Number of a sub-step that is never reached."""
_TURN = 2.0 * math.pi
_SLACK = 1e-6
"""Rounding, in sub-steps, by which a sub-step may begin before a fault's time and still counts as at it."""


@kernel
def gather_fields(s, n_rows, ids, count, fields, values):  # type: ignore[no-untyped-def]
    """Copy ``values``, arrays (W, n_rows), into ``fields`` of the records of links or joints."""
    for j, field in enumerate(fields):
        for i in range(n_rows):
            a = (i + 1) * RECORD + field
            for k in range(n_lanes(s)):
                # A number without sign needs no test for an index from the end.
                s[a, k] = values[j][np.uint64(ids[min(k, count - 1)]), i]


@kernel
def gather_params(s, n, ids, count, params):  # type: ignore[no-untyped-def]
    """Copy the parameters of worlds ``ids[:count]`` into the lanes of a block; spare lanes repeat the last world."""
    gather_fields(s, n, ids, count, _LINK_FIELDS, params[:_LAST_LINK])
    gather_fields(s, n - 1, ids, count, _JOINT_FIELDS, params[_FIRST_JOINT:])
    for i in range(1, n + 1):
        a = i * RECORD
        store(s, a + FACING, 1.0)
        store(s, a + ARM, load(s, a + HALF) * (1.0 - load(s, a + AHEAD)))
    for k in range(n_lanes(s)):
        w = ids[min(k, count - 1)]
        total = 0.0
        for i in range(n):
            total += params.mass[w, i]
        world = (n + 1) * RECORD
        s[world + TOTAL, k] = total
        s[world + GX, k], s[world + GY, k] = params.body_acc[w, 0], params.body_acc[w, 1]


@kernel
def gather_faults(s, n, ids, count, dt, state, faults, slot):  # type: ignore[no-untyped-def]
    """Copy the faults in one slot of worlds ``ids[:count]`` into the lanes of a block; return True if there are any."""
    some = False
    for i in range(n - 1):
        f = (i + 1) * RECORD + slot * FAULT
        for k in range(n_lanes(s)):
            w = ids[min(k, count - 1)]
            s[f + F_KIND, k] = faults.kind[w, i]
            if faults.kind[w, i] != HEALTHY:
                some = True
                s[f + F_STRENGTH, k] = faults.strength[w, i]
                s[f + F_OFFSET, k] = faults.offset_rad[w, i]
                s[f + F_ON, k], s[f + F_OFF, k] = fault_steps(w, i, 0, state.time_s[w], dt, faults)
                late = s[f + F_ON, k] * dt - (faults.onset_s[w, i] - state.time_s[w])
                s[f + F_LATE, k] = late if 0.0 < late < dt else 0.0
    return some


@kernel
def gather_worlds(s, n, ids, count, dt, state, faults, reference, feedforward):  # type: ignore[no-untyped-def]
    """Copy worlds ``ids[:count]``, faults and commands into the lanes of a block; return the number of fault slots."""
    n_slots = 0
    for slot in range(FAULT_SLOTS):
        if gather_faults(s, n, ids, count, dt, state, faults[slot], slot):
            n_slots = slot + 1
    gather_fields(s, n, ids, count, (OMEGA,), (state.link_rate,))
    gather_fields(s, n - 1, ids, count, (REF, FF, LASH), (reference, feedforward, state.lash_rad))
    for i in range(1, n + 1):
        for field in (WORK, MEAN_TORQUE, MEAN_RATE, FORCE_X, FORCE_Y, AT_STOP, AT_LIMIT):
            store(s, i * RECORD + field, 0.0)
        store(s, i * RECORD + FLANK, UNKNOWN)
    world = (n + 1) * RECORD
    for field in (TOUCHES, STOOD_STILL, DEPTH):
        store(s, world + field, 0.0)
    store(s, world + AGE, 1.0)
    for k in range(n_lanes(s)):
        w = np.uint64(ids[min(k, count - 1)])
        s[world + FROM_TURNS, k] = by_precision(s, 0.0, np.rint(state.link_angle[w, 0] / _TURN))
        s[world + FROM_X, k] = by_precision(s, 0.0, state.centre_xy[w, 0])
        s[world + FROM_Y, k] = by_precision(s, 0.0, state.centre_xy[w, 1])
        for i in range(n):
            s[(i + 1) * RECORD + THETA, k] = state.link_angle[w, i] - _TURN * s[world + FROM_TURNS, k]
        s[world + CX, k] = state.centre_xy[w, 0] - np.float64(s[world + FROM_X, k])
        s[world + CY, k] = state.centre_xy[w, 1] - np.float64(s[world + FROM_Y, k])
        s[world + CVX, k], s[world + CVY, k] = state.centre_vel[w, 0], state.centre_vel[w, 1]
        s[world + VOLT, k] = state.supply[w]
        for i in range(state.muscle_pressure.shape[1]):
            a = (i + 1) * RECORD
            s[a + P_LEFT, k], s[a + P_RIGHT, k] = state.muscle_pressure[w, i, 0], state.muscle_pressure[w, i, 1]
            s[a + ADD_LEFT, k], s[a + ADD_RIGHT, k] = state.pressure_command[w, i, 0], state.pressure_command[w, i, 1]
    return n_slots


@kernel
def gather_servos(s, n, ids, count, state):  # type: ignore[no-untyped-def]
    """Copy the slips of worlds ``ids[:count]`` into the lanes of a block, and begin to note torques."""
    for k in range(n_lanes(s)):
        w = ids[min(k, count - 1)]
        for i in range(n - 1):
            a = (i + 1) * RECORD
            s[a + SLIP, k] = state.slip_rad[w, i]
            s[a + SLIP_RATE, k] = 0.0  # the feed-forward has no part of it yet
            s[a + SQUARE, k] = 0.0


@kernel
def scatter_servos(s, n, ids, count, state, torque_square):  # type: ignore[no-untyped-def]
    """Copy slips and torques from the lanes of a block back into worlds ``ids[:count]``."""
    for k in range(count):
        w = ids[k]
        for i in range(n - 1):
            a = (i + 1) * RECORD
            state.slip_rad[w, i] = s[a + SLIP, k]
            state.slip_rate[w, i] = s[a + SLIP_RATE, k]
            torque_square[w, i] += s[a + SQUARE, k]


@kernel
def take_commands(s, n, ids, count, step, late):  # type: ignore[no-untyped-def]
    """Let the commands act that arrive for sub-step ``step``; return the sub-step of the next ones.

    The acceleration jumps there, so that the sub-step is a backward Euler step (``implicit``).
    """
    following = _NEVER
    for k in range(n_lanes(s)):
        w = ids[min(k, count - 1)]
        for d in range(late.step.shape[1]):
            if late.step[w, d] > step:
                following = min(following, float(late.step[w, d]))
            if late.step[w, d] != step or step == 0:
                continue
            for i in range(n - 1):
                a = (i + 1) * RECORD
                s[a + REF, k] = late.aim[w, d, i]
                s[a + REF_NOW, k] = s[a + REF, k] + s[a + SHIFT, k]
            age = (n + 1) * RECORD + AGE
            s[age, k] = min(s[age, k], 0.0)
    return following


@kernel
def fault_steps(w, i, step, now_s, dt, faults):  # type: ignore[no-untyped-def]
    """Return the first sub-step, counted from ``now_s``, with the fault of world w, joint i, and the first after it.

    An intermittent fault gives those of the burst that acts in ``step`` or comes next; a burst and the pause after it
    take at least one sub-step each.
    """
    end = _first_step(faults.end_s[w, i], now_s, dt)
    period, duty, key = faults.period_s[w, i] / dt, faults.duty[w, i], faults.key[w, i]
    pause = faults.jitter[w, i] * (1.0 - duty) * period
    if not period < _NEVER or duty >= 1.0:
        return _first_step(faults.onset_s[w, i], now_s, dt), end
    onset = (faults.onset_s[w, i] - now_s) / dt
    if not onset < _NEVER:
        return _NEVER, _NEVER
    burst = max(math.floor((step - onset + _SLACK) / period), 0.0)
    while True:
        begin = onset + burst * period
        if pause > 0.0:
            begin += pause * _hash_number(key, np.int64(burst))
        on = math.ceil(begin - _SLACK)
        off = min(max(math.ceil(begin + duty * period - _SLACK), on + 1.0), end)
        if on >= end:
            return _NEVER, _NEVER
        if off > step:
            return max(on, -1.0), off
        burst += 1.0


@kernel
def renew_bursts(s, n, ids, count, step, dt, state, faults, slot):  # type: ignore[no-untyped-def]
    """Set the next burst of intermittent faults of one slot whose burst ends in sub-step ``step``."""
    for k in range(n_lanes(s)):
        w = ids[min(k, count - 1)]
        for i in range(n - 1):
            f = (i + 1) * RECORD + slot * FAULT
            if s[f + F_KIND, k] > 0.0 and s[f + F_OFF, k] == step and faults.period_s[w, i] < _NEVER:
                on, off = fault_steps(w, i, step, state.time_s[w], dt, faults)
                s[f + F_ON, k], s[f + F_OFF, k] = max(on, step + 1.0), max(off, step + 2.0)


@kernel
def _first_step(at_s: float, now_s: float, dt: float) -> float:
    steps = math.ceil((at_s - now_s) / dt - _SLACK) if at_s - now_s < _NEVER * dt else _NEVER
    return max(float(steps), -1.0)


@kernel
def scatter_worlds(s, n, ids, count, elapsed_s, state, obstacles):  # type: ignore[no-untyped-def]
    """Copy the lanes of a block into worlds ``ids[:count]``, contact forces if ``obstacles``; MU becomes a torque."""
    world = (n + 1) * RECORD
    for i in range(1, n):
        store(s, i * RECORD + MU, load(s, i * RECORD + MU) / load(s, world + H))
    for k in range(count):
        w = ids[k]
        work = 0.0
        from_x, from_y = np.float64(s[world + FROM_X, k]), np.float64(s[world + FROM_Y, k])
        for i in range(n):
            a = (i + 1) * RECORD
            state.link_angle[w, i] = s[a + THETA, k] + _TURN * s[world + FROM_TURNS, k]
            state.link_rate[w, i] = s[a + OMEGA, k]
            if obstacles:
                state.contact_force[w, i, 0] = s[a + FORCE_X, k] / elapsed_s
                state.contact_force[w, i, 1] = s[a + FORCE_Y, k] / elapsed_s
            if i < n - 1:
                work += s[a + WORK, k]
                state.joint_torque[w, i] = s[a + MU, k]
                state.lash_rad[w, i] = s[a + LASH, k]
        state.centre_xy[w, 0], state.centre_xy[w, 1] = s[world + CX, k] + from_x, s[world + CY, k] + from_y
        state.head_xy[w, 0], state.head_xy[w, 1] = s[world + HEAD_X, k] + from_x, s[world + HEAD_Y, k] + from_y
        state.centre_vel[w, 0], state.centre_vel[w, 1] = s[world + CVX, k], s[world + CVY, k]
        state.n_contacts[w] = s[world + TOUCHES, k] / elapsed_s
        state.penetration_m[w] = s[world + DEPTH, k]
        state.work_j[w] += work
        state.stood_still[w] += s[world + STOOD_STILL, k]
        state.supply[w] = s[world + VOLT, k]
        state.overlap_now_m[w] = s[world + OVERLAP, k]
        state.self_overlap_m[w] = max(state.self_overlap_m[w], state.overlap_now_m[w])
        for i in range(state.muscle_pressure.shape[1]):
            state.muscle_pressure[w, i, 0] = s[(i + 1) * RECORD + P_LEFT, k]
            state.muscle_pressure[w, i, 1] = s[(i + 1) * RECORD + P_RIGHT, k]
        state.time_s[w] += elapsed_s


@kernel
def next_event(s, n, step, n_slots):  # type: ignore[no-untyped-def]
    """Return the next sub-step in which a fault in the ``n_slots`` slots begins or ends, or a horn slips."""
    event = _NEVER
    for i in range(1, n):
        if any_lane(abs(load(s, i * RECORD + SLIP_RATE)) > 0.0):
            event = step + 1.0
        for slot in range(n_slots):
            f = i * RECORD + slot * FAULT
            for k in range(n_lanes(s)):
                on, off = s[f + F_ON, k], s[f + F_OFF, k]
                if s[f + F_KIND, k] > 0.0:
                    event = min(event, on if on > step else _NEVER)
                    event = min(event, off if off > step else _NEVER)
    return event
