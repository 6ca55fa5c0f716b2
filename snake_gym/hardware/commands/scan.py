"""Command ``scan``: find servos on the bus, judge the line, and give servos new IDs and baud rates."""

from __future__ import annotations

import argparse
import contextlib
import math
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from snake_gym.config import ConfigError, choose
from snake_gym.hardware.bus.bus import GARBLED, SLOW_S, Bus, BusPort, CycleTime, ServoInfo, say_twins
from snake_gym.hardware.bus.family import READING, ServoFamily, describe_error
from snake_gym.hardware.commands.options import add_bus, bus_port, id_list, open_bus, say_ids
from snake_gym.hardware.commands.stored_registers import change_baud, change_id, check_alone

_N_READINGS = 50
"""Readings of each servo by which --doctor judges the line."""
_MOST_BAD = 0.02
"""Share of bad answers that a sound line stays below."""


class FoundServo(NamedTuple):
    """Servo that answered a ping."""

    baud: int
    info: ServoInfo
    values: dict[str, int] | None
    """Counts by register name; None: it answers pings only."""

    def shown(self, family: ServoFamily, name: str, digits: int = 1) -> str:
        """Return the value of a register, for people; "-" if it is not known."""
        return "-" if self.values is None else f"{self.values[name] * family.scale(name):.{digits}f}"


def add_options(parser: argparse.ArgumentParser) -> None:
    add_bus(parser)
    parser.add_argument("--ids", type=id_list, default=id_list("0-30"), help="ids to look for (0-30)")
    parser.add_argument("--all-bauds", action="store_true", help="look at every baud rate that servos are set to")
    acts = parser.add_mutually_exclusive_group()
    acts.add_argument("--doctor", action="store_true", help="measure how late and how well each servo answers")
    acts.add_argument("--assign", type=id_list, metavar="IDS", help="give new servos these ids, one after the other")
    acts.add_argument(
        "--change-id", nargs=2, type=int, metavar=("OLD", "NEW"), help="give the servo OLD the id NEW, for good"
    )
    acts.add_argument(
        "--change-baud", type=int, metavar="RATE", help="set the servos of --ids from --baud to RATE, for good"
    )


def run(options: argparse.Namespace) -> int:
    port = bus_port(options)
    if options.change_id is not None:
        old, new = options.change_id
        with contextlib.closing(open_bus(port)) as bus:
            change_id(bus, old, new)
        print(f"servo {old} is servo {new} now")
        return 0
    if options.assign is not None:
        return _assign(options.assign, port)
    if options.change_baud is not None:
        choose(str(options.change_baud), map(str, port.family.baud_rates), "--change-baud")
    bauds = port.family.baud_rates if options.all_bauds else [port.baud]
    found = [servo for baud in bauds for servo in scan(port._replace(baud=baud), options.ids)]
    if not found:
        rates, more = ", ".join(map(str, bauds)), "" if options.all_bauds else "; try --all-bauds"
        ids = say_ids(options.ids)
        print(
            f"nobody of {ids} answers on {port.device} at {rates} baud; look at power, cable, ids and the family "
            f"(--family {port.family.name}){more}"
        )
        return 1
    twins = [servo.info.id for servo in found if servo.info.ambiguous]
    alone = [servo for servo in found if not servo.info.ambiguous]
    if options.change_baud is not None:
        for servo in alone:
            change_baud(lambda baud: open_bus(port._replace(baud=baud)), servo.info.id, servo.baud, options.change_baud)
            print(f"servo {servo.info.id} talks at {options.change_baud} baud now")
    elif alone:
        print(table(alone, port.family))
    for servo_id in twins:
        print(say_twins(servo_id))
    is_sound = not options.doctor or _examine(port, alone)
    return int(bool(twins) or not is_sound)


def scan(port: BusPort, ids: Sequence[int]) -> list[FoundServo]:
    """Return the servos that answer a ping at the port's baud rate."""
    found, names = [], ("present_position", "present_voltage", "present_temperature")
    with contextlib.closing(open_bus(port, retries=1)) as bus:
        for servo_id in ids:
            info = bus.ping(servo_id)
            if info is not None:
                found.append(FoundServo(port.baud, info, bus.read_block([servo_id], *names).values[servo_id]))
    return found


