"""From a bag of servos to a calibration: find them, give them IDs, see which way they turn, where zero and limits are.

Procedures work on a ``ServoBus`` and ask whoever looks at the robot through a function: a person, or a test. The one
that moves joints by itself is in ``joint_wiggle``.

* ``scan``: who answers, at which baud rate.
* ``change_id``: one servo at a time; refuses an ID that is taken, unlocks and locks the EEPROM around the write.
* ``recentre``: makes the present position 2048 for good: no servo drives a joint across its encoder's zero.
* ``watch_range``: follows limp joints that are moved by hand, over the encoder's zero as well.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple

from snake_gym.hardware.bus.clock import Clock, MonotonicClock
from snake_gym.hardware.bus.registers import (
    BY_NAME,
    CALIBRATE_MIDDLE,
    MODELS,
    STEPS_PER_TURN,
    WRITABLE_BAUD,
    model,
    nearest_turn,
    rad_to_steps,
    steps_to_rad,
    wrap_steps,
)
from snake_gym.hardware.bus.servo_bus import ServoBus, ServoInfo
from snake_gym.hardware.calibration.calibration import (
    Calibration,
    JointCalibration,
    ServoSettings,
    read_settings,
)

_MIDDLE = STEPS_PER_TURN // 2
_MARGIN_STEPS = 16  # a range that comes so near to the encoder's zero counts as passing it
_FASTEST_STEPS = STEPS_PER_TURN // 4  # a hand does not get further between two readings
_QUIET_S = 0.15


class ProcedureError(RuntimeError):
    """A procedure cannot go on: what is wrong with which servo, in one line."""


class FoundServo(NamedTuple):
    """A servo that answered a scan."""

    baud: int
    info: ServoInfo
    position: int | None
    """Present position [steps]; None: it answers pings only."""
    voltage_v: float
    temperature_c: float


def scan(
    open_bus: Callable[[int], ServoBus],
    bauds: Iterable[int],
    ids: Iterable[int],
    progress: Callable[[int, int], None] | None = None,
) -> list[FoundServo]:
    """Everybody who answers a ping, at each of ``bauds``.

    Args:
        open_bus: gives the bus at a baud rate; closed here.
        progress: told (baud, id) before each ping.
    """
    found: list[FoundServo] = []
    wanted = list(ids)
    for baud in bauds:
        bus = open_bus(baud)
        try:
            for servo_id in wanted:
                if progress is not None:
                    progress(baud, servo_id)
                info = bus.ping(servo_id)
                if info is not None:
                    found.append(_look_at(bus, baud, info))
        finally:
            bus.close()
    return found


def _look_at(bus: ServoBus, baud: int, info: ServoInfo) -> FoundServo:
    values = bus.read_block([info.id], "present_position", "present_temperature").values[info.id]
    if values is None:
        return FoundServo(baud, info, None, math.nan, math.nan)
    volts = values["present_voltage"] * BY_NAME["present_voltage"].encoding.scale
    return FoundServo(baud, info, values["present_position"], volts, float(values["present_temperature"]))


def change_id(bus: ServoBus, old: int, new: int, clock: Clock | None = None) -> None:
    """Give the servo with the ID ``old`` the ID ``new``, for good.

    Only one servo may have the old ID: new servos all come with 1 and cannot be told apart, so connect them one by one.

    Raises:
        ProcedureError: nobody has the old ID, the new one is taken, or the servo does not take it.
    """
    if not (0 <= old <= 253 and 0 <= new <= 253) or old == new:
        raise ProcedureError(f"ids are {old} and {new}; expected two different ones of 0 to 253")
    if bus.ping(new) is not None:
        raise ProcedureError(f"id {new} is taken already; expected a free one")
    # A late answer to that ping must not pass for what the servo says under its new ID.
    (MonotonicClock() if clock is None else clock).sleep(_QUIET_S)
    if bus.ping(old) is None:
        raise ProcedureError(f"no single servo answers as {old}; expected one, alone if it is new from the factory")
    if not bus.torque([old], False)[old]:
        raise ProcedureError(f"servo {old} does not switch its torque off; its id was not changed")
    holder = old
    try:
        if not bus.write_register(old, "lock", 0):
            raise ProcedureError(f"servo {old} does not unlock its memory; its id was not changed")
        if bus.write_register(old, "id", new) and bus.ping(new) is not None:
            holder = new
    finally:
        locked = bus.write_register(holder, "lock", 1)
    if holder == old:
        raise ProcedureError(f"servo {old} does not take the id {new}")
    if not locked:
        raise ProcedureError(f"servo {new} has its id but does not lock its memory again; try once more")
    if bus.ping(old) is not None:
        raise ProcedureError(f"a second servo answers as {old}; both had that id: connect them one by one")


def read_positions(bus: ServoBus, ids: Sequence[int]) -> dict[int, int]:
    """Present positions [steps] by ID. Raises ProcedureError naming who does not answer."""
    values = bus.read_block(ids, "present_position", "present_position").values
    silent = [str(one) for one in ids if values[one] is None]
    if silent:
        raise ProcedureError(f"servos {', '.join(silent)} do not answer; look at their ids and cables")
    return {one: told["present_position"] for one, told in values.items() if told is not None}


def recentre(bus: ServoBus, servo_id: int, clock: Clock | None = None) -> int:
    """Make the present position 2048, for good; what it reads afterwards [steps]. Raises ProcedureError."""
    clock = MonotonicClock() if clock is None else clock
    if not bus.torque([servo_id], False)[servo_id]:
        raise ProcedureError(f"servo {servo_id} does not switch its torque off; it was not recentred")
    # Not acknowledged: the register holds 0 afterwards, whatever was written.
    bus.write_register(servo_id, "torque_enable", CALIBRATE_MIDDLE, acknowledged=False)
    clock.sleep(0.05)
    position = read_positions(bus, [servo_id])[servo_id]
    if abs(position - _MIDDLE) > _MARGIN_STEPS:
        raise ProcedureError(f"servo {servo_id} reads {position} after it was recentred; expected about {_MIDDLE}")
    return position


@contextmanager
def limp(bus: ServoBus, ids: Sequence[int]) -> Iterator[None]:
    """Torque off for as long as the block lasts, and after it. Raises ProcedureError where it stays on."""
    on = [str(one) for one, known in bus.torque(ids, False).items() if not known]
    if on:
        raise ProcedureError(f"servos {', '.join(on)} do not switch their torque off; nobody may touch them")
    yield


def watch_range(
    bus: ServoBus,
    ids: Sequence[int],
    until: Callable[[Mapping[int, tuple[int, int]]], bool],
    clock: Clock | None = None,
) -> dict[int, tuple[int, int]]:
    """How far limp joints are moved by hand: least and largest position [steps] of each, over whole turns.

    Positions count on over the encoder's zero, below 0 or beyond 4095. Readings that fail are left out, and those more
    than 90 degrees from the one before: no hand is so fast, and which way round it went nobody knows.

    Args:
        until: called about twenty times a second with the ranges so far; ends when it says True.
    """
    clock = MonotonicClock() if clock is None else clock
    last = read_positions(bus, ids)
    ranges = {one: (at, at) for one, at in last.items()}
    while not until(ranges):
        clock.sleep(0.05)
        for one, told in bus.read_block(ids, "present_position", "present_position").values.items():
            if told is None:
                continue
            at = nearest_turn(told["present_position"], last[one])
            if abs(at - last[one]) <= _FASTEST_STEPS:
                last[one] = at
                low, high = ranges[one]
                ranges[one] = min(low, at), max(high, at)
    return ranges


def joint_range(
    zero_steps: int, direction: int, range_steps: tuple[int, int], margin_rad: float
) -> tuple[float, float]:
    """Least and largest joint angle [rad] of a joint moved over ``range_steps``, ``margin_rad`` inside its stops.

    Raises ProcedureError where nothing is left, or zero lies outside.
    """
    turns = STEPS_PER_TURN * round(((range_steps[0] + range_steps[1]) / 2.0 - zero_steps) / STEPS_PER_TURN)
    ends = sorted(direction * steps_to_rad(at - turns - zero_steps) for at in range_steps)
    low, high = ends[0] + margin_rad, ends[1] - margin_rad
    if not low < 0.0 < high:
        told = f"{math.degrees(ends[0]):.1f} to {math.degrees(ends[1]):.1f} degrees"
        raise ProcedureError(f"it was moved from {told}; expected to both sides of straight, beyond the margin")
    return max(low, -math.pi), min(high, math.pi)


def passes_encoder_zero(zero_steps: int, low_rad: float, high_rad: float, direction: int) -> bool:
    """Whether a joint's range [rad] holds the place where the servo's counts jump."""
    ends = [zero_steps + direction * rad_to_steps(angle) for angle in (low_rad, high_rad)]
    return min(ends) < _MARGIN_STEPS or max(ends) > STEPS_PER_TURN - 1 - _MARGIN_STEPS


def held_settings(bus: ServoBus, ids: Sequence[int]) -> dict[int, ServoSettings]:
    """What each servo holds, by ID. Raises ProcedureError naming who does not answer."""
    found = read_settings(bus, ids)
    silent = [str(one) for one in ids if found[one] is None]
    if silent:
        raise ProcedureError(f"servos {', '.join(silent)} do not answer; look at their ids and cables")
    return {one: told for one, told in found.items() if told is not None}


def common_model(bus: ServoBus, ids: Sequence[int], kind: str | None) -> str:
    """Name of the servos' type, which ``kind`` says or they themselves. Raises ProcedureError: there are several."""
    by_number = {one.number: one.name for one in MODELS.values() if one.number is not None}
    expected = None if kind is None else model(kind)
    names = set()
    for servo_id in ids:
        info = bus.ping(servo_id)
        if info is None:
            raise ProcedureError(f"servo {servo_id} does not answer; see who does with scan")
        if expected is not None and expected.number not in (None, info.model):
            raise ProcedureError(
                f"servo {servo_id} says it is type {info.model}; expected {expected.number} ({expected.name})"
            )
        names.add(by_number.get(info.model, f"type {info.model}") if expected is None else expected.name)
    if len(names) > 1:
        raise ProcedureError(f"the servos are of several types: {', '.join(sorted(names))}; expected one")
    name = names.pop()
    if name not in MODELS:
        raise ProcedureError(f"the servos say they are {name}, which is not known; say --model {'|'.join(MODELS)}")
    return name


