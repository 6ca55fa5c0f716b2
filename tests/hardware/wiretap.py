"""A wire between a driver and emulated servos, that keeps what the driver sends.

It shares no code with the driver: a pseudo terminal, bytes, and the packets' layout (FF FF ID LEN INSTRUCTION PARAMS
CHECKSUM) as Feetech's memory table has it.
"""

from __future__ import annotations

import contextlib
import os
import pty
import select
import termios
import threading
import time
import tty
from collections.abc import Collection
from typing import NamedTuple

from snake_gym.hardware.emulator.port import EmulatedPort

TORQUE_ENABLE, GOAL_POSITION = 40, 42
_WRITE, _SYNC_WRITE = 0x03, 0x83


class Written(NamedTuple):
    """A servo's registers, written by the driver."""

    when_s: float
    servo_id: int
    address: int
    data: bytes

    def byte(self, address: int) -> int | None:
        """What was written to ``address``; None: nothing."""
        at = address - self.address
        return self.data[at] if 0 <= at < len(self.data) else None

    @property
    def gives_torque(self) -> bool:
        """Whether torque is on from then on: a goal switches it on as well."""
        return self.byte(TORQUE_ENABLE) == 1 or self.byte(GOAL_POSITION) is not None

    @property
    def takes_torque(self) -> bool:
        return self.byte(TORQUE_ENABLE) == 0 and self.byte(GOAL_POSITION) is None


class Wiretap(contextlib.AbstractContextManager["Wiretap"]):
    """A second device, ``port``, for the servos on ``bus``; use it as a context."""

    def __init__(self, bus: EmulatedPort) -> None:
        self._ours, self._theirs = pty.openpty()
        tty.setraw(self._theirs)
        self.port = os.ttyname(self._theirs)
        """What the driver opens."""
        self._bus = os.open(bus.port, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self._bus)
        settings = termios.tcgetattr(self._bus)
        settings[4] = settings[5] = termios.B1000000
        termios.tcsetattr(self._bus, termios.TCSANOW, settings)
        self.written: list[Written] = []
        self._rest = b""
        self._lock = threading.Lock()
        self._wake, self._woken = os.pipe()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Wiretap:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self._woken, b"x")
        self._thread.join()
        for descriptor in (self._ours, self._theirs, self._bus, self._wake, self._woken):
            os.close(descriptor)

    def torqued(self) -> list[Written]:
        """What switched a servo's torque on."""
        with self._lock:
            return [one for one in self.written if one.gives_torque]

    def torque_off_s(self, ids: Collection[int], after_s: float, seconds: float = 10.0) -> float:
        """Wait until every servo has been told torque off after ``after_s`` and nothing else since; when that was."""
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up:
            with self._lock:
                last = {one.servo_id: one for one in self.written if one.gives_torque or one.takes_torque}
            if all(one in last and last[one].takes_torque and last[one].when_s >= after_s for one in ids):
                return max(last[one].when_s for one in ids)
            time.sleep(0.002)
        raise AssertionError(f"not all of {list(ids)} were told torque off within {seconds:g} s")

    def _run(self) -> None:
        while True:
            readable, _, _ = select.select([self._ours, self._bus, self._wake], [], [])
            if self._wake in readable:
                return
            for source, sink in ((self._ours, self._bus), (self._bus, self._ours)):
                if source in readable:
                    with contextlib.suppress(OSError):
                        data = os.read(source, 4096)
                        if source == self._ours:
                            with self._lock:
                                self._note(data)
                        os.write(sink, data)

    def _note(self, data: bytes) -> None:
        """Take the whole packets out of what the driver has sent."""
        self._rest += data
        while (start := self._rest.find(b"\xff\xff")) >= 0 and len(self._rest) >= start + 4:
            end = start + 4 + self._rest[start + 3]
            if len(self._rest) < end:
                return
            packet, self._rest = self._rest[start + 2 : end], self._rest[end:]
            now, instruction, params = time.monotonic(), packet[2], packet[3:-1]
            if instruction == _WRITE:
                self.written.append(Written(now, packet[0], params[0], params[1:]))
            elif instruction == _SYNC_WRITE:
                size = 1 + params[1]
                for block in (params[at : at + size] for at in range(2, len(params), size)):
                    self.written.append(Written(now, block[0], params[0], block[1:]))
