"""Byte streams that end: in memory, and a serial port whose other side goes away."""

from __future__ import annotations

import os
import pty
import threading
import time
import tty

import pytest

from snake_gym.hardware.transport import PortGone, SerialTransport, memory_pair


def test_memory_pair_carries_bytes_both_ways() -> None:
    host, bus = memory_pair()
    host.write(b"abc")
    bus.write(b"xyz")
    assert bus.read(2, 0.0) == b"ab"
    assert bus.read(10, 0.0) == b"c"
    assert host.read(10, 0.0) == b"xyz"


def test_memory_pair_waits_for_the_first_byte_only() -> None:
    host, bus = memory_pair()
    start_s = time.monotonic()
    assert host.read(10, 0.02) == b""
    assert time.monotonic() - start_s >= 0.02
    timer = threading.Timer(0.01, bus.write, (b"late",))
    timer.start()
    assert host.read(10, 5.0) == b"late"
    timer.join()


def test_a_closed_memory_pair_is_gone_for_both() -> None:
    host, bus = memory_pair()
    bus.close()
    for use in (lambda: host.write(b"x"), lambda: host.read(1, 0.0), lambda: bus.write(b"x")):
        with pytest.raises(PortGone):
            use()
    host.close()


def test_serial_port() -> None:
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    port = SerialTransport(os.ttyname(theirs), 1_000_000)
    os.close(theirs)
    port.write(b"\x00\x03\x11\xff\n\r")  # none of them may be taken for a control character
    assert os.read(ours, 100) == b"\x00\x03\x11\xff\n\r"
    assert port.read(10, 0.0) == b""
    os.write(ours, b"answer")
    assert port.read(3, 1.0) == b"ans"
    assert port.read(10, 1.0) == b"wer"
    os.close(ours)
    with pytest.raises(PortGone):
        port.read(10, 0.1)
    with pytest.raises(PortGone):
        port.write(b"anybody?")
    port.close()
    port.close()
    with pytest.raises(PortGone):
        port.read(1, 0.0)


def test_a_port_is_opened_by_one_process_only() -> None:
    ours, theirs = pty.openpty()
    name = os.ttyname(theirs)
    first = SerialTransport(name, 1_000_000)
    with pytest.raises(PortGone, match="cannot open"):
        SerialTransport(name, 1_000_000)
    first.close()
    SerialTransport(name, 1_000_000).close()
    os.close(ours)
    os.close(theirs)
    with pytest.raises(PortGone, match="cannot open"):
        SerialTransport(name, 1_000_000)
