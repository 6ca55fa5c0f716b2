r"""Entry points that advance W chains in time and share out blocks of worlds among the threads that call them.

There are two methods: ``implicit`` (see ``implicit``: second order, stable, with all forces and faults) and ``rk4``
(see ``runge_kutta``: explicit, for smooth problems).
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from snake_gym.physics.actuators import engage_joints
from snake_gym.physics.broad_phase import forget_contacts, look_around
from snake_gym.physics.chain import locate_head, place_links
from snake_gym.physics.implicit import FIRST, LATER, SECOND, note_events, step_implicit
from snake_gym.physics.lanes import RECORD, SLOTS, SOL_W, SUM_X, SUM_Y, TOTAL, H, scratch_size
from snake_gym.physics.muscles import MuscleParams
from snake_gym.physics.runge_kutta import solve_explicit, step_rk4, stop_locked_joints
from snake_gym.physics.simd import LANES, splat, store, take_ticket
from snake_gym.physics.state import ContactParams
from snake_gym.physics.worlds import gather_params, gather_worlds, next_event, renew_bursts, scatter_worlds

IMPLICIT, RK4 = 0, 1
INTEGRATOR_CODES = {"implicit": IMPLICIT, "rk4": RK4}


class Laws(NamedTuple):
    """Laws that the worlds obey; a law that is off costs no time."""

    kind: int
    """Kind of actuator (``actuators``)."""
    limits: bool
    """True if joints have torque limits."""
    stops: bool
    joint_friction: bool
    """True if joints have dry friction."""
    coulomb: bool
    axes: int
    """Axes of Coulomb friction (``friction``)."""
    imperfect: bool
    """True if servos have imperfections (``imperfections``)."""
    muscle: MuscleParams
    obstacles: bool
    contact: ContactParams


@njit(error_model="numpy")
def step_block_implicit(  # type: ignore[no-untyped-def]
    s, n, ids, count, dt, n_substeps, state, faults, obstacles, counts, old, laws
):
    """Advance one block by ``n_substeps`` implicit steps."""
    place_links(s, n, 0.0)
    event = 0.0
    for step in range(n_substeps):
        if step >= event:
            engage_joints(s, n, laws.kind, step)
            note_events(s, n, step)
            renew_bursts(s, n, ids, count, step, dt, state, faults[0], 0)
            renew_bursts(s, n, ids, count, step, dt, state, faults[1], 1)
            event = next_event(s, n, step)
        if laws.obstacles:
            look_around(s, n, ids, count, obstacles, counts, old)
        if step == 0:
            step_implicit(s, n, FIRST, dt, counts, laws)
            step_implicit(s, n, SECOND, dt, counts, laws)
        else:
            step_implicit(s, n, LATER, dt, counts, laws)


@njit(error_model="numpy")
def step_block_rk4(s, n, ids, count, kind, dt, n_substeps, state, faults):  # type: ignore[no-untyped-def]
    """Advance one block by ``n_substeps`` Runge-Kutta steps."""
    event = 0.0
    for step in range(n_substeps):
        if step >= event:
            engage_joints(s, n, kind, step)
            stop_locked_joints(s, n, kind, step)
            renew_bursts(s, n, ids, count, step, dt, state, faults[0], 0)
            renew_bursts(s, n, ids, count, step, dt, state, faults[1], 1)
            event = next_event(s, n, step)
        step_rk4(s, n, kind, dt)
    # MU is a torque here, not an impulse: with H = 1 the division in ``scatter_worlds`` keeps it.
    store(s, (n + 1) * RECORD + H, splat(1.0))


def _compile_drivers(fingerprint: str) -> tuple[Any, Any]:
    """Return the two entry points. They close over ``fingerprint``, a digest of all kernel sources, because numba's
    cache on disk notices edits in this file and in what a function closes over, but not in the other files."""

    @njit(nogil=True, error_model="numpy", cache=True)
    def step_worlds(  # type: ignore[no-untyped-def]
        ids, ticket, laws, method, dt, n_substeps, state, params, same_params, faults, obstacles, reference, feedforward
    ):
        """Advance the worlds ``ids`` by ``n_substeps`` steps of dt [s] under constant commands, in place.

        Several threads may make the same call at once: each takes the next block of worlds that ``ticket`` (int64,
        begun at 0) gives out, so that one that starts late or is held up leaves the rest to the others.
        ``same_params``: all worlds have the parameters of the first, which are then copied once.
        """
        _ = fingerprint
        n = state.link_angle.shape[1]
        # A vector that straddles two cache lines costs a tenth of the time.
        scratch = np.zeros(scratch_size(n) + LANES)
        begin = -(scratch.ctypes.data // 8) % LANES
        s = scratch[begin : begin + scratch_size(n)]
        counts = np.zeros(n + 1, np.int64)
        old = np.zeros((SLOTS, 3))
        loaded = False
        first = take_ticket(ticket) * LANES
        while first < ids.shape[0]:
            block = ids[first : first + LANES]
            count = block.shape[0]
            if not (loaded and same_params):
                gather_params(s, n, block, count, params)
                loaded = True
            gather_worlds(s, n, block, count, dt, state, faults, reference, feedforward)
            if method == IMPLICIT:
                if laws.obstacles:
                    forget_contacts(s, n, counts)
                step_block_implicit(s, n, block, count, dt, n_substeps, state, faults, obstacles, counts, old, laws)
            else:
                step_block_rk4(s, n, block, count, laws.kind, dt, n_substeps, state, faults)
            locate_head(s, n)
            scatter_worlds(s, n, block, count, n_substeps * dt, state)
            first = take_ticket(ticket) * LANES

    @njit(nogil=True, error_model="numpy", cache=True)
    def accelerate_worlds(  # type: ignore[no-untyped-def]
        ids, kind, state, params, faults, reference, feedforward, link_acc, centre_acc
    ):
        """Write accelerations of the worlds ``ids``: links (W, N) [rad/s^2] and centre of mass (W, 2) [m/s^2]."""
        _ = fingerprint
        n = state.link_angle.shape[1]
        s = np.zeros(scratch_size(n))
        world = (n + 1) * RECORD
        for first in range(0, ids.shape[0], LANES):
            block = ids[first : first + LANES]
            count = block.shape[0]
            gather_params(s, n, block, count, params)
            gather_worlds(s, n, block, count, 1.0, state, faults, reference, feedforward)
            engage_joints(s, n, kind, 0)
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
