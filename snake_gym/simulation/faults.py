"""Which joints or encoders fail, how and when: drawn for each episode from a distribution, or given as a list.

Kinds of joint faults: ``locked`` (held at the angle where it was), ``free`` (no power: viscous friction and the joint's
stops only; muscles are vented), ``weak`` (a share of its torque is left), ``slow`` (a share of its speed limit is left;
valves of muscles take longer by that factor), ``offset`` (the reference is shifted by an angle, as of a horn that
slipped on its spline), and those that are registered (``fault_kinds``). Any of them may be *intermittent* (acting in
bursts, as of a loose contact) and *recovering* (over after a duration). A joint has at most one fault in an episode.
What the named ones do to a joint is physics (``physics.actuators``). No policy sees a fault unless ``reveal`` is set.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import Range, Settings, check_order
from snake_gym.config.settings import Angle, Count, Limit, NonNegative, PositiveCount, PositiveShare, Share
from snake_gym.physics.faults import FAULT_CODES, HEALTHY
from snake_gym.physics.state import FaultState
from snake_gym.plugins import choose_registered
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.fault_kinds import JOINT_KINDS, REGISTERED, has_speed_limit
from snake_gym.simulation.streams import RandomStreams

EncoderFaultKind = Literal["dead", "biased", "noisy"]
SHORTEST_PERIOD_S = 1e-6
"""Shortest period of a fault that comes in bursts: far below any physics step, of which a burst takes at least one."""
Period = Annotated[float, Range(SHORTEST_PERIOD_S)]
"""Time from burst to burst [s]."""
_OFFSET_RAD = math.radians(20.0)
SensorError = Annotated[float, Range(0.0, 1e6)]
"""Error of a sensor's reading [rad, rad/s, m]: more would be no reading."""


