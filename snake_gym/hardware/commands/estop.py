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
_reasons: dict[Path, str] = {}
"""Why a port could not be switched off from here."""


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
    pending = _await(locks, begun_s, options.wait)
    for lock in pending:
        how = f"has not said within {options.wait:g} s" if lock.alive else "died before it said"
        print(f"{_name(lock)} {how} that the torque is off{_reasons.get(lock.path, '')}: USE THE HARDWARE STOP")
    return int(bool(pending) or not all(tripped.values()))


def _name(lock: PortLock) -> str:
    return f"{lock.what} (process {lock.pid})"


def _await(locks: dict[Path, PortLock], begun_s: float, wait_s: float) -> list[PortLock]:
    """Wait until the torque is off everywhere. Return the locks of processes that have not reported it."""
    pending = dict(locks)
    while pending:
        for path in list(pending):
            lock = read_lock(path)
            from_here = lock is not None and not lock.alive and _switch_off(lock)
            if lock is None or from_here:
                name, after_s = _name(pending.pop(path)), time.monotonic() - begun_s
                died = " had died; switched off from here" if from_here else ""
                print(f"{name}{died}: torque is off in all servos, after {1e3 * after_s:.0f} ms", flush=True)
            else:
                pending[path] = lock
        if time.monotonic() - begun_s > wait_s:
            break
        time.sleep(_LOOK_S)
    return list(pending.values())


def _switch_off(lock: PortLock) -> bool:
    """Switch off what a dead process has left on. Return False if not every servo confirms it."""
    from snake_gym.hardware.bus.bus import BusPort  # only here: it takes time to load
    from snake_gym.hardware.guard.torque_switch import switch_off_port

    servos = dict(lock.servos)
    ids = servos.pop("ids")
    try:
        if not switch_off_port(BusPort.of(servos), ids):
            lock.path.unlink(missing_ok=True)
            return True
    except OSError:  # no port, or another process is about to do it
        pass
    except Exception as error:  # of a bus of the user's own: the other robots are switched off all the same
        _reasons[lock.path] = f" ({error})"
    return False


def _clear(stop: EmergencyStop, latch: Path | None) -> int:
    try:
        print("cleared" if stop.clear() else "it was not tripped")
    except OSError as error:
        raise ConfigError(f"{stop.latch} cannot be removed ({error.strerror})") from None
    for lock in find_locks(latch):
        if not lock.alive:  # a person has looked
            lock.path.unlink(missing_ok=True)
    return 0
