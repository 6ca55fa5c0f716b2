"""``wiggle`` and ``calibrate`` move nothing that would not move as asked."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from snake_gym.config import ConfigError
from snake_gym.emulator.bus import FirstOrderPlant
from snake_gym.emulator.port import EmulatedPort
from snake_gym.hardware.__main__ import main
from tests.hardware.programs import answering
from tests.hardware.rig import serve, torque_on, watch_torque

ODD = [
    ({"mode": 3}, "servo 2 is in mode 3; expected 0, position"),
    ({"angle_resolution": 4}, "servo 2 has angle_resolution 4; expected 1"),
    ({"max_angle_limit": 1000}, r"servo 2 h\w+ angle limits 0 to 1000; expected"),
]


class Slipping(FirstOrderPlant):
    """The second joint goes three times as far as its servo tells it to, whatever its registers say."""

    def advance(self, dt_s, target_rad, enabled, torque_limit, speed_limit_rad_s):  # type: ignore[no-untyped-def]
        aim = np.array(target_rad)
        aim[1] = np.where(enabled[1], aim[1] + 0.5, aim[1])
        super().advance(dt_s, aim, enabled, torque_limit, speed_limit_rad_s)


def set_up(port: EmulatedPort, registers: dict[str, int]) -> None:
    with port.bus.lock:
        for name, value in registers.items():
            port.bus.servos[1].memory.set(name, value)


@pytest.mark.parametrize(("registers", "message"), ODD)
def test_a_servo_that_moves_otherwise_is_neither_wiggled_nor_calibrated(
    port: EmulatedPort, tmp_path: Path, latch: str, capsys: pytest.CaptureFixture[str],
    registers: dict[str, int], message: str,
) -> None:  # fmt: skip
    set_up(port, registers)
    told, words = watch_torque(port), ["--port", port.port, "--latch", latch]
    with answering("\n" + "r\n" * 3):
        with pytest.raises(ConfigError, match=message):
            main(["calibrate", *words, "--ids", "1-3", "--limit", "60", "--out", str(tmp_path / "a.json")])
        assert not any(on for _, on in told)
        assert main(["wiggle", *words, "--ids", "2,3"]) == 1
        assert {servo_id for servo_id, on in told if on} == {3}
    assert not any(torque_on(port))
    lines = capsys.readouterr().out.splitlines()
    assert re.search(message, lines[0]) and "moved" in lines[1]


def test_a_joint_that_goes_further_than_asked_is_let_go(latch: str, capsys: pytest.CaptureFixture[str]) -> None:
    with serve([1, 2, 3], Slipping(3)) as port:
        assert main(["wiggle", "--port", port.port, "--ids", "2", "--latch", latch]) == 1
        assert not any(torque_on(port))
        assert abs(port.bus.servos[1].present() - 2048) < 340, "half a radian and the six degrees would be 394"
    out = capsys.readouterr().out
    assert "servo 2 went" in out and "let go" in out


def test_a_wiggle_between_narrow_limits_goes_the_way_that_is_free(
    port: EmulatedPort, latch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up(port, {"max_angle_limit": 2060})
    assert main(["wiggle", "--port", port.port, "--ids", "2", "--latch", latch]) == 0
    assert "moved -5." in capsys.readouterr().out
