"""Which joints fail, how and when: drawn for each episode from a distribution, or given as a list.

Kinds: ``locked`` (held at the angle where it was), ``free`` (no power: viscous friction and the joint's stops only;
muscles are vented), ``weak`` (a share of its torque is left), ``slow`` (a share of its speed limit is left; valves of
muscles take longer by that factor), ``offset`` (the reference is shifted by an angle, as of a horn that slipped on its
spline). Any of them may be *intermittent* (acting in bursts, as of a loose contact) and *recovering* (over after a
duration). A joint has at most one fault in an episode. What a fault does to a joint is physics (``physics.actuators``);
nothing here is visible to a policy unless ``reveal`` is set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from snake_gym.config.settings import Limit
from snake_gym.physics.faults import FAULT_CODES, HEALTHY
from snake_gym.physics.state import FaultState
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.streams import RandomStreams

FaultKind = Literal["locked", "free", "weak", "slow", "offset"]
LATEST_S = 1e9
"""A fault that begins later is none: it is left out, not put off."""
SHORTEST_PERIOD_S = 1e-6
"""Of bursts; far below any physics step, of which a burst takes at least one."""
_KINDS = ", ".join(name for name in FAULT_CODES if name != "healthy")


def _check(name: str, value: float, ok: bool, expected: str) -> None:
    if not ok:
        raise ValueError(f"{name} is {value:g}; expected {expected}")


@dataclass(frozen=True)
class JointFault:
    """One fault of a list. ``strength`` is for weak and slow, ``offset_rad`` for offset."""

    joint: int
    """Numbered from 1 at the tail as in the papers."""
    kind: FaultKind = "locked"
    onset_s: float = 0.0
    duration_s: Limit = math.inf
    strength: float = 0.3
    offset_rad: float = math.radians(20.0)
    period_s: Limit = math.inf
    """Intermittent: from burst to burst; inf: the fault acts all the time."""
    duty: float = 0.5
    """Intermittent: share of the period that a burst takes, from the period's begin."""

    def __post_init__(self) -> None:
        _check("onset_s", self.onset_s, 0.0 <= self.onset_s <= LATEST_S, f"finite and >= 0, at most {LATEST_S:g}")
        _check("duration_s", self.duration_s, self.duration_s > 0.0, "> 0 (.inf: for good)")
        _check("strength", self.strength, 0.0 < self.strength <= 1.0, "in (0, 1]")
        _check("offset_rad", self.offset_rad, abs(self.offset_rad) <= math.pi, "in [-pi, pi]")
        expected = f"> 0, at least {SHORTEST_PERIOD_S:g} (.inf: not intermittent)"
        _check("period_s", self.period_s, self.period_s >= SHORTEST_PERIOD_S, expected)
        _check("duty", self.duty, 0.0 < self.duty <= 1.0, "in (0, 1]")


