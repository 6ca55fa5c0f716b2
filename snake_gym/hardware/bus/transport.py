"""Transport of bytes to and from a serial bus; the packet parser finds the packets in them.

A port that vanishes (cable pulled, adapter reset) raises ``PortGone`` from the call that notices it first.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
from typing import Protocol

import serial

_WRITE_TIMEOUT_S = 0.5


class PortGone(OSError):
    """Port that cannot be opened or has vanished."""


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
        PortGone: the port does not exist, is in use or may not be opened.
    """

    def __init__(self, port: str, baud: int) -> None:
        self.port = port
        try:
            self._serial = serial.Serial(port, baud, timeout=0, write_timeout=0, exclusive=True)
        except (OSError, ValueError) as error:  # SerialException is an OSError
            code = getattr(error, "errno", None)
            reason = os.strerror(code) if code else " ".join(str(error).split())
            if code in (errno.EAGAIN, errno.EBUSY):
                reason = "another program uses it (a run or scan still going?)"
            raise PortGone(f"cannot open {port}: {reason}") from None
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
                rest = rest[os.write(self._fd, rest) :] if writable else rest
            except BlockingIOError:
                continue
            except (OSError, ValueError) as error:
                raise PortGone(f"{self.port} has vanished ({error})") from None
            if not writable:
                raise PortGone(f"{self.port} takes no bytes")

    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        try:
            readable, _, _ = select.select([self._fd], [], [], max(0.0, timeout_s))
            data = os.read(self._fd, max_bytes) if readable else b""
        except BlockingIOError:
            return b""
        except (OSError, ValueError) as error:
            raise PortGone(f"{self.port} has vanished ({error})") from None
        if readable and not data:  # hung up
            raise PortGone(f"{self.port} has vanished")
        return data

    def close(self) -> None:
        self._fd = -1
        with contextlib.suppress(OSError):
            self._serial.close()
