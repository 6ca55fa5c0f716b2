"""All kinds of faults in one table, and the effects of those without a kernel.

A kind either acts in the kernels (``physics.actuators``) or on an encoder (``sensors``), or has an ``effect``: a
function that changes command, torque or speed in each control step. Ours of these are faults of geared bus servos, at
the end; a user's own module adds one by ``register_fault_kind`` likewise.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError
from snake_gym.config.errors import show
from snake_gym.physics import faults as codes
from snake_gym.physics.faults import HEALTHY
from snake_gym.plugins import check_free
from snake_gym.robot.spec import FloatArray, RobotSpec

Spread = float | tuple[float, float]
"""A number, or the range (low, high) from which each fault draws it."""


def ends(spread: Spread) -> tuple[float, float]:
    """Return the smallest and largest value of a number or range."""
    return spread if isinstance(spread, tuple) else (spread, spread)


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
    """Angle from the command to the aim of the servos' loops (K,) [rad], at once; two faults add up."""
    torque_share: FloatArray | None = None
    """Share of the torque that is left (K,), in [0, 1]."""
    speed_share: FloatArray | None = None
    """Share of the speed limit that is left (K,), in (0, 1]; instead of ``torque_share``."""
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


Effect = TypeVar("Effect", bound=Callable[[FaultyJoints], FaultEffect])
Law = Literal["joint_friction", "imperfect", "one_way"]
"""Law of the physics that a robot may lack."""


def lacks_speed_limit(spec: RobotSpec) -> str:
    """Return what the robot lacks for a fault that lowers its speed limit."""
    is_servo = spec.actuator.kind in ("position", "torque")
    limited = is_servo and bool(np.isfinite(spec.joints("actuator.speed_limit_rad_s")).all())
    return "" if limited or spec.actuator.kind == "muscle" else "speed limit"


def lacks_muscles(spec: RobotSpec) -> str:
    """Return what the robot lacks for faults of single muscles."""
    return "" if spec.actuator.kind == "muscle" else "muscles"


@dataclass(frozen=True)
class FaultKind:
    """One kind of fault."""

    name: str
    code: int
    """Number of the kind in states; that of a registered kind follows from its name."""
    note: str
    """What the fault does, in a few words."""
    effect: Callable[[FaultyJoints], FaultEffect] | None = None
    """Its effect in a control step; None: kernels or encoders have it."""
    laws: tuple[Law, ...] = ()
    """Laws of the physics that it needs."""
    strength: Spread = 0.3
    """Strength of drawn faults, in (0, 1]."""
    lacks: Callable[[RobotSpec], str] = lambda spec: ""
    """What a robot lacks that cannot have the fault; "": nothing."""
    part: Literal["joint", "encoder"] = "joint"


FAULT_KINDS: dict[str, FaultKind] = {
    kind.name: kind
    for kind in (
        FaultKind("locked", codes.LOCKED, "held where it was"),
        FaultKind("free", codes.FREE, "no power"),
        FaultKind("weak", codes.WEAK, "less torque"),
        FaultKind("slow", codes.SLOW, "less speed", lacks=lacks_speed_limit),
        FaultKind("offset", codes.OFFSET, "reference shifted"),
        FaultKind("slipped", codes.SLIPPED, "joint off what the servo reads"),
        FaultKind("dead", codes.DEAD, "reading frozen, rate 0", part="encoder"),
        FaultKind("biased", codes.BIASED, "angle off by a constant", part="encoder"),
        FaultKind("noisy", codes.NOISY, "noise on angle and rate", part="encoder"),
        *(
            FaultKind(f"{name}_{side}", code + right, f"{side} muscle {what}", None, (), strength, lacks_muscles)
            for right, side in enumerate(("left", "right"))
            for name, code, what, strength in (
                ("burst", codes.BURST_LEFT, "without pressure", (1.0, 1.0)),
                ("leak", codes.LEAK_LEFT, "keeps a share of its pressure", (0.1, 0.5)),
                ("weak", codes.WEAK_LEFT, "pulls with a share of its force", (0.1, 0.5)),
            )
        ),
    )
}
"""All kinds of faults by name; ``register_fault_kind`` adds to them."""
_FIRST_CODE = 1 << 8
"""Smallest code of a kind with an effect; those of the others are smaller."""


def kinds_of(part: str, spec: Any = None) -> list[str]:
    """Return the names of the kinds of faults of a part, "joint" or "encoder"; with ``spec``, of those it can have."""
    kinds = [kind for kind in FAULT_KINDS.values() if kind.part == part]
    if spec is not None and spec.fault_kinds is not None:
        return [kind.name for kind in kinds if kind.name in spec.fault_kinds]
    return [kind.name for kind in kinds if spec is None or not kind.lacks(spec)]


def name_of_code(code: int) -> str:
    """Return the name of the kind with this code; "failed" where no kind has it."""
    return next((kind.name for kind in FAULT_KINDS.values() if kind.code == code), "failed")


