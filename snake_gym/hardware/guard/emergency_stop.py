"""Emergency stop of one user's robots: a latch that any process can trip, tripped until it is cleared.

The latch is a file. Nothing here raises where the file system fails: a latch that cannot be inspected counts as
tripped, one that cannot be written stays tripped in the object that tripped it.

One lock file per port says that torque may be on there. Before the torque goes on, the process that owns the port makes
the file (``EmergencyStop.hold``), with all it takes to switch the servos off. Once every servo has confirmed
torque-off, it removes the file (``release``). While the process lives it holds an flock on the file: a file without one
belongs to a process that died before it could switch the torque off.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TextIO

FOLDER = Path(f"/tmp/snake_gym-{os.getuid()}")
"""Folder of the user's latch and locks, whatever the environment: under ssh, cron, systemd."""


class PortLock(NamedTuple):
    """Lock file of a port: torque may be on there."""

    path: Path
    pid: int
    what: str
    """Activity of the process, such as "run"."""
    latch: Path
    """File of the stop that it obeys."""
    servos: dict[str, Any]
    """Port, baud rate, family and IDs of the servos (see ``torque_switch.describe``)."""
    alive: bool
    """True while the process lives; False: it died, with the torque on as far as anybody knows."""


def find_locks(latch: Path | None = None) -> list[PortLock]:
    """Return the locks of this user's robots, or of the robots that obey ``latch``."""
    locks = [lock for path in sorted(FOLDER.glob("*.json")) if (lock := read_lock(path)) is not None]
    return [lock for lock in locks if latch is None or lock.latch == latch.absolute()]


def read_lock(path: Path) -> PortLock | None:
    """Return the present state of a lock, or None if it has been removed."""
    with suppress(OSError, ValueError, TypeError, KeyError), path.open() as file:
        content = json.load(file)
        alive = False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            alive = True
        return PortLock(path, **content | {"latch": Path(content["latch"])}, alive=alive)
    return None


class EmergencyStop:
    """Stop that stays tripped while its file exists (None: the one that robots of this user obey)."""

    def __init__(self, latch: Path | str | None = None) -> None:
        self.latch = FOLDER / "estop" if latch is None else Path(latch)
        self._unwritten = ""
        """Reason for the stop, if the latch could not be written."""
        self._lock: TextIO | None = None
        self._lock_path: Path | None = None
        with suppress(OSError):
            FOLDER.mkdir(0o700, exist_ok=True)

    @property
    def tripped(self) -> bool:
        try:
            os.lstat(self.latch)
        except (FileNotFoundError, NotADirectoryError):
            return bool(self._unwritten)
        except OSError:
            pass
        return True

    @property
    def reason(self) -> str:
        """Reason and time of the stop; empty if it is not tripped."""
        try:
            content = json.loads(self.latch.read_text())
            return f"{content['reason']} ({content['time']})"
        except OSError as error:
            unread = f"the latch {self.latch} cannot be read ({error.strerror})" if self.tripped else ""
            return self._unwritten or unread
        except (ValueError, TypeError, KeyError):  # the file exists, whatever it holds
            return "tripped by hand"

    @property
    def how_to_clear(self) -> str:
        """Advice on clearing the stop, for people."""
        return "clear it with estop --clear" + ("" if self.latch == FOLDER / "estop" else f" --latch {self.latch}")

    def trip(self, reason: str) -> bool:
        """Trip the stop; the first reason counts. Return False if the latch is not writable: only this object trips."""
        content = json.dumps({"reason": reason, "time": time.strftime("%Y-%m-%d %H:%M:%S")})
        draft = self.latch.with_name(f"{self.latch.name}.{os.getpid()}-{threading.get_native_id()}")
        try:
            if not os.path.lexists(self.latch):
                with draft.open("w") as file, suppress(OSError):  # the file is the stop, even if empty: a full disk
                    file.write(content)
                draft.replace(self.latch)  # a reader finds the reason in it from the first moment
        except OSError:
            self._unwritten = self._unwritten or reason
            return False
        return True

    def writable(self) -> bool:
        """Return True if the latch could be written now."""
        return os.access(self.latch.parent, os.W_OK | os.X_OK)

    def hold(self, what: str, servos: dict[str, Any]) -> None:
        """Make this process's lock file of the port, unless it is there; see ``PortLock`` for the arguments."""
        if self._lock_path is not None:
            return
        self._lock_path = FOLDER / f"{servos['device'].strip('/').replace('/', '-')}.json"
        content = {"pid": os.getpid(), "what": what, "latch": str(self.latch.absolute()), "servos": servos}
        draft = self._lock_path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            self._lock = draft.open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            json.dump(content, self._lock)
            self._lock.flush()
            draft.replace(self._lock_path)

    def release(self) -> None:
        """Remove the lock file: every servo's torque is known to be off."""
        lock, path = self._lock, self._lock_path
        self._lock = self._lock_path = None
        if lock is None or path is None:
            return
        with suppress(OSError), lock:
            if os.path.samestat(os.fstat(lock.fileno()), path.stat()):
                path.unlink()  # else another process has taken the port over

    def clear(self) -> bool:
        """Allow motion again. Return False if it was not tripped. Raises OSError: the latch cannot be removed."""
        was, self._unwritten = bool(self._unwritten), ""
        try:
            self.latch.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return was
        return True
