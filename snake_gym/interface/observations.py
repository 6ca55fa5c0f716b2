"""What a policy sees, built from measurements alone: the same code for the simulated and the real robot.

An observation consists of named columns, each a function of what is ``Seen``. By default they are those of ``STANDARD``
for which the robot has a use, and those of the task; ``observation.columns`` of the env names others, among them a
user's own (``register_column``). ``observer`` keeps what is needed of earlier control steps.

Every entry is ``clip(value * scale, -bound, bound)`` as float32; the bound is its column's, ``BOUND`` for most.
Directions are relative to the robot, so what it sees does not depend on where in the world it is. Joints are in the
order of ``RobotSpec``, from the tail; ``JOINT_SIGN`` says which way they turn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
import pydantic
from numpy.typing import NDArray

from snake_gym.config import ConfigError, Settings
from snake_gym.config.errors import show
from snake_gym.controllers.fault_detection import FREE, HEALTHY, LOCKED
from snake_gym.interface.mirror import ALONG_LEFT, SAME, TURNED, Mirror, Reflection, find_reflection, side_by_side
from snake_gym.plugins import check_free, check_numbers, choose_registered, describe_failure
from snake_gym.registry import TASKS, find_task
from snake_gym.robot import muscle_pair
from snake_gym.robot.chain import ChainSpec, FloatArray
from snake_gym.robot.measurement import Goal, Measurement, mean_angle, turn_back

BOUND = 10.0
NEAR_M = 2.0
"""From here on, [m], a target is far: ``distance`` grows no more, so that a long leg looks like any leg."""
FORCE_SCALE = 5.0
"""Observed value of the sensor's maximum force."""
JOINT_SIGN = (
    "joint i is the angle of link i minus that of link i + 1, links from the tail, so that > 0 bends to the right"
)


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
    """Signals of the task, the controller below the policy and an estimator, by name."""
    remaining: FloatArray | None = None
    """(W,) share of the episode's time limit that is left; None: there is no limit."""
    velocity: FloatArray | None = None
    """(W, 3) [m/s, m/s, rad/s] of the measured centre of mass and mean link angle, world frame; None: not known."""


class Column(NamedTuple):
    """A named part of what is ``Seen``, or of a truth (``tasks.privileged``)."""

    values: Callable[[Any], FloatArray]
    """(W, width); of an observation also what can be broadcast to it."""
    unit: str
    meaning: str
    width: int | Callable[[Any], int] = 1
    """Entries, for a layout or a truth; 0: there is nothing to show."""
    scale: float | Callable[[Any], float] = 1.0
    bound: float = BOUND
    needs: str = ""
    """Settings without which there is nothing to show, in words."""
    mirror: Mirror = None
    """How its values look in a mirror; None: nobody has said it."""

    def place(self, name: str, first: int, of: Any, is_named: bool) -> Field:
        """Return its place. Raises ConfigError: nothing to show though it is named, or numbers out of their range."""
        width, scale = (one(of) if callable(one) else one for one in (self.width, self.scale))
        if not isinstance(width, int | np.integer) or width < 0:
            raise ConfigError(f"the width of column {name} is {show(width)}; expected an integer >= 0")
        if check_numbers(scale, (), f"the scale of column {name}") == 0.0:
            raise ConfigError(f"the scale of column {name} is 0; expected another number")
        if width == 0 and is_named:
            needs = f"; it needs {self.needs}" if self.needs else f" ({self.meaning}); expected others"
            raise ConfigError(f"the column {name} has no entries with this robot and these settings{needs}")
        return Field(name, first, int(width), scale, self.bound, self.unit, self.meaning)


Values = TypeVar("Values", bound=Callable[[Seen], FloatArray])
COLUMNS: dict[str, Column] = {}
"""All columns by name."""
STANDARD = (
    "joint_angle", "joint_rate", "reference_error", "last_action", "phase", "heading_error", "distance", "failed",
    "contact_force", "range",
)  # fmt: skip
"""Columns that an observation has by default wherever there is a use for them, in this order."""
FURTHER = (
    "joint_reference", "pose_valid", "body_velocity", "turning_rate", "remaining_time", "tail_leads", "suspected_fault",
    "fault_probability",
)  # fmt: skip
"""Columns that it has where they are named."""
OF_MUSCLES = ("muscle_length", "muscle_tension", "muscle_pressure")
"""Those of robots with muscles, likewise."""
OWN = (*STANDARD, *FURTHER, *OF_MUSCLES)
USUAL = "standard"
"""Name that stands for ``STANDARD`` and the task's columns in ``observation.columns``."""


