"""A serial port whose other side goes away, and one that is open already."""

from __future__ import annotations

import os
import pty
import tty

import pytest

from snake_gym.hardware.bus.transport import PortGone, SerialTransport


def test_bytes_go_both_ways_until_the_other_end_is_gone() -> None:
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
    with pytest.raises(PortGone, match=rf"cannot open {name}: another program uses it \(a run or scan still going\?\)"):
        SerialTransport(name, 1_000_000)
    first.close()
    SerialTransport(name, 1_000_000).close()
    for end in (ours, theirs):
        os.close(end)
