"""Packets of the servo buses: what builds them, and a parser that finds them among noise.

Instruction and status packets of Feetech's SMS and STS servos (``PROTOCOLS[1]``) have one form::

    FF FF ID LEN INSTRUCTION-or-ERROR PARAMS.. CHECKSUM

with ``LEN = len(PARAMS) + 2`` and ``CHECKSUM`` the low byte of ``~(ID + LEN + INSTRUCTION + sum(PARAMS))``. Those of
Dynamixel's protocol 2 (``PROTOCOLS[2]``; Robotis's e-manual, "Protocol 2.0") are::

    FF FF FD 00 ID LEN LEN INSTRUCTION PARAMS.. CRC CRC
    FF FF FD 00 ID LEN LEN 55 ERROR PARAMS.. CRC CRC

``LEN`` counts what follows it. ``FF FF FD`` behind it is sent as ``FF FF FD FD``. The CRC has the polynomial 0x8005 and
covers the packet as it is sent. Bit 7 of ERROR says that the servo has a fault; the others, why an instruction failed.

Words are little-endian. ID 0xFE addresses every servo; 0xFF does not exist, which keeps ``FF FF FF`` from being a
header.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

BROADCAST_ID = 0xFE
MAX_PARAMS = 0xFF - 2 - 1
"""Most parameters: Feetech's LEN is a byte other than 0xFF."""
BITS_PER_BYTE = 10
"""Start bit, 8 data bits, no parity, 1 stop bit."""


class Instruction(IntEnum):
    PING = 0x01
    READ = 0x02
    WRITE = 0x03
    REBOOT = 0x08
    STATUS = 0x55
    SYNC_READ = 0x82
    SYNC_WRITE = 0x83


class Packet(NamedTuple):
    """Instruction or status packet with a right checksum."""

    id: int
    error_or_instruction: int
    params: bytes


class Protocol:
    """Form of the packets, here that of Feetech's."""

    header = b"\xff\xff"
    overhead_bytes = 6
    """Length of a status packet without parameters."""
    request_bytes = 6
    """Length of an instruction packet without parameters."""
    word_bytes = 1
    """Length of an address in a packet."""
    max_id = 0xFD
    stretch = 1.0
    """Most that stuffing lengthens the parameters."""

    def build(self, servo_id: int, instruction: int, params: bytes = b"") -> bytes:
        """Return a whole instruction packet. Raises ValueError: the ID is not 0..254, or it is too long."""
        if not 0 <= servo_id <= BROADCAST_ID or len(params) > MAX_PARAMS:
            raise ValueError(
                f"servo id is {servo_id}, with {len(params)} parameters; expected 0 to 254, at most {MAX_PARAMS}"
            )
        return self._pack(servo_id, instruction, params)

    def _pack(self, servo_id: int, instruction: int, params: bytes) -> bytes:
        body = bytes((servo_id, len(params) + 2, instruction)) + params
        return self.header + body + bytes((~sum(body) & 0xFF,))

    def status(self, servo_id: int, error: int, params: bytes = b"") -> bytes:
        """Return a whole status packet."""
        return self.build(servo_id, error, params)

    def size(self, data: bytes) -> int | None:
        """Return the length of the packet that begins with ``data``; None: too few bytes to say; 0: there is none."""
        if len(data) < 4:
            return None
        return 0 if data[2] == 0xFF or data[3] < 2 else 4 + data[3]

    def parse(self, data: bytes) -> Packet | None:
        """Return the packet in ``data``, which is as long as ``size`` says; None: its checksum is wrong."""
        return Packet(data[2], data[4], data[5:-1]) if sum(data[2:]) & 0xFF == 0xFF else None

    def id_of(self, data: bytes) -> int:
        """Return the ID in the packet that begins with ``data``."""
        return data[2]

    # --- instructions ------------------------------------------------------------------------------------------------

    def ping(self, servo_id: int) -> bytes:
        return self.build(servo_id, Instruction.PING)

    def read(self, servo_id: int, address: int, n_bytes: int) -> bytes:
        return self.build(servo_id, Instruction.READ, self.words(address, n_bytes))

    def write(self, servo_id: int, address: int, data: bytes) -> bytes:
        return self.build(servo_id, Instruction.WRITE, self.words(address) + data)

    def sync_read(self, ids: Sequence[int], address: int, n_bytes: int) -> bytes:
        """Return a request that every servo of ``ids`` answers with its own status packet, in this order."""
        return self.build(BROADCAST_ID, Instruction.SYNC_READ, self.words(address, n_bytes) + bytes(ids))

    def sync_write(self, address: int, blocks: Iterable[tuple[int, bytes]]) -> bytes:
        """Return a request that writes a block (id, data), all of one length, into each servo; no servo answers."""
        listed = list(blocks)
        payload = b"".join(bytes((servo_id,)) + data for servo_id, data in listed)
        return self.build(BROADCAST_ID, Instruction.SYNC_WRITE, self.words(address, len(listed[0][1])) + payload)

    def words(self, *numbers: int) -> bytes:
        """Return addresses and lengths as they stand in a packet."""
        return b"".join(one.to_bytes(self.word_bytes, "little") for one in numbers)

    def split(self, params: bytes) -> tuple[int, int, bytes]:
        """Return address, length and what follows them, of the parameters of a reading or a sync write; 0 for none."""
        n = self.word_bytes
        return int.from_bytes(params[:n], "little"), int.from_bytes(params[n : 2 * n], "little"), params[2 * n :]


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        code = byte << 8
        for _ in range(8):
            code = code << 1 ^ (0x8005 if code & 0x8000 else 0)
        table.append(code & 0xFFFF)
    return table


