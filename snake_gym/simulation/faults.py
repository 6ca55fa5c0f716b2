"""Which joints or encoders fail, how and when: drawn for each episode from a distribution, given as a list, or now.

``fault_kinds`` has the kinds. Any fault may be *intermittent* (acting in bursts, as of a loose contact) and
*recovering* (over after a duration). A joint has at most two faults in an episode, which act together. No policy sees a
fault unless ``reveal`` is set.

Sizes are numbers or ranges [low, high], from which each fault draws its own. Each quantity has random numbers of its
own, so that no setting shifts another's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, fields, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from snake_gym.config import ConfigError, Settings, check_order
from snake_gym.config.settings import Angle, Count, Limit, NonNegative, Positive, PositiveCount, PositiveShare, Share
from snake_gym.physics.faults import HEALTHY, SLIPPED
from snake_gym.physics.state import FaultState, no_faults
from snake_gym.plugins import choose_registered
from snake_gym.robot.chain import ChainSpec, FloatArray
from snake_gym.robot.protocol import Robot
from snake_gym.simulation.fault_kinds import FAULT_KINDS, Spread, ends, kinds_of
from snake_gym.simulation.streams import RandomStreams

EncoderFaultKind = Literal["dead", "biased", "noisy"]
SHORTEST_PERIOD_S = 1e-6
"""Shortest period of a fault that comes in bursts: far below any physics step, of which a burst takes at least one."""
Period = Annotated[float, Field(ge=SHORTEST_PERIOD_S)]
"""Time from burst to burst [s]."""
LastingPeriod = Annotated[float, Field(ge=SHORTEST_PERIOD_S, allow_inf_nan=True)]
_OFFSET_RAD = math.radians(20.0)


def _in_order(spread: Any) -> Any:
    """Return a number or range. Raises PydanticCustomError for a low end above the high end."""
    if isinstance(spread, tuple) and spread[0] > spread[1]:
        raise PydanticCustomError("disorder", "expected low <= high")
    return spread


IN_ORDER = AfterValidator(_in_order)
"""Check of a number, or of a range [low, high] from which each fault draws it."""
ShareSpread = Annotated[Share | tuple[Share, Share], IN_ORDER]
PositiveShareSpread = Annotated[PositiveShare | tuple[PositiveShare, PositiveShare], IN_ORDER]
AngleSpread = Annotated[Angle | tuple[Angle, Angle], IN_ORDER]
SensorError = Annotated[float, Field(ge=0.0, le=1e6)]
"""Error of a sensor's reading [rad, rad/s, m]: more would be no reading."""
SensorErrorSpread = Annotated[SensorError | tuple[SensorError, SensorError], IN_ORDER]


def draw_spread(spread: Spread, streams: RandomStreams, name: str, count: int, rows: NDArray[np.int64]) -> Any:
    """Return values (M, ``count``) within ``spread``, by random numbers of the quantity ``name``; or its one value."""
    low, high = ends(spread)
    return low if low == high else low + streams.branch(name, rows).uniform(count) * (high - low)


