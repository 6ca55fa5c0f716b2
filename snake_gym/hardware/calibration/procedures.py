"""Calibration procedures: find servos, assign IDs, and measure direction, zero and range of each joint.

Procedures work on a ``Bus`` and put questions to a person, or a test, through functions. While one moves a joint,
it calls ``interrupted`` between bus exchanges, which returns a reason to stop, or None to go on. However it ends,
torque-off is repeated until the servo confirms it, or patience has run out.

Sign: seen towards the head, a positive joint angle bends the robot to the right (phi_i = theta_i - theta_{i+1}).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Literal, NamedTuple, TypeVar

from snake_gym.hardware.bus.bus import Bus, ServoInfo, say_twins, set_lock
from snake_gym.hardware.bus.family import ServoFamily, family_of_model
from snake_gym.hardware.calibration.calibration import Held, Servos, faults, read_held

_T = TypeVar("_T")
_MARGIN_STEPS = 16  # a range that comes so near to the encoder's zero counts as passing it
_QUIET_S, _BAUD_SETTLE_S = 0.15, 0.05
_ATTEMPTS = 3
_READINGS = 5


class ProcedureError(RuntimeError):
    """Procedure that cannot go on; the message names the servo and the fault in one line."""


class FoundServo(NamedTuple):
    """Servo that answered a scan."""

    baud: int
    info: ServoInfo
    position: int | None
    """Present position [steps]; None: the servo answers pings only."""
    voltage_v: float
    temperature_c: float


def scan(open_bus: Callable[[int], Bus], bauds: Iterable[int], ids: Sequence[int]) -> list[FoundServo]:
    """Return all servos that answer a ping, at each of ``bauds``; ``open_bus`` opens the bus at a baud rate."""
    found: list[FoundServo] = []
    for baud in bauds:
        with closing(open_bus(baud)) as bus:
            for servo_id in ids:
                info = bus.ping(servo_id)
                if info is not None:
                    found.append(_look_at(bus, baud, info))
    return found


def _look_at(bus: Bus, baud: int, info: ServoInfo) -> FoundServo:
    values = bus.read_block([info.id], "present_position", "present_voltage", "present_temperature").values[info.id]
    if values is None:
        return FoundServo(baud, info, None, math.nan, math.nan)
    volts = values["present_voltage"] * bus.family.scale("present_voltage")
    return FoundServo(baud, info, values["present_position"], volts, float(values["present_temperature"]))


def change_id(bus: Bus, old: int, new: int) -> None:
    """Change the ID of the only servo with ``old`` to ``new``, permanently; new servos all have 1, so connect them
    singly. Raises ProcedureError: no servo has the old ID, the new one is taken, or the servo does not accept it."""
    if not (0 <= old <= 253 and 0 <= new <= 253) or old == new:
        raise ProcedureError(f"ids are {old} and {new}; expected two different ones of 0 to 253")
    if bus.ping(new) is not None:
        raise ProcedureError(f"id {new} is taken already; expected a free one")
    # A late answer to that ping must not pass for what the servo says under its new ID.
    bus.clock.sleep(_QUIET_S)
    info = bus.ping(old)
    if info is None:
        raise ProcedureError(f"no servo answers as {old}; look at power and cable")
    if info.ambiguous:
        raise ProcedureError(say_twins(old))
    set_register(bus, old, "id", new)
    if bus.ping(old) is not None:
        raise ProcedureError(f"a second servo answers as {old}; both had that id: connect them one by one")


def _let_go(bus: Servos, servo_id: int, consequence: str) -> None:
    if not bus.torque([servo_id], False)[servo_id]:
        raise ProcedureError(f"servo {servo_id} does not switch its torque off; {consequence}")


def _prepare_write(bus: Bus, servo_id: int, name: str) -> bool:
    """Switch the torque off and open the memory for a stored register. Return True if it is one."""
    _let_go(bus, servo_id, f"{name} was not written")
    is_stored = bus.family.register(name).address < bus.family.eeprom_end
    if is_stored and not set_lock(bus, servo_id, False):
        set_lock(bus, servo_id, True)
        raise ProcedureError(f"servo {servo_id} does not unlock its memory; {name} was not written")
    return is_stored


def set_register(bus: Bus, servo_id: int, name: str, value: int) -> None:
    """Set a register of a limp servo, permanently if it is a stored one. Raises ProcedureError: the servo does not
    switch its torque off, or does not hold the value afterwards; ValueError, ConfigError: no value to be written."""
    bus.family.encode(name, value)
    is_stored = _prepare_write(bus, servo_id, name)
    holder = servo_id
    try:
        if bus.write_register(servo_id, name, value) and name == "id":
            holder = value
    finally:
        is_locked = not is_stored or set_lock(bus, holder, True)
    held = _all_of(bus.read_block([holder], name).values)[holder][name]
    if held != value:
        raise ProcedureError(f"servo {servo_id} holds {held} in {name} after {value} was written")
    if not is_locked:
        raise ProcedureError(f"servo {holder} holds {value} in {name} but does not lock its memory; try once more")


def read_positions(bus: Servos, ids: Sequence[int]) -> dict[int, int]:
    """Return present positions [steps] by ID; servos that are silent are asked again for a moment, as answers come
    too late on a busy computer. Raises ProcedureError naming those that do not answer."""
    found = dict(bus.read_block(ids, "present_position").values)
    for _ in range(_READINGS):
        if silent := [one for one, values in found.items() if values is None]:
            found |= bus.read_block(silent, "present_position").values
    return {one: values["present_position"] for one, values in _all_of(found).items()}


def _all_of(found: Mapping[int, _T | None]) -> dict[int, _T]:
    """Return the values of all servos by ID. Raises ProcedureError naming servos that do not answer."""
    silent = [str(one) for one, values in found.items() if values is None]
    if silent:
        raise ProcedureError(f"servos {', '.join(silent)} do not answer; look at their ids and cables")
    return {one: values for one, values in found.items() if values is not None}


TURN_HORN = "turn its horn on the shaft so that the straight joint is near the middle of the servo's range"


def recentre(bus: Servos, servo_id: int) -> int:
    """Make the present position the middle one, permanently: no servo drives a joint across its encoder's zero. Return
    the new reading [steps]. Raises ProcedureError."""
    code, middle = bus.family.recentre_code, bus.family.middle
    if code is None:
        raise ProcedureError(f"servo {servo_id} cannot be recentred: {TURN_HORN}")
    _let_go(bus, servo_id, "it was not recentred")
    # Not acknowledged: the register holds 0 afterwards, whatever was written.
    bus.write_register(servo_id, "torque_enable", code, acknowledged=False)
    bus.clock.sleep(0.05)
    _let_go(bus, servo_id, "it was recentred")
    position = read_positions(bus, [servo_id])[servo_id]
    if abs(position - middle) > _MARGIN_STEPS:
        raise ProcedureError(f"servo {servo_id} reads {position} after it was recentred; expected about {middle}")
    return position


def make_limp(bus: Servos, ids: Sequence[int]) -> None:
    """Switch the torque off. Raises ProcedureError if it stays on."""
    on = [str(one) for one, known in bus.torque(ids, False).items() if not known]
    if on:
        raise ProcedureError(f"servos {', '.join(on)} do not switch their torque off; nobody may touch them")


def watch_range(
    bus: Servos, ids: Sequence[int], until: Callable[[Mapping[int, float]], bool]
) -> dict[int, tuple[int, int]]:
    """Return the range of each limp joint while it is moved by hand: least and largest position [steps], by ID.

    Positions continue across the encoder's zero, below 0 or beyond 4095. Failed readings are left out, as are those
    more than 90 degrees from the one before: no hand is so fast, and their direction is unknown.

    Args:
        until: called about twenty times a second with the range [rad] of each joint so far; True ends the procedure.
    """
    last, fastest = read_positions(bus, ids), bus.family.steps_per_turn // 4
    ranges = {one: (at, at) for one, at in last.items()}
    while not until({one: bus.family.angle(high - low) for one, (low, high) in ranges.items()}):
        bus.clock.sleep(0.05)
        for one, values in bus.read_block(ids, "present_position").values.items():
            if values is None:
                continue
            at = bus.family.nearest_turn(values["present_position"], last[one])
            if abs(at - last[one]) <= fastest:
                last[one] = at
                low, high = ranges[one]
                ranges[one] = min(low, at), max(high, at)
    return ranges


def joint_range(
    family: ServoFamily, zero_steps: int, direction: int, range_steps: tuple[int, int], margin_rad: float
) -> tuple[float, float]:
    """Return the least and largest angle [rad] of a joint moved over ``range_steps``, ``margin_rad`` inside its stops.
    Raises ProcedureError if nothing is left, or zero lies outside."""
    turn = family.steps_per_turn
    turns = turn * round(((range_steps[0] + range_steps[1]) / 2.0 - zero_steps) / turn)
    ends = sorted(direction * family.angle(at - turns - zero_steps) for at in range_steps)
    low, high = ends[0] + margin_rad, ends[1] - margin_rad
    if not low < 0.0 < high:
        way = f"{math.degrees(ends[0]):.1f} to {math.degrees(ends[1]):.1f} degrees"
        raise ProcedureError(f"it was moved from {way}; expected to both sides of straight, beyond the margin")
    return max(low, -math.pi), min(high, math.pi)


def passes_encoder_zero(family: ServoFamily, zero_steps: int, low_rad: float, high_rad: float, direction: int) -> bool:
    """Return True if a joint's range [rad] contains the place where the servo's counts jump."""
    ends = [zero_steps + direction * family.steps(angle) for angle in (low_rad, high_rad)]
    return min(ends) < _MARGIN_STEPS or max(ends) > family.steps_per_turn - 1 - _MARGIN_STEPS


def limited_range(
    servo_id: int, held: Held, family: ServoFamily, zero_steps: int, direction: int,
    angles: tuple[float, float],
) -> tuple[float, float]:  # fmt: skip
    """Return the part of a joint's range [rad] that the angle limits of its servo allow. Raises ProcedureError if they
    leave no room on both sides of straight."""
    low, high = held.get("min_angle_limit", 0), held.get("max_angle_limit", 0)
    if low == high == 0:  # none
        return angles
    limits = sorted(direction * family.angle(end - zero_steps) for end in (low, high))
    least, most = max(angles[0], limits[0]), min(angles[1], limits[1])
    if not least < 0.0 < most:
        raise ProcedureError(
            f"servo {servo_id} holds angle limits {low} to {high}; expected room on both sides of straight, "
            f"{zero_steps}: register write min_angle_limit 0, and max_angle_limit {family.steps_per_turn - 1}"
        )
    return least, most


def held_by(bus: Servos, ids: Sequence[int]) -> dict[int, Held]:
    """Return what each servo holds, by ID. Raises ProcedureError naming servos that do not answer."""
    return _all_of(read_held(bus, ids))


def common_model(bus: Servos, ids: Sequence[int], kind: str | None) -> str:
    """Return the name of the servos' model, from ``kind`` or their answers. Raises ProcedureError if they differ."""
    family = bus.family
    expected = None if kind is None else family_of_model(kind)[1]
    names = set()
    for servo_id in ids:
        info = bus.ping(servo_id)
        if info is None:
            raise ProcedureError(f"servo {servo_id} does not answer; see who does with scan")
        said, possible = family.model_of(info.model), family.models_of(info.model)
        if expected is not None and expected.name not in possible and (possible or expected.number is not None):
            raise ProcedureError(f"servo {servo_id} says it is {said}; expected {expected.name}")
        names.add(said if expected is None else expected.name)
    if len(names) > 1:
        raise ProcedureError(f"the servos are of several types: {', '.join(sorted(names))}; expected one")
    name = names.pop()
    known = [one.name for one in family.models]
    if name not in known:
        raise ProcedureError(f"the servos say they are {name}; expected --model {'|'.join(known)}, as on their label")
    return name