def assemble(joints: Sequence[JointCalibration], model: str) -> Calibration:
    """The calibration of joints listed tail first, dated today."""
    return Calibration(tuple(joints), model, STEPS_PER_TURN, time.strftime("%Y-%m-%d"))


Side = Literal["right", "left", "unseen"]
"""Where a joint bent, seen towards the head; unseen: it did not move, or it was not seen."""

_SETTLE_S = 0.02
_FULL_TORQUE = 1000
_STRAY_STEPS = rad_to_steps(math.radians(5.0))
"""A joint that leaves its way by more than this does not do what it is told."""


class StoppedError(ProcedureError):
    """Somebody has stopped it; the torque is off."""


def never() -> str | None:
    """Nobody stops a procedure."""
    return None


class Wiggle(NamedTuple):
    """How a joint answered."""

    start_steps: int
    moved_steps: int
    """At the far end; positive: the counts grew."""
    returned_steps: int
    """How far from the start it was at the end."""
    largest_load: float
    """Share of the stall torque."""

    @property
    def moved(self) -> bool:
        """Whether it moved at all: by more than a degree."""
        return abs(self.moved_steps) > rad_to_steps(math.radians(1.0))


def wiggle(
    bus: ServoBus,
    servo_id: int,
    amplitude_rad: float = math.radians(6.0),
    torque: float = 0.25,
    speed_rad_s: float = 0.5,
    clock: Clock | None = None,
    at_the_end: Callable[[], None] | None = None,
    interrupted: Callable[[], str | None] = never,
) -> Wiggle:
    """Move one joint by ``amplitude_rad`` [rad] the way that its counts grow (negative: fall), and back.

    Where that would pass the encoder's zero, or the servo's limits, it moves the other way. A servo that is set up in a
    way that it would not move as asked is left alone, and a joint that goes further than asked is let go.

    Args:
        torque: share of the stall torque that it may use.
        at_the_end: called while the joint holds its far end: the time to look.

    Raises:
        ProcedureError: it does not answer, would not move as asked, does not take its torque limit, or does not switch
            its torque off.
        StoppedError: it was interrupted.
    """
    clock = MonotonicClock() if clock is None else clock
    start = read_positions(bus, [servo_id])[servo_id]
    step = _free_way(bus, servo_id, start, rad_to_steps(amplitude_rad))
    speed = max(1, rad_to_steps(speed_rad_s))
    before = _torque_limit(bus, servo_id)
    largest = 0.0
    try:
        if not bus.write_register(servo_id, "torque_limit", round(_FULL_TORQUE * torque)):
            raise ProcedureError(f"servo {servo_id} does not take a torque limit; it was not moved")
        positions = []
        for goal in (start, start + step, start):
            _go_on(interrupted)
            bus.write_targets([servo_id], [goal], speed)  # the goal switches the torque on
            patience_s = 1.5 * abs(goal - start) / speed if goal != start else 1.5 * abs(step) / speed
            position, load = _await(bus, servo_id, goal, (start, step), clock, patience_s + 0.6, interrupted)
            largest = max(largest, load)
            positions.append(position)
            if goal != start and at_the_end is not None:
                at_the_end()
    finally:
        left = switch_off(bus, [servo_id], clock)
        bus.write_register(servo_id, "torque_limit", before)
    if left:
        raise ProcedureError(f"servo {servo_id} does not switch its torque off: use the hardware stop")
    return Wiggle(start, wrap_steps(positions[1] - start), wrap_steps(positions[2] - start), largest)


