"""Command ``estop``: stop this user's robots from another terminal, or allow them to move again.

The stop is a file, the latch. The owner of a port checks it on every bus cycle; while it exists nothing moves and
nothing can be started. Without ``--latch`` every robot of this user is stopped, whatever its latch.

``estop`` waits until each guard has reported that the torque is off in all its servos. Where a guard is dead, and so is
the process that it served, ``estop`` opens the port and switches off itself. If servos still have not confirmed it, the
exit code is 1 and only the hardware stop is left.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

from snake_gym.config import ConfigError
from snake_gym.hardware.guard.emergency_stop import EmergencyStop, PortLock, find_locks, read_lock

_LOOK_S = 0.005


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clear", action="store_true", help="allow motion again")
    parser.add_argument("--latch", metavar="FILE", help="file of the stop (this user's, and those of all runs)")
    parser.add_argument("--wait", type=float, default=3.0, metavar="S", help="for torque off (%(default)s)")


def run(options: argparse.Namespace) -> int:
    if not (math.isfinite(options.wait) and options.wait >= 0.0):
        raise ConfigError(f"--wait is {options.wait:g}; expected seconds, 0 or more")
    latch = None if options.latch is None else Path(options.latch)
    stop = EmergencyStop(latch)
    if options.clear:
        return _clear(stop, latch)
    begun_s = time.monotonic()
    locks: dict[Path, PortLock] = {}
    tripped: dict[Path, bool] = {}
    for _ in range(2):  # twice, for a robot that has come up meanwhile
        locks |= {lock.path: lock for lock in find_locks(latch)}
        for one in [stop.latch.absolute(), *(lock.latch for lock in locks.values())]:
            if one not in tripped:
                tripped[one] = EmergencyStop(one).trip("the command estop")
                how = f"tripped: {EmergencyStop(one).reason}; {one}"
                print(how if tripped[one] else f"NOT tripped: {one} cannot be written", flush=True)
    if not locks:
        print("nothing was moving: no process of yours has torque on" + (" with this latch" if latch else ""))
    is_off = _await(locks, begun_s, options.wait)
    return int(not (is_off and all(tripped.values())))


def _await(locks: dict[Path, PortLock], begun_s: float, wait_s: float) -> bool:
    """Wait until the torque is off everywhere, and say so. Return False if it is not known of all."""
    pending, reasons = dict(locks), dict[Path, str]()
    while True:
        for path, last in list(pending.items()):
            lock, died = read_lock(path), ""
            if lock is not None and not lock.alive:
                died, reasons[path] = " had died; switched off from here", _switch_off(lock)
            pending[path] = lock or last
            if lock is None or (died and not reasons[path]):
                name, after_ms = _name(pending.pop(path)), 1e3 * (time.monotonic() - begun_s)
                print(f"{name}{died}: torque is off in all servos, after {after_ms:.0f} ms", flush=True)
        if not pending or time.monotonic() - begun_s > wait_s:
            break
        time.sleep(_LOOK_S)
    for path, lock in pending.items():
        how = f"has not said within {wait_s:g} s" if lock.alive else "died before it said"
        print(f"{_name(lock)} {how} that the torque is off{reasons.get(path, '')}: USE THE HARDWARE STOP")
    return not pending


def _name(lock: PortLock) -> str:
    return f"{lock.what} (process {lock.pid})"


def _switch_off(lock: PortLock) -> str:
    """Switch off what a dead process has left on. Return why not every servo confirms it, or an empty text."""
    if "family" not in lock.servos:
        return " (joints of your own: guard.own_body)"
    from snake_gym.hardware.bus.bus import BusPort  # only here: it takes time to load
    from snake_gym.hardware.guard.torque_switch import switch_off_port

    try:
        if switch_off_port(BusPort.of(lock.servos), lock.servos["ids"]):
            return " (servos do not answer)"
        lock.path.unlink(missing_ok=True)
    except Exception as error:  # of the port, or of a bus of the user's own: the others are switched off all the same
        return f" ({error})"
    return ""


def _clear(stop: EmergencyStop, latch: Path | None) -> int:
    try:
        print("cleared" if stop.clear() else "it was not tripped")
    except OSError as error:
        raise ConfigError(f"{stop.latch} cannot be removed ({error.strerror})") from None
    for lock in find_locks(latch):
        if not lock.alive:  # a person has looked
            lock.path.unlink(missing_ok=True)
    return 0
