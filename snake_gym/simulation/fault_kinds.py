"""Kinds of joint faults without a kernel: functions that change command, torque or speed in each control step.

A user's own module adds one by ``register_fault_kind``; the kernels' own kinds are in ``physics.actuators``.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError
from snake_gym.config.errors import show
from snake_gym.physics.faults import FAULT_CODES, HEALTHY, SLOW, WEAK, acting
from snake_gym.physics.state import ChainState, FaultState
from snake_gym.plugins import check_numbers, is_again
from snake_gym.robot.spec import FloatArray, RobotSpec

JOINT_KINDS = ["locked", "free", "weak", "slow", "offset"]
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


class FaultEffect(NamedTuple):
    """Effect of a fault on its joints in a control step; None: no change."""

    reference: FloatArray | None = None
    """Angle that the joints aim at instead (K,) [rad]."""
    torque_share: FloatArray | None = None
    """Share of the torque that is left (K,), in [0, 1]."""
    speed_share: FloatArray | None = None
    """Share of the speed limit that is left (K,), in (0, 1]; instead of ``torque_share``, not beside it."""


class FaultKind(NamedTuple):
    """Registered kind of fault."""

    name: str
    effect: Callable[[FaultyJoints], FaultEffect]
    strength: float


Effect = TypeVar("Effect", bound=Callable[[FaultyJoints], FaultEffect])
REGISTERED: dict[int, FaultKind] = {}
"""Registered kinds, which the kernels do not know, by code."""
_FIRST_CODE = 1 << 8
"""Smallest code of a registered kind."""


def fault_code(name: str) -> int:
    """Return the code of a kind of fault; it follows from the name alone, so that saved states mean the same."""
    return FAULT_CODES.get(name, _FIRST_CODE + zlib.crc32(name.encode()))


def check_codes(codes: NDArray[np.int64]) -> None:
    """Raise ValueError for kinds of joint faults in a saved state that are not registered."""
    unknown = ~np.isin(codes, [HEALTHY, *(FAULT_CODES[name] for name in JOINT_KINDS)])
    if unknown.any():
        raise ValueError(
            f"env state fault/kind holds the code {codes[unknown][0]}, a kind of fault that no imported module "
            "registers; give it with --plugin FILE.py"
        )


def register_fault_kind(name: str, strength: float = 0.3) -> Callable[[Effect], Effect]:
    """Return a decorator that makes a function from ``FaultyJoints`` to ``FaultEffect`` a kind of joint fault.

    ``faults.kinds`` and ``faults.events`` call it ``name``; ``strength`` in (0, 1] is that of drawn faults. The fault
    acts from the first control step that begins at or after its onset. Raises ConfigError where another function has
    the name.
    """
    if not 0.0 < strength <= 1.0:
        raise ConfigError(f"the strength of fault kind {name} is {strength:g}; expected in (0, 1]")
    code = fault_code(name)
    known = REGISTERED.get(code)
    refusal = f"the kind of fault {name!r} is taken; expected another name than {', '.join(FAULT_CODES)}"
    if code in FAULT_CODES.values() and (known is None or known.name != name):
        raise ConfigError(refusal)

    def add(effect: Effect) -> Effect:
        if known is not None and not is_again(known.effect, effect):
            raise ConfigError(refusal)
        REGISTERED[code] = FaultKind(name, effect, strength)
        if name not in FAULT_CODES:
            FAULT_CODES[name] = code
            JOINT_KINDS.append(name)
        return effect

    return add


def apply_registered(
    spec: RobotSpec, faults: FaultState, state: ChainState, reference: FloatArray
) -> tuple[FloatArray, FaultState]:
    """Return references (W, J) and faults, of kinds that the kernels know, for a control step from ``state`` on.

    Raises:
        ConfigError: an effect is out of its range or of the wrong shape, has both a share of torque and one of speed,
            or lowers a speed limit that the robot does not have.
    """
    registered = np.isin(faults.kind, list(REGISTERED)) if REGISTERED else np.zeros(1, bool)
    if not registered.any():
        return reference, faults
    acts, reference, kind = acting(faults, state.time_s) & registered, reference.copy(), faults.kind.copy()
    kind[registered] = HEALTHY
    strength, onset, end, period = (v.copy() for v in (faults.strength, faults.onset_s, faults.end_s, faults.period_s))
    onset[acts], end[acts], period[acts] = 0.0, math.inf, math.inf
    angle, rate = (-np.diff(values, axis=1) for values in (state.link_angle, state.link_rate))
    for code, (name, effect_of, _) in REGISTERED.items():
        at = np.nonzero(acts & (faults.kind == code))
        if not at[0].size:
            continue
        since = state.time_s[at[0]] - faults.onset_s[at]
        effect = effect_of(FaultyJoints(reference[at], angle[at], rate[at], strength[at], since, spec))
        _check_effect(effect, name, since.size)
        if effect.torque_share is not None and effect.speed_share is not None:
            raise ConfigError(f"fault kind {name} has a torque_share and a speed_share; expected one of them")
        if effect.speed_share is not None and not has_speed_limit(spec):
            raise ConfigError(f"fault kind {name} has a speed_share, but {spec.name} has no speed limit to lower")
        if effect.reference is not None:
            reference[at] = effect.reference
        share = effect.torque_share if effect.speed_share is None else effect.speed_share
        if share is not None:
            kind[at], strength[at] = WEAK if effect.speed_share is None else SLOW, share
    return reference, faults._replace(kind=kind, strength=strength, onset_s=onset, end_s=end, period_s=period)


def _check_effect(effect: FaultEffect, name: str, n: int) -> None:
    if not isinstance(effect, FaultEffect):
        raise ConfigError(f"fault kind {name} gives {show(effect)}; expected a FaultEffect")
    for part, values in effect._asdict().items():
        if values is None:
            continue
        what = f"the {part} of fault kind {name}"
        array = check_numbers(values, (n,), what)
        wrong = array[(array > 1.0) | (array <= 0.0 if part == "speed_share" else array < 0.0)]
        if part != "reference" and wrong.size:
            raise ConfigError(f"{what} is {wrong[0]:g}; expected in {'(' if part == 'speed_share' else '['}0, 1]")


def has_speed_limit(spec: RobotSpec) -> bool:
    """Return True if the robot has a speed limit that a fault can lower."""
    is_servo = spec.actuator.kind in ("position", "torque")
    limited = is_servo and bool(np.isfinite(spec.joints("actuator.speed_limit_rad_s")).all())
    return limited or spec.actuator.kind == "muscle"
