"""Commands of the hardware as a user gives them: in other processes, with a person at the keyboard."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from snake_gym.emulator.port import EmulatedPort
from snake_gym.hardware.__main__ import main
from tests.hardware.rig import write_calibration

ROOT = Path(__file__).parents[2]
N = 9
"""Servos of the fixture ``port``."""


def where(port: EmulatedPort) -> list[str]:
    """Options for the servos on ``port``."""
    return ["--port", port.port, "--family", port.bus.servos[0].family.name, "--baud", "1000000"]


def settings(folder: Path, port: EmulatedPort) -> list[str]:
    """Options for a run on ``port`` without a pose sensor."""
    with port.bus.lock:
        write_calibration(folder / "snake.json", port.bus.servos)
    return [
        *where(port), "--calibration", str(folder / "snake.json"), "--pose", "dead_reckoning",
        "--latch", str(folder / "estop"), "--set", "safety.lost_after_s=5",  # the machine may be busy
    ]  # fmt: skip


def launch(*arguments: str, patient: bool = False) -> subprocess.Popen[str]:
    """A command in a process of its own."""
    command = [sys.executable, "-m", *(["tests.hardware.patient"] if patient else []), "snake_gym.hardware"]
    return subprocess.Popen(
        [*command, *arguments], cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def guard_of(process: subprocess.Popen[str]) -> int:
    """Process ID of a command's guard."""
    (guard,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(guard)


def press(process: subprocess.Popen[str], keys: str) -> None:
    """Type into its standard input."""
    assert process.stdin is not None
    process.stdin.write(keys)
    process.stdin.flush()


def first_line(stream: IO[str] | None, start: str) -> str:
    """The first line that begins so."""
    assert stream is not None
    seen = []
    for line in stream:
        seen.append(line)
        if line.strip().startswith(start):
            return line
    raise AssertionError("".join(seen))


def repeated(words: list[str], capsys: pytest.CaptureFixture[str], n_lines: int) -> tuple[int, list[str]]:
    """Exit code and lines of a command; asked again where servos of this busy process missed their turn."""
    for _ in range(20):
        code, lines = main(words), capsys.readouterr().out.splitlines()
        if len(lines) == n_lines and not any("nan" in line or " -  " in line for line in lines):
            break
    return code, lines


@contextmanager
def answering(lines: str) -> Iterator[None]:
    """A person at the keyboard of this process."""
    answers, theirs = os.pipe()
    os.write(theirs, lines.encode())
    with os.fdopen(answers) as keyboard, os.fdopen(theirs, "wb"), pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", keyboard)
        yield


class EmulatorProcess:
    """A running ``emulate``."""

    def __init__(self, link: Path, *arguments: str) -> None:
        self.port = str(link)
        self.process = launch("emulate", "--link", self.port, *arguments)
        self.said: list[str] = []
        self._lines: queue.Queue[str] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def close(self) -> None:
        self.process.kill()
        self._listener.join(20.0)
        with self.process:  # waits, closes the pipes
            pass

    def tell(self, line: str) -> None:
        press(self.process, line + "\n")

    def wait_for(self, wanted: Callable[[str], object], seconds: float = 20.0) -> str:
        give_up = time.monotonic() + seconds
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, give_up - time.monotonic()))
            except queue.Empty:
                raise AssertionError("".join(self.said)) from None
            self.said.append(line)
            if wanted(line):
                return line

    def joint_angles_deg(self) -> list[float]:
        self.tell("state")
        line = self.wait_for(lambda one: one.startswith("joints [deg]"))
        return [float(word) for word in line.split(":")[1].split(";")[0].split()]


@contextmanager
def emulator(link: Path, *arguments: str) -> Iterator[EmulatorProcess]:
    robot = EmulatorProcess(link, *arguments)
    try:
        robot.wait_for(lambda line: line.startswith("try:"), 300.0)
        yield robot
    finally:
        robot.close()
