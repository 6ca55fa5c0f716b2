"""A calibration of other servos than those on the bus moves nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from snake_gym.emulator.bus import EmulatedServo, FirstOrderPlant
from snake_gym.emulator.port import EmulatedPort
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from tests.hardware.programs import answering
from tests.hardware.rig import serve, torque_on, watch_torque

N = 9
IDS = range(1, N + 1)
ZEROS = [2048, 3900, 1500, 150, 2500, 2048, 4090, 2000, 1200]
"""How the horns were put on; the second, fourth and seventh joint pass the encoder's zero."""


@contextmanager
def robot(zeros: Sequence[int], angles: Sequence[float] = (0.0,) * N, **settings: int) -> Iterator[EmulatedPort]:
    servos = [EmulatedServo(one, zero_steps=zero, settings=settings) for one, zero in zip(IDS, zeros, strict=True)]
    with serve(servos, FirstOrderPlant(N, joint_angle=angles)) as port:
        yield port


@contextmanager
def calibrated(zeros: Sequence[int], folder: Path) -> Iterator[tuple[EmulatedPort, Path]]:
    """A straight robot, and the file that ``calibrate`` makes of it."""
    out = folder / "snake.json"
    with answering("\n" + "r\n" * N), robot(zeros) as port:
        words = ["calibrate", "--port", port.port, "--ids", f"1-{N}", "--limit", "60", "--degrees", "3"]
        assert main([*words, "--out", str(out), "--latch", str(folder / "estop")]) == 0
        yield port, out


@pytest.fixture(scope="module")
def plain_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Calibration of a robot whose zeros are in the middle."""
    with calibrated([2048] * N, tmp_path_factory.mktemp("plain")) as (_, file):
        return file


@pytest.fixture(scope="module")
def mounted_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Calibration of a robot with ``ZEROS``, which comes up with it."""
    with calibrated(ZEROS, tmp_path_factory.mktemp("mounted")) as (port, file):
        comes_up(port, file)
        return file


def run_on(port: EmulatedPort, file: Path, *more: str) -> int:
    words = ["run", "cc", "--port", port.port, "--calibration", str(file), "--pose", "dead_reckoning"]
    return main([*words, "--log", "none", "--latch", str(file.parent / "estop"), *more])


def refused(port: EmulatedPort, file: Path, capsys: pytest.CaptureFixture[str], *more: str) -> list[str]:
    """What ``run`` says when it does not start, and that the robot has not been touched."""
    # A servo that misses its turn on a busy machine is no joint to do without, as it may be otherwise.
    words = ["--time", "2", "--set", "safety.max_lost_joints=0", *more]
    for _ in range(20):
        told = watch_torque(port)
        assert run_on(port, file, *words) == 1
        assert not any(on for _, on in told) and not any(torque_on(port))
        lines = capsys.readouterr().out.splitlines()
        advice = ("calibrate again", "set it back")
        if any(one in line for line in lines for one in advice) and not any("not answer" in line for line in lines):
            return [line for line in lines if line.startswith("joint ")]
    raise AssertionError(lines)


def comes_up(port: EmulatedPort, file: Path, *more: str) -> None:
    """``run`` gives every servo torque; how it goes on is a matter of the machine's leisure."""
    for _ in range(20):
        told = watch_torque(port)
        run_on(port, file, "--time", "0.5", "--set", "safety.lost_after_s=5", *more)
        EmergencyStop(file.parent / "estop").clear()
        if {servo_id for servo_id, on in told if on} == set(IDS):
            return
    raise AssertionError("the robot that was calibrated does not come up")


def test_servos_put_on_anew_are_not_driven_by_the_old_file(
    mounted_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with robot(ZEROS) as port:  # the same horns, and servos that have forgotten their offsets
        lines = refused(port, mounted_file, capsys)
    assert [line.split(":")[0] for line in lines] == [f"joint {k} (servo {k})" for k in (2, 4, 7)]
    assert "the calibration says homing_offset 1852, the servo says 0" in lines[0]
    assert all("calibrate again" in line for line in lines)


def test_horns_put_on_elsewhere_are_seen_by_where_the_joints_are(
    plain_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with robot([2048, 3948, 2048, 2048, 300, 2048, 2048, 2048, 2048]) as port:  # two spare servos
        lines = refused(port, plain_file, capsys)
    assert [line.split(":")[0] for line in lines] == ["joint 2 (servo 2)", "joint 5 (servo 5)"]
    assert "at 2.91 rad" in lines[0] and "-1.05 to 1.05" in lines[0]
    bent = [0.0, 0.0, 1.5, 0.0, -1.2, 0.0, 0.0, 0.0, 0.0]  # too far by hand, and not too far
    with robot([2048] * N, bent) as port:
        lines = refused(port, plain_file, capsys)
        assert [line.split(":")[0] for line in lines] == ["joint 3 (servo 3)"]
        comes_up(port, plain_file, "--set", "safety.runaway_rad=0.5")


OTHERS = [("model", 2825), ("homing_offset", -85), ("position_p", 0), ("max_torque", 300), ("unload_condition", 0)]


@pytest.mark.parametrize(
    ("register", "value"),
    [("mode", 3), *(pytest.param(*other, marks=pytest.mark.slow) for other in OTHERS)],
)
def test_every_setting_that_changed_is_named(
    plain_file: Path, capsys: pytest.CaptureFixture[str], register: str, value: int
) -> None:
    with robot([2048] * N) as port:
        with port.bus.lock:
            was = port.bus.servos[4].memory.get(register)
            port.bus.servos[4].memory.set(register, value)
        (line,) = refused(port, plain_file, capsys)
    assert line.startswith("joint 5 (servo 5): the calibration says ")
    assert f"{register} {was}, the servo says {value}: " in line
