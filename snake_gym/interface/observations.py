"""What a policy sees, built from measurements alone: the same code for the simulated and the real robot.

An observation consists of named columns, each a function of what is ``Seen``. Every robot's are those of ``STANDARD``
for which it has a use; a user's own are registered by ``register_column`` and named in ``columns`` of the env.

Every entry is ``clip(value * scale, -bound, bound)`` as float32; the bound is its column's, ``BOUND`` for most.
Directions are relative to the robot, so what it sees does not depend on where in the world it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError
from snake_gym.config.errors import show
from snake_gym.plugins import check_numbers, choose_registered, describe_failure, is_again
from snake_gym.registry import TASKS, find_task
from snake_gym.robot.measurement import Goal, Measurement, centre_offset, link_angles, mean_angle, tracked_point
from snake_gym.robot.spec import FloatArray, RobotSpec

BOUND = 10.0
NEAR_M = 2.0
"""From here on, [m], a target is far: ``distance`` grows no more, so that a long leg looks like any leg."""
FULL_SCALE = 5.0
"""What the largest force that a sensor can tell becomes: forces in use are small beside it."""


class Seen(NamedTuple):
    """What columns are made from, in W worlds."""

    layout: ObservationLayout
    measurement: Measurement
    goal: Goal
    to_target: FloatArray
    """(W, 2) [m] from the measured tracked point to the target, world frame."""
    reference: FloatArray
    """(W, J) [rad] the joint references commanded last."""
    last_action: FloatArray
    """(W, A)."""
    phase: FloatArray | None
    """(W,) [rad] of the gait below the policy; None: there is none."""
    signals: Mapping[str, FloatArray]
    """What the task tells besides, by name; nothing on a real robot."""


class Column(NamedTuple):
    """A named part of an observation."""

    values: Callable[[Seen], FloatArray]
    """(W, width), or what can be broadcast to it."""
    unit: str
    meaning: str
    width: Callable[[ObservationLayout], int]
    """Entries that it has for a robot; 0: the robot has no use for it."""
    scale: Callable[[ObservationLayout], float]
    bound: float


Values = TypeVar("Values", bound=Callable[[Seen], FloatArray])
COLUMNS: dict[str, Column] = {}
"""All columns by name."""
STANDARD = (
    "joint_angle", "joint_rate", "reference_error", "last_action", "phase", "heading_error", "distance", "failed",
    "contact_force", "range",
)  # fmt: skip
"""Columns that an observation has wherever there is a use for them, in this order."""


def register_column(
    name: str,
    unit: str,
    meaning: str,
    width: int | Callable[[ObservationLayout], int] = 1,
    scale: float | Callable[[ObservationLayout], float] = 1.0,
    bound: float = BOUND,
) -> Callable[[Values], Values]:
    """Decorator: make a function from ``Seen`` to values (W, width) an observation column, named so in ``columns``.

    ``unit`` and ``meaning`` stand in the table of observations. ``width``: entries; ``scale``: what values are
    multiplied by; either may be a function of the layout. ``bound``: largest size of a scaled value, at most ``BOUND``.

    Raises ConfigError for numbers out of their range, and where another function has the name.
    """
    if name in STANDARD and name in COLUMNS:
        raise ConfigError(f"the column {name!r} is taken; expected another name than {', '.join(STANDARD)}")
    if not 0.0 < bound <= BOUND:
        raise ConfigError(f"the bound of column {name} is {bound:g}; expected in (0, {BOUND:g}]")

    def add(values: Values) -> Values:
        if name in COLUMNS and not is_again(COLUMNS[name].values, values):
            raise ConfigError(
                f"the column {name!r} of {COLUMNS[name].values.__module__} is taken; expected another name"
            )
        widths = width if callable(width) else lambda layout: width
        scales = scale if callable(scale) else lambda layout: scale
        COLUMNS[name] = Column(values, unit, meaning, widths, scales, bound)
        return values

    return add


def find_column(name: str, where: str) -> Column:
    """A registered column; those of this package's tasks come with their modules. Raises ConfigError for another."""
    if name not in COLUMNS:
        with suppress(ImportError):  # a small board has no tasks
            for task in TASKS:
                find_task(task)
    if name not in COLUMNS and COLUMNS.keys() == set(STANDARD):
        raise ConfigError(f"{where} is {name!r}, which no imported module registers; give it with --plugin FILE.py")
    return COLUMNS[choose_registered(name, COLUMNS, where)]


