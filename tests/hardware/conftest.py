"""Nine emulated servos, and patience: servos are a thread of the tests' process, which may be busy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from snake_gym.emulator.port import EmulatedPort
from snake_gym.hardware.bus.family import ServoFamily, family_of_model
from snake_gym.hardware.commands import options
from snake_gym.hardware.guard.emergency_stop import find_locks
from tests.hardware import rig
from tests.hardware.rig import serve


@pytest.fixture(params=["STS3215", "XL430-W250"])
def family(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ServoFamily:
    """Family of the servos that ``rig`` makes for this test, which is run with each."""
    monkeypatch.setattr(rig, "MODEL", request.param)
    return family_of_model(request.param)[0]


@pytest.fixture
def port() -> Iterator[EmulatedPort]:
    """Servos 1 to 9 behind a serial device, in this process and in real time."""
    with serve(range(1, 10)) as emulated:
        yield emulated


@pytest.fixture
def latch(tmp_path: Path) -> str:
    return str(tmp_path / "estop")


@pytest.fixture(scope="session", autouse=True)
def no_locks_stay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests let robots die; what they leave behind must not alarm whoever stops a real one on this machine."""
    yield
    for lock in find_locks():
        if lock.latch.is_relative_to(tmp_path_factory.getbasetemp()):
            lock.path.unlink(missing_ok=True)


@pytest.fixture(scope="session", autouse=True)
def servos_get_their_turn() -> Iterator[None]:
    """Servos have 4 ms to answer; Python lets other threads keep the process for 5 ms."""
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(5e-4)
    yield
    sys.setswitchinterval(usual_s)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer waits for answers than 25 ms."""
    monkeypatch.setattr(options, "_PATIENCE_S", 0.1)
