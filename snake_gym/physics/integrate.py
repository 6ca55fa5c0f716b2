"""Advance W chains in time: linearly-implicit step, fourth-order Runge-Kutta, and the bare right-hand side.

One implicit step of length dt, from angles theta and rates omega (sibilska2022, eq. 13-17, in impulse form):

    (M_i + dt C_i(theta)) v_i' = M_i (v_i - dt a_i) + joint impulses,   joints closed at theta,
    theta' = theta + dt omega',   centre' = centre + dt centre_vel'

with friction C_i and the joint law at the step's end and the centripetal part a_i at its start (see ``chain``). First
order in dt, and stable for any friction, servo gain or lock; dt = 0 is the impulse that a joint feels when it locks.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from snake_gym.physics.actuators import (
    ACCELERATION, count_work, engage_joints, load_joints_explicit, load_joints_implicit, saturate_joints,
)  # fmt: skip
from snake_gym.physics.chain import eliminate_links, locate_head, place_links, substitute_back
from snake_gym.physics.faults import LOCKED
from snake_gym.physics.friction import implicit_inertia, viscous_force
from snake_gym.physics.lanes import (
    A_N, A_R, A_T, C_N, C_R, C_T, COS, CVX, CVX0, CVY, CVY0, CX, CX0, CY, CY0, DCVX, DCVY, DCX, DCY, DOM, DTH, F_KIND,
    F_ON, INERTIA, MASS, MU, OM0, OMEGA, RECORD, RW, RX, RY, SIN, SOL_W, SUM_X, SUM_Y, TH0, THETA, TOTAL, VX, VY,
    WORK,
)  # fmt: skip
from snake_gym.physics.simd import LANES, any_lane, larger, load, select, splat, store, take_ticket
from snake_gym.physics.worlds import gather_params, gather_worlds, next_event, scatter_worlds

IMPLICIT, RK4 = 0, 1
INTEGRATOR_CODES = {"implicit": IMPLICIT, "rk4": RK4}


@njit(error_model="numpy")
def load_links_implicit(s, n, dt):  # type: ignore[no-untyped-def]
    """Link matrices and momenta of one implicit step; friction acts on the velocity at the step's end."""
    for i in range(1, n + 1):
        a = i * RECORD
        mass = load(s, a + MASS)
        store(s, a + A_T, implicit_inertia(mass, load(s, a + C_T), dt))
        store(s, a + A_N, implicit_inertia(mass, load(s, a + C_N), dt))
        store(s, a + A_R, implicit_inertia(load(s, a + INERTIA), load(s, a + C_R), dt))
        store(s, a + RX, mass * load(s, a + VX))
        store(s, a + RY, mass * load(s, a + VY))
        store(s, a + RW, load(s, a + INERTIA) * load(s, a + OMEGA))


@njit(error_model="numpy")
def solve_implicit(s, n, kind, dt):  # type: ignore[no-untyped-def]
    """Rates and centre velocity at the end of one implicit step, into SOL_W and SUM of link 1."""
    place_links(s, n, dt)
    load_links_implicit(s, n, dt)
    load_joints_implicit(s, n, kind, dt)
    eliminate_links(s, 1, n)
    substitute_back(s, n)
    if kind != ACCELERATION:
        first = saturate_joints(s, n, dt)
        if first > 0:
            eliminate_links(s, first, n)
            substitute_back(s, n)


@njit(error_model="numpy")
def step_implicit(s, n, kind, dt):  # type: ignore[no-untyped-def]
    """One linearly-implicit step of a block of worlds, in place."""
    solve_implicit(s, n, kind, dt)
    count_work(s, n)
    for i in range(1, n + 1):
        a = i * RECORD
        rate = load(s, a + SOL_W)
        store(s, a + OMEGA, rate)
        store(s, a + THETA, load(s, a + THETA) + dt * rate)
    world = (n + 1) * RECORD
    store(s, world + CVX, load(s, RECORD + SUM_X) / load(s, world + TOTAL))
    store(s, world + CVY, load(s, RECORD + SUM_Y) / load(s, world + TOTAL))
    store(s, world + CX, load(s, world + CX) + dt * load(s, world + CVX))
    store(s, world + CY, load(s, world + CY) + dt * load(s, world + CVY))


