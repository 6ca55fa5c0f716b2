"""The emergency stop: a latch that any process of this machine can trip, and that stays tripped until it is cleared.

The latch is a file, which another terminal can make (``python -m snake_gym.hardware estop``). Nothing here raises where
the file system fails: a latch that cannot be looked at counts as tripped, one that cannot be written stays tripped in
the object that tripped it.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path

from snake_gym.hardware.torque_mark import TorqueMark, read_plain, sweep


def default_latch() -> Path:
    """Where the latch of this machine's robot is. It is the same for every user and every environment (sudo, cron, ssh,
    systemd): an emergency stop must not depend on who asks for it."""
    return Path("/tmp/snake_gym.estop")


class EmergencyStop:
    """A stop that stays: tripped while its file exists.

    Args:
        latch: the file; None: this machine's default.
    """

    def __init__(self, latch: Path | None = None) -> None:
        self.latch = default_latch() if latch is None else Path(latch)
        self._unwritten = ""
        """Why it was tripped, where the latch could not be written."""
        self._mark = TorqueMark(self.latch)

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
        """Why and when it was tripped; empty where it is not."""
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
        except Exception:  # whatever it holds: it is there
            return "tripped by hand"

    @property
    def how_to_clear(self) -> str:
        """What to do, for people."""
        return "clear it with estop --clear" + ("" if self.latch == default_latch() else f" --latch {self.latch}")

    def trip(self, reason: str) -> bool:
        """Stop, for the first reason given; False: the latch could not be written, and only this object is tripped."""
        told = json.dumps({"reason": reason, "time": time.strftime("%Y-%m-%d %H:%M:%S")})
        try:
            descriptor = os.open(self.latch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return True
        except OSError:
            self._unwritten = self._unwritten or reason
            return False
        with suppress(OSError), os.fdopen(descriptor, "w") as file:  # the file is there: whoever looks, stops
            os.fchmod(descriptor, 0o644)
            file.write(told)
        return True

    def writable(self) -> bool:
        """Whether the latch could be written now."""
        trial = self.latch.with_name(f"{self.latch.name}.{os.urandom(8).hex()}.trial")
        try:
            os.close(os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            trial.unlink()
        except OSError:
            return False
        return True

    def hold(self, what: str) -> None:
        """Say, for ``estop``, that this process may have the torque on from now on; ``what`` it does, as "run"."""
        self._mark.make(what)

    def release(self) -> None:
        """Say that every servo's torque is known to be off."""
        self._mark.remove()

    def clear(self) -> bool:
        """Allow motion again, and forget what dead processes left behind; False: it was not tripped.

        Raises:
            OSError: the latch is somebody else's.
        """
        was, self._unwritten = bool(self._unwritten), ""
        sweep(self.latch)
        try:
            self.latch.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return was
        return True
