"""Command ``calibrate``: guided calibration of all joints, which writes a calibration file.

Straight robot (zero), a wiggle of each joint (direction), joints moved by hand (limits). Questions are answered by a
person at the terminal, or by a program.
"""

from __future__ import annotations

import argparse
import math
import os
import select
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Literal

from snake_gym.config import ConfigError
from snake_gym.hardware.calibration.calibration import Calibration, JointCalibration, Servos, faults
from snake_gym.hardware.calibration.procedures import (
    ProcedureError,
    Side,
    StoppedError,
    common_model,
    find_direction,
    held_by,
    joint_range,
    limited_range,
    make_limp,
    never,
    passes_encoder_zero,
    read_positions,
    recentre,
    watch_range,
)
from snake_gym.hardware.commands.options import (
    add_bus,
    add_latch,
    add_motion,
    check_motion,
    check_new_file,
    guarded_bus,
    id_list,
)
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.robot.key_watch import STOP_KEYS, KeyWatch, standard_input

Recentring = Literal["auto", "always", "never"]

STOP_ANSWERS = tuple(STOP_KEYS.decode())
HOLD_S = 30.0
"""Longest time for which a joint holds its wiggle and waits for an answer [s]."""
_LOOK_S = 0.02
_NOBODY = "calibrate asks questions, and standard input has ended; run it on a terminal"


