"""Emergency stop: a latch that any process of this machine can trip, and that stays tripped until it is cleared.

The latch is a file. Nothing here raises where the file system fails: a latch that cannot be inspected counts as
tripped, one that cannot be written stays tripped in the object that tripped it.

Marks tell an emergency stop which processes it stops, and that it has stopped them. Before the torque goes on, the
owner of the port makes a file with its process, latch and activity (``EmergencyStop.hold``); once every servo has
confirmed torque-off, it removes the file (``release``). The process holds a lock on the file, which the kernel takes
back when it dies: a file without a lock is of a process that died before it could switch the torque off.

All robots' marks are in one folder of the machine. Anybody may put files there: names are drawn at random, and a mark
counts only if it is a plain file of the user who runs the process that it names. The latch in another user's mark is
shown, but no file is made there. Files that are no marks are ignored, and only ``MOST_MARKS`` of each user are opened.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

FOLDER = Path("/tmp")
_PREFIX = "snake_gym-torque-"
_LARGEST = 65536
"""Largest size of a mark or a latch [bytes]."""
MOST_MARKS = 100
"""Most marks of one user that are opened."""
_FIRST_ENTRIES, _FIRST_MARKS = 2000, 8
"""Most entries of the folder that ``first_own_marks`` scans, and most marks that it opens."""
_LARGEST_PID = 2**31 - 1


class TorqueMark(NamedTuple):
    """Mark of a process that may have torque on."""

    path: Path
    pid: int
    what: str
    """Activity of the process, such as "run"."""
    latch: Path
    """File of the stop that it obeys."""
    alive: bool
    """True while the process lives; False: it died, with the torque on as far as anybody knows."""
    uid: int
    """User who has made the mark and runs the process."""
    watched: bool = False
    """True if another process switches the torque off where this one is killed."""


def find_marks(latch: Path | None = None) -> list[TorqueMark]:
    """Return the marks of all robots, or of those that obey ``latch``."""
    counted: Counter[int] = Counter()
    chosen = []
    for path, uid in _files():
        counted[uid] += 1
        if counted[uid] <= MOST_MARKS:
            chosen.append(path)
    return _marks_in(sorted(chosen), latch)


def first_own_marks(latch: Path | None = None) -> list[TorqueMark]:
    """Return a few marks of this user, in a few milliseconds, however many files there are."""
    ours = [path for path, uid in _files(_FIRST_ENTRIES) if uid == os.geteuid()]
    return _marks_in(ours[:_FIRST_MARKS], latch)


def read_again(mark: TorqueMark) -> TorqueMark | None:
    """Return the present state of a mark, or None if it has been removed."""
    again = _marks_in([mark.path], None)
    if not os.path.lexists(mark.path):  # last: the file may be removed, and then its lock, during the reading
        return None
    return again[0] if again else mark


def users_beyond_limit() -> list[int]:
    """Return users who have left more marks than are opened."""
    return [uid for uid, count in Counter(uid for _, uid in _files()).items() if count > MOST_MARKS]


def remove_dead_marks(latch: Path | None = None) -> None:
    """Remove the marks that dead processes left for the robot of ``latch``, or for all robots."""
    for mark in find_marks(latch):
        if not mark.alive:
            with suppress(OSError):
                mark.path.unlink()


def user_of(pid: int) -> int | None:
    """Return the user who runs a process, or None if there is none, or this system does not say."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("Uid:"):
                return int(line.split()[2])
    return None


def read_plain(descriptor: int) -> str:
    """Return the text of a small file. Raises OSError: no plain file; ValueError: it is not small, or holds no text."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no plain file")
    if status.st_size > _LARGEST:
        raise ValueError(f"it has {status.st_size} bytes; expected at most {_LARGEST}")
    return os.read(descriptor, _LARGEST).decode()


def _files(most: int | None = None) -> list[tuple[Path, int]]:
    """Return plain files that may be marks, unopened, and their owners, among ``most`` entries of the folder."""
    found = []
    with suppress(OSError), os.scandir(FOLDER) as entries:
        for entry in islice(entries, most):
            if entry.name.startswith(_PREFIX) and entry.name.endswith(".json"):
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST:
                        found.append((FOLDER / entry.name, status.st_uid))
    return found


def _marks_in(paths: Iterable[Path], latch: Path | None) -> list[TorqueMark]:
    """Return the marks in files, or those of them that obey ``latch``."""
    found = []
    for path in paths:
        with suppress(Exception):  # anybody may have written anything: what cannot be understood is no mark
            mark = _look_at(path)
            if latch is None or mark.latch == latch.absolute():
                found.append(mark)
    return found


def _look_at(path: Path) -> TorqueMark:
    """Return the mark in a file. Raises an exception of any kind if it is none that counts."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        told, uid = json.loads(read_plain(descriptor)), os.fstat(descriptor).st_uid
        pid, what, latch = int(told["pid"]), str(told["what"]), str(told["latch"])
        if not 0 < pid <= _LARGEST_PID or not (what + latch).isprintable() or user_of(pid) not in (None, uid):
            raise ValueError(told)
        return TorqueMark(path, pid, what, Path(latch), _is_locked(descriptor), uid, told.get("watched") is True)
    finally:
        os.close(descriptor)


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def default_latch() -> Path:
    """Return the latch of this machine's robot: the same for all users, under sudo, cron, ssh or systemd."""
    return Path("/tmp/snake_gym.estop")


