"""A serial port whose other side goes away, and what is said of one that cannot be opened."""

from __future__ import annotations

import os
import pty
import stat
import time
import tty
from pathlib import Path

import pytest

from snake_gym.hardware.bus import transport
from snake_gym.hardware.bus.transport import PortGone, SerialTransport


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
    with pytest.raises(PortGone, match=rf"cannot open {name}: another program uses it \(a run or scan still going\?\)"):
        SerialTransport(name, 1_000_000)
    first.close()
    SerialTransport(name, 1_000_000).close()
    os.close(ours)  # the other end stays open: nobody else on this machine gets a terminal of that name
    with pytest.raises(PortGone, match="cannot open"):
        SerialTransport(name, 1_000_000)
    os.close(theirs)


def refusal(port: str | Path) -> str:
    with pytest.raises(PortGone) as caught:
        SerialTransport(str(port), 1_000_000)
    return str(caught.value)


def test_a_port_that_does_not_exist_names_what_is_there(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        (tmp_path / "snake-bus").symlink_to(os.ttyname(theirs))
        told = refusal(tmp_path / "snake-buss")
        assert told == f"cannot open {tmp_path}/snake-buss: it does not exist; did you mean '{tmp_path}/snake-bus'?"
    finally:
        os.close(ours)
        os.close(theirs)
    assert "it is a link to a port that has gone" in refusal(tmp_path / "snake-bus")
    assert refusal("/dev/none").startswith("cannot open /dev/none: it does not exist; serial ports found: ")
    (tmp_path / "file").touch()
    assert "it is no serial device" in refusal(tmp_path / "file")
    assert "\n" not in refusal("/dev/null")


def test_who_may_not_open_a_port_is_told_which_group_may(tmp_path: Path) -> None:
    port = tmp_path / "port"
    port.touch()
    for mode, advice in (
        (0o660, r"join the group that owns it \(\w+\) and log in anew"),
        (0o600, "expected its owner"),
    ):
        port.chmod(mode)
        assert stat.S_IMODE(port.stat().st_mode) == mode
        with pytest.raises(PortGone, match=f"you may not read and write it; {advice}"):
            raise transport.PortNotOpened(str(port), PermissionError(13, "Permission denied"))


def test_ports_are_not_listed_before_the_reason_is_told(tmp_path: Path) -> None:
    """A port that went is tried twice a second in the control loop."""
    with pytest.raises(PortGone) as caught:
        SerialTransport(str(tmp_path / "none"), 1_000_000)
    begun_s = time.process_time()
    for _ in range(100):
        with pytest.raises(PortGone):
            SerialTransport(str(tmp_path / "none"), 1_000_000)
    assert (time.process_time() - begun_s) / 100 < 1e-3
    assert "does not exist" in str(caught.value)
