"""Answers that are missing because the computer or its adapter is late are not blamed on the servos."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from snake_gym.emulator.bus import HostEnd
from snake_gym.hardware.bus.servo_bus import ServoBus
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.guard.servo_body import ServoBody
from tests.hardware.rig import QUICK, Rig


class SlowHost(HostEnd):
    """A host that another program keeps from its turn whenever it looks at the port."""

    pause_s = 0.0

    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        self._clock.sleep(self.pause_s)
        return super().read(max_bytes, timeout_s)


def run_until_stopped(rig: Rig) -> list[str]:
    """What is said until the robot stops: the news, the reason last."""
    news: list[str] = []
    for _ in range(100):
        rig.run(0.1, np.full(4, 0.2))
        news += rig.body.news()
        if rig.body.stop_reason is not None:
            return [*news, rig.body.stop_reason]
    raise AssertionError(news)


def test_a_computer_that_is_late_is_named(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    host = SlowHost(rig.bus)
    rig.body = ServoBody(ServoBus(host, clock=rig.clock), rig.calibration, QUICK, stop=EmergencyStop(tmp_path / "stop"))
    rig.body.start()
    host.pause_s = 0.05
    said = run_until_stopped(rig)
    assert "are lost" in said[-1] and "this computer was late by" in said[-1]
    host.pause_s = 0.0
    EmergencyStop(tmp_path / "stop").clear()
    rig.body.start()
    rig.run(1.0, np.full(4, 0.2))
    assert rig.body.stop_reason is None


def test_an_adapter_that_is_late_is_named(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.body.start()
    rig.bus.faults.late = 1.0
    assert "answers came too late: this computer or its adapter is too busy" in run_until_stopped(rig)[-1]


@pytest.mark.parametrize("latency", ["quick", "slow"])
def test_servos_that_are_silent_are_blamed_themselves(tmp_path: Path, latency: str) -> None:
    """Behind a cut cable, though the answers of the others, and their own last ones, come late."""
    rig = Rig(tmp_path)
    rig.body.start()
    for servo in rig.servos[:3]:
        servo.dead = True
    rig.bus.faults.late = 0.3 if latency == "slow" else 0.0
    said = run_until_stopped(rig)
    assert said[-1].startswith("joints 1, 2, 3") and "may be" in said[-1]
    assert not any("late" in line for line in said)
