"""A driver of its own for Feetech's bus, which shares no code with the package: a file descriptor, and bytes.

The packets' layout (FF FF ID LEN INSTRUCTION PARAMS CHECKSUM) is that of Feetech's memory table. A busy machine may
keep the servos from answering in time, so a question is asked again until there is an answer.
"""

from __future__ import annotations

import contextlib
import os
import select
import termios
import time
import tty
from collections.abc import Callable

PING, READ, WRITE, REBOOT = 0x01, 0x02, 0x03, 0x08
_BAUDS = {1_000_000: termios.B1000000, 115_200: termios.B115200}


class RawDriver(contextlib.AbstractContextManager["RawDriver"]):
    """The bus behind a serial device; use it as a context."""

    def __init__(self, port: str, baud: int = 1_000_000) -> None:
        self._fd = os.open(port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        tty.setraw(self._fd)
        settings = termios.tcgetattr(self._fd)
        settings[4] = settings[5] = _BAUDS[baud]
        termios.tcsetattr(self._fd, termios.TCSANOW, settings)

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def send(self, servo_id: int, instruction: int, *params: int) -> None:
        body = bytes((servo_id, len(params) + 2, instruction, *params))
        os.write(self._fd, b"\xff\xff" + body + bytes((~sum(body) & 0xFF,)))

    def _heard(self, wait_s: float) -> bytes:
        """Bytes that come within ``wait_s`` [s]; none where another reader of the port was quicker."""
        select.select([self._fd], [], [], wait_s)
        with contextlib.suppress(BlockingIOError):
            return os.read(self._fd, 4096)
        return b""

    def answer(self, servo_id: int, instruction: int, *params: int, wait_s: float = 0.3) -> tuple[int, bytes] | None:
        """Error byte and parameters of one answer, or None if none comes."""
        while self._heard(0.0):
            pass
        self.send(servo_id, instruction, *params)
        heard, until_s = b"", time.monotonic() + wait_s
        while (left_s := until_s - time.monotonic()) > 0.0:
            heard += self._heard(left_s)
            start = heard.find(bytes((0xFF, 0xFF, servo_id)))
            packet = heard[start:] if start >= 0 else b""
            if len(packet) > 3 and len(packet) >= 4 + packet[3]:
                packet = packet[: 4 + packet[3]]
                if ~sum(packet[2:-1]) & 0xFF == packet[-1]:
                    return packet[4], packet[5:-1]
        return None

    def ask(self, servo_id: int, instruction: int, *params: int, seconds: float = 20.0) -> tuple[int, bytes]:
        """As ``answer``, asked again until there is one."""
        give_up_s = time.monotonic() + seconds
        while (found := self.answer(servo_id, instruction, *params)) is None:
            assert time.monotonic() < give_up_s, f"servo {servo_id} does not answer"
        return found

    def error(self, servo_id: int) -> int:
        return self.ask(servo_id, PING)[0]

    def read(self, servo_id: int, address: int, n_bytes: int = 1) -> int:
        while len(data := self.ask(servo_id, READ, address, n_bytes)[1]) != n_bytes:
            pass
        return int.from_bytes(data, "little")

    def write(self, servo_id: int, address: int, value: int, n_bytes: int = 1) -> None:
        self.ask(servo_id, WRITE, address, *value.to_bytes(n_bytes, "little"))

    def until(self, read: Callable[[], int], wanted: Callable[[int], object], seconds: float = 120.0) -> int:
        """What ``read`` gives as soon as it is as wanted."""
        give_up_s = time.monotonic() + seconds
        while not wanted(found := read()):
            assert time.monotonic() < give_up_s, found
        return found
