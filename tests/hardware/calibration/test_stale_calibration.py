"""A calibration that is not that of the servos on the bus moves nothing: a wire beside the driver is the witness."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_gym.config import ConfigError
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.emulator.bus import EmulatedServo, FirstOrderPlant
from snake_gym.hardware.emulator.port import EmulatedPort
from snake_gym.hardware.safety.emergency_stop import EmergencyStop
from tests.hardware.rig import serve
from tests.hardware.wiretap import Wiretap

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
    answers, theirs = os.pipe()
    os.write(theirs, b"\n" + b"r\n" * N)
    with os.fdopen(answers) as keyboard, os.fdopen(theirs, "wb"), robot(zeros) as port:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdin", keyboard)
            words = ["calibrate", "--port", port.port, "--ids", f"1-{N}", "--limit", "60", "--out", str(out)]
            assert main([*words, "--latch", str(folder / "estop")]) == 0
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
        comes_up(port.port, file)
        return file


def refused(port: str, file: Path, capsys: pytest.CaptureFixture[str], *more: str) -> list[str]:
    """What ``run`` says when it does not start, and that the robot has not been touched."""
    words = ["--calibration", str(file), "--pose", "dead_reckoning", "--plain", "--log", "none", "--time", "2", *more]
    # A servo that misses its turn on a busy machine is no joint to do without, as it may be otherwise.
    words += ["--latch", str(file.parent / "estop"), "--set", "safety.max_lost_joints=0"]
    for _ in range(20):
        with Wiretap(port) as wire:
            before = wire.positions(IDS)
            code = main(["run", "cc", "--port", wire.port, *words])
            assert wire.torqued() == []
            assert wire.torque(IDS) == [0] * N
            np.testing.assert_allclose(wire.positions(IDS), before, atol=1)
        assert code == 1
        lines = capsys.readouterr().out.splitlines()
        advice = ("calibrate again", "set it back")
        if any(one in line for line in lines for one in advice) and not any("not answer" in line for line in lines):
            return [line for line in lines if line.startswith("joint ")]
    raise AssertionError(lines)


def comes_up(port: str, file: Path, *more: str) -> None:
    """``run`` gives every servo torque; how it goes on is a matter of the machine's leisure."""
    words = ["--calibration", str(file), "--pose", "dead_reckoning", "--plain", "--log", "none", "--time", "1", *more]
    words += ["--latch", str(file.parent / "estop"), "--set", "safety.lost_after_s=5"]
    for _ in range(20):
        with Wiretap(port) as wire:
            main(["run", "cc", "--port", wire.port, *words])
            EmergencyStop(file.parent / "estop").clear()
            if {one.servo_id for one in wire.torqued()} == set(IDS):
                return
    raise AssertionError("the robot that was calibrated does not come up")


@pytest.mark.parametrize("guarded", ["true", pytest.param("false", marks=pytest.mark.slow)])
def test_servos_put_on_anew_are_not_driven_by_the_old_file(
    mounted_file: Path, capsys: pytest.CaptureFixture[str], guarded: str
) -> None:
    with robot(ZEROS) as port:  # the same horns, and servos that have forgotten their offsets
        lines = refused(port.port, mounted_file, capsys, "--set", f"connection.guarded={guarded}")
    assert [line.split(":")[0] for line in lines] == [f"joint {k} (servo {k})" for k in (2, 4, 7)]
    assert "the calibration says homing_offset 1852, the servo says 0" in lines[0]
    assert all("calibrate again" in line for line in lines)


def test_horns_put_on_elsewhere_are_seen_by_where_the_joints_are(
    plain_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with robot([2048, 3948, 2048, 2048, 300, 2048, 2048, 2048, 2048]) as port:  # two spare servos
        lines = refused(port.port, plain_file, capsys)
    assert [line.split(":")[0] for line in lines] == ["joint 2 (servo 2)", "joint 5 (servo 5)"]
    assert "at 2.91 rad" in lines[0] and "-1.05 to 1.05" in lines[0]
    bent = [0.0, 0.0, 1.5, 0.0, -1.2, 0.0, 0.0, 0.0, 0.0]  # too far by hand, and not too far
    with robot([2048] * N, bent) as port:
        lines = refused(port.port, plain_file, capsys)
        assert [line.split(":")[0] for line in lines] == ["joint 3 (servo 3)"]
        comes_up(port.port, plain_file, "--set", "safety.runaway_rad=0.5")


OTHERS = [("model", 2825), ("firmware_minor", 9), ("min_angle_limit", 200), ("homing_offset", -85)]


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
        (line,) = refused(port.port, plain_file, capsys)
    assert line.startswith("joint 5 (servo 5): the calibration says ")
    assert f"{register} {was}, the servo says {value}: " in line


def test_a_log_of_limp_servos_is_not_written_with_another_robot_s_calibration(tmp_path: Path, plain_file: Path) -> None:
    log = tmp_path / "limp.jsonl"
    words = ["log", "--pose", "dead_reckoning", "--seconds", "0.3", "--log", str(log), "--port"]
    with robot([2048] * N) as port:
        words += [port.port, "--calibration", str(plain_file)]
        for _ in range(20):  # a servo that misses its turn on a busy machine is named as well
            with port.bus.lock:
                port.bus.servos[4].memory.set("homing_offset", -85)
            with pytest.raises(ConfigError) as refusal:
                main(words)
            if "not answer" not in str(refusal.value) and "torque" not in str(refusal.value):
                break
        assert str(refusal.value).startswith("joint 5 (servo 5): the calibration says homing_offset ")
        assert "the servo says -85: calibrate again" in str(refusal.value)
        assert not list(tmp_path.glob("limp*"))


def test_a_file_that_does_not_say_what_the_servos_held_is_refused(tmp_path: Path, plain_file: Path) -> None:
    told: dict[str, Any] = json.loads(plain_file.read_text())
    for joint in told["joints"]:
        del joint["held"]
    with robot([2048] * N) as port:
        for number, message in ((1, "is in format 1.*calibrate"), (told["format"], "servos 1, 2, 3.*calibrate")):
            old = tmp_path / f"old{number}.json"
            old.write_text(json.dumps({**told, "format": number}))
            with Wiretap(port.port) as wire:
                with pytest.raises(ConfigError, match=message) as refusal:
                    main(["run", "cc", "--port", wire.port, "--calibration", str(old), "--pose", "dead_reckoning"])
                assert wire.written == []
            assert "\n" not in str(refusal.value)


def test_an_emulated_robot_made_of_a_file_is_the_one_that_was_calibrated(tmp_path: Path, mounted_file: Path) -> None:
    words = ["run", "cc", "--calibration", str(mounted_file), "--plain", "--latch", str(tmp_path / "estop")]
    assert main([*words, "--log", "none", "--targets", "9,0", "--time", "1"]) == 0
    assert math.isfinite(json.loads(mounted_file.read_text())["joints"][0]["high_rad"])