class ObservationConfig(Settings):
    """What a policy sees, and its critic in training."""

    columns: Annotated[tuple[str, ...], pydantic.Field(min_length=1)] = (USUAL,)
    """Columns in order; ``standard`` stands for those of the table above and the task's."""
    history: Annotated[int, pydantic.Field(ge=1, le=64)] = 1
    """Number of control steps that an observation shows, newest first; the first of an episode stands for earlier."""
    privileged: tuple[str, ...] = ()
    """Truth for critics, by the names of the table above; with any, observations are {policy, privileged}."""

    def check(self) -> None:
        for i, column in enumerate(self.columns):
            if column != USUAL:
                find_column(column, f"columns[{i}]")


def register_column(
    name: str,
    unit: str,
    meaning: str,
    width: int | Callable[[ObservationLayout], int] = 1,
    scale: float | Callable[[ObservationLayout], float] = 1.0,
    bound: float = BOUND,
    needs: str = "",
    mirror: Mirror = None,
) -> Callable[[Values], Values]:
    """Decorator: make a function from ``Seen`` to values (W, width) a column, named in ``observation.columns``.

    ``unit`` and ``meaning`` stand in the table of observations. ``width``: entries; ``scale``: what values are
    multiplied by; either may be a function of the layout. ``bound``: largest size of a scaled value, at most ``BOUND``.
    ``needs``: settings of the env without which there is nothing to show, in words for errors.
    ``mirror``: how values look in a mirror, see ``interface.mirror``; only mirrored training needs it.

    Raises ConfigError for numbers out of their range, and where another function has the name.
    """
    if name == USUAL:
        raise ConfigError(f"the column {name!r} is taken; expected another name")
    if not 0.0 < bound <= BOUND:
        raise ConfigError(f"the bound of column {name} is {bound:g}; expected in (0, {BOUND:g}]")

    def add(values: Values) -> Values:
        check_free(f"column {name!r}", getattr(COLUMNS.get(name), "values", None), values)
        COLUMNS[name] = Column(values, unit, meaning, width, scale, bound, needs, mirror)
        return values

    return add


