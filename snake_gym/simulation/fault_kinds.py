"""Kinds of joint faults without a kernel: functions that change command, torque or speed in each control step.

A user's own module adds one by ``register_fault_kind``; the kernels' own kinds are in ``physics.actuators``.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError, choose
from snake_gym.config.errors import show
from snake_gym.physics.faults import FAULT_CODES, FREE, HEALTHY, SLOW, WEAK, acting, hash_number
from snake_gym.physics.state import ChainState, FaultState
from snake_gym.plugins import check_numbers, is_again
from snake_gym.robot.chain import ChainSpec
from snake_gym.robot.spec import FloatArray, RobotSpec

JOINT_KINDS = ["locked", "free", "weak", "slow", "offset", "slipped"]
"""Names of the kinds of joint faults; ``register_fault_kind`` adds to them."""


class FaultyJoints(NamedTuple):
    """State of the K joints, of all worlds, on which faults of one kind act in the present control step."""

    reference: FloatArray
    """Commanded angle (K,) [rad]."""
    joint_angle: FloatArray
    """True angle (K,) [rad]."""
    joint_rate: FloatArray
    """True rate (K,) [rad/s]."""
    strength: FloatArray
    """Strength of the fault (K,), in (0, 1]."""
    since_s: FloatArray
    """Time since the onset (K,) [s]."""
    spec: RobotSpec
    joint: NDArray[np.int64]
    """Index of each joint (K,), from 0 at the tail."""
    last_command: FloatArray
    """Angle that the joint was last commanded, as it came through on the bus (K,) [rad]."""
    memory: FloatArray
    """Last ``FaultEffect.memory`` of each fault (K,); 0 at first."""
    random: FloatArray
    """Number in [0, 1) of each fault (K,), a new one in each control step."""
    step_s: float
    """Length of the control step [s]."""
    torque_nm: FloatArray
    """Root mean square of the motor's torque over the last control step (K,) [N m]."""


class FaultEffect(NamedTuple):
    """Effect of a fault on its joints in a control step; None: no change."""

    reference: FloatArray | None = None
    """Angle that the joints are commanded instead (K,) [rad]; delays of commands follow."""
    shift_rad: FloatArray | None = None
    """Angle by which the servos' loops aim beside the command (K,) [rad], at once; those of two faults add up."""
    torque_share: FloatArray | None = None
    """Share of the torque that is left (K,), in [0, 1]."""
    speed_share: FloatArray | None = None
    """Share of the speed limit that is left (K,), in (0, 1]; instead of ``torque_share``, not beside it."""
    powered: NDArray[np.bool_] | None = None
    """True where the actuator has power (K,); the others are free."""
    friction_nm: FloatArray | None = None
    """Dry friction that the joint has more (K,) [N m]; the kind is registered with the law "joint_friction"."""
    backlash_rad: FloatArray | None = None
    """Backlash that the gears have more (K,) [rad]; the kind is registered with the law "imperfect"."""
    misread_rad: FloatArray | None = None
    """Error of what the servo's encoder reads (K,) [rad]; ``shift_rad`` says what the servo's loop makes of it."""
    silent: NDArray[np.bool_] | None = None
    """True where the servo does not answer (K,): its last reading stands, and the last command counts as the last."""
    memory: FloatArray | None = None
    """Number to be kept for the next control step (K,)."""


class FaultKind(NamedTuple):
    """Registered kind of fault."""

    name: str
    effect: Callable[[FaultyJoints], FaultEffect]
    strength: Spread
    laws: tuple[str, ...]
    lacks: Callable[[RobotSpec], str]


class ServoState(NamedTuple):
    """What a robot's servos were told last, how they answer and what they bear, (W, J) each."""

    command: FloatArray
    """Angle that each was commanded last [rad], as it came through; kept while a robot has a registered fault."""
    misread_rad: FloatArray
    """Error of what its encoder reads [rad]."""
    silent: NDArray[np.bool_]
    """True where it does not answer."""
    torque_square: FloatArray
    """Mean square of its motor's torque over the last control step [N^2 m^2]; kept where a robot may have faults of
    servos."""


