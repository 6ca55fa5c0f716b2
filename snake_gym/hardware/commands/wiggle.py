"""Command ``wiggle``: move joints a few degrees and back, slowly and with little torque, one after the other.

Space, q, ``estop``, Ctrl-C and other signals stop it within a bus exchange.
"""

from __future__ import annotations

import argparse
import math

from snake_gym.hardware.calibration.procedures import ProcedureError, StoppedError, Wiggle, wiggle
from snake_gym.hardware.commands.options import (
    add_bus,
    add_latch,
    add_motion,
    bus_port,
    check_motion,
    id_list,
    stop_of,
    supervised,
)
from snake_gym.hardware.robot.key_watch import KeyWatch


def add_options(parser: argparse.ArgumentParser) -> None:
    add_bus(parser)
    add_latch(parser)
    parser.add_argument("--ids", type=id_list, required=True, help="servos, one after the other, as in 1-9 or 3,5")
    add_motion(parser)


def run(options: argparse.Namespace) -> int:
    check_motion(options.degrees, options.torque)
    bad = 0
    stop = stop_of(options)
    watched = supervised(bus_port(options), options.ids, stop, "wiggle", options.heartbeat)
    with watched as (bus, there, interrupted, moving), KeyWatch(stop):
        for servo_id in options.ids:
            if servo_id not in there:
                print(f"servo {servo_id:3d}: does not answer at {bus.baud} baud; see scan --all-bauds")
                bad += 1
                continue
            try:
                with moving():
                    done = wiggle(bus, servo_id, math.radians(options.degrees), options.torque, interrupted=interrupted)
                said, good = describe(done), done.moved
            except StoppedError as error:
                print(f"servo {servo_id:3d}: {error}")
                return 1
            except ProcedureError as error:
                said, good = str(error), False
            print(f"servo {servo_id:3d}: {said}")
            bad += not good
    return int(bad > 0)


def describe(done: Wiggle) -> str:
    """Return a description of the wiggle, for people."""
    moved, back = math.degrees(done.moved_rad), math.degrees(done.returned_rad)
    what = f"moved {moved:+.1f} degrees" if done.moved else f"DID NOT MOVE ({moved:+.1f} degrees)"
    return f"{what}, came back to {back:+.1f}, largest load {100 * done.largest_load:.0f} %"