def register_fault_kind(
    name: str,
    strength: Spread = 0.3,
    laws: tuple[Law, ...] = (),
    lacks: Callable[[RobotSpec], str] = lambda spec: "",
) -> Callable[[Effect], Effect]:
    """Return a decorator that makes a function from ``FaultyJoints`` to ``FaultEffect`` a kind of joint fault.

    ``faults.kinds`` and ``faults.events`` call it ``name``; the other arguments are those of ``FaultKind``. The fault
    acts from the first control step that begins at or after its onset. Raises ConfigError where another function has
    the name.
    """
    low, high = ends(strength)
    if not 0.0 < low <= high <= 1.0:
        raise ConfigError(f"the strength of fault kind {name} is {show(strength)}; expected in (0, 1]")
    code = _FIRST_CODE + zlib.crc32(name.encode())  # of the name alone: saved states mean the same in any process

    def add(effect: Effect) -> Effect:
        taken = next((kind for kind in FAULT_KINDS.values() if name == kind.name or code == kind.code), None)
        check_free(f"fault kind {name!r}", taken and (taken.effect or taken), effect)
        text = " ".join((effect.__doc__ or "").partition("\n\n")[0].split()).rstrip(".")
        FAULT_KINDS[name] = FaultKind(name, code, text[:1].lower() + text[1:], effect, laws, strength, lacks)
        return effect

    return add


def check_codes(values: NDArray[np.int64]) -> None:
    """Raise ValueError for kinds of joint faults in a saved state that are not registered."""
    known = [kind.code for kind in FAULT_KINDS.values() if kind.part == "joint"]
    unknown = values[~np.isin(values, [HEALTHY, *known])]
    if unknown.size:
        raise ValueError(
            f"env state fault/kind holds the code {unknown[0]}, a kind of fault that no imported module registers; "
            "give it with --plugin FILE.py"
        )


# --- geared bus servos -----------------------------------------------------------------------------------------------

GROWTH_S = 20.0
"""Time in which backlash grows to its final width [s]."""
HEATING_S = 5.0
"""Time constant of a servo's heat [s]."""
LARGEST_LOAD = 1e3
"""Loads are clipped at this multiple of the bearable load."""
COOL = 0.5
"""Heat at which a servo comes back; it switches off at 1."""


def lacks_torque_limit(spec: RobotSpec) -> str:
    """Return what the robot lacks for a fault with a share of the torque limit as its strength."""
    return "" if np.isfinite(spec.joints("actuator.torque_limit_nm")).all() else "torque limit"


def lacks_gears(spec: RobotSpec) -> str:
    """Return what the robot lacks for backlash."""
    return "" if spec.actuator.kind in ("position", "torque") else "position or torque servo"


@register_fault_kind("rough", (0.4, 0.9), ("joint_friction",), lacks_torque_limit)
def friction_fault(joints: FaultyJoints) -> FaultEffect:
    """Dry friction of a share ``strength`` of the torque limit."""
    limit = joints.spec.joints("actuator.torque_limit_nm")[joints.joint]
    return FaultEffect(friction_nm=joints.strength * limit)


@register_fault_kind("loose", (0.2, 0.8), ("imperfect",), lacks_gears)
def backlash_fault(joints: FaultyJoints) -> FaultEffect:
    """Backlash that grows to ``strength`` rad within 20 s."""
    return FaultEffect(backlash_rad=joints.strength * np.minimum(joints.since_s / GROWTH_S, 1.0))


@register_fault_kind("overload", (0.1, 0.3), lacks=lacks_torque_limit)
def overload_fault(joints: FaultyJoints) -> FaultEffect:
    """Shutdown when hot; the servo bears a share ``strength`` of its torque limit.

    Heat follows the square of the load with a lag; the memory is the heat, negative while the servo is off. The load is
    that of the last control step, so that a trip comes up to a control step early or late.
    """
    limit = joints.spec.joints("actuator.torque_limit_nm")[joints.joint]
    torque = np.where(joints.memory < 0.0, 0.0, joints.torque_nm)
    load = np.minimum(torque / (joints.strength * limit), LARGEST_LOAD)
    heat = np.abs(joints.memory)
    heat = np.minimum(heat + (load**2 - heat) * -np.expm1(-joints.step_s / HEATING_S), 1.0)
    is_off = np.where(joints.memory < 0.0, heat > COOL, heat >= 1.0)
    return FaultEffect(powered=~is_off, memory=np.where(is_off, -heat, heat))


@register_fault_kind("misread", (0.2, 0.5))
def encoder_fault(joints: FaultyJoints) -> FaultEffect:
    """Error of the servo's own encoder, up to ``strength`` rad, anew in each control step."""
    error = joints.strength * (2.0 * joints.random - 1.0)
    return FaultEffect(shift_rad=-error, misread_rad=error)


@register_fault_kind("silent")
def bus_fault(joints: FaultyJoints) -> FaultEffect:
    """No commands, no readings."""
    return FaultEffect(reference=joints.last_command, silent=np.ones(joints.joint.size, bool))
