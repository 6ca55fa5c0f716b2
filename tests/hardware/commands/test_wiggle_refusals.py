"""``wiggle`` and ``calibrate`` move nothing that would not move as asked: a wire beside the driver is the witness."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from snake_gym.config import ConfigError
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.bus.clock import MonotonicClock
from snake_gym.hardware.emulator.bus import EmulatedBus, EmulatedServo, FirstOrderPlant
from snake_gym.hardware.emulator.port import EmulatedPort
from tests.hardware.wiretap import Wiretap

IDS = [1, 2, 3]
ODD = [
    ({"mode": 1, "goal_speed": 300}, "servo 2 is in mode 1; expected 0, position"),
    ({"mode": 2}, "servo 2 is in mode 2; expected 0, position"),
    ({"mode": 3}, "servo 2 is in mode 3; expected 0, position"),
    ({"angle_resolution": 4}, "servo 2 has angle_resolution 4; expected 1"),
    ({"max_angle_limit": 1000}, "servo 2 has angle limits 0 to 1000; expected at least 20"),
]


class Slipping(FirstOrderPlant):
    """The second joint goes three times as far as its servo tells it to, whatever its registers say."""

    def advance(self, dt_s, target_rad, enabled, torque_limit, speed_limit_rad_s):  # type: ignore[no-untyped-def]
        aim = np.array(target_rad)
        aim[1] = np.where(enabled[1], aim[1] + 0.5, aim[1])
        super().advance(dt_s, aim, enabled, torque_limit, speed_limit_rad_s)


@pytest.fixture
def port() -> Iterator[EmulatedPort]:
    bus = EmulatedBus([EmulatedServo(one) for one in IDS], FirstOrderPlant(3), clock=MonotonicClock(), step_s=0.01)
    with EmulatedPort(bus) as emulated:
        yield emulated


def set_up(port: EmulatedPort, registers: dict[str, int]) -> None:
    with port.bus.lock:
        for name, value in registers.items():
            port.bus.servos[1].memory.set(name, value)


@pytest.mark.parametrize(("registers", "message"), ODD)
def test_a_wiggle_leaves_a_servo_alone_that_moves_otherwise(
    port: EmulatedPort, tmp_path: Path, capsys: pytest.CaptureFixture[str], registers: dict[str, int], message: str
) -> None:
    set_up(port, registers)
    with Wiretap(port.port) as wire:
        before = wire.positions(IDS)
        words = ["wiggle", "--port", wire.port, "--ids", "1-3", "--latch", str(tmp_path / "estop")]
        assert main(words) == 1
        assert {one.servo_id for one in wire.torqued()} == {1, 3}
        assert wire.torque(IDS) == [0, 0, 0]
        assert abs(wire.positions([2])[0] - before[1]) <= 1
    lines = capsys.readouterr().out.splitlines()
    assert "moved" in lines[0] and "moved" in lines[2]
    assert message in lines[1]


@pytest.mark.parametrize(("registers", "message"), ODD)
def test_a_calibration_does_not_begin_with_such_a_servo(
    port: EmulatedPort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registers: dict[str, int], message: str
) -> None:
    set_up(port, registers)
    answers, theirs = os.pipe()
    os.write(theirs, b"\n" + b"r\n" * 3)
    os.close(theirs)
    with os.fdopen(answers) as keyboard, Wiretap(port.port) as wire:
        monkeypatch.setattr("sys.stdin", keyboard)
        words = ["calibrate", "--port", wire.port, "--ids", "1-3", "--limit", "60", "--out", str(tmp_path / "a.json")]
        with pytest.raises(ConfigError, match=message):
            main([*words, "--latch", str(tmp_path / "estop")])
        assert wire.torqued() == []
        assert wire.torque(IDS) == [0, 0, 0]


def test_a_joint_that_goes_further_than_asked_is_let_go(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bus = EmulatedBus([EmulatedServo(one) for one in IDS], Slipping(3), clock=MonotonicClock(), step_s=0.01)
    with EmulatedPort(bus) as port, Wiretap(port.port) as wire:
        words = ["wiggle", "--port", wire.port, "--ids", "1-3", "--latch", str(tmp_path / "estop")]
        assert main(words) == 1
        assert wire.torque(IDS) == [0, 0, 0]
        assert abs(wire.positions([2])[0] - 2048) < 340, "half a radian and the six degrees would be 394"
    lines = capsys.readouterr().out.splitlines()
    assert "servo 2 went" in lines[1] and "let go" in lines[1]


def test_a_wiggle_between_narrow_limits_goes_the_way_that_is_free(
    port: EmulatedPort, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up(port, {"max_angle_limit": 2060})
    assert main(["wiggle", "--port", port.port, "--ids", "2", "--latch", str(tmp_path / "estop")]) == 0
    assert "moved -5." in capsys.readouterr().out
