"""Command ``scan``: find servos on the bus, judge the line, and give servos new IDs and baud rates."""

from __future__ import annotations

import argparse
import contextlib
import math
import statistics
from collections import Counter
from collections.abc import Sequence

from snake_gym.config import ConfigError
from snake_gym.hardware.bus.bus import GARBLED, SLOW_S, Bus, BusPort, CycleTime, say_twins
from snake_gym.hardware.bus.family import READING, ServoFamily, describe_error
from snake_gym.hardware.calibration.procedures import FoundServo, ProcedureError, change_baud, change_id, scan
from snake_gym.hardware.commands.options import add_bus, bus_port, id_list, open_bus, say_ids

_N_READINGS = 50
"""Readings of each servo by which --doctor judges the line."""
_MOST_BAD = 0.02
"""Share of bad answers that a sound line stays below."""


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
    try:
        if options.change_id is not None:
            old, new = options.change_id
            with contextlib.closing(open_bus(port)) as bus:
                change_id(bus, old, new)
            print(f"servo {old} is servo {new} now")
            return 0
        if options.assign is not None:
            return _assign(options, port)
        if options.change_baud is not None:
            return _change_bauds(options, port)
    except ProcedureError as error:
        raise ConfigError(str(error)) from None
    bauds = port.family.baud_rates if options.all_bauds else [port.baud]
    found = scan(lambda baud: open_bus(port._replace(baud=baud), retries=1), bauds, options.ids)
    if not found:
        print(_nobody(options, bauds))
        return 1
    twins = [servo.info.id for servo in found if servo.info.ambiguous]
    alone = [servo for servo in found if not servo.info.ambiguous]
    if alone:
        print(table(alone, port.family))
    for servo_id in twins:
        print(say_twins(servo_id))
    is_sound = not options.doctor or _examine(port, alone)
    return int(bool(twins) or not is_sound)


def _nobody(options: argparse.Namespace, bauds: Sequence[int]) -> str:
    ids, rates = say_ids(options.ids), ", ".join(map(str, bauds))
    more = "" if options.all_bauds else "; try --all-bauds"
    return f"nobody of {ids} answers on {options.port} at {rates} baud; look at power, cable and ids{more}"


def _assign(options: argparse.Namespace, port: BusPort) -> int:
    """Give new servos their IDs; the last one keeps the factory's, if that is wanted, so all may stay connected."""
    factory = port.family.register("id").default
    with contextlib.closing(open_bus(port)) as bus:
        for new in sorted(options.assign, key=lambda one: (one == factory, -one)):
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
    info = bus.ping(factory)
    if info is None or info.ambiguous:
        more = "take off all but one" if info else "look at power and cable, or scan --all-bauds"
        print(f"{'two servos (or more) answer' if info else 'no servo answers'} as {factory}: {more}")
        return False
    if new != factory:
        try:
            change_id(bus, factory, new)
        except ProcedureError as error:
            print(error)
            return False
    print(f"this is servo {new} now")
    return True


def _change_bauds(options: argparse.Namespace, port: BusPort) -> int:
    """Change the baud rate of all servos of --ids that answer at --baud, each as if it were alone."""
    new = options.change_baud
    found = scan(lambda baud: open_bus(port._replace(baud=baud), retries=1), [port.baud], options.ids)
    if not found:
        raise ConfigError(_nobody(options, [port.baud]))
    for servo in found:
        change_baud(lambda baud: open_bus(port._replace(baud=baud)), servo.info.id, port.baud, new)
        print(f"servo {servo.info.id} talks at {new} baud now")
    return 0


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
              f"  {bad[True]:7d}  {servo.voltage_v:4.1f} V")  # fmt: skip
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
        name = family.model_of(info.model)
        position = "-" if servo.position is None else str(servo.position)
        volts = "-" if math.isnan(servo.voltage_v) else f"{servo.voltage_v:.1f} V"
        degrees = "-" if math.isnan(servo.temperature_c) else f"{servo.temperature_c:.0f} C"
        firmware = ".".join(map(str, info.firmware))
        errors = describe_error(info.error) or "none"
        lines.append(
            f"{info.id:4d}  {servo.baud:7d}  {name:9s} {firmware:>8s}  {position:>8s}  {volts:>7s}  {degrees:>11s}"
            f"  {errors}"
        )
    return "\n".join(lines)