@dataclass(frozen=True)
class FaultConfig:
    """Joint faults of an episode. The number of failed joints is uniform in [n_min, n_max]."""

    n_min: int = 0
    n_max: int = 0
    joints: tuple[int, ...] | None = None
    """Exactly these joints fail, numbered from 1 at the tail as in the papers; n_min and n_max are then ignored."""
    kinds: tuple[FaultKind, ...] = ("locked",)
    """Each failed joint draws one of these: locked (held where it was), free (no power), weak (less torque), slow (less
    speed), offset (reference shifted)."""
    onset_min_s: float = 0.0
    onset_max_s: float = 0.0
    """Each fault begins at a time uniform in [onset_min_s, onset_max_s]."""
    duration_s: Limit = math.inf
    """How long a fault lasts."""
    duration_max_s: float | None = None
    """If set, each fault lasts a time uniform in [duration_s, duration_max_s]."""
    recovering_share: float = 1.0
    """Share of the faults that end after their duration; the others last."""
    weak_strength: float = 0.3
    """Share of its torque that a weak joint keeps."""
    slow_strength: float = 0.3
    """Share of its speed limit that a slow joint keeps."""
    offset_rad: float = math.radians(20.0)
    """Shift of an offset joint's reference, to either side at random."""
    intermittent_share: float = 0.0
    """Share of the faults that act in bursts, begun once per period from the onset on."""
    period_min_s: float = 0.5
    period_max_s: float = 2.0
    """The period of each intermittent fault is uniform in [period_min_s, period_max_s]."""
    duty: float = 0.5
    """Share of the period that a burst takes."""
    events: tuple[JointFault, ...] = ()
    """A list of faults instead of drawn ones, each {joint, kind, onset_s, duration_s, strength, offset_rad, period_s,
    duty}; all but joint may be left out."""
    reveal: bool = False
    """Show the policy which joints are failed (a real robot does not know)."""

    def __post_init__(self) -> None:
        if not 0 <= self.n_min <= self.n_max:
            raise ValueError(f"faults.n_min is {self.n_min}, n_max {self.n_max}; expected 0 <= n_min <= n_max")
        if not 0.0 <= self.onset_min_s <= self.onset_max_s <= LATEST_S:
            raise ValueError(
                f"faults.onset_min_s is {self.onset_min_s:g}, onset_max_s {self.onset_max_s:g}; "
                f"expected 0 <= onset_min_s <= onset_max_s <= {LATEST_S:g}"
            )
        if not self.kinds:
            raise ValueError(f"faults.kinds is empty; expected some of {_KINDS}")
        _check("faults.duration_s", self.duration_s, self.duration_s > 0.0, "> 0")
        if self.duration_max_s is not None and not self.duration_s <= self.duration_max_s < math.inf:
            raise ValueError(
                f"faults.duration_max_s is {self.duration_max_s:g}; expected finite and >= duration_s, "
                f"{self.duration_s:g}"
            )
        for name in ("weak_strength", "slow_strength", "duty"):
            value = getattr(self, name)
            _check(f"faults.{name}", value, 0.0 < value <= 1.0, "in (0, 1]")
        for name in ("recovering_share", "intermittent_share"):
            value = getattr(self, name)
            _check(f"faults.{name}", value, 0.0 <= value <= 1.0, "in [0, 1]")
        _check("faults.offset_rad", self.offset_rad, abs(self.offset_rad) <= math.pi, "in [-pi, pi]")
        if not SHORTEST_PERIOD_S <= self.period_min_s <= self.period_max_s < math.inf:
            raise ValueError(
                f"faults.period_min_s is {self.period_min_s:g}, period_max_s {self.period_max_s:g}; "
                f"expected {SHORTEST_PERIOD_S:g} <= period_min_s <= period_max_s, finite"
            )
        if self.events and (self.joints is not None or self.n_max > 0):
            other = "joints" if self.joints is not None else "n_max"
            raise ValueError(f"faults.events and faults.{other} are both set; expected a list or a distribution")

    def check_joints(self, n_joints: int) -> None:
        """Raise ValueError unless the robot has the joints that shall fail."""
        for name, joints in (("joints", list(self.joints or ())), ("events", [event.joint for event in self.events])):
            for joint in joints:
                if not 1 <= joint <= n_joints:
                    raise ValueError(f"faults.{name} has joint {joint}; expected 1 to {n_joints} (the robot's joints)")
            if len(set(joints)) != len(joints):
                raise ValueError(f"faults.{name} is {joints}; expected each joint once")
        if self.n_max > n_joints:
            raise ValueError(f"faults.n_max is {self.n_max}; expected at most {n_joints} (the robot's joints)")

    def check_robot(self, spec: RobotSpec) -> None:
        """Raise ValueError unless the robot has the joints that shall fail, and can fail in these ways."""
        self.check_joints(spec.n_joints)
        kinds = {event.kind for event in self.events} if self.events else set(self.kinds)
        is_servo = spec.actuator.kind in ("position", "torque")
        limited = is_servo and np.isfinite(spec.joints("actuator.speed_limit_rad_s")).all()
        if "slow" in kinds and not (limited or spec.actuator.kind == "muscle"):
            raise ValueError(
                f"faults.{'events' if self.events else 'kinds'} has slow, but {spec.name} has no speed limit to lower; "
                "expected a position or torque servo with finite actuator.speed_limit_rad_s, or another kind of fault"
            )