def find_column(name: str, where: str) -> Column:
    """A registered column; those of this package's tasks come with their modules. Raises ConfigError for another."""
    if name not in COLUMNS:
        with suppress(ImportError):  # a small board has no tasks
            for task in TASKS:
                find_task(task)
    return COLUMNS[choose_registered(name, COLUMNS if name in COLUMNS else (USUAL, *COLUMNS), where)]


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
    scanner, 0: none; ``max_range_m``: its reach. ``columns`` and ``history``: see ``ObservationConfig``;
    ``task_columns``: what ``standard`` in ``columns`` stands for, after ``STANDARD``. ``controller_signals``: those of
    the controller below the policy, and of an estimator (``ActionDecoder.signal_names``).

    ``fields`` are the places in the newest control step, which are the first ``step_size`` entries.

    Raises ConfigError where nobody has registered a column, where it is there already, or, if it is named, where there
    is no use for it.
    """

    def __init__(
        self,
        spec: ChainSpec,
        n_actions: int,
        has_phase: bool,
        point: str,
        reveal_faults: bool = False,
        contact_limit_n: float | None = None,
        n_beams: int = 0,
        max_range_m: float = 1.0,
        columns: Sequence[str] = (USUAL,),
        task_columns: Sequence[str] = (),
        history: int = 1,
        controller_signals: Collection[str] = (),
    ) -> None:
        self.spec, self.n_actions, self.has_phase, self.point = spec, n_actions, has_phase, point
        self.reveal_faults, self.contact_limit_n = reveal_faults, contact_limit_n
        self.n_beams, self.max_range_m, self.controller_signals = n_beams, max_range_m, controller_signals
        self.history = history
        """Number k of control steps that an observation shows."""
        self.fields: dict[str, Field] = {}
        start = 0
        for given in columns:
            for name in (*STANDARD, *task_columns) if given == USUAL else (given,):
                column = find_column(name, "a column of the observations")
                if name in self.fields:
                    raise ConfigError(f"the column {name} of the observations is named twice; expected each once")
                place = column.place(name, start, self, is_named=given != USUAL)
                if place.width:
                    self.fields[name] = place
                    start += place.width
        self.step_size = start
        """Entries of one control step."""
        self.size = start * history
        """Entries D of an observation."""

    def build(self, seen: Seen) -> NDArray[np.float32]:
        """Return what one control step shows (W, step_size) float32, a fresh array; ``Observer`` calls it.

        Where the robot lacks a sensor that the layout has, no force is felt, every beam is free, and no joint failed.
        """
        parts = []
        for name, place in self.fields.items():
            shape = (seen.last_action.shape[0], place.width)
            values = COLUMNS[name].values(seen) if name in OWN else _own_values(name, seen, shape)
            if place.scale != 1.0:
                values = values * place.scale
            if place.bound < BOUND:
                values = np.clip(values, -place.bound, place.bound)
            parts.append(values if values.shape == shape else np.broadcast_to(values, shape))
        obs = np.concatenate(parts, axis=1, dtype=np.float32, casting="same_kind")
        return obs.clip(-BOUND, BOUND, out=obs)

    def reflection(self, action: Reflection) -> Reflection:
        """Return how observations (W, D) look in a mirror; ``action``: how actions do.

        Raises ConfigError, which names the column, where nobody has said it.
        """
        parts = [
            find_reflection(COLUMNS[name].mirror, place.width, f"the column {name} of the observations", action)
            for name, place in self.fields.items()
        ]
        return side_by_side(self.history * parts)

    def lacks_signal(self, name: str, signals: Mapping[str, FloatArray], n_worlds: int) -> bool:
        """Whether the column ``name`` reads a signal, or an entry of one, that is not among ``signals`` (W, ...)."""
        sample, goal = self.restore(np.zeros((n_worlds, self.size), np.float32))
        still, action = np.zeros((n_worlds, self.spec.n_joints)), np.zeros((n_worlds, self.n_actions))
        phase = np.zeros(n_worlds) if self.has_phase else None
        try:
            COLUMNS[name].values(Seen(self, sample, goal, goal.target_xy_w, still, action, phase, signals))
        except Exception as error:  # another kind is told at the first observation
            return isinstance(error, LookupError)
        return False

    def read(self, obs: NDArray[np.float32], name: str) -> FloatArray:
        """The part ``name`` of observations (W, D), unscaled, in their newest control step: (W, width)."""
        part = self.fields[name]
        return obs[:, part.columns].astype(np.float64) / part.scale

    def restore(self, obs: NDArray[np.float32]) -> tuple[Measurement, Goal]:
        """Measurement and goal that look like ``obs`` (W, D): tracked point at the origin, mean link angle 0.

        A target that is farther away than the observation tells is put where the observation's bound is. What no column
        tells is straight, at rest, and 1 m ahead.
        """
        n_worlds = obs.shape[0]

        def read(name: str, *otherwise: float) -> FloatArray:
            return self.read(obs, name) if name in self.fields else np.tile(otherwise, (n_worlds, 1))

        at_rest = [0.0] * self.spec.n_joints
        error, distance = read("heading_error", 0.0, 1.0), read("distance", 1.0)
        bearing = -np.arctan2(error[:, 0], error[:, 1])
        target = distance * np.stack([np.cos(bearing), np.sin(bearing)], axis=1)
        sample = self.spec.at_origin(read("joint_angle", *at_rest), read("joint_rate", *at_rest), self.point)
        moved: dict[str, Any] = {}
        if "contact_force" in self.fields:
            moved["contact_force_l"] = self.read(obs, "contact_force").reshape(n_worlds, self.spec.n_links, 2)
        if "range" in self.fields:
            moved["range_m"] = self.read(obs, "range")
        if "failed" in self.fields:
            moved["joint_failed"] = self.read(obs, "failed") > 0.5
        return sample._replace(**moved), Goal(target, np.ones(n_worlds, bool))


def _own_values(name: str, seen: Seen, shape: tuple[int, int]) -> FloatArray:
    """Values of a user's own column. Raises ConfigError, which names it, where its function fails or gives others."""
    function, what = COLUMNS[name].values, f"the column {name} of the observations"
    try:
        values = function(seen)
    except Exception as error:
        code = getattr(function, "__code__", None)
        raise describe_failure(what, error, *([] if code is None else [code.co_filename])) from error
    return check_numbers(values, shape, what)