@dataclass(frozen=True)
class Field:
    """A column's place in the observations of one robot: from ``first`` on, ``clip(value * scale, -bound, bound)``."""

    name: str
    first: int
    width: int
    scale: float
    bound: float
    unit: str
    meaning: str

    @property
    def columns(self) -> slice:
        """The entries of an observation."""
        return slice(self.first, self.first + self.width)

    @property
    def place(self) -> str:
        """Everything about the part that a policy depends on, in words."""
        return f"{self.name} (first {self.first}, width {self.width}, scale {self.scale!r}, bound {self.bound:g})"


class ObservationLayout:
    """Names, places and scales of the observation's entries for one robot and ``n_actions`` A.

    ``has_phase``: a gait clock runs below the policy. ``point``: "centre" or "head", from where the target is seen.
    ``contact_limit_n``: largest force that the links' sensors tell; None: no such sensors. ``n_beams``: B of the head's
    scanner, 0: none; ``max_range_m``: its reach. ``columns``: registered columns after the standard ones.

    Raises ConfigError where nobody has registered such a column, or it is there already.
    """

    def __init__(
        self,
        spec: RobotSpec,
        n_actions: int,
        has_phase: bool,
        point: str,
        reveal_faults: bool = False,
        contact_limit_n: float | None = None,
        n_beams: int = 0,
        max_range_m: float = 1.0,
        columns: Sequence[str] = (),
    ) -> None:
        self.spec, self.n_actions, self.has_phase, self.point = spec, n_actions, has_phase, point
        self.reveal_faults, self.contact_limit_n = reveal_faults, contact_limit_n
        self.n_beams, self.max_range_m = n_beams, max_range_m
        self.columns = tuple(columns)
        self.fields: dict[str, Field] = {}
        start = 0
        for name in (*STANDARD, *columns):
            column = find_column(name, "a column of the observations")
            if name in self.fields:
                raise ConfigError(f"the column {name} of the observations is named twice; expected each once")
            width, scale = column.width(self), column.scale(self)
            if not isinstance(width, int | np.integer) or width < 0:
                raise ConfigError(f"the width of column {name} is {show(width)}; expected an integer >= 0")
            if check_numbers(scale, (), f"the scale of column {name}") == 0.0:
                raise ConfigError(f"the scale of column {name} is 0; expected another number")
            if width:
                self.fields[name] = Field(name, start, width, scale, column.bound, column.unit, column.meaning)
                start += width
        self.size = start
        self._bound = np.concatenate([np.full(f.width, f.bound, np.float32) for f in self.fields.values()])

    def build(
        self,
        measurement: Measurement,
        goal: Goal,
        reference: FloatArray,
        last_action: FloatArray,
        phase: FloatArray | None,
        signals: Mapping[str, FloatArray] | None = None,
    ) -> NDArray[np.float32]:
        """The observation (W, D) float32, a fresh array; arguments as in ``Seen``.

        Where the robot lacks a sensor that the layout has, no force is felt, every beam is free, and no joint failed.
        """
        to_target = goal.target_xy_w - tracked_point(self.spec, measurement, self.point)
        seen = Seen(self, measurement, goal, to_target, reference, last_action, phase, signals or {})
        obs = np.empty((last_action.shape[0], self.size), np.float32)
        for name, place in self.fields.items():
            if name in STANDARD:
                values = COLUMNS[name].values(seen)
            else:
                values = _own_values(name, seen, (obs.shape[0], place.width))
            if place.scale == 1.0:
                obs[:, place.columns] = values
            else:
                np.multiply(values, place.scale, out=obs[:, place.columns], casting="same_kind")
        return np.clip(obs, -self._bound, self._bound, out=obs)

    def read(self, obs: NDArray[np.float32], name: str) -> FloatArray:
        """The part ``name`` of observations (W, D), unscaled: (W, width)."""
        part = self.fields[name]
        return obs[:, part.columns].astype(np.float64) / part.scale

    def restore(self, obs: NDArray[np.float32]) -> tuple[Measurement, Goal]:
        """Measurement and goal that look like ``obs`` (W, D): tracked point at the origin, mean link angle 0.

        A target that is farther away than the observation tells is put where the observation's bound is.
        """
        angle = self.read(obs, "joint_angle")
        n_worlds = angle.shape[0]
        sin_cos = self.read(obs, "heading_error")
        bearing = -np.arctan2(sin_cos[:, 0], sin_cos[:, 1])
        distance = self.read(obs, "distance")
        zero = np.zeros((n_worlds, 2))
        pose = (zero, np.zeros(n_worlds), np.ones(n_worlds, bool), zero)
        sample = Measurement(angle, self.read(obs, "joint_rate"), *pose)
        sample = sample._replace(head_angle=-mean_angle(sample))
        centre = centre_offset(self.spec, link_angles(sample))
        if self.point == "head":
            sample = sample._replace(centre_xy_w=centre)
        else:
            sample = sample._replace(head_xy_w=-centre)
        target = distance * np.stack([np.cos(bearing), np.sin(bearing)], axis=1)
        if "contact_force" in self.fields:
            force = self.read(obs, "contact_force").reshape(n_worlds, self.spec.n_links, 2)
            sample = sample._replace(contact_force_l=force)
        if "range" in self.fields:
            sample = sample._replace(range_m=self.read(obs, "range"))
        if "failed" in self.fields:
            sample = sample._replace(joint_failed=self.read(obs, "failed") > 0.5)
        return sample, Goal(target, np.ones(n_worlds, bool))


