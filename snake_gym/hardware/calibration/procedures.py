"""Calibration procedures: direction, zero and range of each joint, by moving it or by watching it being moved.

While one moves a joint, it calls ``Servos.interrupted`` between bus exchanges. However it ends, torque-off is repeated
until the servo confirms it, or patience has run out.

Sign: seen towards the head, a positive joint angle bends the robot to the right (phi_i = theta_i - theta_{i+1}).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from snake_gym.hardware.bus.bus import ServoInfo
from snake_gym.hardware.bus.clock import Clock
from snake_gym.hardware.bus.family import ServoFamily, family_of_model
from snake_gym.hardware.calibration.calibration import Held, Readable, faults, reach, read_held

_T = TypeVar("_T")
_MARGIN_STEPS = 16  # a range that comes so near to the encoder's zero counts as passing it
_ATTEMPTS = 3
_READINGS = 5
_SETTLE_S = 0.02
_STRAY_RAD = math.radians(5.0)
"""Distance from its way beyond which a joint is let go."""
_SPEED_RAD_S = 0.5
"""Speed of a wiggle [rad/s]."""
_NEAR_STEPS = 4
"""Distance at which a goal is reached."""

Side = Literal["right", "left", "unseen"]
"""Side to which a joint bent, seen towards the head; unseen: it did not move, or it was not seen."""


class Servos(Readable, Protocol):
    """Servos that may be moved, as behind ``guard.client.GuardedBus``."""

    baud: int
    clock: Clock

    def ping(self, servo_id: int) -> ServoInfo | None: ...
    def write_targets(self, ids: Sequence[int], position_steps: Sequence[int], speed: int = 0) -> bool: ...
    def write_register(self, servo_id: int, name: str, value: int, acknowledged: bool = True) -> bool: ...
    def torque(self, ids: Sequence[int], on: bool) -> dict[int, bool]: ...

    def interrupted(self) -> str | None:
        """Return a reason to stop what moves, or None to go on."""


class ProcedureError(RuntimeError):
    """Procedure that cannot go on; the message names the servo and the fault in one line."""


class StoppedError(ProcedureError):
    """Procedure that somebody has stopped; the torque is off."""


# --- reading and recentring ------------------------------------------------------------------------------------------


def read_positions(bus: Readable, ids: Sequence[int]) -> dict[int, int]:
    """Return present positions [steps] by ID; servos that are silent are asked again for a moment, as answers come
    too late on a busy computer. Raises ProcedureError naming those that do not answer."""
    found = dict(bus.read_block(ids, "present_position").values)
    for _ in range(_READINGS):
        if silent := [one for one, values in found.items() if values is None]:
            found |= bus.read_block(silent, "present_position").values
    return {one: values["present_position"] for one, values in all_of(found).items()}


def all_of(found: Mapping[int, _T | None]) -> dict[int, _T]:
    """Return the values of all servos by ID. Raises ProcedureError naming servos that do not answer."""
    silent = [str(one) for one, values in found.items() if values is None]
    if silent:
        raise ProcedureError(f"servos {', '.join(silent)} do not answer; look at their ids and cables")
    return {one: values for one, values in found.items() if values is not None}


def held_by(bus: Readable, ids: Sequence[int]) -> dict[int, Held]:
    """Return what each servo holds, by ID. Raises ProcedureError naming servos that do not answer."""
    return all_of(read_held(bus, ids))


def common_model(bus: Servos, ids: Sequence[int], kind: str | None) -> str:
    """Return the name of the servos' model, from ``kind`` or their answers. Raises ProcedureError if they differ."""
    numbers = set[int]()
    for servo_id in ids:
        info = bus.ping(servo_id)
        if info is None:
            raise ProcedureError(f"servo {servo_id} does not answer; see who does with scan")
        numbers.add(info.model)
    said = sorted(map(bus.family.model_of, numbers))
    if len(said) > 1:
        raise ProcedureError(f"the servos are of several types: {', '.join(said)}; expected one")
    possible = bus.family.models_of(numbers.pop())
    named = None if kind is None else family_of_model(kind)[1]
    if named is not None and (named.name in possible or (not possible and named.number is None)):
        return named.name
    if named is None and len(possible) == 1:
        return possible[0]
    expected = f"--model {'|'.join(one.name for one in bus.family.models)}" if named is None else named.name
    raise ProcedureError(f"the servos say they are {said[0]}; expected {expected}, as on their label")


