"""Command ``estop``: stop this user's robots from another terminal, or allow them to move again.

The stop is a file, the latch. The owner of a port checks it on every bus cycle; while it exists nothing moves and
nothing can be started. Without ``--latch`` every robot of this user is stopped, whatever its latch.

``estop`` waits until each process that had torque on has reported that it is off in all servos. A process without guard
that does not obey (it hangs) is killed: the process that watches it then switches the torque off. What a dead process
has left on is switched off from here. If servos still have not confirmed it, the exit code is 1 and only the hardware
stop is left.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from snake_gym.config import ConfigError
from snake_gym.hardware.guard.emergency_stop import EmergencyStop, PortLock, find_locks, read_lock

_LOOK_S = 0.005
_OBEYS_S = 1.0
"""Time after which a watched process that has not stopped is killed [s]."""


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
    owing = _await(locks, begun_s, options.wait)
    for lock in owing:
        how = f"has not said within {options.wait:g} s" if lock.alive else "died before it said"
        print(f"{lock.what} (process {lock.pid}) {how} that the torque is off: USE THE HARDWARE STOP")
    return int(bool(owing) or not all(tripped.values()))


def _await(locks: dict[Path, PortLock], begun_s: float, wait_s: float) -> list[PortLock]:
    """Wait until the torque is off everywhere. Return the locks of processes that have not reported it."""
    owing, killed = dict(locks), set()
    while owing:
        for path, lock in locks.items():
            if path not in owing:
                continue
            name, now = f"{lock.what} (process {lock.pid})", read_lock(path)
            if now is not None and not now.alive and _switch_off(now):
                now = None
            after_s = time.monotonic() - begun_s
            if now is None:
                del owing[path]
                print(f"{name}: torque is off in all servos, after {1e3 * after_s:.0f} ms", flush=True)
                continue
            owing[path] = now
            if now.alive and now.watched and now.pid not in killed and after_s > _OBEYS_S:
                killed.add(now.pid)
                with suppress(OSError):
                    os.kill(now.pid, signal.SIGKILL)
                    print(f"{name} does not obey: it is ended", flush=True)
        if time.monotonic() - begun_s > wait_s:
            break
        time.sleep(_LOOK_S)
    return list(owing.values())


def _switch_off(lock: PortLock) -> bool:
    """Switch off what a dead process has left on. Return False if not every servo confirms it."""
    from snake_gym.hardware.guard.torque_off import port_of, switch_off_port  # only here: it takes time to load

    with suppress(OSError):  # no port, or another process is about to do it
        if not switch_off_port(port_of(lock.servos), lock.servos["ids"]):
            lock.path.unlink(missing_ok=True)
            return True
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
