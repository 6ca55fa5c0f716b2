"""Command ``limp``: torque off in every servo of a bus, whatever else is wrong.

It needs no settings and no calibration, and works in spite of a tripped stop or servos in error. The order goes to
every servo, whatever its ID, at each baud rate; then the servos that answer are asked whether their torque is off.
"""

from __future__ import annotations

import argparse
import contextlib

from snake_gym.hardware.bus.family import describe_error
from snake_gym.hardware.commands.options import add_bus, bus_port, id_list, open_bus, say_ids

_TIMES = 3  # a packet may be lost, and nobody acknowledges one to all


def add_options(parser: argparse.ArgumentParser) -> None:
    add_bus(parser, "every rate that servos are set to")
    parser.add_argument("--ids", type=id_list, default=id_list("0-30"), help="ids to ask; the order goes to all (0-30)")


def run(options: argparse.Namespace) -> int:
    port, on, n_found = bus_port(options), [], 0
    bauds = port.family.baud_rates if options.baud is None else [port.baud]
    for baud in bauds:
        with contextlib.closing(open_bus(port._replace(baud=baud), retries=1)) as bus:
            for _ in range(_TIMES):
                bus.torque_off_all()
    for baud in bauds:
        with contextlib.closing(open_bus(port._replace(baud=baud), retries=1)) as bus:
            there = [info for one in options.ids if (info := bus.ping(one)) is not None]
            off = bus.torque([info.id for info in there], False)
        n_found += len(there)
        on += [one for one, known in off.items() if not known]
        for info in there:
            state = "torque off" if off[info.id] else "DOES NOT SAY that its torque is off"
            error = f" (its error: {describe_error(info.error)})" if info.error else ""
            print(f"servo {info.id:3d} at {baud} baud: {state}{error}")
    if not n_found:
        rates = ", ".join(map(str, bauds))
        print(
            f"the order went out, but nobody of {say_ids(options.ids)} answers on {port.device} at {rates} baud; "
            f"servos of another family than {port.family.name}: give --family"
        )
    if on or not n_found:
        print("torque may be on: USE THE HARDWARE STOP")
    return int(bool(on) or not n_found)