def quiet_servos(n_worlds: int, n_joints: int) -> ServoState:
    """Return servos that were commanded 0 and answer truly."""
    shape = (n_worlds, n_joints)
    return ServoState(np.zeros(shape), np.zeros(shape), np.zeros(shape, bool), np.zeros(shape))


Spread = float | tuple[float, float]
"""A number, or the range (low, high) from which it is drawn for each fault."""
Effect = TypeVar("Effect", bound=Callable[[FaultyJoints], FaultEffect])
REGISTERED: dict[int, FaultKind] = {}
"""Registered kinds, which the kernels do not know, by code."""
LAST_OWN_CODE = max(FAULT_CODES.values())
"""Largest code of a kind that the kernels or sensors know; those of registered kinds are larger."""
_FIRST_CODE = 1 << 8
"""Smallest code of a registered kind."""


def fault_code(name: str) -> int:
    """Return the code of a kind of fault; it follows from the name alone, so that saved states mean the same."""
    return FAULT_CODES.get(name, _FIRST_CODE + zlib.crc32(name.encode()))


def register_fault_kind(
    name: str, strength: Spread = 0.3, laws: tuple[str, ...] = (), lacks: Callable[[RobotSpec], str] = lambda spec: ""
) -> Callable[[Effect], Effect]:
    """Return a decorator that makes a function from ``FaultyJoints`` to ``FaultEffect`` a kind of joint fault.

    ``faults.kinds`` and ``faults.events`` call it ``name``; ``strength`` in (0, 1], or the range (low, high), is that
    of drawn faults. ``laws`` are those of the physics that its effects need: "joint_friction", "imperfect" (backlash).
    ``lacks`` says what a robot lacks that cannot have the fault, "" for nothing. The fault acts from the first control
    step that begins at or after its onset. Raises ConfigError where another function has the name.
    """
    low, high = strength if isinstance(strength, tuple) else (strength, strength)
    if not 0.0 < low <= high <= 1.0:
        told = f"{low:g}" if low == high else f"[{low:g}, {high:g}]"
        raise ConfigError(f"the strength of fault kind {name} is {told}; expected in (0, 1]")
    for law in laws:
        choose(law, ("joint_friction", "imperfect"), f"a law of fault kind {name}")
    code = fault_code(name)
    known = REGISTERED.get(code)
    refusal = f"the kind of fault {name!r} is taken; expected another name than {', '.join(FAULT_CODES)}"
    if code in FAULT_CODES.values() and (known is None or known.name != name):
        raise ConfigError(refusal)

    def add(effect: Effect) -> Effect:
        if known is not None and not is_again(known.effect, effect):
            raise ConfigError(refusal)
        REGISTERED[code] = FaultKind(name, effect, strength, laws, lacks)
        if name not in FAULT_CODES:
            FAULT_CODES[name] = code
            JOINT_KINDS.append(name)
        return effect

    return add


class AppliedFaults(NamedTuple):
    """Effect of all registered faults for a control step; arrays (W, J)."""

    reference: FloatArray
    """Commanded angles [rad]."""
    shift_rad: FloatArray
    """Angles by which the servos' loops aim beside them [rad]."""
    faults: tuple[FaultState, FaultState]
    """Faults of the kernels' own kinds that act."""
    friction_nm: FloatArray
    """Dry friction beside the robot's own [N m]."""
    backlash_rad: FloatArray
    """Backlash beside the robot's own [rad]."""