# --- our own columns -------------------------------------------------------------------------------------------------


def n_joints(of: Any) -> int:
    """Return the number of joints of a layout's robot, or of a truth's."""
    return int(of.spec.n_joints)


def rate_scale(of: Any) -> float:
    """Return the scale of joint rates of a layout's robot, or of a truth's: 1 is the fastest servo's limit."""
    fastest = of.spec.joints("actuator.speed_limit_rad_s")
    return 1.0 / float(fastest.max()) if np.isfinite(fastest).all() else 0.5


def sin_cos(angle: FloatArray) -> FloatArray:
    """Return sine and cosine (W, 2) of angles (W,)."""
    return np.array([np.sin(angle), np.cos(angle)]).T  # np.stack takes ten times as long


@register_column("joint_angle", "rad", "measured joint angle", n_joints, mirror=TURNED)
def joint_angle(seen: Seen) -> FloatArray:
    return seen.measurement.joint_angle


@register_column("joint_rate", "rad/s", "measured joint rate", n_joints, rate_scale, mirror=TURNED)
def joint_rate(seen: Seen) -> FloatArray:
    return seen.measurement.joint_rate


@register_column("reference_error", "rad", "last joint reference minus measured angle", n_joints, mirror=TURNED)
def reference_error(seen: Seen) -> FloatArray:
    return seen.reference - seen.measurement.joint_angle


@register_column("last_action", "1", "action of the previous step", lambda layout: layout.n_actions, mirror="action")
def last_action(seen: Seen) -> FloatArray:
    return seen.last_action


@register_column(
    "phase", "1", "sine and cosine of the gait's phase", lambda layout: 2 * layout.has_phase,
    needs="action.kind gait or residual", mirror=TURNED,
)  # fmt: skip
def phase(seen: Seen) -> FloatArray:
    return np.zeros(1) if seen.phase is None else sin_cos(seen.phase)


@register_column(
    "heading_error", "1", "sine and cosine of mean link angle minus bearing of the target", 2, mirror=(TURNED, SAME),
)  # fmt: skip
def heading_error(seen: Seen) -> FloatArray:
    """The bearing is that from the tracked point (sibilska2022, eq. 34-36)."""
    return sin_cos(mean_angle(seen.measurement) - np.arctan2(seen.to_target[:, 1], seen.to_target[:, 0]))


@register_column(
    "distance", "m", f"distance from the tracked point to the target, at most {NEAR_M:g} m", 1, 1.0 / NEAR_M, 1.0,
    mirror=SAME,
)  # fmt: skip
def distance(seen: Seen) -> FloatArray:
    return np.hypot(seen.to_target[:, :1], seen.to_target[:, 1:])


@register_column(
    "failed", "1", "1 where the joint is failed now", lambda layout: layout.reveal_faults * layout.spec.n_joints,
    needs="faults.reveal", mirror=SAME,
)  # fmt: skip
def failed(seen: Seen) -> FloatArray:
    known = seen.measurement.joint_failed
    return np.zeros(1) if known is None else known.astype(np.float64)


@register_column(
    "contact_force", "N", "contact force on each link from the tail, along the link and to its left",
    lambda layout: 0 if layout.contact_limit_n is None else 2 * layout.spec.n_links,
    lambda layout: FORCE_SCALE / (layout.contact_limit_n or FORCE_SCALE), needs="a task with obstacles",
    mirror=ALONG_LEFT,
)  # fmt: skip
def contact_force(seen: Seen) -> FloatArray:
    force = seen.measurement.contact_force_l
    return np.zeros(1) if force is None else force.reshape(force.shape[0], -1)


@register_column(
    "range", "m", "free way along each beam of the head's scanner", lambda layout: layout.n_beams,
    lambda layout: 1.0 / layout.max_range_m, needs="a task with obstacles", mirror="reversed",
)  # fmt: skip
def free_range(seen: Seen) -> FloatArray:
    measured = seen.measurement.range_m
    return np.array([seen.layout.max_range_m]) if measured is None else measured


@register_column("joint_reference", "rad", "last joint reference", n_joints, mirror=TURNED)
def joint_reference(seen: Seen) -> FloatArray:
    return seen.reference


