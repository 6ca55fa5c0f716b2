"""Command ``calibrate``: guided calibration of all joints, which writes a calibration file.

Straight robot (zero), a wiggle of each joint (direction), joints moved by hand (limits). Questions are answered by keys
of a person at the terminal, or of a program.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial

from snake_gym.config import ConfigError
from snake_gym.hardware.calibration.calibration import Calibration, JointCalibration, faults
from snake_gym.hardware.calibration.procedures import (
    ProcedureError,
    Servos,
    Side,
    StoppedError,
    common_model,
    find_direction,
    held_by,
    joint_range,
    limited_range,
    make_limp,
    passes_encoder_zero,
    read_positions,
    recentre,
    watch_range,
)
from snake_gym.hardware.commands.options import add_bus, add_motion, check_new_file, guarded_bus, id_list, within
from snake_gym.hardware.robot.key_watch import STOP_KEYS, KeyWatch

HOLD_S = 30.0
"""Longest time for which a joint holds its wiggle and waits for an answer [s]."""
_LOOK_S = 0.02
_SIDES: dict[str, Side] = {"r": "right", "l": "left", "d": "right", "u": "left", "n": "unseen"}


class Person:
    """Person at the keyboard, who looks at the robot and moves its joints.

    Raises, from its methods, StoppedError as soon as the robot is stopped, and ConfigError: there are no more keys.
    """

    def __init__(self, bus: Servos, keys: KeyWatch) -> None:
        self._bus, self._keys = bus, keys

    def say(self, line: str) -> None:
        print(line, flush=True)

    def straighten(self) -> None:
        """Ask for the limp robot to be laid straight, and wait for that."""
        self._ask("Lay the robot straight; the servos are limp. Then press Enter: ", "\n")

    def look(self, joint: int, servo_id: int) -> Side | None:
        """Ask to which side joint ``joint`` (from 1 at the tail) has just bent. Return None after half a minute."""
        question = f"joint {joint} (servo {servo_id}) holds its wiggle: seen towards the head, is it bent to the\n"
        question += "  right (r), to the left (l), or was there nothing to see (n)? (q: stop)\n"
        question += "  A joint that bends up and down: is what lies behind it lower (d) or higher (u)? "
        self._keys.forget()
        key = self._ask(question, "".join(_SIDES), HOLD_S)
        return None if key is None else _SIDES[key]

    def come_back(self, joint: int, servo_id: int) -> None:
        """Say that a joint was let go since nobody looked, and wait for somebody."""
        question = f"\njoint {joint} (servo {servo_id}) was let go after {HOLD_S:g} s. Press Enter to see it again: "
        self._ask(question, "\n")

    def moved_to_stops(self, widths_rad: Mapping[int, float]) -> bool:
        """Return True once all joints have been moved to both stops; called again and again."""
        if self._heard(0.0) == "\n":
            return True
        widths = " ".join(f"{math.degrees(width):.0f}" for width in widths_rad.values())
        if sys.stdout.isatty():
            print(f"\rranges so far [deg]: {widths}   (Enter: done) ", end="", flush=True)
        return False

    def _ask(self, question: str, keys: str, wait_s: float = math.inf) -> str | None:
        """Return one of ``keys``, or None after ``wait_s`` [s]."""
        print(question, end="", flush=True)
        give_up_s = time.monotonic() + wait_s
        while (key := self._heard(_LOOK_S)) is None or key not in keys:
            if time.monotonic() > give_up_s:
                return None
        if sys.stdin.isatty():  # the terminal does not show it by itself now
            print(key.strip(), flush=True)
        return key

    def _heard(self, wait_s: float) -> str | None:
        """Return a key that comes within ``wait_s`` [s]."""
        try:
            key, is_over = self._keys.next(wait_s), False
        except EOFError:
            key, is_over = None, True
        is_stop = key is not None and key in STOP_KEYS
        reason = "a key was pressed" if is_stop else self._bus.interrupted()
        if reason is not None:
            raise StoppedError(f"stopped: {reason}")
        if is_over:
            raise ConfigError("calibrate asks questions, and standard input has ended; run it on a terminal")
        return None if key is None else key.lower()


def add_options(parser: argparse.ArgumentParser) -> None:
    add_bus(parser)
    parser.add_argument("--ids", type=id_list, required=True, help="servos from the tail to the head, as in 1-9")
    parser.add_argument("--out", metavar="FILE", default="calibration.json", help="where to (%(default)s)")
    parser.add_argument("--model", help="type of the servos, as STS3215 (default: what they say)")
    add_motion(parser)
    add = parser.add_argument
    add("--limit", type=within(5.0, 180.0), help="same range for all joints, to both sides [deg] (default: by hand)")
    add("--margin", type=within(0.0, 20.0), default=3.0, help="distance from the stops [deg] (%(default)s)")


def run(options: argparse.Namespace) -> int:
    check_new_file(options.out)
    limit_rad = None if options.limit is None else math.radians(options.limit)
    try:
        with guarded_bus(options, "calibrate") as (bus, keys):
            calibration = calibrate(
                bus, options.ids, Person(bus, keys), options.model, math.radians(options.degrees), options.torque,
                limit_rad, math.radians(options.margin),
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
    margin_rad: float = math.radians(3.0),
) -> Calibration:  # fmt: skip
    """Calibrate the robot. The servos store nothing of it but their offset, where they had to be recentred.

    Args:
        ids: servos from the tail to the head.
        kind: model of the servos; None: the one that they report.
        limit_rad: the same range for all joints, to both sides; None: joints are moved by hand.

    Raises ProcedureError, which names the servo and its fault.
    """
    family, name, holds = bus.family, common_model(bus, ids, kind), held_by(bus, ids)
    for one, held in holds.items():
        for fault in faults(held, f"servo {one}", None, family):
            raise ProcedureError(fault)
    make_limp(bus, ids)
    guide.straighten()
    zeros = read_positions(bus, ids)
    span = math.radians(100.0) if limit_rad is None else limit_rad
    for one, held in holds.items():
        if passes_encoder_zero(family, zeros[one], span):
            zeros[one] = recentre(bus, one)
            guide.say(f"servo {one}: the straight position is the middle of its range now")
        limited_range(one, held, family, zeros[one], 1, (-span, span))
    directions = {
        one: find_direction(
            bus, one, partial(guide.look, joint, one), amplitude_rad, torque, partial(guide.come_back, joint, one)
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
