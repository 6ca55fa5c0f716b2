"""Packets byte by byte, and a parser that is fed everything but clean packets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snake_gym.hardware.bus.protocol import PROTOCOLS, Packet, PacketParser, Protocol

FEETECH, DYNAMIXEL = PROTOCOLS[1], PROTOCOLS[2]
GOAL = bytes([50, *(1000).to_bytes(2, "little"), 0, 0, *(1000).to_bytes(2, "little")])


@pytest.mark.parametrize(
    ("packet", "golden"),
    [
        (FEETECH.write(0xFE, 55, b"\x00"), "FF FF FE 04 03 37 00 C3"),
        (FEETECH.read(1, 56, 2), "FF FF 01 04 02 38 02 BE"),
        (FEETECH.write(1, 41, GOAL), "FF FF 01 0A 03 29 32 E8 03 00 00 E8 03 C0"),
        (FEETECH.sync_read([1, 2], 56, 15), "FF FF FE 06 82 38 0F 01 02 2F"),
        (FEETECH.sync_write(40, [(1, b"\x01"), (2, b"\x00")]), "FF FF FE 08 83 28 01 01 01 02 00 49"),
        (FEETECH.ping(1), "FF FF 01 02 01 FB"),
        (DYNAMIXEL.ping(1), "FF FF FD 00 01 03 00 01 19 4E"),
        (DYNAMIXEL.status(1, 0, bytes([6, 4, 38])), "FF FF FD 00 01 07 00 55 00 06 04 26 65 5D"),
        (DYNAMIXEL.read(1, 132, 4), "FF FF FD 00 01 07 00 02 84 00 04 00 1D 15"),
        (DYNAMIXEL.write(1, 116, bytes([0, 2, 0, 0])), "FF FF FD 00 01 09 00 03 74 00 00 02 00 00 CA 89"),
        (DYNAMIXEL.sync_read([1, 2], 132, 4), "FF FF FD 00 FE 09 00 82 84 00 04 00 01 02 CE FA"),
        (
            DYNAMIXEL.sync_write(116, [(1, bytes([150, 0, 0, 0])), (2, bytes([170, 0, 0, 0]))]),
            "FF FF FD 00 FE 11 00 83 74 00 04 00 01 96 00 00 00 02 AA 00 00 00 82 87",
        ),  # all of protocol 2 from Robotis's e-manual
    ],
)
def test_golden_packets(packet: bytes, golden: str) -> None:
    assert packet.hex(" ").upper() == golden


both = pytest.mark.parametrize("protocol", [FEETECH, DYNAMIXEL], ids=["feetech", "dynamixel"])
packets = st.builds(
    Packet,
    st.integers(0, 252),
    st.integers(0, 255),
    st.lists(st.sampled_from(b"\xff\xff\xfd\xfd\x00\x55\x07"), max_size=40).map(bytes),
)  # any content, header bytes included


@both
@given(st.lists(packets, max_size=8), st.lists(st.integers(1, 9), min_size=1, max_size=30))
def test_packets_come_through_whatever_the_pieces(protocol: Protocol, sent: list[Packet], pieces: list[int]) -> None:
    parser, data, found = PacketParser(protocol), b"".join(protocol.status(*packet) for packet in sent), []
    k = 0
    while data:
        n = pieces[k % len(pieces)]
        found += parser.feed(data[:n])
        data, k = data[n:], k + 1
    assert found == sent
    assert parser.flush() == []


@both
@pytest.mark.parametrize(
    "noise", [b"\xff", b"\xff\xff", b"\xff\xff\xfd", b"\x00", b"\xff\xff\xff\xff", b"\xff\xff\x01", b"\x55" * 50]
)
def test_noise_before_a_packet_is_skipped(protocol: Protocol, noise: bytes) -> None:
    parser = PacketParser(protocol, max_params=20)
    found = parser.feed(noise + protocol.status(7, 1, b"\x12\x34")) + parser.flush()
    assert found == [Packet(7, 1, b"\x12\x34")]


@both
def test_damaged_packets_are_dropped_and_cost_the_others_nothing(protocol: Protocol) -> None:
    """One packet in three has a byte changed, dropped or inserted."""
    rng, parser = np.random.default_rng(2), PacketParser(protocol, max_params=40)
    intact, n_damaged, stream = set[Packet](), 0, b""
    for _ in range(5_000):
        packet = Packet(int(rng.integers(0, 253)), int(rng.integers(0, 256)), rng.bytes(int(rng.integers(8, 41))))
        data, at, kind = bytearray(protocol.status(*packet)), int(rng.integers(2, 13)), int(rng.integers(0, 9))
        if kind == 0:
            data[at] ^= int(rng.integers(1, 256))
        elif kind == 1:
            del data[at]
        elif kind == 2:
            data[at:at] = rng.bytes(3)
        if kind > 2:
            intact.add(packet)
        else:
            n_damaged += 1
        stream += data
    found = [one for k in range(0, len(stream), 333) for one in parser.feed(stream[k : k + 333])] + parser.flush()
    wrong = [one for one in found if one not in intact]
    odds = 2.0 * n_damaged / 256.0  # a damaged packet offers a header or two; each has 1 chance in 256
    assert len(wrong) <= odds + 5.0 * np.sqrt(odds)
    assert len(intact - set(found)) <= len(wrong), "lost to a wrong one that took in its first bytes"
