"""Classical Runge-Kutta steps and the explicit right-hand side, for viscous friction and free ground.

They serve reruns of published experiments and callers that need the accelerations themselves. Torque limits, speed
limits and joint faults are as in the implicit step; Coulomb friction, joint stops and contact need the implicit one.
"""

from __future__ import annotations

from snake_gym.physics.actuators import load_joints, load_joints_explicit, note_torques
from snake_gym.physics.chain import eliminate_links, place_links, substitute_back
from snake_gym.physics.faults import LOCKED
from snake_gym.physics.friction import add_viscous_friction, viscous_force
from snake_gym.physics.implicit import load_links
from snake_gym.physics.lanes import (
    ALPHA, A_N, A_R, A_T, BACKWARD, BETA, COS, CVX, CVX0, CVY, CVY0, CX, CX0, CY, CY0, C_N, C_R, C_T, DCVX, DCVY, DCX,
    DCY, DOM, DTH, FAULT, FAULT_SLOTS, F_KIND, F_ON, GX, GY, INERTIA, MASS, MU, OM0, OMEGA, RECORD, RW, RX, RY, SIGMA,
    SIN, SOL_W, SUM_X, SUM_Y, TH0, THETA, TOTAL, VX, VY, WEIGHT, WORK, H,
)  # fmt: skip
from snake_gym.physics.simd import any_lane, kernel, load, select, splat, store


@kernel
def stop_locked_joints(s, n, kind, step):  # type: ignore[no-untyped-def]
    """Stop joints that lock in sub-step ``step`` by an impulse (an implicit step of length 0).

    Worlds without such a joint stay as they are, so that they do not depend on others of their block.
    """
    locking = splat(s, 0.0)
    for i in range(1, n):
        a = i * RECORD
        for slot in range(FAULT_SLOTS):
            f = a + slot * FAULT
            locks = (load(s, f + F_KIND) == LOCKED) & (load(s, f + F_ON) == step)
            locking = select(locks, 1.0, locking)
    if not any_lane(locking > 0.0):
        return
    world = (n + 1) * RECORD
    for field, value in ((ALPHA, 1.0), (BETA, 0.0), (SIGMA, 0.0), (H, 0.0)):
        store(s, world + field, value)
    place_links(s, n, 0.0)
    load_links(s, n)
    add_viscous_friction(s, n)
    load_joints(s, n, kind)
    eliminate_links(s, 1, n, False)
    substitute_back(s, n)
    for i in range(1, n + 1):
        a = i * RECORD
        store(s, a + OMEGA, select(locking > 0.0, load(s, a + SOL_W), load(s, a + OMEGA)))
    total = load(s, world + TOTAL)
    store(s, world + CVX, select(locking > 0.0, load(s, RECORD + SUM_X) / total, load(s, world + CVX)))
    store(s, world + CVY, select(locking > 0.0, load(s, RECORD + SUM_Y) / total, load(s, world + CVY)))


@kernel
def solve_explicit(s, n, kind):  # type: ignore[no-untyped-def]
    """Set the link angles' accelerations SOL_W, and in SUM of link 1 the centre's acceleration times total mass."""
    # With bodies M, forces F and centripetal part a: M z = F - M a; VX, VY of two place_links calls give both.
    place_links(s, n, 1.0)
    for i in range(1, n + 1):
        a = i * RECORD
        store(s, a + A_T, load(s, a + VX))
        store(s, a + A_N, load(s, a + VY))
    place_links(s, n, 0.0)
    gx, gy = load(s, (n + 1) * RECORD + GX), load(s, (n + 1) * RECORD + GY)
    for i in range(1, n + 1):
        a = i * RECORD
        mass = load(s, a + MASS)
        vx = load(s, a + VX)
        vy = load(s, a + VY)
        fx, fy = viscous_force(
            vx, vy, load(s, a + SIN), load(s, a + COS), load(s, a + C_T), load(s, a + C_N), load(s, a + BACKWARD)
        )
        store(s, a + RX, fx + mass * (load(s, a + A_T) - vx + gx))
        store(s, a + RY, fy + mass * (load(s, a + A_N) - vy + gy))
        store(s, a + RW, -load(s, a + C_R) * load(s, a + OMEGA))
        store(s, a + A_T, mass)
        store(s, a + A_N, mass)
        store(s, a + A_R, load(s, a + INERTIA))
    load_joints_explicit(s, n, kind)
    eliminate_links(s, 1, n, False)
    substitute_back(s, n)


@kernel
def advance_stage(s, value, start, total, slope, stage, dt):  # type: ignore[no-untyped-def]
    """Write the argument of the next stage of one variable, or after stage 3 its new value, into ``value``."""
    if stage == 0:
        store(s, start, load(s, value))
        store(s, total, load(s, value))
    store(s, total, load(s, total) + (dt / 6.0 if stage == 0 or stage == 3 else dt / 3.0) * slope)
    if stage == 3:
        store(s, value, load(s, total))
    else:
        store(s, value, load(s, start) + (dt if stage == 2 else 0.5 * dt) * slope)


@kernel
def step_rk4(s, n, kind, dt, notes):  # type: ignore[no-untyped-def]
    """Advance a block of worlds by one classical Runge-Kutta step, in place; ``notes``: note the motors' torques."""
    world = (n + 1) * RECORD
    for stage in range(4):
        solve_explicit(s, n, kind)
        if notes:
            store(s, world + H, 1.0)  # laws hold torques here, not impulses
            store(s, world + WEIGHT, dt / 6.0 if stage == 0 or stage == 3 else dt / 3.0)
            note_torques(s, n)
        for i in range(1, n):
            a = i * RECORD
            power = load(s, a + MU) * (load(s, a + OMEGA) - load(s, a + RECORD + OMEGA))
            share = dt / 6.0 if stage == 0 or stage == 3 else dt / 3.0
            store(s, a + WORK, load(s, a + WORK) + share * max(power, 0.0))
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
