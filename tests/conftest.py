"""Settings that every test runs under: no screen, no clock in the verdict, the same examples every time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Before anything imports OpenMP, pygame or matplotlib: cores are shared, and there is no display.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

from hypothesis import HealthCheck, settings

settings.register_profile("repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, max_examples=1000)  # pytest --hypothesis-profile=explore
settings.load_profile("repeatable")

SERVOS = Path(__file__).parent / "hardware"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of servos run one after the other in one process: they share a machine's emergency stops."""
    for item in items:
        if item.path.is_relative_to(SERVOS) or "servo_family" in item.path.name:
            item.add_marker(pytest.mark.xdist_group("servos"))
