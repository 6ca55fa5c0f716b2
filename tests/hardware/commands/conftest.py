"""Nine emulated servos behind a serial device, in this process and in real time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from snake_gym.hardware.emulator.bus import EmulatedServo
from snake_gym.hardware.emulator.port import EmulatedPort
from tests.hardware.rig import serve


@pytest.fixture
def port() -> Iterator[EmulatedPort]:
    with serve([EmulatedServo(k + 1) for k in range(9)]) as emulated:
        yield emulated


@pytest.fixture
def latch(tmp_path: Path) -> str:
    return str(tmp_path / "estop")
