"""Nine emulated servos behind a serial device, in this process and in real time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from snake_gym.hardware.bus.clock import MonotonicClock
from snake_gym.hardware.emulator.bus import EmulatedBus, EmulatedServo, FirstOrderPlant
from snake_gym.hardware.emulator.port import EmulatedPort


@pytest.fixture
def port() -> Iterator[EmulatedPort]:
    servos = [EmulatedServo(k + 1) for k in range(9)]
    bus = EmulatedBus(servos, FirstOrderPlant(9), clock=MonotonicClock(), step_s=0.01)  # easy on a busy machine
    with EmulatedPort(bus) as emulated:
        yield emulated


@pytest.fixture
def latch(tmp_path: Path) -> str:
    return str(tmp_path / "estop")