Side = Literal["right", "left", "unseen"]
"""Side to which a joint bent, seen towards the head; unseen: it did not move, or it was not seen."""

_SETTLE_S = 0.02
_STRAY_RAD = math.radians(5.0)
"""Distance from its way beyond which a joint is let go."""


class StoppedError(ProcedureError):
    """Procedure that somebody has stopped; the torque is off."""


def never() -> str | None:
    """Return None: nobody stops what moves."""
    return None


class Wiggle(NamedTuple):
    """Response of a joint to a wiggle."""

    moved_rad: float
    """Angle moved to the far end; positive: the counts grew."""
    returned_rad: float
    """Distance from the start after the way back."""
    largest_load: float
    """Largest load, as a share of the stall torque."""

    @property
    def moved(self) -> bool:
        """True if the joint moved by more than a degree."""
        return abs(self.moved_rad) > math.radians(1.0)


def wiggle(
    bus: Servos, servo_id: int, amplitude_rad: float = math.radians(6.0), torque: float = 0.25,
    speed_rad_s: float = 0.5, at_the_end: Callable[[], None] = lambda: None,
    interrupted: Callable[[], str | None] = never,
) -> Wiggle:  # fmt: skip
    """Move one joint by ``amplitude_rad`` [rad] in the direction of growing counts (negative: falling), and back.

    If that would pass the encoder's zero or the servo's limits, it moves the other way. A servo with settings that
    would keep it from moving as asked is left alone, and a joint that goes further than asked is let go.

    Args:
        torque: share of the stall torque that the servo may use.
        at_the_end: called while the joint holds its far end, the time to look.

    Raises ProcedureError, or StoppedError where it was interrupted.
    """
    start = read_positions(bus, [servo_id])[servo_id]
    family = bus.family
    step = _free_way(bus, servo_id, start, family.steps(amplitude_rad))
    speed, full = max(1, round(speed_rad_s / family.scale("goal_speed"))), family.full_count("torque_limit")
    patience_s = 1.5 * abs(family.angle(step)) / speed_rad_s + 0.6
    values = bus.read_block([servo_id], "torque_limit").values[servo_id]
    before = full if values is None else values["torque_limit"]
    largest = 0.0
    try:
        if not bus.write_register(servo_id, "torque_limit", round(full * torque)):
            raise ProcedureError(f"servo {servo_id} does not take a torque limit; it was not moved")
        positions: list[int] = []
        for goal in (start, start + step, start):
            _raise_if_interrupted(interrupted)
            bus.write_targets([servo_id], [goal], speed)
            if not positions:
                bus.torque([servo_id], True)
            position, load = _await(bus, servo_id, goal, (start, step), patience_s, interrupted)
            largest = max(largest, load)
            positions.append(position)
            if goal != start:
                at_the_end()
    finally:
        is_off = bus.torque([servo_id], False)[servo_id]
        bus.write_register(servo_id, "torque_limit", before)
    if not is_off:
        raise ProcedureError(f"servo {servo_id} does not switch its torque off: use the hardware stop")
    moved, returned = (family.angle(family.wrap(position - start)) for position in positions[1:])
    return Wiggle(moved, returned, largest)