@njit(error_model="numpy")
def stop_locked_joints(s, n, kind, step):  # type: ignore[no-untyped-def]
    """The impulse by which joints that lock in sub-step ``step`` lose their rate (an implicit step of length 0).

    Worlds without such a joint are left alone, so that they do not notice what happens to others of their block.
    """
    locking = splat(0.0)
    for i in range(1, n):
        a = i * RECORD
        locks = (load(s, a + F_KIND) == LOCKED) & (load(s, a + F_ON) == step)
        locking = select(locks, splat(1.0), locking)
    if not any_lane(locking > 0.0):
        return
    solve_implicit(s, n, kind, 0.0)
    for i in range(1, n + 1):
        a = i * RECORD
        store(s, a + OMEGA, select(locking > 0.0, load(s, a + SOL_W), load(s, a + OMEGA)))
    world = (n + 1) * RECORD
    total = load(s, world + TOTAL)
    store(s, world + CVX, select(locking > 0.0, load(s, RECORD + SUM_X) / total, load(s, world + CVX)))
    store(s, world + CVY, select(locking > 0.0, load(s, RECORD + SUM_Y) / total, load(s, world + CVY)))


@njit(error_model="numpy")
def solve_explicit(s, n, kind):  # type: ignore[no-untyped-def]
    """Accelerations now: of the link angles into SOL_W, times total mass of the centre into SUM of link 1."""
    # With bodies M, forces F and centripetal part a: M (z) = F - M a; VX, VY of two place_links calls give both.
    place_links(s, n, 1.0)
    for i in range(1, n + 1):
        a = i * RECORD
        store(s, a + A_T, load(s, a + VX))
        store(s, a + A_N, load(s, a + VY))
    place_links(s, n, 0.0)
    for i in range(1, n + 1):
        a = i * RECORD
        mass = load(s, a + MASS)
        vx = load(s, a + VX)
        vy = load(s, a + VY)
        fx, fy = viscous_force(vx, vy, load(s, a + SIN), load(s, a + COS), load(s, a + C_T), load(s, a + C_N))
        store(s, a + RX, fx + mass * (load(s, a + A_T) - vx))
        store(s, a + RY, fy + mass * (load(s, a + A_N) - vy))
        store(s, a + RW, -load(s, a + C_R) * load(s, a + OMEGA))
        store(s, a + A_T, mass)
        store(s, a + A_N, mass)
        store(s, a + A_R, load(s, a + INERTIA))
    load_joints_explicit(s, n, kind)
    eliminate_links(s, 1, n)
    substitute_back(s, n)


@njit(error_model="numpy")
def advance_stage(s, value, start, total, slope, stage, dt):  # type: ignore[no-untyped-def]
    """Runge-Kutta bookkeeping of one variable: next stage's argument, and after stage 3 the new value, in ``value``."""
    if stage == 0:
        store(s, start, load(s, value))
        store(s, total, load(s, value))
    store(s, total, load(s, total) + (dt / 6.0 if stage == 0 or stage == 3 else dt / 3.0) * slope)
    if stage == 3:
        store(s, value, load(s, total))
    else:
        store(s, value, load(s, start) + (dt if stage == 2 else 0.5 * dt) * slope)


@njit(error_model="numpy")
def step_rk4(s, n, kind, dt):  # type: ignore[no-untyped-def]
    """One classical Runge-Kutta step of a block of worlds, in place."""
    world = (n + 1) * RECORD
    for stage in range(4):
        solve_explicit(s, n, kind)
        for i in range(1, n):
            a = i * RECORD
            power = load(s, a + MU) * (load(s, a + OMEGA) - load(s, a + RECORD + OMEGA))
            share = dt / 6.0 if stage == 0 or stage == 3 else dt / 3.0
            store(s, a + WORK, load(s, a + WORK) + share * larger(power, splat(0.0)))
        for i in range(1, n + 1):
            a = i * RECORD
            rate = load(s, a + OMEGA)
            advance_stage(s, a + OMEGA, a + OM0, a + DOM, load(s, a + SOL_W), stage, dt)
            advance_stage(s, a + THETA, a + TH0, a + DTH, rate, stage, dt)
        vx = load(s, world + CVX)
        vy = load(s, world + CVY)
        ax = load(s, RECORD + SUM_X) / load(s, world + TOTAL)
        ay = load(s, RECORD + SUM_Y) / load(s, world + TOTAL)
        advance_stage(s, world + CVX, world + CVX0, world + DCVX, ax, stage, dt)
        advance_stage(s, world + CVY, world + CVY0, world + DCVY, ay, stage, dt)
        advance_stage(s, world + CX, world + CX0, world + DCX, vx, stage, dt)
        advance_stage(s, world + CY, world + CY0, world + DCY, vy, stage, dt)