class FaultDistribution(Settings):
    """Faults of an episode; their number is uniform in [n_min, n_max]."""

    group: ClassVar[str]
    """Name of these settings."""
    part: ClassVar[str]
    """Part that fails: "joint" or "encoder"."""
    most_per_joint: ClassVar[int] = 1
    """Most listed faults of a joint."""

    n_min: Count = 0
    """Smallest number of faults."""
    n_max: Count = 0
    """Largest number of faults; 0: none."""
    kinds: tuple[str, ...] = ()
    """Each fault draws one of these."""
    onset_min_s: NonNegative = 0.0
    """Earliest begin of a fault."""
    onset_max_s: NonNegative = 0.0
    """Each fault begins at a time uniform in [onset_min_s, onset_max_s]."""
    duration_s: Limit = math.inf
    """How long a fault lasts."""
    events: tuple[Any, ...] = ()
    """A list of faults instead of drawn ones; n_min and n_max are then ignored."""

    @classmethod
    def notes_of_tables(cls) -> dict[str, str]:
        """Return what the reference page says of settings that stand in a table."""
        kinds = ", ".join(f"{name} ({FAULT_KINDS[name].note})" for name in kinds_of(cls.part))
        return {"kinds": f"Each failed {cls.part} draws one of these: {kinds}."}

    def check(self) -> None:
        """Raise ValueError unless number, kinds and times go together."""
        check_order(self, "n_min", "n_max")
        check_order(self, "onset_min_s", "onset_max_s")
        for i, kind in enumerate(self.kinds):
            choose_registered(kind, kinds_of(self.part), f"{self.group}.kinds[{i}]")

    @property
    def any(self) -> bool:
        """Whether something may fail."""
        return self.n_max > 0 or bool(self.events)

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """Codes of ``kinds``."""
        return np.array([FAULT_KINDS[kind].code for kind in self.kinds])

    def check_joints(self, n_joints: int) -> None:
        """Raise ValueError unless the robot has the joints that shall fail."""
        named = list(getattr(self, "joints", None) or ())
        for name, given in (("joints", named), ("events", [event.joint for event in self.events])):
            for joint in given:
                if not 1 <= joint <= n_joints:
                    expected = f"1 to {n_joints} (the robot's joints)"
                    raise ValueError(f"{self.group}.{name} has joint {joint}; expected {expected}")
            most = self.most_per_joint if name == "events" else 1
            if given and max(given.count(joint) for joint in given) > most:
                expected = "once" if most == 1 else "at most twice"
                raise ValueError(f"{self.group}.{name} is {given}; expected each joint {expected}")
        if self.n_max > max(n_joints, type(self).n_max):  # the default fits every robot
            raise ValueError(f"{self.group}.n_max is {self.n_max}; expected at most {n_joints} (the robot's joints)")

    def at_share(self, share: float) -> Self:
        """Return these faults with ``share`` of their number, rounded; of a list, its first ones."""
        if self.events:
            return replace(self, n_min=0, n_max=0, events=self.events[: math.floor(share * len(self.events) + 0.5)])
        return replace(self, n_min=math.floor(share * self.n_min + 0.5), n_max=math.floor(share * self.n_max + 0.5))

    def draw(
        self, u: FloatArray, joints: tuple[int, ...] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
        """Kinds (HEALTHY: no fault), the places in ``kinds`` that were drawn for all joints, and onsets, (M, J) each.

        ``u`` (M, 1 + 3 J) are numbers in [0, 1), where every quantity has its own place, so that no setting shifts
        another; ``joints`` those that fail, counted from 1 (None: drawn ones).
        """
        order, which, when = u[:, 1:].reshape(len(u), 3, -1).swapaxes(0, 1)
        if joints is None:
            n_max = max(self.n_min, min(self.n_max, order.shape[1]))
            count = self.n_min + np.floor(u[:, :1] * (n_max - self.n_min + 1)).astype(np.int64)
            failed = np.argsort(np.argsort(order, axis=1), axis=1) < count
        else:
            failed = np.zeros(order.shape, dtype=bool)
            failed[:, np.array(joints, dtype=np.int64) - 1] = True
        drawn = np.floor(which * len(self.kinds)).astype(np.int64)
        kind = np.where(failed, self.codes[drawn], HEALTHY)
        return kind, drawn, self.onset_min_s + when * (self.onset_max_s - self.onset_min_s)

    def list_events(self, streams: RandomStreams, slots: Sequence[Any], rows: NDArray[np.int64]) -> None:
        """Give the worlds ``rows`` the listed faults, the second of a joint in the second of ``slots``.

        Each slot has an array (W, J) for each of their settings.
        """
        for faults in slots:
            faults.kind[rows] = HEALTHY
        for n, event in enumerate(self.events):
            faults = slots[sum(other.joint == event.joint for other in self.events[:n])]
            at, own = (rows, event.joint - 1), streams.branch(f"event {n}")
            values = {
                f.name: np.ravel(draw_spread(getattr(event, f.name), own, f.name, 1, rows)) for f in fields(event)[2:]
            }
            faults.kind[at], faults.onset_s[at] = FAULT_KINDS[event.kind].code, values.pop("onset_s")
            faults.end_s[at] = faults.onset_s[at] + values.pop("duration_s")
            for name, value in values.items():
                getattr(faults, name)[at] = value


class FaultEvent(Settings):
    """One fault of a list."""

    joint: PositiveCount
    """Numbered from 1 at the tail as in the papers."""
    kind: str
    """What the fault does; see ``kinds``."""
    onset_s: Annotated[NonNegative | tuple[NonNegative, NonNegative], IN_ORDER] = 0.0
    """Time at which it begins."""
    duration_s: Annotated[Limit | tuple[Positive, Positive], IN_ORDER] = math.inf
    """How long it lasts."""


class JointFault(FaultEvent):
    """One joint fault of a list. ``offset_rad`` is for offset and slipped, ``strength`` for others that have one.
    Numbers may be ranges [low, high]."""

    kind: str = "locked"
    strength: PositiveShareSpread = 0.3
    """Share that is left of the torque (weak), of the speed limit (slow), of a muscle's pressure or force (leak_left
    ...), or what a registered kind makes of it."""
    offset_rad: AngleSpread = _OFFSET_RAD
    """Shift of the reference (offset), or slip (slipped)."""
    period_s: Annotated[LastingPeriod | tuple[Period, Period], IN_ORDER] = math.inf
    """Intermittent: from burst to burst; inf: the fault acts all the time."""
    duty: PositiveShareSpread = 0.5
    """Intermittent: share of the period that a burst takes."""
    jitter: ShareSpread = 0.0
    """Intermittent: share of the pause by which a burst may begin late, anew at random in each period."""

    def check(self) -> None:
        """Raise ValueError for a kind that nobody has registered."""
        choose_registered(self.kind, kinds_of("joint"), "kind")


class FaultConfig(FaultDistribution):
    """Joint faults of an episode. The number of failed joints is uniform in [n_min, n_max]."""

    group = "faults"
    part = "joint"
    most_per_joint = 2

    n_max: Count = 3
    """Largest number of faults, at most the robot's joints; 0: none."""
    kinds: Annotated[tuple[str, ...], Field(min_length=1)] = ("locked",)
    """Each failed joint draws one of these."""
    events: tuple[JointFault, ...] = ()
    """A list of faults instead of drawn ones, each {joint, kind, onset_s, duration_s, strength, offset_rad, period_s,
    duty, jitter}; all but joint may be left out, numbers may be ranges [low, high], a joint may have two. n_min and
    n_max are then ignored."""
    joints: tuple[PositiveCount, ...] | None = None
    """Exactly these joints fail, numbered from 1 at the tail as in the papers; n_min and n_max are then ignored."""
    duration_max_s: NonNegative | None = None
    """If set, each fault lasts a time uniform in [duration_s, duration_max_s]."""
    recovering_share: Share = 1.0
    """Share of the faults that end after their duration; the others last."""
    weak_strength: PositiveShareSpread = (0.05, 0.2)
    """Share of its torque that a weak joint keeps: a number, or [low, high]."""
    slow_strength: PositiveShareSpread = (0.05, 0.2)
    """Share of its speed limit that a slow joint keeps, likewise."""
    strengths: dict[str, PositiveShareSpread] = field(default_factory=dict)
    """Strengths of muscles' faults and registered kinds, likewise, instead of their own: {rough: 0.05, leak_left: [0.1,
    0.2]}."""
    offset_rad: AngleSpread = _OFFSET_RAD
    """Shift of an offset joint's reference, or slip of a slipped joint, likewise, to either side at random."""
    second_share: Share = 0.0
    """Share of the failed joints that have a second fault, of another of the kinds."""
    intermittent_share: Share = 0.0
    """Share of the faults that act in bursts, one per period from the onset on."""
    period_min_s: Period = 0.5
    """Shortest period of an intermittent fault, from burst to burst."""
    period_max_s: Period = 2.0
    """The period of each intermittent fault is uniform in [period_min_s, period_max_s]."""
    duty: PositiveShareSpread = 0.5
    """Share of the period that a burst takes: a number, or [low, high]."""
    jitter: ShareSpread = 0.0
    """Share of the pause by which a burst may begin late, anew at random in each period, likewise; 0: periodic."""
    reveal: bool = False
    """Show the policy which joints are failed (a real robot does not know)."""

    def check(self) -> None:
        """Raise ValueError unless number, kinds and times go together."""
        super().check()
        if self.duration_max_s is not None:
            check_order(self, "duration_s", "duration_max_s")
        check_order(self, "period_min_s", "period_max_s")
        if self.recovering_share < 1.0 and math.isinf(self.duration_s):
            raise ValueError(
                f"faults.recovering_share is {self.recovering_share:g}, but faults.duration_s is inf; expected a "
                "finite duration_s, or 1"
            )
        for name in self.strengths:
            choose_registered(name, _kinds_with_strength(), "faults.strengths has a key that")
        if self.second_share > 0.0 and len(set(self.kinds)) < 2:
            raise ValueError(f"faults.second_share is {self.second_share:g}; expected two faults.kinds at least, or 0")
        if self.joints == ():
            raise ValueError("faults.joints is []; expected joints, or null for n_min to n_max random ones")
        if self.events and self.joints is not None:
            raise ValueError("faults.events and faults.joints are both set; expected a list or a distribution")

    def check_robot(self, spec: ChainSpec) -> None:
        """Raise ValueError unless the robot has the joints that shall fail, and can fail in these ways."""
        self.check_joints(spec.n_joints)
        kinds, where = self.present_kinds, f"faults.{'events' if self.events else 'kinds'}"
        others = sorted(kinds - set(spec.fault_kinds or kinds))
        if others:
            raise ValueError(f"{where} has {others[0]}; {spec.name} can have {', '.join(spec.fault_kinds or ())}")
        for name in kinds if spec.fault_kinds is None else ():
            if lack := FAULT_KINDS[name].lacks(spec):  # type: ignore[arg-type]  # planar
                what = f"{where} has {name}, but {spec.name} has no {lack}"
                raise ValueError(f"{what}; expected a robot with one, or another kind of fault")

    def at_share(self, share: float) -> Self:
        """Return these faults with ``share`` of their number, rounded; of a list of them or of joints, its first."""
        if self.joints is None:
            return super().at_share(share)
        kept = self.joints[: math.floor(share * len(self.joints) + 0.5)]
        return replace(self, n_min=0, n_max=0, joints=kept or None)

    def without_unused_sizes(self) -> FaultConfig:
        """Return these settings with unused sizes at their defaults and unused numbers 0: alike if the faults are."""
        drawn, default = set() if self.events else self.present_kinds, FaultConfig()
        uses = {"weak_strength": {"weak"}, "slow_strength": {"slow"}, "offset_rad": {"offset", "slipped"}}
        unused: dict[str, Any] = {
            name: getattr(default, name) for name, kinds in uses.items() if drawn.isdisjoint(kinds)
        }
        unused["strengths"] = {kind: strength for kind, strength in self.strengths.items() if kind in drawn}
        if self.events or self.joints:
            unused |= {"n_min": 0, "n_max": 0}
        return replace(self, **unused)

    @cached_property
    def present_kinds(self) -> set[str]:
        """Kinds of faults that may come."""
        if not self.any and not self.joints:
            return set()
        return {event.kind for event in self.events} if self.events else set(self.kinds)


def _kinds_with_strength() -> list[str]:
    """Return the kinds with a strength of their own: of single muscles and registered ones."""
    return [kind.name for kind in FAULT_KINDS.values() if kind.code > SLIPPED]


def draw_faults(
    config: FaultConfig, streams: RandomStreams, slots: tuple[FaultState, FaultState], rows: NDArray[np.int64]
) -> None:
    """Draw the joint faults of a new episode for the worlds ``rows`` into ``slots``: each joint's first and second."""
    n_joints = slots[0].kind.shape[1]
    u = streams.uniform(1 + 3 * n_joints, rows)
    if not config.present_kinds:
        if any(faults.kind[rows].any() for faults in slots):  # those of an episode of another difficulty
            for faults in slots:
                for values, none in zip(faults, no_faults(rows.size, n_joints), strict=True):
                    values[rows] = none
        return
    for n, faults in enumerate(slots[: 2 if config.events or config.second_share > 0.0 else 1]):
        faults.memory[rows] = 0.0
        faults.key[rows] = streams.branch(f"keys {n}", rows).uniform(n_joints) * 2.0**31
    if config.events:
        config.list_events(streams, slots, rows)
        return
    kind, drawn, onset = config.draw(u, config.joints)
    _describe(config, slots[0], kind, drawn, onset, streams, rows)
    if config.second_share == 0.0:
        return
    second = streams.branch("second faults")
    has, other, when = np.split(second.uniform(3 * n_joints, rows), 3, axis=1)
    drawn = (drawn + 1 + np.floor(other * (len(config.kinds) - 1)).astype(np.int64)) % len(config.kinds)
    codes = config.codes[drawn]
    codes = np.where((kind != HEALTHY) & (codes != kind) & (has < config.second_share), codes, HEALTHY)
    onset = config.onset_min_s + when * (config.onset_max_s - config.onset_min_s)
    _describe(config, slots[1], codes, drawn, onset, second, rows)


def _describe(
    config: FaultConfig,
    faults: FaultState,
    kind: NDArray[np.int64],
    drawn: NDArray[np.int64],
    onset: FloatArray,
    streams: RandomStreams,
    rows: NDArray[np.int64],
) -> None:
    """Write faults of the given kinds, places in ``config.kinds`` and onsets, (M, J) each, with all that they have.

    Side of an offset, duration and bursts need further numbers, drawn only where a setting asks for them.
    """
    n_joints = kind.shape[1]
    own = {name: config.strengths.get(name, FAULT_KINDS[name].strength) for name in _kinds_with_strength()}
    spreads = {"slow": config.slow_strength} | own
    low, high = np.array([ends(spreads.get(name, config.weak_strength)) for name in config.kinds]).T[:, drawn]
    faults.kind[rows], faults.onset_s[rows] = kind, onset
    faults.end_s[rows] = onset + config.duration_s
    faults.strength[rows] = low
    if (low != high).any():
        faults.strength[rows] = low + streams.branch("strength", rows).uniform(n_joints) * (high - low)
    faults.duty[rows] = draw_spread(config.duty, streams, "duty", n_joints, rows)
    faults.period_s[rows] = math.inf
    faults.jitter[rows] = draw_spread(config.jitter, streams, "jitter", n_joints, rows)
    recovering = math.isfinite(config.duration_s) and (
        config.duration_max_s is not None or config.recovering_share < 1.0
    )
    shifts = not {"offset", "slipped"}.isdisjoint(config.kinds)
    if not (recovering or shifts or config.intermittent_share > 0.0):
        return
    side, how_long, recovers, flickers, how_often = np.split(streams.uniform(5 * n_joints, rows), 5, axis=1)
    size = draw_spread(config.offset_rad, streams, "offset_rad", n_joints, rows)
    faults.offset_rad[rows] = np.where(side < 0.5, -size, size)
    if recovering:
        longest = config.duration_s if config.duration_max_s is None else config.duration_max_s
        duration = config.duration_s + how_long * (longest - config.duration_s)
        faults.end_s[rows] = np.where(recovers < config.recovering_share, onset + duration, math.inf)
    period = config.period_min_s + how_often * (config.period_max_s - config.period_min_s)
    faults.period_s[rows] = np.where(flickers < config.intermittent_share, period, math.inf)


def break_joint(robot: Robot, world: int, fault: JointFault, command: FloatArray) -> None:
    """Give a joint of one world this fault instead of those it has; ranges give their middle.

    ``command`` (J,) [rad]: what the world's servos were commanded last, which is not kept without registered faults.
    Raises ConfigError, with nothing changed, for what the robot cannot have.
    """
    try:
        FaultConfig(events=(fault,)).check_robot(robot.spec)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    robot.allow_faults({fault.kind})
    at = (world, fault.joint - 1)
    values = {f.name: float(np.mean(getattr(fault, f.name))) for f in fields(fault)[2:]}
    values |= {"kind": FAULT_KINDS[fault.kind].code, "memory": 0.0}
    values["end_s"] = values["onset_s"] + values.pop("duration_s")
    if not robot.has_registered_faults():
        robot.servos.command[world] = command
    robot.servos.misread_rad[at], robot.servos.silent[at] = 0.0, False
    robot.second_faults.kind[at] = HEALTHY
    for name, value in values.items():
        getattr(robot.faults, name)[at] = value


def end_faults(robot: Robot, world: int, joints: slice) -> None:
    """End the faults of these joints of one world now; those that are to come do not come."""
    for faults in (robot.faults, robot.second_faults):
        now = robot.state.time_s[world]
        faults.onset_s[world, joints] = np.minimum(faults.onset_s[world, joints], now)
        faults.end_s[world, joints] = np.minimum(faults.end_s[world, joints], now)
