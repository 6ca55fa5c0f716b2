"""A calibration of other servos than those on the bus moves nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from snake_gym.emulator.bus import EmulatedServo, FirstOrderPlant
from snake_gym.emulator.port import EmulatedPort
from snake_gym.hardware.__main__ import main
from tests.hardware.rig import serve, torque_on, watch_torque, write_calibration

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
