"""Bytes to and from a serial bus: a serial port, or a pair of ends in memory.

A transport moves bytes and knows nothing of packets. ``read`` returns what is there as soon as anything is there;
what belongs together is found by the packet parser. A port that vanishes (cable pulled, adapter reset) raises
``PortGone`` from whatever call notices it first.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import threading
import time
from typing import Protocol

import serial


class PortGone(OSError):
    """The port cannot be opened or has vanished."""


class Transport(Protocol):
    """A byte stream in both directions. Every method may raise ``PortGone``."""

    def write(self, data: bytes) -> None:
        """Send all of ``data``."""
        ...

    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        """Up to ``max_bytes`` of what has arrived; waits up to ``timeout_s`` [s] for the first byte, then ``b""``."""
        ...

    def close(self) -> None:
        """Give the port back; closing twice does no harm and nothing is raised."""
        ...


class SerialTransport:
    """A serial port (8 data bits, no parity, 1 stop bit), opened for this process alone.

    The port is read and written with ``select`` on its file descriptor: pyserial sets the port up anew for every
    change of its time-out, which costs more than the read itself. Where the driver offers it, the adapter's low
    latency mode is switched on: an FTDI chip otherwise holds bytes back for 16 ms.

    Args:
        port: device, as ``/dev/ttyUSB0``.
        baud: bits per second.
        write_timeout_s: a write that makes no progress for so long counts as a vanished port [s].

    Raises:
        PortGone: the port does not exist, is in use or may not be opened.
    """

    def __init__(self, port: str, baud: int, write_timeout_s: float = 0.5) -> None:
        self.port = port
        self.baud = baud
        self._write_timeout_s = write_timeout_s
        try:
            self._serial = serial.Serial(port, baud, timeout=0, write_timeout=0, exclusive=True)
        except (OSError, ValueError) as error:  # SerialException is an OSError
            raise PortGone(f"cannot open {port} at {baud} baud: {error}") from None
        self._fd = self._serial.fileno()
        # Not every driver has it, a pseudo terminal never.
        with contextlib.suppress(OSError, ValueError, NotImplementedError, AttributeError):
            self._serial.set_low_latency_mode(True)
        os.set_blocking(self._fd, False)

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                _, writable, _ = select.select([], [self._fd], [], self._write_timeout_s)
                if not writable:
                    raise PortGone(f"{self.port} takes no bytes for {self._write_timeout_s:g} s")
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
        if not data:  # readable, and yet nothing there: hung up
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


class _Pipe:
    """Bytes on their way in one direction, between two threads."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.changed = threading.Condition()
        self.closed = False


class MemoryTransport:
    """One end of ``memory_pair``. Safe to use from two threads, one at each end."""

    def __init__(self, inbound: _Pipe, outbound: _Pipe) -> None:
        self._in, self._out = inbound, outbound

    def write(self, data: bytes) -> None:
        with self._out.changed:
            if self._out.closed:
                raise PortGone("the memory port has vanished")
            self._out.bytes += data
            self._out.changed.notify_all()

    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        end_s = time.monotonic() + timeout_s
        with self._in.changed:
            while not self._in.bytes:
                if self._in.closed:
                    raise PortGone("the memory port has vanished")
                left_s = end_s - time.monotonic()
                if left_s <= 0.0:
                    return b""
                self._in.changed.wait(left_s)
            data = bytes(self._in.bytes[:max_bytes])
            del self._in.bytes[:max_bytes]
            return data

    def close(self) -> None:
        for pipe in (self._in, self._out):
            with pipe.changed:
                pipe.closed = True
                pipe.changed.notify_all()


def memory_pair() -> tuple[MemoryTransport, MemoryTransport]:
    """Two ends: what one writes, the other reads. Closing either makes the port vanish for both."""
    a, b = _Pipe(), _Pipe()
    return MemoryTransport(a, b), MemoryTransport(b, a)
