"""Packets byte by byte, and a parser that is fed everything but clean packets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snake_gym.hardware.bus import protocol
from snake_gym.hardware.bus.protocol import (
    Packet,
    PacketParser,
    build,
)

GOAL = bytes([50, *(1000).to_bytes(2, "little"), 0, 0, *(1000).to_bytes(2, "little")])


@pytest.mark.parametrize(
    ("packet", "golden"),
    [
        (protocol.write(0xFE, 55, b"\x00"), "FF FF FE 04 03 37 00 C3"),
        (protocol.read(1, 56, 2), "FF FF 01 04 02 38 02 BE"),
        (protocol.write(1, 41, GOAL), "FF FF 01 0A 03 29 32 E8 03 00 00 E8 03 C0"),
        (protocol.sync_read([1, 2], 56, 15), "FF FF FE 06 82 38 0F 01 02 2F"),
        (protocol.sync_write(40, [(1, b"\x01"), (2, b"\x00")]), "FF FF FE 08 83 28 01 01 01 02 00 49"),
        (protocol.ping(1), "FF FF 01 02 01 FB"),
    ],
)
def test_golden_packets(packet: bytes, golden: str) -> None:
    assert packet.hex(" ").upper() == golden


packets = st.builds(
    Packet, st.integers(0, 254), st.integers(0, 255), st.binary(max_size=40)
)  # any content, header bytes included


@given(st.lists(packets, max_size=8), st.lists(st.integers(1, 9), min_size=1, max_size=30))
def test_packets_come_through_whatever_the_pieces(sent: list[Packet], pieces: list[int]) -> None:
    parser, data, found = PacketParser(), b"".join(build(*packet) for packet in sent), []
    k = 0
    while data:
        n = pieces[k % len(pieces)]
        found += parser.feed(data[:n])
        data, k = data[n:], k + 1
    assert found == sent
    assert parser.flush() == []


@pytest.mark.parametrize("noise", [b"\xff", b"\xff\xff", b"\x00", b"\xff\xff\xff\xff", b"\xff\xff\x01", b"\x55" * 50])
def test_noise_before_a_packet_is_skipped(noise: bytes) -> None:
    parser = PacketParser(max_params=20)
    found = parser.feed(noise + build(7, 1, b"\x12\x34")) + parser.flush()
    assert found == [Packet(7, 1, b"\x12\x34")]


def fuzz_mutated(n_bytes: int, seed: int) -> tuple[int, int, int, int]:
    """Packets of which bytes were flipped, dropped, doubled or inserted, with noise between.

    Returns:
        counts: packets left intact, of these found, wrong packets found, damaged packets.
    """
    rng = np.random.default_rng(seed)
    parser = PacketParser(max_params=40)
    intact = found_intact = wrong = damaged = 0
    total = 0
    while total < n_bytes:
        sent: dict[bytes, int] = {}
        survivors: set[bytes] = set()  # bytes inserted before a packet leave it whole
        stream = bytearray()
        for _ in range(200):
            size = int(rng.integers(0, 41))
            packet = build(int(rng.integers(0, 254)), int(rng.integers(0, 256)), rng.bytes(size))
            kind = int(rng.integers(0, 10))
            if kind < 5:
                stream += packet
                sent[packet] = sent.get(packet, 0) + 1
                intact += 1
                continue
            damaged += 1
            survivors.add(packet)
            piece, at = bytearray(packet), int(rng.integers(0, len(packet)))
            if kind == 5:
                piece[at] ^= int(rng.integers(1, 256))
            elif kind == 6:
                del piece[at]
            elif kind == 7:
                piece[at:at] = piece[: at + 1]
            elif kind == 8:
                piece[at:at] = rng.bytes(3)
            else:
                piece = piece[:at] + bytearray(rng.bytes(int(rng.integers(0, 9))))
            stream += piece
        found = [p for k in range(0, len(stream), 333) for p in parser.feed(bytes(stream[k : k + 333]))]
        for packet_found in found + parser.flush():
            key = build(*packet_found)
            if sent.get(key, 0):
                sent[key] -= 1
                found_intact += 1
            else:
                wrong += key not in survivors
        total += len(stream)
    return intact, found_intact, wrong, damaged


@pytest.mark.parametrize("n_bytes", [100_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
def test_fuzz(n_bytes: int) -> None:
    intact, found_intact, wrong, damaged = fuzz_mutated(n_bytes, seed=2)
    # A damaged packet offers a header or two; each has 1 chance in 256.
    odds = 2.0 * damaged / 256.0
    assert wrong <= odds + 5.0 * np.sqrt(odds)
    # No undamaged packet is lost but to a wrong one that took in its first bytes.
    assert intact - found_intact <= wrong


def test_all_single_byte_errors_are_noticed() -> None:
    """A sum of bytes finds every damage to a single byte of the body."""
    sent = build(5, 0, bytes([1, 0xFF, 0xFF, 9]))
    for at in range(2, len(sent)):
        for value in range(256):
            damaged = bytearray(sent)
            damaged[at] = value
            parser = PacketParser()
            found = parser.feed(bytes(damaged)) + parser.flush()
            assert found == ([Packet(5, 0, bytes([1, 0xFF, 0xFF, 9]))] if value == sent[at] else [])
