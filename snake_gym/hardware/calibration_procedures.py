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
from typing import NamedTuple

from snake_gym.hardware.calibration import Calibration, JointCalibration
from snake_gym.hardware.clock import Clock, MonotonicClock
from snake_gym.hardware.encoding import STEPS_PER_TURN, nearest_turn, rad_to_steps, steps_to_rad
from snake_gym.hardware.registers import BY_NAME, CALIBRATE_MIDDLE, MODELS, model
from snake_gym.hardware.servo_bus import ServoBus, ServoInfo
from snake_gym.hardware.servo_settings import ServoSettings, read_settings

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
