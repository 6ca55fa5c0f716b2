"""The emulator behind a real serial device, and the driver there: real time, so generous limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from snake_gym.config import ConfigError
from snake_gym.emulator.bus import LONGEST_BACKLOG_S, EmulatedBus, EmulatedServo, FirstOrderPlant
from snake_gym.emulator.port import EmulatedPort
from snake_gym.hardware.bus.clock import MonotonicClock
from snake_gym.hardware.bus.line import LEAST_WAIT_S
from snake_gym.hardware.bus.protocol import PROTOCOLS
from snake_gym.robot.spec import FloatArray
from tests.hardware.rig import serve


def test_a_link_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    link = tmp_path / "bus"
    link.symlink_to("/dev/pts/none")  # left behind by one that was killed
    with serve([1]) as served, EmulatedPort(served.bus, link):
        with pytest.raises(ConfigError, match="which is taken"):
            EmulatedPort(served.bus, link)
        assert link.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_robot_that_catches_up_does_not_make_its_servos_late(monkeypatch: pytest.MonkeyPatch) -> None:
    class SlowRobot(FirstOrderPlant):
        now_s = 0.0

        def advance(self, dt_s: float, *commands: FloatArray) -> None:
            self.now_s += 0.4 * dt_s
            super().advance(dt_s, *commands)

    robot, clock = SlowRobot(1), MonotonicClock()
    monkeypatch.setattr(clock, "now", lambda: robot.now_s)
    bus = EmulatedBus([EmulatedServo(1)], robot, clock)
    robot.now_s = LONGEST_BACKLOG_S
    bus.receive(PROTOCOLS[1].read(1, 0, 1))
    while not bus.poll():
        robot.now_s += 1e-4
    assert robot.now_s - LONGEST_BACKLOG_S < LEAST_WAIT_S, "a driver waits no longer"