def _own_values(name: str, seen: Seen, shape: tuple[int, int]) -> FloatArray:
    """Values of a user's own column. Raises ConfigError, which names it, where its function fails or gives others."""
    function, what = COLUMNS[name].values, f"the column {name} of the observations"
    try:
        values = function(seen)
    except Exception as error:
        code = getattr(function, "__code__", None)
        raise describe_failure(what, error, *([] if code is None else [code.co_filename])) from error
    return check_numbers(values, shape, what)


# --- the standard columns --------------------------------------------------------------------------------------------


def _n_joints(layout: ObservationLayout) -> int:
    return layout.spec.n_joints


def _rate_scale(layout: ObservationLayout) -> float:
    fastest = layout.spec.joints("actuator.speed_limit_rad_s")
    return 1.0 / float(fastest.max()) if np.isfinite(fastest).all() else 0.5


def _sin_cos(angle: FloatArray) -> FloatArray:
    return np.stack([np.sin(angle), np.cos(angle)], axis=1)


@register_column("joint_angle", "rad", "measured joint angle", _n_joints)
def joint_angle(seen: Seen) -> FloatArray:
    return seen.measurement.joint_angle


@register_column("joint_rate", "rad/s", "measured joint rate", _n_joints, _rate_scale)
def joint_rate(seen: Seen) -> FloatArray:
    return seen.measurement.joint_rate


@register_column("reference_error", "rad", "last joint reference minus measured angle", _n_joints)
def reference_error(seen: Seen) -> FloatArray:
    return seen.reference - seen.measurement.joint_angle


@register_column("last_action", "1", "action of the previous step", lambda layout: layout.n_actions)
def last_action(seen: Seen) -> FloatArray:
    return seen.last_action


@register_column("phase", "1", "sine and cosine of the gait's phase", lambda layout: 2 * layout.has_phase)
def phase(seen: Seen) -> FloatArray:
    return np.zeros(1) if seen.phase is None else _sin_cos(seen.phase)


@register_column("heading_error", "1", "sine and cosine of mean link angle minus bearing of the target", 2)
def heading_error(seen: Seen) -> FloatArray:
    """The bearing is that from the tracked point (sibilska2022, eq. 34-36)."""
    return _sin_cos(mean_angle(seen.measurement) - np.arctan2(seen.to_target[:, 1], seen.to_target[:, 0]))


@register_column(
    "distance", "m", f"distance from the tracked point to the target, at most {NEAR_M:g} m", 1, 1.0 / NEAR_M, 1.0
)
def distance(seen: Seen) -> FloatArray:
    return np.hypot(seen.to_target[:, :1], seen.to_target[:, 1:])


@register_column(
    "failed", "1", "1 where the joint is failed now", lambda layout: layout.reveal_faults * layout.spec.n_joints
)
def failed(seen: Seen) -> FloatArray:
    known = seen.measurement.joint_failed
    return np.zeros(1) if known is None else known.astype(np.float64)


@register_column(
    "contact_force", "N", "contact force on each link from the tail, along the link and to its left",
    lambda layout: 0 if layout.contact_limit_n is None else 2 * layout.spec.n_links,
    lambda layout: FULL_SCALE / (layout.contact_limit_n or FULL_SCALE),
)  # fmt: skip
def contact_force(seen: Seen) -> FloatArray:
    force = seen.measurement.contact_force_l
    return np.zeros(1) if force is None else force.reshape(force.shape[0], -1)


@register_column(
    "range", "m", "free way along each beam of the head's scanner", lambda layout: layout.n_beams,
    lambda layout: 1.0 / layout.max_range_m,
)  # fmt: skip
def free_range(seen: Seen) -> FloatArray:
    measured = seen.measurement.range_m
    return np.array([seen.layout.max_range_m]) if measured is None else measured
