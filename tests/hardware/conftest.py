"""Tests let robots die; what they leave behind must not alarm whoever stops a real one on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from snake_gym.hardware.bus.exchange import LineTiming
from snake_gym.hardware.commands import options
from snake_gym.hardware.safety.emergency_stop import find_locks


@pytest.fixture(scope="session", autouse=True)
def no_locks_stay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    yield
    for lock in find_locks():
        if lock.latch.is_relative_to(tmp_path_factory.getbasetemp()):
            lock.path.unlink(missing_ok=True)


@pytest.fixture(scope="session", autouse=True)
def servos_get_their_turn() -> Iterator[None]:
    """Servos are a thread of this process and have 4 ms to answer; Python lets other threads keep it for 5 ms."""
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(5e-4)
    yield
    sys.setswitchinterval(usual_s)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer waits for answers than 20 ms: the servos are a thread of this process, which may be busy."""
    monkeypatch.setattr(options, "_PATIENT", LineTiming(latency_s=0.1))