def _free_way(bus: Servos, servo_id: int, start: int, step: int) -> int:
    """Return ``step`` with the sign of a direction that the servo can take. Raises ProcedureError if there is none."""
    held = held_by(bus, [servo_id])[servo_id]
    ways = {way: faults(held, f"servo {servo_id}", (start, start + way), bus.family) for way in (step, -step)}
    for way, wrong in ways.items():
        if not wrong:
            return way
    raise ProcedureError(f"{ways[step][0]}; it was not moved")


def _raise_if_interrupted(interrupted: Callable[[], str | None]) -> None:
    reason = interrupted()
    if reason is not None:
        raise StoppedError(f"stopped: {reason}")


def _await(
    bus: Servos, servo_id: int, goal: int, way: tuple[int, int], patience_s: float,
    interrupted: Callable[[], str | None],
) -> tuple[int, float]:  # fmt: skip
    """Return the position at the goal, or when patience has run out, and the largest load until then. Raises
    ProcedureError: no answer came, or the joint left its ``way``, the wiggle's start and distance [steps]."""
    family = bus.family
    stray = family.steps(_STRAY_RAD)
    give_up, position, largest = bus.clock.now() + patience_s, None, 0.0
    while bus.clock.now() < give_up:
        bus.clock.sleep(_SETTLE_S)
        _raise_if_interrupted(interrupted)
        values = bus.read_block([servo_id], "present_position", "present_load").values[servo_id]
        if values is None:
            continue
        position = values["present_position"]
        gone = family.wrap(position - way[0])
        if not min(0, way[1]) - stray <= gone <= max(0, way[1]) + stray:
            raise ProcedureError(
                f"servo {servo_id} went {math.degrees(family.angle(gone)):+.1f} degrees where "
                f"{math.degrees(family.angle(way[1])):+.1f} were asked for; it was let go"
            )
        largest = max(largest, abs(values["present_load"]) * family.scale("present_load"))
        if abs(family.wrap(position - goal)) <= 4:
            break
    if position is None:
        raise ProcedureError(f"servo {servo_id} does not answer any more")
    return position, largest