def _free_way(bus: ServoBus, servo_id: int, start: int, step: int) -> int:
    """``step`` with the sign of a way that the servo can go. Raises ProcedureError: it can go neither."""
    held = held_settings(bus, [servo_id])[servo_id]
    ways = {way: held.faults(f"servo {servo_id}", (start, start + way)) for way in (step, -step)}
    for way, faults in ways.items():
        if not faults:
            return way
    raise ProcedureError(f"{ways[step][0]}; it was not moved")


def _torque_limit(bus: ServoBus, servo_id: int) -> int:
    values = bus.read_block([servo_id], "torque_limit", "torque_limit").values[servo_id]
    return _FULL_TORQUE if values is None else values["torque_limit"]


def switch_off(bus: ServoBus, ids: Sequence[int], clock: Clock | None = None, patience_s: float = 2.0) -> list[int]:
    """Torque off, tried again until every servo has said so or patience has run out; the IDs of those that have not."""
    clock = MonotonicClock() if clock is None else clock
    give_up, left = clock.now() + patience_s, list(ids)
    while left:
        off = bus.torque(left, False)
        left = [one for one in left if not off[one]]
        if not left or clock.now() >= give_up:
            break
        clock.sleep(_SETTLE_S)
    return left


def _go_on(interrupted: Callable[[], str | None]) -> None:
    reason = interrupted()
    if reason is not None:
        raise StoppedError(f"stopped: {reason}")


