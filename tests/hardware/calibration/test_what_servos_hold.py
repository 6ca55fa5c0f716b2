"""``calibrate`` heeds what servos hold: angle limits and model numbers. A driver of another make is the witness."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from snake_gym.config import ConfigError
from snake_gym.emulator.bus import EmulatedServo
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.calibration.calibration import load_calibration
from tests.hardware.programs import answering
from tests.hardware.raw_driver import RawDriver
from tests.hardware.rig import serve

GOAL, POSITION, TORQUE = 42, 56, 40


def calibrate(port: str, folder: Path, *more: str) -> Path:
    """Calibrate servo 1; asked again where it misses its turn in this busy process."""
    out = folder / "snake.json"
    words = ["calibrate", "--port", port, "--ids", "1", "--limit", "60", "--out", str(out)]
    for _ in range(20):
        try:
            with answering("\nr\n"):
                assert main([*words, "--latch", str(folder / "estop"), *more]) == 0
            return out
        except ConfigError as error:
            if "not answer" not in str(error):
                raise
    raise AssertionError("servo 1 does not answer")


@pytest.mark.parametrize("direction", [1, -1])
def test_a_range_is_cut_to_the_angle_limits_of_the_servo(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], direction: int
) -> None:
    limits = {"min_angle_limit": 1700, "max_angle_limit": 2300}
    with serve([EmulatedServo(1, settings=limits, direction=direction)]) as port, RawDriver(port.port) as raw:
        (joint,) = load_calibration(calibrate(port.port, tmp_path)).joints
        assert "holds angle limits 1700 to 2300: its range is cut to" in capsys.readouterr().out
        ends = sorted(joint.zero_steps + joint.direction * angle / (2.0 * math.pi) * 4096
                      for angle in (joint.low_rad, joint.high_rad))  # fmt: skip
        for goal, end in ((0, ends[0]), (4095, ends[1])):
            raw.write(1, GOAL, goal, 2)
            raw.until(lambda: raw.read(1, POSITION, 2), lambda at, end=end: abs(at - end) <= 1.0)


@pytest.mark.parametrize(
    ("servo", "more", "fragment"),
    [
        (EmulatedServo(1, settings={"max_angle_limit": 2040}), [], "both sides of straight, 2048: register write"),
        (EmulatedServo(1, settings={"min_angle_limit": 2100}), [], "both sides of straight, 2048: register write"),
        (EmulatedServo(1, "SM8524BL", settings={"baud_rate": 0}), [], "SM8524BL or SM8512BL; expected --model"),
        (EmulatedServo(1), ["--model", "SM8524BL"], "say they are STS3215; expected SM8524BL"),
    ],
)
def test_what_would_be_guessed_is_refused_and_nothing_moves(
    tmp_path: Path, servo: EmulatedServo, more: list[str], fragment: str
) -> None:
    with serve([servo]) as port, RawDriver(port.port) as raw:
        with pytest.raises(ConfigError, match=fragment):
            calibrate(port.port, tmp_path, *more)
        assert raw.read(1, TORQUE) == 0
        assert abs(raw.read(1, POSITION, 2) - 2048) <= 1


def test_a_model_that_is_named_settles_a_number_of_two(tmp_path: Path) -> None:
    with serve([EmulatedServo(1, "SM8524BL", settings={"baud_rate": 0})]) as port:
        assert load_calibration(calibrate(port.port, tmp_path, "--model", "SM8524BL")).model == "SM8524BL"