def make_limp(bus: Servos, ids: Sequence[int]) -> None:
    """Switch the torque off. Raises ProcedureError if it stays on."""
    on = [str(one) for one, known in bus.torque(ids, False).items() if not known]
    if on:
        raise ProcedureError(f"servos {', '.join(on)} do not switch their torque off; nobody may touch them")


def recentre(bus: Servos, servo_id: int) -> int:
    """Make the present position the middle one, permanently: no servo drives a joint across its encoder's zero. Return
    the new reading [steps]. Raises ProcedureError."""
    code, middle = bus.family.recentre_code, bus.family.middle
    if code is None:
        raise ProcedureError(
            f"servo {servo_id} cannot be recentred: turn its horn on the shaft so that the straight joint is near the "
            "middle of the servo's range"
        )
    make_limp(bus, [servo_id])
    # Not acknowledged: the register holds 0 afterwards, whatever was written.
    bus.write_register(servo_id, "torque_enable", code, acknowledged=False)
    bus.clock.sleep(0.05)
    make_limp(bus, [servo_id])
    position = read_positions(bus, [servo_id])[servo_id]
    if abs(position - middle) > _MARGIN_STEPS:
        raise ProcedureError(f"servo {servo_id} reads {position} after it was recentred; expected about {middle}")
    return position


# --- ranges ----------------------------------------------------------------------------------------------------------


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


def passes_encoder_zero(family: ServoFamily, zero_steps: int, span_rad: float) -> bool:
    """Return True if the servo's counts jump within ``span_rad`` [rad] of ``zero_steps``."""
    span = family.steps(span_rad) + _MARGIN_STEPS
    return not span <= zero_steps <= family.steps_per_turn - 1 - span


def limited_range(
    servo_id: int, held: Held, family: ServoFamily, zero_steps: int, direction: int, angles: tuple[float, float]
) -> tuple[float, float]:
    """Return the part of a joint's range [rad] to which its servo drives. Raises ProcedureError if that leaves no room
    on both sides of straight."""
    ends = reach(held, family)
    limits = sorted(direction * family.angle(end - zero_steps) for end in ends)
    least, most = max(angles[0], limits[0]), min(angles[1], limits[1])
    if not least < 0.0 < most:
        raise ProcedureError(
            f"servo {servo_id} holds angle limits {ends[0]:.0f} to {ends[1]:.0f}; expected room on both sides of "
            f"straight, {zero_steps}: register write min_angle_limit 0, and max_angle_limit {family.steps_per_turn - 1}"
        )
    return least, most


# --- motion ----------------------------------------------------------------------------------------------------------


class Wiggle(NamedTuple):
    """Response of a joint to a wiggle."""

    moved_rad: float
    """Angle moved to the far end; positive: the counts grew."""
    returned_rad: float
    """Distance from the start after the way back."""
    largest_load: float
    """Largest load, as a share of the stall torque."""
    seen: Any
    """Result of ``at_the_end``."""

    @property
    def moved(self) -> bool:
        """True if the joint moved by more than a degree."""
        return abs(self.moved_rad) > math.radians(1.0)


