"""Command ``wiggle``: move joints a few degrees and back, slowly and with little torque, one after the other.

With a calibration each joint bends to the right, seen towards the head: one that bends to the left is mirrored. Space,
q, ``estop``, Ctrl-C and other signals stop it within a bus exchange.
"""

from __future__ import annotations

import argparse
import math

from snake_gym.hardware.calibration.calibration import load_calibration
from snake_gym.hardware.calibration.procedures import ProcedureError, StoppedError, wiggle
from snake_gym.hardware.commands.options import add_bus, add_motion, guarded_bus, id_list


def add_options(parser: argparse.ArgumentParser) -> None:
    add_bus(parser)
    parser.add_argument("--ids", type=id_list, required=True, help="servos, one after the other, as in 1-9 or 3,5")
    parser.add_argument("--calibration", metavar="FILE", help="bend joints to the right, by this file")
    add_motion(parser)


def run(options: argparse.Namespace) -> int:
    joints = () if options.calibration is None else load_calibration(options.calibration).joints
    directions = {one.servo_id: one.direction for one in joints}
    if directions:
        print("each joint bends to the right, seen towards the head; one that bends to the left: calibrate it again")
    all_moved = True
    with guarded_bus(options, "wiggle") as (bus, _):
        for servo_id in options.ids:
            if bus.ping(servo_id) is None:
                line, has_moved = f"does not answer at {bus.baud} baud; see scan --all-bauds", False
            else:
                angle = directions.get(servo_id, 1) * math.radians(options.degrees)
                try:
                    done = wiggle(bus, servo_id, angle, options.torque)
                    moved, back = math.degrees(done.moved_rad), math.degrees(done.returned_rad)
                    line = f"moved {moved:+.1f} degrees" if done.moved else f"DID NOT MOVE ({moved:+.1f} degrees)"
                    line += f", came back to {back:+.1f}, largest load {100 * done.largest_load:.0f} %"
                    has_moved = done.moved
                except StoppedError as error:
                    print(f"servo {servo_id:3d}: {error}")
                    return 1
                except ProcedureError as error:
                    line, has_moved = str(error), False
            print(f"servo {servo_id:3d}: {line}")
            all_moved &= has_moved
    return int(not all_moved)
