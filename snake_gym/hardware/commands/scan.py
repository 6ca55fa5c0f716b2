"""Command ``scan``: find servos on the bus at each baud rate, and give them new IDs and baud rates."""

from __future__ import annotations

import argparse
import contextlib
import math
from collections.abc import Sequence

from snake_gym.config import ConfigError
from snake_gym.hardware.bus.family import ServoFamily
from snake_gym.hardware.bus.family import describe_error
from snake_gym.hardware.calibration.procedures import FoundServo, ProcedureError, change_baud, change_id, scan
from snake_gym.hardware.commands.options import add_bus, bus_port, id_list, open_bus, say_ids


def add_options(parser: argparse.ArgumentParser) -> None:
    add_bus(parser)
    parser.add_argument("--ids", type=id_list, default=id_list("0-30"), help="ids to look for (0-30)")
    parser.add_argument("--all-bauds", action="store_true", help="look at every baud rate that servos are set to")
    changes = parser.add_mutually_exclusive_group()
    changes.add_argument(
        "--change-id", nargs=2, type=int, metavar=("OLD", "NEW"), help="give the servo OLD the id NEW, for good"
    )
    changes.add_argument(
        "--change-baud", type=int, metavar="RATE", help="set the servos of --ids from --baud to RATE, for good"
    )


def run(options: argparse.Namespace) -> int:
    change = _change if options.change_id is not None else _change_bauds if options.change_baud is not None else None
    if change is not None:
        try:
            change(options)
        except ProcedureError as error:
            raise ConfigError(str(error)) from None
        return 0
    port = bus_port(options)
    family = port.family
    bauds = family.baud_rates if options.all_bauds else [port.baud]
    found = scan(lambda baud: open_bus(port._replace(baud=baud), retries=1), bauds, options.ids)
    print(table(found, family) if found else _nobody(options, bauds))
    return 0 if found else 1


def _nobody(options: argparse.Namespace, bauds: Sequence[int]) -> str:
    ids, rates = say_ids(options.ids), ", ".join(map(str, bauds))
    more = "" if options.all_bauds else "; try --all-bauds"
    return f"nobody of {ids} answers on {options.port} at {rates} baud; look at power, cable and ids{more}"


def _change(options: argparse.Namespace) -> None:
    old, new = options.change_id
    with contextlib.closing(open_bus(bus_port(options))) as bus:
        change_id(bus, old, new)
    print(f"servo {old} is servo {new} now")


def _change_bauds(options: argparse.Namespace) -> None:
    """Change the baud rate of all servos of --ids that answer at --baud, each as if it were alone."""
    port, new = bus_port(options), options.change_baud
    found = scan(lambda baud: open_bus(port._replace(baud=baud), retries=1), [port.baud], options.ids)
    if not found:
        raise ConfigError(_nobody(options, [port.baud]))
    for servo in found:
        change_baud(lambda baud: open_bus(port._replace(baud=baud)), servo.info.id, port.baud, new)
        print(f"servo {servo.info.id} talks at {new} baud now")


def table(found: list[FoundServo], family: ServoFamily) -> str:
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
