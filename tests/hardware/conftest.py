"""Tests let robots die; what they leave behind must not alarm whoever stops a real one on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from snake_gym.hardware.torque_mark import seen_marks


@pytest.fixture(scope="session", autouse=True)
def no_marks_stay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    yield
    for mark in seen_marks():
        if mark.latch.is_relative_to(tmp_path_factory.getbasetemp()):
            mark.path.unlink(missing_ok=True)