def find_direction(
    bus: Servos, servo_id: int, look: Callable[[], Side | None], amplitude_rad: float = math.radians(6.0),
    torque: float = 0.25, interrupted: Callable[[], str | None] = never, come_back: Callable[[], None] = lambda: None,
) -> int:  # fmt: skip
    """Return 1 if the servo's counts grow as the joint bends to the right, -1 if to the left.

    Args:
        look: called while the joint holds its far end; returns the side to which it bent, or None if nobody answers.
        come_back: called after that, with the joint let go; waits for somebody.

    Raises ProcedureError: the joint does not move, nobody saw it move, or as ``wiggle``.
    """
    n_attempts = 0
    while n_attempts < _ATTEMPTS:
        answers: list[Side | None] = []
        done = wiggle(
            bus, servo_id, amplitude_rad, torque,
            at_the_end=lambda heard=answers: heard.append(look()),  # type: ignore[misc]
            interrupted=interrupted,
        )  # fmt: skip
        n_attempts += 1
        if not done.moved:
            torque = min(1.0, 1.6 * torque)
        elif answers[0] is None:
            come_back()
            n_attempts = 0
        elif answers[0] != "unseen":
            return (1 if answers[0] == "right" else -1) * (1 if done.moved_rad > 0.0 else -1)
    raise ProcedureError(
        f"servo {servo_id} was not seen to move in {_ATTEMPTS} attempts; is its joint blocked, or loaded?"
    )


