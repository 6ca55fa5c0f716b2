"""Command ``estop``: stop the robot from another terminal, or allow it to move again.

The stop is a file, the latch. The owner of the port checks it on every bus cycle; while it exists nothing moves and
nothing can be started. Without ``--latch`` every robot of this machine is stopped, whatever its latch; one of another
user with a latch of its own is ended by a signal, which root may send.

The latch is tripped before the marks are read. Only a few of this user's are read earlier, which takes some
milliseconds at most, so that processes that stop at once are named too.

``estop`` waits until each process that had torque on has reported that it is off in all servos. A process without guard
that does not obey (it hangs) is killed: the process that watches it then switches the torque off. If somebody still has
not reported it, or has died, the exit code is 1 and only the hardware stop is left.
"""

from __future__ import annotations

import argparse
import math
import os
import pwd
import re
import shlex
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from snake_gym.config import ConfigError
from snake_gym.hardware.safety.emergency_stop import (
    MOST_MARKS,
    EmergencyStop,
    TorqueMark,
    find_marks,
    first_own_marks,
    read_again,
    remove_dead_marks,
    user_of,
    users_beyond_limit,
)

_LOOK_S = 0.005
_OBEYS_S = 1.0
"""Time after which a watched process that has not stopped is killed [s]."""
_THEIR_WORK = ("run", "wiggle", "calibrate")
_PLAIN_PATH = re.compile(r"[\w./+-]{1,200}", re.ASCII)


def add_options(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--clear", action="store_true", help="allow motion again")
    what.add_argument("--status", action="store_true", help="say whether it is tripped; exit code 1 if it is")
    parser.add_argument("--reason", default="the command estop", help="kept in the latch (%(default)s)")
    parser.add_argument("--latch", metavar="FILE", help="file of the stop (this machine's, and those of all runs)")
    parser.add_argument("--wait", type=float, default=3.0, metavar="S", help="for torque off (%(default)s)")


def run(options: argparse.Namespace) -> int:
    if not (math.isfinite(options.wait) and options.wait >= 0.0):
        raise ConfigError(f"--wait is {options.wait:g}; expected seconds, 0 or more")
    latch = None if options.latch is None else Path(options.latch)
    stop = EmergencyStop(latch)
    if options.clear:
        return _clear(stop, options.latch is None)
    if options.status:
        print(f"tripped: {stop.reason}" if stop.tripped else "not tripped")
        return int(stop.tripped)
    begun_s = time.monotonic()
    marks: dict[Path, TorqueMark] = {}
    with suppress(Exception):  # no failure here keeps the latch from being tripped
        marks |= {mark.path: mark for mark in first_own_marks(latch)}
    tripped = {stop.latch.absolute(): stop.trip(options.reason)}
    _say_tripped(stop.latch.absolute(), tripped[stop.latch.absolute()])
    for _ in range(2):  # twice, for a robot that has come up meanwhile
        marks |= {mark.path: mark for mark in find_marks(latch)}
        # No file is made at a path that another user's mark names.
        for one in [mark.latch for mark in marks.values() if mark.uid == os.geteuid()]:
            if one not in tripped:
                tripped[one] = EmergencyStop(one).trip(options.reason)
                _say_tripped(one, tripped[one])
    bad = not all(tripped.values())
    for uid in users_beyond_limit():
        bad = True
        print(f"{_user(uid)} has left more than {MOST_MARKS} marks; the others were not looked at", flush=True)
    for mark in marks.values():
        if mark.alive and mark.latch not in tripped and not end(mark, signal.SIGTERM):
            bad = True
            how = f"obeys {_shown(mark.latch)}; only that user or root can stop it"
            print(f"NOT stopped: {who_is(mark)} {how}", flush=True)
    if not marks:
        print("nothing was moving: no process of this machine has torque on" + (" with this latch" if latch else ""))
        return int(bad)
    owing = _await(marks.values(), begun_s, options.wait)
    for mark in owing:
        how = f"has not said within {options.wait:g} s" if mark.alive else "died before it said"
        print(f"{who_is(mark)} {how} that the torque is off: USE THE HARDWARE STOP")
    return int(bool(owing) or bad)


def who_is(mark: TorqueMark) -> str:
    """Return the description of a process, for people."""
    if mark.uid == os.geteuid():
        return f"{mark.what} (process {mark.pid})"
    what = mark.what if mark.what in _THEIR_WORK else "something"  # that user may have written anything
    return f"{what} (process {mark.pid}) of {_user(mark.uid)}"


def _shown(latch: Path) -> str:
    """Return the latch of another user's mark if it is a plain path, else a phrase that cannot be misread."""
    return str(latch) if _PLAIN_PATH.fullmatch(str(latch)) else "a latch of its own"


def _user(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def _say_tripped(latch: Path, is_tripped: bool) -> None:
    how = f"tripped: {EmergencyStop(latch).reason}; {latch}"
    print(how if is_tripped else f"NOT tripped: {latch} cannot be written", flush=True)


def end(mark: TorqueMark, number: signal.Signals) -> bool:
    """End a process by a signal. Return False if this user may not do that, or if the process is no longer of the user
    who made the mark."""
    try:
        process = os.pidfd_open(mark.pid)
    except OSError as error:
        return isinstance(error, ProcessLookupError)  # it has ended; its mark is checked next
    try:
        is_theirs = user_of(mark.pid) == mark.uid
        if is_theirs:
            signal.pidfd_send_signal(process, number)
        return is_theirs
    except OSError:
        return False
    finally:
        os.close(process)


def _await(marks: Iterable[TorqueMark], begun_s: float, wait_s: float) -> list[TorqueMark]:
    """Wait until the torque is off everywhere. Return the marks of processes that have not reported it."""
    owing = {mark.path: mark for mark in marks}
    seen, killed = set(owing), set()
    while owing:
        for path, mark in list(owing.items()):
            again = read_again(mark)
            if again is not None:
                owing[path] = again
                if mark.watched and path not in killed and time.monotonic() - begun_s > _OBEYS_S:
                    killed.add(path)
                    if end(mark, signal.SIGKILL):
                        print(f"{who_is(mark)} does not obey: it is ended", flush=True)
                continue
            del owing[path]
            heirs = {one.path: one for one in find_marks(mark.latch) if one.path not in seen}
            seen |= set(heirs)
            owing |= heirs  # processes that switch the torque off in its place
            if heirs:
                continue
            after_ms = 1e3 * (time.monotonic() - begun_s)
            print(f"{who_is(mark)}: torque is off in all servos, after {after_ms:.0f} ms", flush=True)
        if all(not (mark.alive or mark.watched) for mark in owing.values()) or time.monotonic() - begun_s > wait_s:
            break
        time.sleep(_LOOK_S)
    return list(owing.values())


def _clear(stop: EmergencyStop, all_robots: bool) -> int:
    try:
        print("cleared" if stop.clear() else "it was not tripped")
    except OSError as error:
        raise ConfigError(f"{stop.latch} cannot be removed ({error.strerror}); only its maker or root may") from None
    if all_robots:
        remove_dead_marks()
    others = [mark for mark in find_marks() if EmergencyStop(mark.latch).tripped]
    for mark in others:
        if mark.uid == os.geteuid():
            how = f"estop --clear --latch {shlex.quote(str(mark.latch))}"
        else:  # text of another user's mark is no command to be typed
            how = "that user clears it"
        print(f"{who_is(mark)} is stopped by another latch: {how}")
    return 0
