"""Transport of bytes to and from a serial bus; the packet parser finds the packets in them.

A port that vanishes (cable pulled, adapter reset) raises ``PortGone`` from the call that notices it first.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import pwd
import select
import stat
from pathlib import Path
from typing import Protocol

import serial

from snake_gym.config import nearest

_MOST_NAMED = 8
"""Most serial ports named in a message."""
_WRITE_TIMEOUT_S = 0.5


class PortGone(OSError):
    """Port that cannot be opened or has vanished."""


class PortNotOpened(PortGone):
    """Port that cannot be opened. The reason is determined only for the message, since a lost port is tried often."""

    def __init__(self, port: str, fault: Exception) -> None:
        super().__init__(port)
        self.port, self._fault = port, fault

    def __str__(self) -> str:
        return f"cannot open {self.port}: {self._reason()}"

    def _reason(self) -> str:
        code = getattr(self._fault, "errno", None)
        if code in (errno.ENOENT, errno.ENOTDIR):
            if os.path.islink(self.port):
                return "it is a link to a port that has gone (an emulator that has ended?)"
            return f"it does not exist; {_offer_ports(self.port)}"
        if code in (errno.EAGAIN, errno.EBUSY):
            return "another program uses it (a run or scan still going?)"
        if code in (errno.EACCES, errno.EPERM):
            return f"you may not read and write it; {_offer_group(self.port)}"
        if os.path.exists(self.port) and not Path(self.port).is_char_device():
            return f"it is no serial device; {_offer_ports(self.port)}"
        return " ".join(str(self._fault).split())


def _offer_ports(port: str) -> str:
    """Return advice: the device in the same folder that was probably meant, or the existing serial ports."""
    from serial.tools.list_ports import comports

    folder, found = Path(port).parent, sorted(one.device for one in comports())
    if folder != Path("/dev"):  # there, similar names mean other devices
        with contextlib.suppress(OSError):
            guess = nearest(Path(port).name, [one.name for one in folder.iterdir() if one.is_char_device()])
            if guess is not None:
                return f"did you mean {str(folder / guess)!r}?"
    return f"serial ports found: {', '.join(found[:_MOST_NAMED]) or 'none'}"


def _offer_group(port: str) -> str:
    """Return advice on how this user may open the port."""
    with contextlib.suppress(OSError, KeyError):
        told = os.stat(port)
        if told.st_mode & stat.S_IRGRP and told.st_mode & stat.S_IWGRP:
            return f"join the group that owns it ({grp.getgrgid(told.st_gid).gr_name}) and log in anew"
        return f"expected its owner, {pwd.getpwuid(told.st_uid).pw_name}"
    return "expected its owner"


class Transport(Protocol):
    """Byte stream in both directions. Every method may raise ``PortGone``."""

    def write(self, data: bytes) -> None:
        """Send all of ``data``."""

    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        """Return up to ``max_bytes`` of input; wait up to ``timeout_s`` [s] for the first byte, then ``b""``."""

    def close(self) -> None:
        """Close the port; closing twice does no harm and nothing is raised."""


class SerialTransport:
    """Serial port (8 data bits, no parity, 1 stop bit), opened for this process alone.

    The port is read and written with ``select`` on its file descriptor: pyserial configures the port anew for every
    change of its time-out, which costs more than the read itself. Where the driver offers it, the adapter's low latency
    mode is switched on: an FTDI chip otherwise holds bytes back for 16 ms.

    Raises:
        PortNotOpened: the port does not exist, is in use or may not be opened.
    """

    def __init__(self, port: str, baud: int) -> None:
        self.port = port
        try:
            self._serial = serial.Serial(port, baud, timeout=0, write_timeout=0, exclusive=True)
        except (OSError, ValueError) as error:  # SerialException is an OSError
            raise PortNotOpened(port, error) from None
        self._fd = self._serial.fileno()
        # Not every driver has it, a pseudo terminal never.
        with contextlib.suppress(OSError, ValueError, NotImplementedError, AttributeError):
            self._serial.set_low_latency_mode(True)
        os.set_blocking(self._fd, False)

    def write(self, data: bytes, wait_s: float = _WRITE_TIMEOUT_S) -> None:
        """Send all of ``data``; a port that takes nothing for ``wait_s`` [s] has vanished."""
        rest = memoryview(data)
        while rest:
            try:
                _, writable, _ = select.select([], [self._fd], [], wait_s)
                if not writable:
                    raise PortGone(f"{self.port} takes no bytes")
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                continue
            except (OSError, ValueError) as error:
                raise _gone(self.port, error) from None

    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        try:
            readable, _, _ = select.select([self._fd], [], [], max(0.0, timeout_s))
            if not readable:
                return b""
            data = os.read(self._fd, max_bytes)
        except BlockingIOError:
            return b""
        except (OSError, ValueError) as error:
            raise _gone(self.port, error) from None
        if not data:  # readable without data: hung up
            raise PortGone(f"{self.port} has vanished")
        return data

    def close(self) -> None:
        self._fd = -1
        with contextlib.suppress(OSError):
            self._serial.close()


def _gone(port: str, error: Exception) -> PortGone:
    if isinstance(error, PortGone):
        return error
    reason = errno.errorcode.get(error.errno or 0, str(error)) if isinstance(error, OSError) else "closed"
    return PortGone(f"{port} has vanished ({reason})")