def change_baud(open_bus: Callable[[int], Bus], servo_id: int, old: int, new: int) -> None:
    """Set the servo from ``old`` to ``new`` [baud]; ``open_bus`` opens the bus at a baud rate.

    The servo changes at once, so it cannot acknowledge: it is looked for at the new rate and, if it is not there, at
    the old one. Its memory is locked again at either rate.

    Raises:
        ProcedureError: a rate that servos are not set to, no answer at the old one, or the servo stays there.
    """
    for attempt in range(_ATTEMPTS):
        with closing(open_bus(old)) as bus:
            rates = bus.family.baud_rates
            if new not in rates or old == new:
                others = [rate for rate in rates if rate != old]
                near = min(others, key=lambda rate: abs(rate - new), default=old)
                known = ", ".join(map(str, others))
                raise ProcedureError(f"the new baud rate is {new}; expected one of {known} (nearest: {near})")
            if bus.ping(servo_id) is None:
                if attempt == 0:
                    raise ProcedureError(f"servo {servo_id} does not answer at {old} baud")
            else:
                _prepare_write(bus, servo_id, "baud_rate")
                bus.write_register(servo_id, "baud_rate", rates.index(new), acknowledged=False)
        bus.clock.sleep(_BAUD_SETTLE_S)
        if _lock(open_bus, servo_id, new):
            return
    locked = _lock(open_bus, servo_id, old)
    raise ProcedureError(
        f"servo {servo_id} does not take {new} baud"
        + ("" if locked else "; it does not answer any more: look for it with scan --all-bauds")
    )


def _lock(open_bus: Callable[[int], Bus], servo_id: int, baud: int) -> bool:
    """Lock the servo's memory. Return False if it does not answer at this rate."""
    with closing(open_bus(baud)) as bus:
        return bus.ping(servo_id) is not None and set_lock(bus, servo_id, True)
