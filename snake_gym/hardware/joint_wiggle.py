"""One joint moves a few degrees and back, slowly, with little torque: to see that it is alive, and which way it turns.

It can be stopped at any time: ``interrupted`` is asked every 20 ms and gives a reason, or None to go on. Whatever ends
it, the torque is switched off until the servo says so, or patience has run out.

Sign: seen towards the head, a positive joint angle bends the robot to the right (phi_i = theta_i - theta_{i+1}).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from snake_gym.hardware.calibration_procedures import ProcedureError, held_settings, read_positions
from snake_gym.hardware.clock import Clock, MonotonicClock
from snake_gym.hardware.encoding import rad_to_steps, steps_to_rad, wrap_steps
from snake_gym.hardware.registers import BY_NAME
from snake_gym.hardware.servo_bus import ServoBus

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
