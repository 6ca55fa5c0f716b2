"""``calibrate``, ``wiggle`` and ``run`` heed what servos hold, and move nothing that would not move as asked, or is not
what was calibrated. A driver of another make is the witness.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from snake_gym.config import ConfigError
from snake_gym.emulator.bus import EmulatedServo, FirstOrderPlant
from snake_gym.emulator.port import EmulatedPort
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.calibration.calibration import load_calibration
from tests.hardware.programs import answering
from tests.hardware.raw_driver import RawDriver
from tests.hardware.rig import serve, torque_on, watch_torque, write_calibration

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


def test_a_range_is_cut_to_the_angle_limits_of_the_servo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limits = {"min_angle_limit": 1700, "max_angle_limit": 2300}
    with serve([EmulatedServo(1, settings=limits, direction=-1)]) as port, RawDriver(port.port) as raw:
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


# --- a calibration of other servos than those on the bus --------------------------------------------------------------

IDS = range(1, 10)


@contextmanager
def robot(zeros: dict[int, int], angles: dict[int, float]) -> Iterator[EmulatedPort]:
    """Nine servos in the middle but for those with these zeros [steps], straight but for these angles [rad]."""
    servos = [EmulatedServo(one, zero_steps=zeros.get(one, 2048)) for one in IDS]
    with serve(servos, FirstOrderPlant(9, joint_angle=[angles.get(one, 0.0) for one in IDS])) as port:
        yield port


def refused(port: EmulatedPort, folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What ``run`` says when it does not start, and that the robot has not been touched."""
    write_calibration(folder / "snake.json", [EmulatedServo(one) for one in IDS])
    # A servo that misses its turn on a busy machine is no joint to do without, as it may be otherwise.
    words = ["run", "cc", "--port", port.port, "--calibration", str(folder / "snake.json"), "--pose", "dead_reckoning"]
    words += ["--log", "none", "--latch", str(folder / "estop"), "--set", "safety.max_lost_joints=0"]
    for _ in range(20):
        told = watch_torque(port)
        assert main(words) == 1
        assert not any(on for _, on in told) and not any(torque_on(port))
        lines = capsys.readouterr().out.splitlines()
        if not any("not answer" in line or "no servo answers" in line for line in lines):
            return [line for line in lines if line.startswith("joint ")]
    raise AssertionError(lines)


def test_horns_put_on_elsewhere_are_seen_by_where_the_joints_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with robot({2: 3948, 5: 300}, {3: 2.0, 7: -1.2}) as port:  # two spare servos; bent by hand, too far and not too far
        lines = refused(port, tmp_path, capsys)
    assert [line.split(":")[0] for line in lines] == [f"joint {k} (servo {k})" for k in (2, 3, 5)]
    assert "at 2.91 rad" in lines[0] and "-1.5 to 1.5" in lines[0] and "calibrate again" in lines[0]


@pytest.mark.parametrize(
    ("register", "value", "advice"),
    [("mode", 3, "set it back"), ("homing_offset", -85, "calibrate again")],
)
def test_every_setting_that_changed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], register: str, value: int, advice: str
) -> None:
    with robot({}, {}) as port:
        with port.bus.lock:
            was = port.bus.servos[4].memory.get(register)
            port.bus.servos[4].memory.set(register, value)
        (line,) = refused(port, tmp_path, capsys)
    assert line.startswith(
        f"joint 5 (servo 5): the calibration says {register} {was}, the servo says {value}: {advice}"
    )
