"""Effects of faults without a kernel (``fault_kinds``) on W robots with J joints, for one control step."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError
from snake_gym.config.errors import show
from snake_gym.physics.faults import FREE, HEALTHY, SLOW, WEAK, WEAK_RIGHT, acting, hash_number
from snake_gym.physics.state import ChainState, FaultState
from snake_gym.plugins import check_numbers
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.fault_kinds import FAULT_KINDS, FaultEffect, FaultKind, FaultyJoints, lacks_speed_limit

LAST_KERNEL_CODE = WEAK_RIGHT
"""Largest code of a kind of the kernels; kinds with an effect have larger ones."""


class ServoState(NamedTuple):
    """Last command, reading and load of the servos (W, J)."""

    command: FloatArray
    """Last command that came through [rad]; kept while a robot has a fault with an effect."""
    misread_rad: FloatArray
    """Error of the servo's encoder [rad]."""
    silent: NDArray[np.bool_]
    """True where the servo does not answer."""
    torque_square: FloatArray
    """Mean square of the motor's torque over the last control step [N^2 m^2]; kept with faults of servos."""


def quiet_servos(n_worlds: int, n_joints: int) -> ServoState:
    """Return servos that were commanded 0 and answer truly."""
    shape = (n_worlds, n_joints)
    return ServoState(np.zeros(shape), np.zeros(shape), np.zeros(shape, bool), np.zeros(shape))


class AppliedFaults(NamedTuple):
    """Sum of all effects in a control step; arrays (W, J)."""

    reference: FloatArray
    """Commanded angles [rad]."""
    shift_rad: FloatArray
    """Errors of the servos' aims [rad]."""
    faults: tuple[FaultState, FaultState]
    """Faults for the kernels."""
    friction_nm: FloatArray
    """Added dry friction [N m]."""
    backlash_rad: FloatArray
    """Added backlash [rad]."""


def apply_effects(
    spec: RobotSpec,
    slots: tuple[FaultState, FaultState],
    state: ChainState,
    servos: ServoState,
    reference: FloatArray,
    ids: NDArray[np.int64],
    step_s: float,
) -> AppliedFaults:
    """Return all effects for a control step of ``step_s`` [s] in the worlds ``ids``, now in ``state``.

    ``servos`` and the memories in ``slots`` are changed. Silence comes first: it is on the bus, before the servo.
    Raises ConfigError for an effect that is out of range or that this robot cannot have.
    """
    shape = reference.shape
    done = AppliedFaults(reference.copy(), np.zeros(shape), slots, np.zeros(shape), np.zeros(shape))
    live = np.zeros(shape, bool)
    live[ids] = True
    servos.misread_rad[ids], servos.silent[ids] = 0.0, False
    angle, rate = (-np.diff(values, axis=1) for values in (state.link_angle, state.link_rate))
    kind_of = {kind.code: kind for kind in FAULT_KINDS.values()}
    left: list[FaultState] = []
    found: list[tuple[FaultKind, int, NDArray[np.bool_]]] = []
    for n, faults in enumerate(slots):
        registered = faults.kind > LAST_KERNEL_CODE
        acts = acting(faults, state.time_s) & registered & live
        changed = ("kind", "strength", "onset_s", "end_s", "period_s")
        own = faults._replace(**{name: getattr(faults, name).copy() for name in changed})
        own.kind[registered] = HEALTHY
        own.onset_s[acts], own.end_s[acts], own.period_s[acts] = 0.0, math.inf, math.inf
        left.append(own)
        found += [(kind_of[code], n, acts) for code in np.unique(faults.kind[acts]).tolist()]
    for kind, n, acts in sorted(found, key=lambda one: one[0].name != "silent"):
        faults = slots[n]
        at = np.nonzero(acts & (faults.kind == kind.code))
        time = state.time_s[at[0]]
        since_s = np.maximum(time - faults.onset_s[at], 0.0)  # a fault acts from a rounding before its onset
        joints = FaultyJoints(
            done.reference[at], angle[at], rate[at], faults.strength[at], since_s, spec, at[1],
            servos.command[at], faults.memory[at],
            hash_number(faults.key[at], np.rint(time / step_s).astype(np.int64)), step_s,
            np.sqrt(servos.torque_square[at]),
        )  # fmt: skip
        assert kind.effect is not None
        effect = kind.effect(joints)
        _check_effect(effect, kind.name, time.size)
        _take_effect(effect, kind.name, at, done, left[n], servos, spec)
        if effect.memory is not None:
            faults.memory[at] = effect.memory
    servos.command[ids] = np.where(servos.silent, servos.command, done.reference)[ids]
    return done._replace(faults=(left[0], left[1]))


def _take_effect(
    effect: FaultEffect, name: str, at: Any, done: AppliedFaults, own: FaultState, servos: ServoState, spec: RobotSpec
) -> None:
    """Add one effect on the joints ``at``, indices of worlds and joints, to ``done``, ``own`` and ``servos``."""
    if effect.torque_share is not None and effect.speed_share is not None:
        raise ConfigError(f"fault kind {name} has a torque_share and a speed_share; expected one of them")
    if effect.speed_share is not None and lacks_speed_limit(spec):
        raise ConfigError(f"fault kind {name} has a speed_share, but {spec.name} has no speed limit to lower")
    share = effect.torque_share if effect.speed_share is None else effect.speed_share
    if share is not None:
        own.kind[at], own.strength[at] = WEAK if effect.speed_share is None else SLOW, share
    if effect.powered is not None:
        own.kind[at] = np.where(effect.powered, own.kind[at], FREE)
    if effect.reference is not None:
        done.reference[at] = effect.reference
    for part, values in (
        (done.friction_nm, effect.friction_nm), (done.backlash_rad, effect.backlash_rad),
        (done.shift_rad, effect.shift_rad), (servos.misread_rad, effect.misread_rad),
    ):  # fmt: skip
        if values is not None:
            part[at] += values
    if effect.silent is not None:
        servos.silent[at] |= np.asarray(effect.silent, bool)


_SMALLEST = float(np.nextafter(0.0, 1.0))
_BOUNDS = {
    "torque_share": (0.0, 1.0, "in [0, 1]"), "speed_share": (_SMALLEST, 1.0, "in (0, 1]"),
    "friction_nm": (0.0, math.inf, ">= 0"), "backlash_rad": (0.0, math.inf, ">= 0"),
}  # fmt: skip
"""Bounds of the bounded parts of an effect."""


def _check_effect(effect: FaultEffect, name: str, n: int) -> None:
    if not isinstance(effect, FaultEffect):
        raise ConfigError(f"fault kind {name} gives {show(effect)}; expected a FaultEffect")
    for part, values in effect._asdict().items():
        if values is None:
            continue
        what = f"the {part} of fault kind {name}"
        array = check_numbers(values, (n,), what)
        low, high, expected = _BOUNDS.get(part, (-math.inf, math.inf, ""))
        wrong = array[(array < low) | (array > high)]
        if wrong.size:
            raise ConfigError(f"{what} is {wrong[0]:g}; expected {expected}")