@dataclass(frozen=True)
class FaultDistribution(Settings):
    """Faults of an episode; their number is uniform in [n_min, n_max]."""

    group: ClassVar[str]
    """Name of these settings."""
    known_kinds: ClassVar[Collection[str]]

    n_min: Count = 0
    n_max: Count = 0
    kinds: tuple[str, ...] = ()
    onset_min_s: NonNegative = 0.0
    onset_max_s: NonNegative = 0.0
    """Each fault begins at a time uniform in [onset_min_s, onset_max_s]."""
    duration_s: Limit = math.inf
    """How long a fault lasts."""
    events: tuple[Any, ...] = ()

    def check(self) -> None:
        """Raise ValueError unless number, kinds and times go together."""
        check_order(self, "n_min", "n_max")
        check_order(self, "onset_min_s", "onset_max_s")
        if not self.kinds:
            raise ValueError(f"{self.group}.kinds is empty; expected some of {', '.join(self.known_kinds)}")
        for i, kind in enumerate(self.kinds):
            choose_registered(kind, self.known_kinds, f"{self.group}.kinds[{i}]")
        if self.events and self.n_max > 0:
            raise ValueError(
                f"{self.group}.events and {self.group}.n_max are both set; expected a list or a distribution"
            )

    @property
    def any(self) -> bool:
        """Whether something may fail."""
        return self.n_max > 0 or bool(self.events)

    def check_joints(self, n_joints: int) -> None:
        """Raise ValueError unless the robot has the joints that shall fail."""
        named = list(getattr(self, "joints", None) or ())
        for name, given in (("joints", named), ("events", [event.joint for event in self.events])):
            for joint in given:
                if not 1 <= joint <= n_joints:
                    expected = f"1 to {n_joints} (the robot's joints)"
                    raise ValueError(f"{self.group}.{name} has joint {joint}; expected {expected}")
            if len(set(given)) != len(given):
                raise ValueError(f"{self.group}.{name} is {given}; expected each joint once")
        if self.n_max > n_joints:
            raise ValueError(f"{self.group}.n_max is {self.n_max}; expected at most {n_joints} (the robot's joints)")

    def draw(
        self, u: FloatArray, joints: tuple[int, ...] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
        """Kinds (HEALTHY: no fault), the places in ``kinds`` that were drawn for all joints, and onsets, (M, J) each.

        ``u`` (M, 1 + 3 J) are numbers in [0, 1), where every quantity has its own place, so that no setting shifts
        another; ``joints`` those that fail, counted from 1 (None: drawn ones).
        """
        order, which, when = np.split(u[:, 1:], 3, axis=1)
        if joints is None:
            count = self.n_min + np.floor(u[:, :1] * (self.n_max - self.n_min + 1)).astype(np.int64)
            failed = np.argsort(np.argsort(order, axis=1), axis=1) < count
        else:
            failed = np.zeros(order.shape, dtype=bool)
            failed[:, np.array(joints, dtype=np.int64) - 1] = True
        drawn = np.floor(which * len(self.kinds)).astype(np.int64)
        kind = np.where(failed, np.array([FAULT_CODES[kind] for kind in self.kinds])[drawn], HEALTHY)
        return kind, drawn, self.onset_min_s + when * (self.onset_max_s - self.onset_min_s)

    def list_events(self, faults: Any, rows: NDArray[np.int64]) -> None:
        """Give the worlds ``rows`` the listed faults; ``faults`` has an array (W, J) for each of their settings."""
        faults.kind[rows] = HEALTHY
        for event in self.events:
            at = (rows, event.joint - 1)
            faults.kind[at], faults.onset_s[at] = FAULT_CODES[event.kind], event.onset_s
            faults.end_s[at] = event.onset_s + event.duration_s
            for setting in fields(event)[4:]:
                getattr(faults, setting.name)[at] = getattr(event, setting.name)


@dataclass(frozen=True)
class FaultEvent(Settings):
    """One fault of a list."""

    joint: PositiveCount
    """Numbered from 1 at the tail as in the papers."""
    kind: str
    onset_s: NonNegative = 0.0
    duration_s: Limit = math.inf


@dataclass(frozen=True)
class JointFault(FaultEvent):
    """One joint fault of a list. ``strength`` is for weak, slow and registered kinds, ``offset_rad`` for offset."""

    kind: str = "locked"
    strength: PositiveShare = 0.3
    offset_rad: Angle = _OFFSET_RAD
    period_s: Annotated[float, Range(SHORTEST_PERIOD_S, infinite=True)] = math.inf
    """Intermittent: from burst to burst; inf: the fault acts all the time."""
    duty: PositiveShare = 0.5
    """Intermittent: share of the period that a burst takes, from the period's begin."""

    def check(self) -> None:
        """Raise ValueError for a kind that nobody has registered."""
        choose_registered(self.kind, JOINT_KINDS, "kind")


@dataclass(frozen=True)
class FaultConfig(FaultDistribution):
    """Joint faults of an episode. The number of failed joints is uniform in [n_min, n_max]."""

    group = "faults"
    known_kinds = JOINT_KINDS

    kinds: tuple[str, ...] = ("locked",)
    """Each failed joint draws one of these: locked (held where it was), free (no power), weak (less torque), slow (less
    speed), offset (reference shifted)."""
    events: tuple[JointFault, ...] = ()
    """A list of faults instead of drawn ones, each {joint, kind, onset_s, duration_s, strength, offset_rad, period_s,
    duty}; all but joint may be left out."""
    joints: tuple[PositiveCount, ...] | None = None
    """Exactly these joints fail, numbered from 1 at the tail as in the papers; n_min and n_max are then ignored."""
    duration_max_s: NonNegative | None = None
    """If set, each fault lasts a time uniform in [duration_s, duration_max_s]."""
    recovering_share: Share = 1.0
    """Share of the faults that end after their duration; the others last."""
    weak_strength: PositiveShare = 0.3
    """Share of its torque that a weak joint keeps."""
    slow_strength: PositiveShare = 0.3
    """Share of its speed limit that a slow joint keeps."""
    offset_rad: Angle = _OFFSET_RAD
    """Shift of an offset joint's reference, to either side at random."""
    intermittent_share: Share = 0.0
    """Share of the faults that act in bursts, begun once per period from the onset on."""
    period_min_s: Period = 0.5
    period_max_s: Period = 2.0
    """The period of each intermittent fault is uniform in [period_min_s, period_max_s]."""
    duty: PositiveShare = 0.5
    """Share of the period that a burst takes."""
    reveal: bool = False
    """Show the policy which joints are failed (a real robot does not know)."""

    def check(self) -> None:
        """Raise ValueError unless number, kinds and times go together."""
        super().check()
        if self.duration_max_s is not None:
            check_order(self, "duration_s", "duration_max_s")
        check_order(self, "period_min_s", "period_max_s")
        if self.joints == ():
            raise ValueError("faults.joints is []; expected joints, or null for n_min to n_max random ones")
        if self.events and self.joints is not None:
            raise ValueError("faults.events and faults.joints are both set; expected a list or a distribution")

    def check_robot(self, spec: RobotSpec) -> None:
        """Raise ValueError unless the robot has the joints that shall fail, and can fail in these ways."""
        self.check_joints(spec.n_joints)
        kinds = {event.kind for event in self.events} if self.events else set(self.kinds)
        if "slow" in kinds and not has_speed_limit(spec):
            raise ValueError(
                f"faults.{'events' if self.events else 'kinds'} has slow, but {spec.name} has no speed limit to lower; "
                "expected a position or torque servo with finite actuator.speed_limit_rad_s, or another kind of fault"
            )


def draw_faults(config: FaultConfig, streams: RandomStreams, faults: FaultState, rows: NDArray[np.int64]) -> None:
    """Draw the joint faults of a new episode for the worlds ``rows`` into ``faults``.

    Side of an offset, duration and bursts need further numbers, drawn only where a setting asks for them.
    """
    n_joints = faults.kind.shape[1]
    u = streams.uniform(1 + 3 * n_joints, rows)
    if config.events:
        config.list_events(faults, rows)
        return
    strengths = {"slow": config.slow_strength} | {own.name: own.strength for own in REGISTERED.values()}
    faults.kind[rows], drawn, onset = config.draw(u, config.joints)
    faults.onset_s[rows] = onset
    faults.end_s[rows] = onset + config.duration_s
    faults.strength[rows] = np.array([strengths.get(kind, config.weak_strength) for kind in config.kinds])[drawn]
    faults.period_s[rows] = math.inf
    faults.duty[rows] = config.duty
    recovering = math.isfinite(config.duration_s) and (
        config.duration_max_s is not None or config.recovering_share < 1.0
    )
    if not (recovering or "offset" in config.kinds or config.intermittent_share > 0.0):
        return
    side, how_long, recovers, flickers, how_often = np.split(streams.uniform(5 * n_joints, rows), 5, axis=1)
    faults.offset_rad[rows] = np.where(side < 0.5, -config.offset_rad, config.offset_rad)
    if recovering:
        longest = config.duration_s if config.duration_max_s is None else config.duration_max_s
        duration = config.duration_s + how_long * (longest - config.duration_s)
        faults.end_s[rows] = np.where(recovers < config.recovering_share, onset + duration, math.inf)
    period = config.period_min_s + how_often * (config.period_max_s - config.period_min_s)
    faults.period_s[rows] = np.where(flickers < config.intermittent_share, period, math.inf)
