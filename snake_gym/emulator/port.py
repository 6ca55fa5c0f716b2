"""Emulated bus behind a real serial device: a pseudo terminal that any driver can open.

``EmulatedPort`` serves the bus from a thread, in real time. Its name stays the same when the cable is pulled and put
back. The host's baud rate is taken from the terminal's settings, so a driver that opens the port at a wrong rate is not
understood, and can search for the right one.

Bytes that the host does not read are dropped when the terminal's buffer is full, as by a UART: the bus never waits.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import tempfile
import threading
import tty
from pathlib import Path

from snake_gym.config import ConfigError
from snake_gym.emulator.bus import EmulatedBus

_TCGETS2 = 0x802C542A
_IDLE_S = 0.01
_FRAME_S = 0.0005
"""Time between two bundles of bytes to the host, as over USB [s]."""


class EmulatedPort(contextlib.AbstractContextManager["EmulatedPort"]):
    """Pseudo terminal with servos behind it; use it as a context, or ``close`` it.

    Args:
        bus: on a ``MonotonicClock``.
        link: path of the link to the device; None: in a temporary folder.

    Raises:
        ConfigError: the link cannot be made, or its name is taken, as by another emulator.
    """

    def __init__(self, bus: EmulatedBus, link: str | os.PathLike[str] | None = None) -> None:
        self.bus = bus
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="emulated-bus", daemon=True)
        self._folder = tempfile.TemporaryDirectory(prefix="servo-bus-") if link is None else None
        self.port = str(link if self._folder is None else Path(self._folder.name) / "tty")
        """Path that a driver opens."""
        self._guard = threading.Lock()
        self._ours = self._theirs = -1
        if os.path.exists(self.port):  # a link that leads nowhere was left behind
            raise ConfigError(f"the link is {self.port}, which is taken; end its emulator, or name another")
        try:
            self.plug()
        except OSError as error:
            raise ConfigError(f"the link {self.port} cannot be made: {error.strerror}") from None
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def plug(self) -> None:
        """Make the device appear, another one behind the same name."""
        with self._guard:
            if self._ours >= 0:
                return
            self._ours, self._theirs = os.openpty()
            tty.setraw(self._theirs)
            os.set_blocking(self._ours, False)
            Path(self.port).unlink(missing_ok=True)
            os.symlink(os.ttyname(self._theirs), self.port)
            self.bus.unplugged = False

    def unplug(self) -> None:
        """Make the device vanish under an open driver; servos keep their power, their torque and their goals."""
        with self._guard:
            if self._ours < 0:
                return
            self.bus.unplugged = True
            os.unlink(self.port)
            for fd in (self._ours, self._theirs):
                os.close(fd)
            self._ours = self._theirs = -1

    def close(self) -> None:
        """Stop the bus and remove the device."""
        self._stop.set()
        self._thread.join(5.0)
        self.unplug()
        if self._folder is not None:
            self._folder.cleanup()

    def _run(self) -> None:
        """Wait for the host or the next event of the bus, and hand over answers that follow each other together."""
        while not self._stop.is_set():
            event_s = self.bus.next_event_s()
            wait_s = _IDLE_S if event_s is None else min(_IDLE_S, max(0.0, event_s - self.bus.clock.now()))
            if self.bus.is_behind:
                wait_s = 0.0
            elif 0.0 < wait_s < _IDLE_S:
                wait_s = max(wait_s, _FRAME_S)
            ours = self._ours
            if ours < 0:
                self.bus.poll()
                self.bus.clock.sleep(_IDLE_S)
                continue
            with contextlib.suppress(OSError, ValueError):  # pulled meanwhile
                readable, _, _ = select.select([ours], [], [], wait_s)
                with self._guard:
                    if self._ours == ours:
                        self._exchange(bool(readable))

    def _exchange(self, readable: bool) -> None:
        if readable:
            with contextlib.suppress(OSError):
                data = os.read(self._ours, 4096)
                with self.bus.lock:
                    self.bus.baud = self._host_baud() or self.bus.baud
                    self.bus.receive(data)
        answer = self.bus.poll()
        if answer:
            with contextlib.suppress(BlockingIOError):
                os.write(self._ours, answer)

    def _host_baud(self) -> int:
        """Return the output speed of the terminal's settings, or 0 if it is unknown."""
        try:
            settings = fcntl.ioctl(self._theirs, _TCGETS2, bytes(44))
        except OSError:
            return 0
        return int(struct.unpack_from("I", settings, 40)[0])
