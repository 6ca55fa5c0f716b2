"""``estop``: stop the robot from another terminal, or allow it to move again.

The stop is a file, the latch. Whoever owns the port looks at it on every bus cycle; while it is there nothing moves
and nothing can be started.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from snake_gym.hardware.emergency_stop import EmergencyStop


def add_options(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--clear", action="store_true", help="allow motion again")
    what.add_argument("--status", action="store_true", help="say whether it is tripped; exit code 1 if it is")
    parser.add_argument("--reason", default="the command estop", help="kept in the latch (%(default)s)")
    parser.add_argument("--latch", metavar="FILE", help="file of the stop (this user's)")


def run(options: argparse.Namespace) -> int:
    stop = EmergencyStop(None if options.latch is None else Path(options.latch))
    if options.clear:
        print("cleared" if stop.clear() else "it was not tripped")
        return 0
    if options.status:
        print(f"tripped: {stop.reason}" if stop.tripped else "not tripped")
        return int(stop.tripped)
    stop.trip(options.reason)
    print(f"tripped: {stop.reason}; {stop.latch}")
    return 0
