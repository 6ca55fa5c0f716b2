"""Entry point that advances W chains in time and shares out blocks of worlds among the threads that call it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from snake_gym.physics.actuators import MUSCLE, engage_joints
from snake_gym.physics.broad_phase import forget_contacts, look_around
from snake_gym.physics.chain import locate_head, place_links
from snake_gym.compilation import cached_njit
from snake_gym.physics.contact import keep_energy, note_depth
from snake_gym.physics.contact_law import FAR
from snake_gym.physics.friction import COUPLED, begin_sliding, lay_patches
from snake_gym.physics.implicit import FIRST, LATER, SECOND, finish_stage, note_events, solve_stage
from snake_gym.physics.lanes import CURL_STRIDE, LONGEST_STRIDE, OMEGA, PACE, RECORD, SLOTS, VX, VY, scratch_rows
from snake_gym.physics.muscles import MuscleParams, engage_muscles
from snake_gym.physics.simd import VECTOR_BYTES, kernel, n_lanes, store, take_ticket
from snake_gym.physics.state import ContactParams
from snake_gym.physics.step_parts import fastest_point, take_stage
from snake_gym.physics.touch import TOUCH, find_curls, note_self_overlap
from snake_gym.physics.worlds import (
    gather_params, gather_servos, gather_worlds, next_event, renew_bursts, scatter_servos, scatter_worlds,
    take_commands,
)  # fmt: skip


class Laws(NamedTuple):
    """Laws that the worlds obey; a law that is off costs no time."""

    kind: int
    """Kind of actuator (``actuators``)."""
    limits: bool
    """True if joints have torque limits."""
    stops: bool
    joint_friction: bool
    """True if joints have dry friction."""
    one_way: bool
    """True if friction along a link is not the same backward as forward."""
    coulomb: bool
    axes: int
    """Axes of Coulomb friction (``friction``)."""
    imperfect: bool
    """True if servos have imperfections (``imperfections``)."""
    muscle: MuscleParams
    obstacles: bool
    contact: ContactParams
    links_touch: bool
    late: bool
    """True if commands begin to act within a call (``state.LateCommands``)."""
    servo_faults: bool
    """True if horns may slip and the motors' torques are asked for."""
    patches: bool
    """True if friction differs from place to place (``state.Patches``)."""


@kernel
def step_block(  # type: ignore[no-untyped-def]
    s, n, ids, count, n_slots, dt, n_substeps, state, faults, obstacles, late, counts, old, spare, touches, laws
):
    """Advance one block by ``n_substeps`` steps."""
    world = (n + 1) * RECORD
    place_links(s, n)
    store(s, world + PACE, fastest_point(s, n, VX, VY, OMEGA))
    for field in (LONGEST_STRIDE, CURL_STRIDE):
        store(s, world + field, FAR)
    event, arrival = 0.0, 0.0
    for step in range(n_substeps):
        if step >= event:
            engage_joints(s, n, laws.kind, step, dt, n_slots)
            if laws.kind == MUSCLE:
                engage_muscles(s, n, step, n_slots)
            note_events(s, n, step, n_slots)
            event = renew_faults(s, n, ids, count, n_slots, step, dt, state, faults)
        if laws.late and step >= arrival:
            arrival = take_commands(s, n, ids, count, step, late)
        if laws.obstacles:
            look_around(s, n, ids, count, dt, obstacles, counts, old)
        curls = laws.links_touch and find_curls(s, n, touches[1])
        if curls and not laws.obstacles:
            store(s, world + PACE, fastest_point(s, n, VX, VY, OMEGA))
        for stage in range(FIRST if step == 0 else LATER, SECOND + 1 if step == 0 else LATER + 1):
            if laws.coulomb and laws.axes != COUPLED and stage == FIRST:
                begin_sliding(s, n)
            if laws.obstacles or curls:
                take_stage(s, n, ids, count, stage, dt, obstacles, counts, old, spare, touches, laws)
            else:
                solve_stage(s, n, stage, dt, counts, touches, laws)
                finish_stage(s, n, stage, dt, counts, touches, laws)
    if laws.obstacles and laws.contact.restitution > 0.0:
        keep_energy(s, n)
    if laws.obstacles and counts[0] > 0:
        note_depth(s, n, counts)


@kernel
def renew_faults(s, n, ids, count, n_slots, step, dt, state, faults):  # type: ignore[no-untyped-def]
    """Set the next bursts of intermittent faults in sub-step ``step``; return that of the next event."""
    for slot in range(n_slots):
        renew_bursts(s, n, ids, count, step, dt, state, faults[slot], slot)
    return next_event(s, n, step, n_slots)


def _compile_driver(fingerprint: str) -> Any:
    """Return the entry point. It closes over ``fingerprint``, a digest of all kernel sources, because numba's cache on
    disk notices edits in this file and in what a function closes over, but not in the other files."""

    @cached_njit(nogil=True)
    def step_worlds(  # type: ignore[no-untyped-def]
        ids, ticket, number, laws, dt, n_substeps, state, params, same_params, faults, obstacles, late, patches,
        torque_square, reference, feedforward
    ):  # fmt: skip
        """Advance the worlds ``ids`` by ``n_substeps`` steps of dt [s] under constant commands, in place.

        Several threads may make the same call at once: each takes the next block of worlds that ``ticket`` (int64,
        begun at 0) gives out, so that one that starts late or is held up leaves the rest to the others.
        ``number``: numpy's type of the numbers in the blocks, float64 or float32. ``same_params``: all worlds have the
        parameters of the first, which are then copied once; False with patches.
        With ``servo_faults`` the integral of the square of each motor's torque is added to ``torque_square`` (W, J).
        """
        _ = fingerprint
        n = state.link_angle.shape[1]
        # A vector that straddles two cache lines costs a tenth of the time.
        n_bytes = scratch_rows(n) * VECTOR_BYTES
        scratch = np.zeros(n_bytes + VECTOR_BYTES, np.uint8)
        begin = -scratch.ctypes.data % VECTOR_BYTES
        s = scratch[begin : begin + n_bytes].view(number).reshape(scratch_rows(n), -1)
        counts = np.zeros(n + 1, np.int64)
        old = np.zeros((SLOTS, 3))
        spare = np.empty((3, s.shape[0], s.shape[1]), number)
        touches = np.empty((n * n * TOUCH, s.shape[1]), number), np.zeros((n * n, 2), np.int64)
        loaded = False
        first = take_ticket(ticket) * n_lanes(s)
        while first < ids.shape[0]:
            block = ids[first : first + n_lanes(s)]
            count = block.shape[0]
            if not (loaded and same_params):
                gather_params(s, n, block, count, params)
                loaded = True
            if laws.patches:
                lay_patches(s, n, block, count, patches)
            n_slots = gather_worlds(s, n, block, count, dt, state, faults, reference, feedforward)
            if laws.servo_faults:
                gather_servos(s, n, block, count, state)
            if laws.obstacles:
                forget_contacts(s, n, counts)
            step_block(
                s, n, block, count, n_slots, dt, n_substeps, state, faults, obstacles, late, counts, old, spare,
                touches, laws
            )  # fmt: skip
            locate_head(s, n)
            note_self_overlap(s, n, *touches)
            scatter_worlds(s, n, block, count, n_substeps * dt, state, laws.obstacles)
            if laws.servo_faults:
                scatter_servos(s, n, block, count, state, torque_square)
            first = take_ticket(ticket) * n_lanes(s)

    return step_worlds


_SOURCES = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
step_worlds = _compile_driver(hashlib.sha256(_SOURCES).hexdigest())