def draw_faults(config: FaultConfig, streams: RandomStreams, faults: FaultState, rows: Any) -> None:
    """Draw the faults of a new episode for the worlds of ``rows`` (index array) into ``faults``.

    Every quantity has its own place among the random numbers of a world, so that one setting does not shift another.
    """
    n_joints = faults.kind.shape[1]
    u = streams.uniform(1 + 3 * n_joints, rows)
    if config.events:
        _list_faults(config.events, faults, rows)
        return
    order, which, when = u[:, 1 : 1 + n_joints], u[:, 1 + n_joints : 1 + 2 * n_joints], u[:, 1 + 2 * n_joints :]
    if config.joints is None:
        count = config.n_min + np.floor(u[:, :1] * (config.n_max - config.n_min + 1)).astype(np.int64)
        failed = np.argsort(np.argsort(order, axis=1), axis=1) < count
    else:
        failed = np.zeros(order.shape, dtype=bool)
        failed[:, np.array(config.joints, dtype=np.int64) - 1] = True
    codes = np.array([FAULT_CODES[kind] for kind in config.kinds])
    kind = codes[np.floor(which * codes.size).astype(np.int64)]
    onset = config.onset_min_s + when * (config.onset_max_s - config.onset_min_s)
    faults.kind[rows] = np.where(failed, kind, HEALTHY)
    faults.onset_s[rows] = onset
    faults.end_s[rows] = onset + config.duration_s
    faults.strength[rows] = np.where(kind == FAULT_CODES["slow"], config.slow_strength, config.weak_strength)
    faults.period_s[rows] = math.inf
    faults.duty[rows] = config.duty
    _draw_details(config, streams, faults, onset, rows)


def _draw_details(
    config: FaultConfig, streams: RandomStreams, faults: FaultState, onset: FloatArray, rows: Any
) -> None:
    """Side of an offset, duration, bursts: numbers drawn only where a setting needs them, after all others."""
    recovering = math.isfinite(config.duration_s) and (
        config.duration_max_s is not None or config.recovering_share < 1.0
    )
    if not (recovering or "offset" in config.kinds or config.intermittent_share > 0.0):
        return
    n_joints = onset.shape[1]
    side, how_long, recovers, flickers, how_often = np.split(streams.uniform(5 * n_joints, rows), 5, axis=1)
    faults.offset_rad[rows] = np.where(side < 0.5, -config.offset_rad, config.offset_rad)
    if recovering:
        longest = config.duration_s if config.duration_max_s is None else config.duration_max_s
        duration = config.duration_s + how_long * (longest - config.duration_s)
        faults.end_s[rows] = np.where(recovers < config.recovering_share, onset + duration, math.inf)
    period = config.period_min_s + how_often * (config.period_max_s - config.period_min_s)
    faults.period_s[rows] = np.where(flickers < config.intermittent_share, period, math.inf)


def _list_faults(events: tuple[JointFault, ...], faults: FaultState, rows: NDArray[np.int64]) -> None:
    faults.kind[rows] = HEALTHY
    for event in events:
        joint = event.joint - 1
        faults.kind[rows, joint] = FAULT_CODES[event.kind]
        faults.onset_s[rows, joint] = event.onset_s
        faults.end_s[rows, joint] = event.onset_s + event.duration_s
        faults.strength[rows, joint] = event.strength
        faults.offset_rad[rows, joint] = event.offset_rad
        faults.period_s[rows, joint] = event.period_s
        faults.duty[rows, joint] = event.duty