def apply_registered(
    spec: RobotSpec,
    slots: tuple[FaultState, FaultState],
    state: ChainState,
    servos: ServoState,
    reference: FloatArray,
    ids: NDArray[np.int64],
    step_s: float,
) -> AppliedFaults:
    """Return the effect of registered faults for a control step of ``step_s`` [s] from ``state`` on in worlds ``ids``.

    What servos were told, read and whether they are heard is written into ``servos``, memories into ``slots``. Silence
    comes first, for it is on the bus, before all that a servo makes of its command.

    Raises:
        ConfigError: an effect is out of its range or of the wrong shape, has both a share of torque and one of speed,
            or lowers a speed limit that the robot does not have.
    """
    shape = reference.shape
    done = AppliedFaults(reference.copy(), np.zeros(shape), slots, np.zeros(shape), np.zeros(shape))
    live = np.zeros(shape, bool)
    live[ids] = True
    servos.misread_rad[ids], servos.silent[ids] = 0.0, False
    angle, rate = (-np.diff(values, axis=1) for values in (state.link_angle, state.link_rate))
    left: list[FaultState] = []
    found: list[tuple[str, int, int, NDArray[np.bool_]]] = []
    for n, faults in enumerate(slots):
        registered = faults.kind > LAST_OWN_CODE
        acts = acting(faults, state.time_s) & registered & live
        changed = ("kind", "strength", "onset_s", "end_s", "period_s")
        own = faults._replace(**{name: getattr(faults, name).copy() for name in changed})
        own.kind[registered] = HEALTHY
        own.onset_s[acts], own.end_s[acts], own.period_s[acts] = 0.0, math.inf, math.inf
        left.append(own)
        found += [(REGISTERED[code].name, code, n, acts) for code in np.unique(faults.kind[acts]).tolist()]
    for name, code, n, acts in sorted(found, key=lambda kind: kind[0] != "silent"):
        faults = slots[n]
        at = np.nonzero(acts & (faults.kind == code))
        time = state.time_s[at[0]]
        joints = FaultyJoints(
            done.reference[at], angle[at], rate[at], faults.strength[at], time - faults.onset_s[at], spec, at[1],
            servos.command[at], faults.memory[at],
            hash_number(faults.key[at], np.rint(time / step_s).astype(np.int64)), step_s,
            np.sqrt(servos.torque_square[at]),
        )  # fmt: skip
        effect = REGISTERED[code].effect(joints)
        _check_effect(effect, name, time.size)
        _take_effect(effect, name, at, done, left[n], servos, spec)
        if effect.memory is not None:
            faults.memory[at] = effect.memory
    servos.command[ids] = np.where(servos.silent, servos.command, done.reference)[ids]
    return done._replace(faults=(left[0], left[1]))


def _take_effect(
    effect: FaultEffect, name: str, at: Any, done: AppliedFaults, own: FaultState, servos: ServoState, spec: RobotSpec
) -> None:
    """Add the effect of the faults at ``at``, indices of worlds and joints, to those of the control step."""
    if effect.torque_share is not None and effect.speed_share is not None:
        raise ConfigError(f"fault kind {name} has a torque_share and a speed_share; expected one of them")
    if effect.speed_share is not None and not has_speed_limit(spec):
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


_NOT_NEGATIVE = ("torque_share", "speed_share", "friction_nm", "backlash_rad")
"""Parts of an effect that may not be negative; shares are at most 1, and that of speed is more than 0."""


def _check_effect(effect: FaultEffect, name: str, n: int) -> None:
    if not isinstance(effect, FaultEffect):
        raise ConfigError(f"fault kind {name} gives {show(effect)}; expected a FaultEffect")
    for part, values in effect._asdict().items():
        if values is None:
            continue
        what = f"the {part} of fault kind {name}"
        array = check_numbers(values, (n,), what)
        if part not in _NOT_NEGATIVE:
            continue
        is_share, without_least = part.endswith("share"), part == "speed_share"
        wrong = array[(array < 0.0) | (is_share & (array > 1.0)) | (without_least & (array == 0.0))]
        if wrong.size:
            expected = f"in {'(' if without_least else '['}0, 1]" if is_share else ">= 0"
            raise ConfigError(f"{what} is {wrong[0]:g}; expected {expected}")


def has_speed_limit(spec: ChainSpec) -> bool:
    """Return True if the robot has a speed limit that a fault can lower."""
    is_servo = spec.actuator.kind in ("position", "torque")
    limited = is_servo and bool(np.isfinite(spec.joints("actuator.speed_limit_rad_s")).all())
    return limited or spec.actuator.kind == "muscle"


def check_codes(codes: NDArray[np.int64]) -> None:
    """Raise ValueError for kinds of joint faults in a saved state that are not registered."""
    unknown = ~np.isin(codes, [HEALTHY, *(FAULT_CODES[name] for name in JOINT_KINDS)])
    if unknown.any():
        raise ValueError(
            f"env state fault/kind holds the code {codes[unknown][0]}, a kind of fault that no imported module "
            "registers; give it with --plugin FILE.py"
        )