def _compile_drivers(fingerprint: str) -> tuple[Any, Any]:
    """The two entry points. They close over ``fingerprint``, a digest of all kernel sources, because numba's cache on
    disk notices edits in this file and in what a function closes over, but not in the other files."""

    @njit(nogil=True, error_model="numpy", cache=True)
    def step_worlds(  # type: ignore[no-untyped-def]
        ids, ticket, kind, method, dt, n_substeps, state, params, same_params, faults, reference, feedforward
    ):
        """Advance the worlds ``ids`` by ``n_substeps`` steps of dt [s] under constant commands, in place.

        Several threads may make the same call at once: each takes the next block of worlds that ``ticket`` (int64,
        begun at 0) gives out, so that one that starts late or is held up leaves the rest to the others.
        ``same_params``: all worlds have the parameters of the first, which are then copied once.
        """
        _ = fingerprint
        n = state.link_angle.shape[1]
        s = np.zeros((n + 2) * RECORD)
        implicit_dt = dt if method == IMPLICIT else 0.0
        loaded = False
        first = take_ticket(ticket) * LANES
        while first < ids.shape[0]:
            block = ids[first : first + LANES]
            count = block.shape[0]
            if not (loaded and same_params):
                gather_params(s, n, block, count, params)
                loaded = True
            gather_worlds(s, n, block, count, dt, state, faults, reference, feedforward)
            event = 0.0
            for step in range(n_substeps):
                if step >= event:
                    engage_joints(s, n, kind, step, implicit_dt)
                    event = next_event(s, n, step)
                    if method == RK4:
                        stop_locked_joints(s, n, kind, step)
                if method == IMPLICIT:
                    step_implicit(s, n, kind, dt)
                else:
                    step_rk4(s, n, kind, dt)
            locate_head(s, n)
            impulse = dt if method == IMPLICIT else 1.0
            scatter_worlds(s, n, block, count, dt, n_substeps * dt, impulse, state)
            first = take_ticket(ticket) * LANES

    @njit(nogil=True, error_model="numpy", cache=True)
    def accelerate_worlds(  # type: ignore[no-untyped-def]
        ids, kind, state, params, faults, reference, feedforward, link_acc, centre_acc
    ):
        """Right-hand side: link accelerations (W, N) [rad/s^2] and centre accelerations (W, 2) [m/s^2] of ``ids``."""
        _ = fingerprint
        n = state.link_angle.shape[1]
        s = np.zeros((n + 2) * RECORD)
        world = (n + 1) * RECORD
        for first in range(0, ids.shape[0], LANES):
            block = ids[first : first + LANES]
            count = block.shape[0]
            gather_params(s, n, block, count, params)
            gather_worlds(s, n, block, count, 1.0, state, faults, reference, feedforward)
            engage_joints(s, n, kind, 0, 0.0)
            solve_explicit(s, n, kind)
            for k in range(count):
                for i in range(n):
                    link_acc[block[k], i] = s[(i + 1) * RECORD + SOL_W + k]
                centre_acc[block[k], 0] = s[RECORD + SUM_X + k] / s[world + TOTAL + k]
                centre_acc[block[k], 1] = s[RECORD + SUM_Y + k] / s[world + TOTAL + k]

    return step_worlds, accelerate_worlds


def _digest_kernels() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


step_worlds, accelerate_worlds = _compile_drivers(_digest_kernels())