@register_column(
    "pose_valid", "1", "1 while the pose source sees the robot, 0 while its last pose is repeated", mirror=SAME,
)  # fmt: skip
def pose_valid(seen: Seen) -> FloatArray:
    return seen.measurement.pose_valid[:, None].astype(np.float64)


@register_column(
    "body_velocity", "m/s", "velocity of the centre of mass from its measured places, along the mean link angle and to "
    "its left", 2, mirror=ALONG_LEFT,
)  # fmt: skip
def body_velocity(seen: Seen) -> FloatArray:
    if seen.velocity is None:
        return np.zeros(1)
    return turn_back(seen.velocity[:, :2], mean_angle(seen.measurement))


@register_column("turning_rate", "rad/s", "rate of the mean link angle, from its measured values", mirror=TURNED)
def turning_rate(seen: Seen) -> FloatArray:
    return np.zeros(1) if seen.velocity is None else seen.velocity[:, 2:]


@register_column("remaining_time", "1", "share of the episode's time limit that is left", mirror=SAME)
def remaining_time(seen: Seen) -> FloatArray:
    return np.ones(1) if seen.remaining is None else seen.remaining[:, None]


@register_column(
    "tail_leads", "1", "1 where the controller below the policy drives tail first",
    lambda layout: int("reverse" in layout.controller_signals), mirror=SAME,
    needs="a residual on a controller that drives both ways",
)  # fmt: skip
def tail_leads(seen: Seen) -> FloatArray:
    return seen.signals["reverse"][:, None]


@register_column(
    "suspected_fault", "1", "1 where the controller below the policy takes a joint for failed, for each joint, in it "
    "for locked, for free, for others",
    lambda layout: 3 * layout.spec.n_joints * ("fault_kind" in layout.controller_signals),
    needs="a residual on a controller that detects faults", mirror=SAME,
)  # fmt: skip
def suspected_fault(seen: Seen) -> FloatArray:
    kind = seen.signals["fault_kind"]
    kinds = (kind == LOCKED, kind == FREE, (kind != HEALTHY) & (kind != LOCKED) & (kind != FREE))
    return np.stack(kinds, axis=2).reshape(kind.shape[0], -1).astype(np.float64)


@register_column(
    "fault_probability", "1", "how likely each joint is locked, free, weak, slipped or offset, by the estimator",
    lambda layout: 5 * layout.spec.n_joints * ("fault_probability" in layout.controller_signals),
    needs="action.estimator.on", mirror=SAME,
)  # fmt: skip
def fault_probability(seen: Seen) -> FloatArray:
    likely = seen.signals["fault_probability"]
    return likely.reshape(likely.shape[0], -1)


def n_muscles(layout: ObservationLayout) -> int:
    """Return the number of muscles of a layout's robot, two at each joint."""
    return 2 * layout.spec.n_joints if layout.spec.actuator.kind == "muscle" else 0


@register_column(
    "muscle_length", "m", "length of each muscle beyond that at rest, left and right of each joint, by its measured "
    "angle", n_muscles, lambda layout: 5.0 / layout.spec.actuator.muscle.rest_length_m, needs="a robot with muscles",
)  # fmt: skip
def muscle_length(seen: Seen) -> FloatArray:
    muscle, angle = seen.layout.spec.actuator.muscle, seen.measurement.joint_angle
    return (muscle_pair.muscle_length(muscle, angle) - muscle.rest_length_m).reshape(angle.shape[0], -1)


@register_column(
    "muscle_tension", "N", "measured force of each muscle, left and right of each joint", n_muscles,
    lambda layout: 1.0 / layout.spec.actuator.muscle.most_tension_n, needs="a robot with muscles",
)  # fmt: skip
def muscle_tension(seen: Seen) -> FloatArray:
    tension = seen.measurement.muscle_tension
    return np.zeros(1) if tension is None else tension.reshape(tension.shape[0], -1)


@register_column(
    "muscle_pressure", "Pa", "measured pressure of each muscle, left and right of each joint", n_muscles,
    lambda layout: 1.0 / layout.spec.actuator.muscle.max_pressure_pa, needs="a robot with muscles",
)  # fmt: skip
def muscle_pressure(seen: Seen) -> FloatArray:
    pressure = seen.measurement.muscle_pressure
    return np.zeros(1) if pressure is None else pressure.reshape(pressure.shape[0], -1)