def _assign(ids: Sequence[int], port: BusPort) -> int:
    """Give new servos their IDs; the last one keeps the factory's, if that is wanted, so all may stay connected."""
    factory = port.family.register("id").default
    with contextlib.closing(open_bus(port)) as bus:
        for new in sorted(ids, key=lambda one: (one == factory, -one)):
            if new != factory and bus.ping(new) is not None:
                print(f"servo {new} is there already")
                continue
            while not _assigned(bus, factory, new):
                pass
    return 0


def _assigned(bus: Bus, factory: int, new: int) -> bool:
    """Ask for the next new servo and give it its ID. Return False if that has to be tried again."""
    print(f"supply off, connect a new servo, to become {new} (those before may stay), supply on. Enter: ", flush=True)
    try:
        input()
    except EOFError:
        raise ConfigError(f"the input ended before servo {new} had its id; scan --assign goes on there") from None
    try:
        check_alone(bus, factory)
        if new != factory:
            change_id(bus, factory, new)
    except ConfigError as error:
        print(error)
        return False
    print(f"this is servo {new} now")
    return True


def _examine(port: BusPort, found: Sequence[FoundServo]) -> bool:
    """Print how late and how well each servo answers. Return True if the line is sound."""
    print("\n  id     baud  answers after: median   worst  missing  garbled  supply")
    slowest_s, cycle, doubtful = 0.0, CycleTime(0.0, 0.0), []
    for servo in found:
        one, delays_s, bad = servo.info.id, [math.nan], Counter[bool]()
        with contextlib.closing(open_bus(port._replace(baud=servo.baud), retries=0)) as bus:
            bus.ping(one)  # it tells its return delay
            for _ in range(_N_READINGS):
                begun_s = bus.clock.now()
                failure = bus.read_block([one], *READING).failures.get(one)
                if failure is None:
                    delays_s.append(max(0.0, bus.clock.now() - begun_s - bus.cycle_time([one]).reading_s))
                else:
                    bad[failure == GARBLED] += 1
            cycle = bus.cycle_time([other.info.id for other in found])
        median_s, worst_s = statistics.median(delays_s[1:] or delays_s), max(delays_s[1:] or delays_s)
        print(f"{one:4d}  {servo.baud:7d}  {1e3 * median_s:19.1f} ms {1e3 * worst_s:4.1f} ms  {bad[False]:7d}"
              f"  {bad[True]:7d}  {servo.shown(port.family, 'present_voltage'):>4s} V")  # fmt: skip
        slowest_s = max(slowest_s, median_s)
        if bad.total() > _MOST_BAD * _N_READINGS:
            doubtful.append(one)
    if doubtful:
        print(f"servos {say_ids(doubtful)} answer badly: look at cable, ground, supply and ids")
    if slowest_s > SLOW_S:
        cycle = cycle._replace(latency_s=slowest_s)
        print(f"answers take {1e3 * slowest_s:.0f} ms: set the adapter's latency timer (docs/hardware.md, Wiring), or "
              f"connection.period_s to {cycle.round_period_s:g}")  # fmt: skip
    return not doubtful and slowest_s <= SLOW_S


def table(found: Sequence[FoundServo], family: ServoFamily) -> str:
    """Return a table with one line per servo."""
    lines = ["  id     baud  model     firmware  position  voltage  temperature  errors"]
    for servo in found:
        info = servo.info
        position = "-" if servo.values is None else str(servo.values["present_position"])
        firmware = ".".join(map(str, info.firmware))
        lines.append(
            f"{info.id:4d}  {servo.baud:7d}  {family.model_of(info.model):9s} {firmware:>8s}  {position:>8s}  "
            f"{servo.shown(family, 'present_voltage'):>5s} V  {servo.shown(family, 'present_temperature', 0):>9s} C  "
            f"{describe_error(info.error) or 'none'}"
        )
    return "\n".join(lines)
