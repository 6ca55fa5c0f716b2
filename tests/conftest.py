"""Settings that every test runs under: no screen, no clock in the verdict, the same examples every time."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
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

TESTS = Path(__file__).parent
ROBOT = (
    "agents/test_settings_schemas.py", "commands/test_play.py", "commands/test_play_robot.py", "emulator",
    "extending/test_bus.py", "extending/test_pose_source.py", "extending/test_servo_family.py", "hardware",
    "test_config.py",
)  # fmt: skip
"""Tests that import the robot's part, which needs Linux."""
collect_ignore = [] if sys.platform == "linux" else [*ROBOT]
ENDS = [signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__]
QUICK = (
    "benchmark/test_statistics", "controllers/test_controllers",
    "controllers/test_fault_aware", "controllers/test_fault_detection", "controllers/test_guidance",
    "controllers/test_nominal_chain", "controllers/test_gaits", "controllers/test_tuned",
    "hardware/bus/test_family", "hardware/bus/test_protocol", "hardware/calibration/test_calibration.py",
    "hardware/robot/test_run_config", "hardware/guard/test_cycle_time", "hardware/guard/test_safety",
    "interface/test_interface", "interface/test_policy_file", "obstacles/test_shapes", "robot/",
    "simulation/test_faults", "simulation/test_streams", "test_architecture", "test_config", "test_docs",
    "test_packaging", "test_settings",
)  # fmt: skip
"""Tests that compile no kernel, or only play one short episode, by the beginning of their path."""


@pytest.fixture(autouse=True)
def _signals_mean_the_same_afterwards() -> Iterator[None]:
    """A program that a test runs in this process may ignore signals as it ends; processes of later tests would too."""
    before = {number: signal.getsignal(number) for number in ENDS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the quick tests."""
    for item in items:
        path = item.path.relative_to(TESTS).as_posix()
        if path.startswith(QUICK) and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.check)
