"""A process with an emulated servo bus behind a pseudo terminal, for drivers that keep their own process busy.

``python -m tests.hardware.emulate_servos MODEL 1,2,3 [NAME=VALUE ...]`` prints the device's name and serves until its
standard input is closed. Settings are register defaults of all servos, and ``echo=1``.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from snake_gym.emulator.bus import EmulatedBus
from snake_gym.emulator.port import EmulatedPort
from snake_gym.emulator.x_servo import emulated_servo
from snake_gym.hardware.bus.clock import MonotonicClock


@contextmanager
def emulated(ids: Sequence[int], model: str = "STS3215", **settings: int) -> Iterator[str]:
    """The device of a bus that another process emulates, while the context lasts."""
    words = [f"{name}={value}" for name, value in settings.items()]
    command = [sys.executable, "-m", "tests.hardware.emulate_servos", model, ",".join(map(str, ids)), *words]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(10.0)


def main(words: Sequence[str]) -> None:
    settings = {name: int(value) for name, value in (word.split("=") for word in words[2:])}
    echo = bool(settings.pop("echo", 0))
    servos = [emulated_servo(int(word), words[0], settings=settings) for word in words[1].split(",")]
    bus = EmulatedBus(servos, clock=MonotonicClock(), baud=servos[0].baud, echo=echo, step_s=0.005)
    with EmulatedPort(bus) as port:
        print(port.port, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1:])
