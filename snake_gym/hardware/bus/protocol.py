"""Packets of the Feetech SMS/STS bus: pure functions that build them, and a parser that finds them among noise.

Instruction and status packets have one form::

    FF FF ID LEN INSTRUCTION-or-ERROR PARAMS.. CHECKSUM

with ``LEN = len(PARAMS) + 2`` and ``CHECKSUM`` the low byte of ``~(ID + LEN + INSTRUCTION + sum(PARAMS))``. Words are
little-endian. ID 0xFE addresses every servo; 0xFF does not exist, which keeps ``FF FF FF`` from being a header.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

HEADER = b"\xff\xff"
BROADCAST_ID = 0xFE
MAX_ID = 0xFD
OVERHEAD_BYTES = 6
"""Length of a packet without parameters."""
MAX_PARAMS = 0xFF - 2 - 1
"""Most parameters: LEN is a byte other than 0xFF."""
BITS_PER_BYTE = 10
"""Start bit, 8 data bits, no parity, 1 stop bit."""


class Instruction(IntEnum):
    PING = 0x01
    READ = 0x02
    WRITE = 0x03
    REBOOT = 0x08
    SYNC_READ = 0x82
    SYNC_WRITE = 0x83


class Packet(NamedTuple):
    """Instruction or status packet with a right checksum."""

    id: int
    error_or_instruction: int
    params: bytes


def build(servo_id: int, error_or_instruction: int, params: bytes = b"") -> bytes:
    """Return a whole packet. Raises ValueError: the ID is not 0..254, or there are too many parameters."""
    if not 0 <= servo_id <= BROADCAST_ID or len(params) > MAX_PARAMS:
        raise ValueError(
            f"servo id is {servo_id}, with {len(params)} parameters; expected 0 to 254, at most {MAX_PARAMS}"
        )
    body = bytes((servo_id, len(params) + 2, error_or_instruction)) + params
    return HEADER + body + bytes((~sum(body) & 0xFF,))


def ping(servo_id: int) -> bytes:
    return build(servo_id, Instruction.PING)


def read(servo_id: int, address: int, n_bytes: int) -> bytes:
    return build(servo_id, Instruction.READ, bytes((address, n_bytes)))


def write(servo_id: int, address: int, data: bytes) -> bytes:
    return build(servo_id, Instruction.WRITE, bytes((address,)) + data)


def sync_read(ids: Sequence[int], address: int, n_bytes: int) -> bytes:
    """Return a request that every servo of ``ids`` answers with its own status packet, in this order."""
    return build(BROADCAST_ID, Instruction.SYNC_READ, bytes((address, n_bytes, *ids)))


def sync_write(address: int, blocks: Iterable[tuple[int, bytes]]) -> bytes:
    """Return a request that writes a block (id, data), all of one length, into each servo at once; no servo answers."""
    listed = list(blocks)
    payload = b"".join(bytes((servo_id,)) + data for servo_id, data in listed)
    return build(BROADCAST_ID, Instruction.SYNC_WRITE, bytes((address, len(listed[0][1]))) + payload)


def wire_time_s(n_bytes: int, baud: int) -> float:
    """Return the time [s] that ``n_bytes`` keep the line busy."""
    return n_bytes * BITS_PER_BYTE / baud


class PacketParser:
    """Parser that finds packets in a stream that may start anywhere and hold noise, torn and damaged packets.

    After a wrong checksum it continues one byte behind the start of that header, because a damaged LEN may have taken
    in the packet that follows. Every undamaged packet is found, unless noise before it happens to make up a header and
    a length with a checksum that is right by chance (1 in 256).
    """

    def __init__(self, max_params: int = MAX_PARAMS) -> None:
        self.max_params = max_params
        """Most parameters of an accepted packet, which limits the bytes that a damaged LEN can take in."""
        self.garbled: list[int] = []
        """IDs in the headers of packets with a wrong checksum."""
        self._buffer = b""

    def feed(self, data: bytes) -> list[Packet]:
        """Return the packets that ``data`` completes, in their order."""
        self._buffer += data
        return self._scan(final=False)

    def flush(self) -> list[Packet]:
        """Return the packets behind a header that will not be completed, once the line is quiet; empty the buffer."""
        packets = self._scan(final=True)
        self._buffer = b""
        return packets

    def _scan(self, final: bool) -> list[Packet]:
        buffer, end, start = self._buffer, len(self._buffer), 0
        packets: list[Packet] = []
        while (found := buffer.find(HEADER, start)) >= 0:
            start = found
            if end - found < 4:
                break
            n_params = buffer[found + 3] - 2
            stop = found + OVERHEAD_BYTES + n_params
            if buffer[found + 2] == 0xFF or not 0 <= n_params <= self.max_params:
                start += 1
            elif stop > end:
                if not final:
                    break
                start += 1
            elif (sum(buffer[found + 2 : stop]) & 0xFF) == 0xFF:
                packets.append(Packet(buffer[found + 2], buffer[found + 4], buffer[found + 5 : stop - 1]))
                start = stop
            else:
                self.garbled.append(buffer[found + 2])
                start += 1
        else:  # a last FF may be the first half of a header
            start = end - 1 if buffer.endswith(b"\xff") and end > start else end
        self._buffer = buffer[start:]
        return packets