class Person:
    """Person at the terminal, who looks at the robot and moves its joints.

    Space and q stop a joint that moves, and count as answers too.

    Args:
        stop: emergency stop that these keys trip; while it is tripped a question ends.
        interrupted: called while a question waits; returns a reason to end it, or None.
        source: file descriptor of the keyboard; None: standard input.

    Raises ConfigError: there is no standard input, or (from its methods) no more.
    """

    def __init__(
        self, stop: EmergencyStop, interrupted: Callable[[], str | None] = never, source: int | None = None
    ) -> None:
        self._stop, self._interrupted = stop, interrupted
        self._source = standard_input() if source is None else source
        if self._source < 0:
            raise ConfigError(_NOBODY)
        self._lines = TypedLines(self._source)
        self._keys: KeyWatch | None = None

    def say(self, line: str) -> None:
        print(line, flush=True)

    def straighten(self) -> None:
        """Ask for the limp robot to be laid straight, and wait for that."""
        self._ask("Lay the robot straight; the servos are limp. Then press Enter: ")

    def look(self, joint: int, servo_id: int) -> Side | None:
        """Ask to which side joint ``joint`` (from 1 at the tail) has just bent. Return None after half a minute."""
        question = f"joint {joint} (servo {servo_id}) holds its wiggle: seen towards the head, is it bent to the\n"
        question += "  right (r), to the left (l), or was there nothing to see (n)? (q: stop)\n"
        question += "  A joint that bends up and down: is what lies behind it lower (d) or higher (u)? "
        sides: dict[str, Side] = {"r": "right", "l": "left", "d": "right", "u": "left", "n": "unseen"}
        give_up_s = time.monotonic() + HOLD_S
        while (answer := self._ask(question, give_up_s)) is not None:
            if answer.strip().lower()[:1] in sides:
                return sides[answer.strip().lower()[:1]]
        return None

    def come_back(self, joint: int, servo_id: int) -> None:
        """Say that a joint was let go since nobody looked, and wait for somebody."""
        self._ask(f"\njoint {joint} (servo {servo_id}) was let go after {HOLD_S:g} s. Press Enter to see it again: ")

    def moved_to_stops(self, widths_rad: Mapping[int, float]) -> bool:
        """Return True once all joints have been moved to both stops; called again and again."""
        if self._heard(0.0) is not None:
            return True
        widths = " ".join(f"{math.degrees(width):.0f}" for width in widths_rad.values())
        if sys.stdout.isatty():
            print(f"\rranges so far [deg]: {widths}   (Enter: done) ", end="", flush=True)
        return False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Open a context in which a joint moves and a key may stop it."""
        if not os.isatty(self._source):  # keys come from a terminal only
            yield
            return
        with KeyWatch(self._stop, self._source) as self._keys:
            yield
        self._keys = None

    def _ask(self, question: str, give_up_s: float = math.inf) -> str | None:
        """Return the answer, without its end of line, or None after ``give_up_s`` [s, monotonic clock]. Raises
        StoppedError as soon as somebody stops the robot."""
        print(question, end="", flush=True)
        with nullcontext() if self._keys is None else self._keys.paused():
            while (answer := self._heard(_LOOK_S)) is None and time.monotonic() < give_up_s:
                pass
        return answer

    def _heard(self, wait_s: float) -> str | None:
        """Return an answer that comes within ``wait_s`` [s]. Raises StoppedError if it, or anything else, is a stop."""
        answer, is_over = None, False
        try:
            answer = self._lines.next(wait_s)
        except EOFError:
            is_over = True
        if answer is not None and answer in STOP_ANSWERS:
            self._stop.trip("a key was pressed")
        reason = self._stop.reason if self._stop.tripped else self._interrupted()
        if reason is not None:
            raise StoppedError(f"stopped: {reason}")
        if is_over:
            raise ConfigError(_NOBODY)
        return answer


class TypedLines:
    """Lines of a file descriptor, read with a limited wait."""

    def __init__(self, source: int) -> None:
        self._source, self._rest = source, b""

    def next(self, wait_s: float) -> str | None:
        """Return the next line without its end, or None after ``wait_s`` [s]. Raises EOFError at the end of input."""
        while b"\n" not in self._rest:
            readable, _, _ = select.select([self._source], [], [], wait_s)
            if not readable:
                return None
            data = os.read(self._source, 1024)
            if not data and not self._rest:
                raise EOFError
            self._rest += data or b"\n"
        line, self._rest = self._rest.split(b"\n", 1)
        return line.decode(errors="replace")


def add_options(parser: argparse.ArgumentParser) -> None:
    add_bus(parser)
    add_latch(parser)
    parser.add_argument("--ids", type=id_list, required=True, help="servos from the tail to the head, as in 1-9")
    parser.add_argument("--out", metavar="FILE", default="calibration.json", help="where to (%(default)s)")
    parser.add_argument("--model", help="type of the servos, as STS3215 (default: what they say)")
    add_motion(parser)
    parser.add_argument("--limit", type=float, metavar="DEG", help="same range for all joints; default: by hand")
    parser.add_argument("--margin", type=float, default=3.0, metavar="DEG", help="inside the stops (%(default)s)")
    parser.add_argument(
        "--recentre", choices=["auto", "always", "never"], default="auto",
        help="store the straight position as the middle of the servo's range: where the range would pass the "
        "encoder's zero (auto), in all servos, or in none",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    check_motion(options.degrees, options.torque)
    if options.limit is not None and not 5.0 <= options.limit <= 180.0:
        raise ConfigError(f"--limit is {options.limit:g}; expected 5 to 180 degrees")
    if not 0.0 <= options.margin <= 20.0:
        raise ConfigError(f"--margin is {options.margin:g}; expected 0 to 20 degrees")
    check_new_file(options.out)
    try:
        with guarded_bus(options, "calibrate") as (bus, stop):
            calibration = calibrate(
                bus, options.ids, Person(stop, bus.interrupted), options.model, math.radians(options.degrees),
                options.torque, None if options.limit is None else math.radians(options.limit),
                math.radians(options.margin), options.recentre, interrupted=bus.interrupted,
            )  # fmt: skip
    except StoppedError as error:
        print(f"\n{error}")
        return 1
    except ProcedureError as error:
        raise ConfigError(str(error)) from None
    calibration.save(options.out)
    print(table(calibration))
    print(f"wrote {options.out}")
    return 0


def calibrate(
    bus: Servos, ids: Sequence[int], guide: Person, kind: str | None = None,
    amplitude_rad: float = math.radians(6.0), torque: float = 0.25, limit_rad: float | None = None,
    margin_rad: float = math.radians(3.0), recentring: Recentring = "auto",
    interrupted: Callable[[], str | None] = never,
) -> Calibration:  # fmt: skip
    """Calibrate the robot. The servos store nothing of it but, if they were recentred, their offset.

    Args:
        ids: servos from the tail to the head.
        kind: model of the servos; None: the one that they report.
        limit_rad: the same range for all joints, to both sides; None: joints are moved by hand.
        interrupted: called while a joint moves; returns a reason to stop (StoppedError), or None.

    Raises ProcedureError, which names the servo and its fault.
    """
    family, name = bus.family, common_model(bus, ids, kind)
    for one, held in held_by(bus, ids).items():
        for fault in faults(held, f"servo {one}", None, family):
            raise ProcedureError(fault)
    make_limp(bus, ids)
    guide.straighten()
    zeros = read_positions(bus, ids)
    span = math.radians(100.0) if limit_rad is None else limit_rad
    for servo_id in ids:
        passes = passes_encoder_zero(family, zeros[servo_id], -span, span, 1)
        if recentring == "always" or (recentring == "auto" and passes):
            zeros[servo_id] = recentre(bus, servo_id)
            guide.say(f"servo {servo_id}: the straight position is the middle of its range now")
    for one, held in held_by(bus, ids).items():
        if not passes_encoder_zero(family, zeros[one], -span, span, 1):
            limited_range(one, held, family, zeros[one], 1, (-span, span))
    with guide.watching():
        directions = {
            one: find_direction(
                bus, one, partial(guide.look, joint, one), amplitude_rad, torque, interrupted,
                partial(guide.come_back, joint, one),
            )
            for joint, one in enumerate(ids, start=1)
        }  # fmt: skip
    for line in odd_ones_out(directions):
        guide.say(line)
    if limit_rad is None:
        ranges = _ranges_by_hand(bus, ids, guide, zeros, directions, margin_rad)
    else:
        ranges = dict.fromkeys(ids, (-limit_rad, limit_rad))
    holds = held_by(bus, ids)
    for one, held in holds.items():
        if passes_encoder_zero(family, zeros[one], *ranges[one], directions[one]):
            guide.say(f"servo {one}: its range passes the encoder's zero, where it cannot be driven; recentre it")
            continue
        left = limited_range(one, held, family, zeros[one], directions[one], ranges[one])
        if left != ranges[one]:
            low, high = (math.degrees(angle) for angle in left)
            limits = f"{held['min_angle_limit']} to {held['max_angle_limit']}"
            guide.say(f"servo {one} holds angle limits {limits}: its range is cut to {low:+.1f} to {high:+.1f} degrees")
            ranges[one] = left
    turn = family.steps_per_turn  # a servo without angle limits counts on beyond it
    joints = [JointCalibration(one, directions[one], zeros[one] % turn, *ranges[one], holds[one]) for one in ids]
    return Calibration(tuple(joints), name, family.steps_per_turn, time.strftime("%Y-%m-%d"))


def odd_ones_out(directions: Mapping[int, int]) -> list[str]:
    """Return a line about the servos, by ID, that count the other way than most, if there are any."""
    most = 1 if sum(directions.values()) >= 0 else -1
    odd = [str(one) for one, direction in directions.items() if direction != most]
    return [
        f"servos {', '.join(odd)} count the other way than the others: if they were not put on mirrored, the answers "
        "were wrong (see wiggle --calibration)"
    ][: len(odd)]  # fmt: skip


def _ranges_by_hand(
    bus: Servos, ids: Sequence[int], guide: Person, zeros: Mapping[int, int], directions: Mapping[int, int],
    margin_rad: float,
) -> dict[int, tuple[float, float]]:  # fmt: skip
    """Return the least and largest angle [rad] by ID of joints moved by hand; joints with an impossible range are asked
    for again. Raises ProcedureError."""
    guide.say("Move every joint by hand to its stop on both sides, several at a time if you like.")
    ranges: dict[int, tuple[float, float]] = {}
    make_limp(bus, ids)
    while len(ranges) < len(ids):
        left = [one for one in ids if one not in ranges]
        for servo_id, moved in watch_range(bus, left, guide.moved_to_stops).items():
            try:
                ranges[servo_id] = joint_range(bus.family, zeros[servo_id], directions[servo_id], moved, margin_rad)
            except ProcedureError as error:
                joint = list(ids).index(servo_id) + 1
                guide.say(f"joint {joint} (servo {servo_id}): {error}; move this one again")
    return ranges


def table(calibration: Calibration) -> str:
    """Return a table with one line per joint."""
    lines = ["joint  servo  direction   zero  range [deg]"]
    for joint, one in enumerate(calibration.joints, start=1):
        low, high = math.degrees(one.low_rad), math.degrees(one.high_rad)
        lines.append(
            f"{joint:5d}  {one.servo_id:5d}  {one.direction:+9d}  {one.zero_steps:5d}  {low:+.1f} to {high:+.1f}"
        )
    return "\n".join(lines)
