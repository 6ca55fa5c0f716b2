"""The heartbeat of the process that runs the bus, heard by the board's program as docs/hardware.md prints it.

The board is a second pseudo terminal; its relay is the supply of the emulated servos.
"""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import threading
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from snake_gym.config import ConfigError
from snake_gym.emulator.port import EmulatedPort
from snake_gym.hardware.__main__ import main
from tests.hardware.programs import guard_of, launch, settings
from tests.hardware.rig import ending, torque_on, wait_until

PAGE = Path(__file__).parents[3] / "docs" / "hardware.md"


def printed_program() -> dict[str, Any]:
    (text,) = re.findall(r"```\n(import select\nimport sys\n.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {"__name__": "main"}
    exec(compile(text, "main.py", "exec"), names)
    return names


class Board:
    """The board: a thread that hears the terminal and opens the relay of the supply."""

    def __init__(self, port: EmulatedPort) -> None:
        self._servos = port
        self._ours, theirs = pty.openpty()
        self._open: tuple[int, ...] = (self._ours, theirs)
        tty.setraw(theirs)
        self.port = os.ttyname(theirs)
        self.watchdog = printed_program()["Watchdog"]()
        self.watchdog.longest_ms = 1500.0  # the machine may be busy, and keep this thread or the guard from its turn
        self.heard = ""
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.is_set():
            if select.select([self._ours], [], [], 0.01)[0]:
                for byte in os.read(self._ours, 64).decode():
                    self.heard += byte
                    self.watchdog.hear(byte, 1e3 * time.monotonic())
            if not self.watchdog.look(lambda then: 1e3 * time.monotonic() - then):
                with self._servos.bus.lock:
                    for servo in self._servos.bus.servos:
                        servo.supply_v = 0.0

    def unplug(self) -> None:
        self._ends.set()
        self._thread.join()
        for descriptor in self._open:
            os.close(descriptor)
        self._open = ()


@pytest.fixture
def board(port: EmulatedPort) -> Iterator[Board]:
    made = Board(port)
    yield made
    made.unplug()


@contextmanager
def running(port: EmulatedPort, board: Board, folder: Path, *more: str) -> Iterator[Any]:
    """A run that is up and beats."""
    words = ["--targets", "9,0", "--log", "none", "--set", f"connection.heartbeat={board.port}"]
    process = launch("run", "cc", *settings(folder, port), *words, *more)
    with ending(process):
        wait_until(lambda: len(board.heard) > 20 or process.poll() is not None, 60.0)
        assert process.poll() is None, process.communicate()[0]
        yield process
    if process.stdout is not None and not process.stdout.closed:
        process.communicate(timeout=20)


def is_limp(port: EmulatedPort) -> bool:
    with port.bus.lock:
        return not any(servo.torque_on for servo in port.bus.servos)


def test_both_processes_killed_at_once_open_the_relay(port: EmulatedPort, board: Board, tmp_path: Path) -> None:
    with running(port, board, tmp_path) as process:
        guard = guard_of(process)
        for one in (guard, process.pid):
            os.kill(one, signal.SIGSTOP)  # neither sees the other die
        for one in (guard, process.pid):
            os.kill(one, signal.SIGKILL)
        process.communicate(timeout=20)
        assert not is_limp(port), "nobody has switched them off"
        wait_until(lambda: is_limp(port))
        assert not board.watchdog.closed
        assert set(board.heard) == {"+"}


def test_a_bus_that_is_away_for_too_long_opens_the_relay(port: EmulatedPort, board: Board, tmp_path: Path) -> None:
    with running(port, board, tmp_path, "--set", "safety.port_timeout_s=0.2") as process:
        port.unplug()
        wait_until(lambda: is_limp(port))
        assert "-" not in board.heard and not board.watchdog.closed
        port.plug()
        process.communicate(timeout=60)
        assert process.returncode == 1


def test_a_board_that_goes_away_stops_the_robot(port: EmulatedPort, board: Board, tmp_path: Path) -> None:
    with running(port, board, tmp_path) as process:
        board.unplug()
        out, _ = process.communicate(timeout=30)
        assert process.returncode == 1
        assert "the heartbeat does not reach its board" in out
    assert not any(torque_on(port))


def test_a_board_that_is_not_there_moves_nothing(port: EmulatedPort, tmp_path: Path) -> None:
    words = ["--port", port.port, "--ids", "1", "--latch", str(tmp_path / "estop"), "--heartbeat", "/dev/none"]
    with pytest.raises(ConfigError, match="cannot open /dev/none"):
        main(["wiggle", *words])
    assert not any(torque_on(port))


def test_a_wiggle_beats_while_it_moves_and_rests_after_each_servo(
    port: EmulatedPort, board: Board, tmp_path: Path
) -> None:
    words = ["--port", port.port, "--ids", "1-3", "--latch", str(tmp_path / "estop"), "--heartbeat", board.port]
    process = launch("wiggle", *words, "--degrees", "3")
    with ending(process):
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    assert re.fullmatch("([+]+-){3}", board.heard), board.heard
    assert board.watchdog.closed
    assert not any(torque_on(port))