def wiggle(
    bus: Servos, servo_id: int, amplitude_rad: float = math.radians(6.0), torque: float = 0.25,
    at_the_end: Callable[[], Any] = lambda: None,
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
    speed, full = max(1, round(_SPEED_RAD_S / family.scale("goal_speed"))), family.full_count("torque_limit")
    patience_s = 1.5 * abs(family.angle(step)) / _SPEED_RAD_S + 0.6
    values = bus.read_block([servo_id], "torque_limit").values[servo_id]
    before = full if values is None else values["torque_limit"]
    largest, seen = 0.0, None
    try:
        bus.torque([servo_id], False)  # ends the stop of a bus watchdog, which takes no other order
        if not bus.write_register(servo_id, "torque_limit", round(full * torque)):
            raise ProcedureError(f"servo {servo_id} does not take a torque limit; it was not moved")
        positions: list[int] = []
        for goal in (start, start + step, start):
            _raise_if_interrupted(bus)
            bus.write_targets([servo_id], [goal], speed)
            if not positions:
                bus.torque([servo_id], True)
            position, load = _await(bus, servo_id, goal, (start, step), patience_s)
            largest = max(largest, load)
            positions.append(position)
            if goal != start:
                seen = at_the_end()
    finally:
        is_off = bus.torque([servo_id], False)[servo_id]
        bus.write_register(servo_id, "torque_limit", before)
    if not is_off:
        raise ProcedureError(f"servo {servo_id} does not switch its torque off: use the hardware stop")
    moved, returned = (family.angle(family.wrap(position - start)) for position in positions[1:])
    return Wiggle(moved, returned, largest, seen)


def _free_way(bus: Servos, servo_id: int, start: int, step: int) -> int:
    """Return ``step`` with the sign of a direction that the servo can take. Raises ProcedureError if there is none."""
    held = held_by(bus, [servo_id])[servo_id]
    ways = {way: faults(held, f"servo {servo_id}", (start, start + way), bus.family) for way in (step, -step)}
    for way, wrong in ways.items():
        if not wrong:
            return way
    raise ProcedureError(f"{ways[step][0]}; it was not moved")


def _raise_if_interrupted(bus: Servos) -> None:
    reason = bus.interrupted()
    if reason is not None:
        raise StoppedError(f"stopped: {reason}")


def _await(bus: Servos, servo_id: int, goal: int, way: tuple[int, int], patience_s: float) -> tuple[int, float]:
    """Return the position at the goal, or when patience has run out, and the largest load until then. Raises
    ProcedureError: no answer came, or the joint left its ``way``, the wiggle's start and distance [steps]."""
    family = bus.family
    stray = family.steps(_STRAY_RAD)
    give_up, position, largest = bus.clock.now() + patience_s, None, 0.0
    while bus.clock.now() < give_up:
        bus.clock.sleep(_SETTLE_S)
        _raise_if_interrupted(bus)
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
        if abs(family.wrap(position - goal)) <= _NEAR_STEPS:
            break
    if position is None:
        raise ProcedureError(f"servo {servo_id} does not answer any more")
    return position, largest


def find_direction(
    bus: Servos, servo_id: int, look: Callable[[], Side | None], amplitude_rad: float = math.radians(6.0),
    torque: float = 0.25, come_back: Callable[[], None] = lambda: None,
) -> int:  # fmt: skip
    """Return 1 if the servo's counts grow as the joint bends to the right, -1 if to the left.

    Args:
        look: called while the joint holds its far end; returns the side to which it bent, or None if nobody answers.
        come_back: called after that, with the joint let go; waits for somebody.

    Raises ProcedureError: the joint does not move, nobody saw it move, or as ``wiggle``.
    """
    n_attempts = 0
    while n_attempts < _ATTEMPTS:
        done = wiggle(bus, servo_id, amplitude_rad, torque, look)
        n_attempts += 1
        if not done.moved:
            torque = min(1.0, 1.6 * torque)
        elif done.seen is None:
            come_back()
            n_attempts = 0
        elif done.seen != "unseen":
            return (1 if done.seen == "right" else -1) * (1 if done.moved_rad > 0.0 else -1)
    raise ProcedureError(
        f"servo {servo_id} was not seen to move in {_ATTEMPTS} attempts; is its joint blocked, or loaded?"
    )