class Protocol2(Protocol):
    """Form of the packets of Dynamixel's protocol 2."""

    header = b"\xff\xff\xfd\x00"
    overhead_bytes = 11
    request_bytes = 10
    word_bytes = 2
    max_id = 0xFC
    stretch = 4.0 / 3.0
    _table = _crc_table()

    def _pack(self, servo_id: int, instruction: int, params: bytes) -> bytes:
        body = (bytes((instruction,)) + params).replace(b"\xff\xff\xfd", b"\xff\xff\xfd\xfd")
        packet = self.header + bytes((servo_id,)) + (len(body) + 2).to_bytes(2, "little") + body
        return packet + self.crc(packet).to_bytes(2, "little")

    def status(self, servo_id: int, error: int, params: bytes = b"") -> bytes:
        return self.build(servo_id, Instruction.STATUS, bytes((error,)) + params)

    def crc(self, data: bytes) -> int:
        """Return the check sum of ``data``."""
        code = 0
        for byte in data:
            code = (code << 8 & 0xFFFF) ^ self._table[code >> 8 ^ byte]
        return code

    def size(self, data: bytes) -> int | None:
        if len(data) < 7:
            return None
        length = int.from_bytes(data[5:7], "little")
        return 0 if data[4] in (0xFD, 0xFF) or length < 3 else 7 + length

    def parse(self, data: bytes) -> Packet | None:
        if self.crc(data[:-2]) != int.from_bytes(data[-2:], "little"):
            return None
        body = data[7:-2].replace(b"\xff\xff\xfd\xfd", b"\xff\xff\xfd")
        at = int(body[0] == Instruction.STATUS and len(body) > 1)
        return Packet(data[4], body[at], body[1 + at :])

    def id_of(self, data: bytes) -> int:
        return data[4]


PROTOCOLS = {1: Protocol(), 2: Protocol2()}
"""Protocols by the number that a servo family names."""


def wire_time_s(n_bytes: int, baud: int) -> float:
    """Return the time [s] that ``n_bytes`` keep the line busy."""
    return n_bytes * BITS_PER_BYTE / baud


class PacketParser:
    """Parser that finds packets in a stream that may start anywhere and hold noise, torn and damaged packets.

    After a wrong checksum it continues one byte behind the start of that header, because a damaged LEN may have taken
    in the packet that follows. Every undamaged packet is found, unless noise before it happens to make up a header and
    a length with a checksum that is right by chance (1 in 256; with protocol 2, 1 in 65,536).
    """

    def __init__(self, protocol: Protocol = PROTOCOLS[1], max_params: int = MAX_PARAMS) -> None:
        self.protocol = protocol
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
        buffer, end, start, protocol = self._buffer, len(self._buffer), 0, self.protocol
        header, packets = protocol.header, list[Packet]()
        longest = protocol.overhead_bytes + protocol.stretch * self.max_params
        while (found := buffer.find(header, start)) >= 0:
            start = found
            size = protocol.size(buffer[found:])
            if size is None:
                break
            if not 0 < size <= longest:
                start += 1
            elif found + size > end:
                if not final:
                    break
                start += 1
            elif (packet := protocol.parse(buffer[found : found + size])) is not None:
                packets.append(packet)
                start = found + size
            else:
                self.garbled.append(protocol.id_of(buffer[found:]))
                start += 1
        else:  # the last bytes may be the first of a header
            rest = buffer[start:]
            start = end - next(n for n in range(len(header) - 1, -1, -1) if rest.endswith(header[:n]))
        self._buffer = buffer[start:]
        return packets