class EmergencyStop:
    """Stop that stays tripped while its file exists (None: this machine's default)."""

    def __init__(self, latch: Path | None = None) -> None:
        self.latch = default_latch() if latch is None else Path(latch)
        self._unwritten = ""
        """Reason for the stop, if the latch could not be written."""
        self._holds = False
        self._mark: Path | None = None
        self._descriptor = -1

    @property
    def tripped(self) -> bool:
        if self._unwritten:
            return True
        try:
            os.lstat(self.latch)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            pass
        return True

    @property
    def reason(self) -> str:
        """Reason and time of the stop; empty if it is not tripped."""
        try:
            descriptor = os.open(self.latch, os.O_RDONLY | os.O_NONBLOCK)  # anybody may have put anything there
            try:
                told = json.loads(read_plain(descriptor))
            finally:
                os.close(descriptor)
            reason = f"{told['reason']} ({told['time']})"
            return reason if reason.isprintable() else ascii(reason)
        except OSError as error:
            if self._unwritten:
                return self._unwritten
            return f"the latch {self.latch} cannot be read ({error.strerror})" if self.tripped else ""
        except Exception:  # the file exists, whatever it holds
            return "tripped by hand"

    @property
    def how_to_clear(self) -> str:
        """Advice on clearing the stop, for people."""
        return "clear it with estop --clear" + ("" if self.latch == default_latch() else f" --latch {self.latch}")

    def trip(self, reason: str) -> bool:
        """Trip the stop; the first reason counts. Return False if the latch is not writable: only this object trips."""
        told = json.dumps({"reason": reason, "time": time.strftime("%Y-%m-%d %H:%M:%S")})
        draft = self.latch.with_name(f"{self.latch.name}.{os.urandom(8).hex()}.draft")
        with suppress(OSError):  # the latch has its reason from the first moment on
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            try:
                with os.fdopen(descriptor, "w") as file:
                    os.fchmod(descriptor, 0o644)
                    file.write(told)
                os.link(draft, self.latch)
                return True
            finally:
                draft.unlink()
        try:  # the file is the stop, even if empty: a full disk, or one without links
            os.close(os.open(self.latch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
        except FileExistsError:
            return True
        except OSError:
            self._unwritten = self._unwritten or reason
            return False
        return True

    def writable(self) -> bool:
        """Return True if the latch could be written now."""
        trial = self.latch.with_name(f"{self.latch.name}.{os.urandom(8).hex()}.trial")
        try:
            os.close(os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            trial.unlink()
        except OSError:
            return False
        return True

    def hold(self, what: str, watched: bool = False) -> None:
        """Mark, for ``estop``, that this process may have the torque on from now on; ``what``: its activity, such as
        "run"; ``watched``: see ``TorqueMark``. Marks that dead processes left for the same robot are then removed."""
        if self._holds:
            return
        self._holds = True
        name = f"{_PREFIX}{os.urandom(8).hex()}"
        mark = {"pid": os.getpid(), "what": what, "latch": str(self.latch.absolute()), "watched": watched}
        told = json.dumps(mark)
        path, draft = FOLDER / f"{name}.json", FOLDER / f"{name}.draft"
        with suppress(OSError):
            self._descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            os.fchmod(self._descriptor, 0o644)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(self._descriptor, told.encode())
            os.rename(draft, path)
            self._mark = path
        remove_dead_marks(self.latch)  # last: whoever waits for one of them sees the new one

    def release(self) -> None:
        """Remove the mark: every servo's torque is known to be off."""
        self._holds = False
        with suppress(OSError):
            if self._mark is not None:
                self._mark.unlink()
        with suppress(OSError):
            if self._descriptor >= 0:
                os.close(self._descriptor)
        self._mark, self._descriptor = None, -1

    def clear(self) -> bool:
        """Allow motion again, and remove marks of dead processes. Return False if it was not tripped. Raises OSError if
        the latch is somebody else's."""
        was, self._unwritten = bool(self._unwritten), ""
        remove_dead_marks(self.latch)
        try:
            self.latch.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return was
        return True