def _await(
    bus: ServoBus,
    servo_id: int,
    goal: int,
    way: tuple[int, int],
    clock: Clock,
    patience_s: float,
    interrupted: Callable[[], str | None],
) -> tuple[int, float]:
    """Position when it is at the goal, or when patience has run out, and the largest load until then.

    Args:
        way: where the wiggle starts and how far it goes [steps].

    Raises:
        ProcedureError: it never answered, or the joint has left its way.
        StoppedError: it was interrupted.
    """
    give_up, position, largest = clock.now() + patience_s, None, 0.0
    while clock.now() < give_up:
        clock.sleep(_SETTLE_S)
        _go_on(interrupted)
        values = bus.read_block([servo_id], "present_position", "present_load").values[servo_id]
        if values is None:
            continue
        position = values["present_position"]
        gone = wrap_steps(position - way[0])
        if not min(0, way[1]) - _STRAY_STEPS <= gone <= max(0, way[1]) + _STRAY_STEPS:
            raise ProcedureError(
                f"servo {servo_id} went {math.degrees(steps_to_rad(gone)):+.1f} degrees where "
                f"{math.degrees(steps_to_rad(way[1])):+.1f} were asked for; it was let go"
            )
        largest = max(largest, abs(values["present_load"]) * BY_NAME["present_load"].encoding.scale)
        if abs(wrap_steps(position - goal)) <= 4:
            break
    if position is None:
        raise ProcedureError(f"servo {servo_id} does not answer any more")
    return position, largest


def find_direction(
    bus: ServoBus,
    servo_id: int,
    look: Callable[[int], Side],
    amplitude_rad: float = math.radians(6.0),
    torque: float = 0.25,
    clock: Clock | None = None,
    attempts: int = 3,
    interrupted: Callable[[], str | None] = never,
) -> int:
    """1 where the servo's counts grow as the joint bends to the right, else -1.

    Args:
        look: asked with the servo's ID while the joint holds its far end: where did it bend?

    Raises:
        ProcedureError: the joint does not move, or nobody saw it move.
        StoppedError: it was interrupted.
    """
    for _ in range(attempts):
        answers: list[Side] = []
        done = wiggle(
            bus, servo_id, amplitude_rad, torque, clock=clock,
            at_the_end=lambda heard=answers: heard.append(look(servo_id)),  # type: ignore[misc]
            interrupted=interrupted,
        )  # fmt: skip
        if not done.moved:
            torque = min(1.0, 1.6 * torque)
            continue
        if answers[0] != "unseen":
            return (1 if answers[0] == "right" else -1) * (1 if done.moved_steps > 0 else -1)
    raise ProcedureError(f"servo {servo_id} was not seen to move in {attempts} attempts; is its joint blocked?")


_ATTEMPTS = 3
_BAUD_SETTLE_S = 0.05


def change_baud(
    open_bus: Callable[[int], ServoBus], servo_id: int, old: int, new: int, clock: Clock | None = None
) -> None:
    """Set the servo from ``old`` to ``new`` [baud].

    Args:
        open_bus: opens the bus at a baud rate; closed again here.

    Raises:
        ProcedureError: a rate that servos are not set to, no answer at the old one, or the servo stays there.
    """
    if new not in WRITABLE_BAUD or old == new:
        rates = ", ".join(str(rate) for rate in WRITABLE_BAUD if rate != old)
        raise ProcedureError(f"the new baud rate is {new}; expected one of {rates}")
    clock = MonotonicClock() if clock is None else clock
    for attempt in range(_ATTEMPTS):
        bus = open_bus(old)
        try:
            if bus.ping(servo_id) is None:
                if attempt == 0:
                    raise ProcedureError(f"servo {servo_id} does not answer at {old} baud")
            else:
                _tell(bus, servo_id, new)
        finally:
            bus.close()
        clock.sleep(_BAUD_SETTLE_S)
        if _lock(open_bus, servo_id, new):
            return
    locked = _lock(open_bus, servo_id, old)
    raise ProcedureError(
        f"servo {servo_id} does not take {new} baud"
        + ("" if locked else "; it does not answer any more: look for it with scan --all-bauds")
    )


def _tell(bus: ServoBus, servo_id: int, new: int) -> None:
    if not bus.torque([servo_id], False)[servo_id]:
        raise ProcedureError(f"servo {servo_id} does not switch its torque off; its baud rate was not changed")
    if not bus.write_register(servo_id, "lock", 0):
        bus.write_register(servo_id, "lock", 1)
        raise ProcedureError(f"servo {servo_id} does not unlock its memory; its baud rate was not changed")
    bus.write_register(servo_id, "baud_rate", WRITABLE_BAUD.index(new), acknowledged=False)


def _lock(open_bus: Callable[[int], ServoBus], servo_id: int, baud: int) -> bool:
    """Lock the servo's memory; False: it does not answer at this rate."""
    bus = open_bus(baud)
    try:
        return bus.ping(servo_id) is not None and bus.write_register(servo_id, "lock", 1)
    finally:
        bus.close()
