"""The commands as a user gives them, on emulated robots behind real serial devices."""

from __future__ import annotations

import io
import math
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from snake_gym.config import ConfigError
from snake_gym.hardware.__main__ import COMMANDS, main
from snake_gym.hardware.bus.clock import MonotonicClock
from snake_gym.hardware.bus.transport import PortGone, SerialTransport
from snake_gym.hardware.calibration.calibration import Calibration, ServoSettings, load_calibration, straight_chain
from snake_gym.hardware.emulator.bus import EmulatedBus, EmulatedServo, FirstOrderPlant
from snake_gym.hardware.emulator.port import EmulatedPort
from snake_gym.hardware.pose.source import PoseSample
from snake_gym.hardware.run.live_view import Timing, make_view
from snake_gym.hardware.run.record import read_record
from snake_gym.hardware.run.robot_loop import CourseConfig, MeasuredCourse, StepRecord
from snake_gym.hardware.safety.body import BodySample
from snake_gym.hardware.safety.checks import ServoHealth
from snake_gym.hardware.safety.emergency_stop import EmergencyStop
from snake_gym.robot.measurement import Measurement
from snake_gym.robot.presets import RESILIENT_SERVO
from tests.hardware.rig import ending, wait_until
from tests.interface.test_small_board import ABSENT, HOOK

ROOT = Path(__file__).parents[3]
N = 9


def torque_on(port: EmulatedPort) -> bool:
    with port.bus.lock:
        return any(servo.memory.get("torque_enable") == 1 for servo in port.bus.servos)


def is_free(port: EmulatedPort) -> bool:
    """Whether nobody has the port open."""
    try:
        SerialTransport(port.port, 1_000_000).close()
    except PortGone:
        return False
    return True


def settings(folder: Path, port: EmulatedPort, board: bool = False) -> list[str]:
    """Options for a run on ``port`` without a pose sensor; ``board``: none that needs more than a small board has."""
    with port.bus.lock:
        names = [one.name for one in fields(ServoSettings)]
        held = [ServoSettings(**{name: servo.memory.get(name) for name in names}) for servo in port.bus.servos]
    joints = straight_chain(range(1, N + 1), 1.5).joints
    joints = tuple(replace(joint, held=one) for joint, one in zip(joints, held, strict=True))
    Calibration(joints).save(folder / "snake.json")
    # the machine may be busy
    patient = [] if board else ["--set", "safety.lost_after_s=5"]
    return [
        "--port", port.port, "--calibration", str(folder / "snake.json"), "--pose", "dead_reckoning",
        "--latch", str(folder / "estop"), "--plain", *patient,
    ]  # fmt: skip


def launch(*arguments: str, board: bool = False, patient: bool = False) -> subprocess.Popen[str]:
    module = "snake_gym.hardware"
    command = [sys.executable, "-m", *(["tests.hardware.patient", "-"] if patient else []), module, *arguments]
    if board:
        program = HOOK + "sys.modules['snake_gym.hardware.emulator'] = None  # a real robot is not emulated\n"
        program += f"import runpy\nsys.argv = [{module!r}, *sys.argv[1:]]\n"
        program += f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
        command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def press(process: subprocess.Popen[str], keys: str) -> None:
    """Type into its standard input."""
    assert process.stdin is not None
    process.stdin.write(keys)
    process.stdin.flush()


def read_all(process: subprocess.Popen[str]) -> str:
    text, _ = process.communicate(timeout=30)
    return text


# --- scan, wiggle, calibrate, estop ----------------------------------------------------------------------------------


def scanned(capsys: pytest.CaptureFixture[str], words: list[str], n_servos: int) -> list[str]:
    """The lines of a scan; asked again where servos of this busy process missed their turn."""
    for _ in range(20):
        main(["scan", *words])
        lines = capsys.readouterr().out.splitlines()
        if len(lines) == 1 + n_servos and all(" V " in line for line in lines[1:]):
            break
    return lines


def test_scan_lists_who_is_there(port: EmulatedPort, capsys: pytest.CaptureFixture[str]) -> None:
    with port.bus.lock:
        port.bus.servos[3].memory.set("id", 77)
    lines = scanned(capsys, ["--port", port.port, "--ids", "1-10,77"], 9)
    assert [int(line.split()[0]) for line in lines[1:]] == [1, 2, 3, 5, 6, 7, 8, 9, 77]
    assert "STS3215" in lines[1] and "12.0 V" in lines[1]
    assert main(["scan", "--port", port.port, "--ids", "100-101"]) == 1
    assert f"nobody of 100-101 answers on {port.port} at 1000000 baud" in capsys.readouterr().out
    assert main(["scan", "--port", port.port, "--ids", "1-3,7", "--baud", "500000"]) == 1
    told = capsys.readouterr().out
    assert "nobody of 1-3,7 answers" in told and "at 500000 baud" in told and "try --all-bauds" in told
    assert main(["scan", "--port", port.port, "--change-id", "77", "4"]) == 0
    with port.bus.lock:
        assert port.bus.servos[3].id == 4
    with pytest.raises(ConfigError, match="id 5 is taken"):
        main(["scan", "--port", port.port, "--change-id", "4", "5"])


def test_wiggle_moves_each_joint_and_names_who_is_not_there_and_who_is(
    port: EmulatedPort, latch: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("snake_gym.hardware.commands.wiggle._USUAL", range(7, 12))
    words = ["wiggle", "--port", port.port, "--latch", latch]
    port.bus.jam(2)
    assert main([*words, "--ids", "20,1,2", "--degrees", "5"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "servo  20: does not answer at 1000000 baud; 7-9 do"
    assert "moved +" in lines[1]
    assert "DID NOT MOVE" in lines[2]
    assert not torque_on(port)
    assert main([*words, "--ids", "2", "--baud", "500000"]) == 1
    assert "at 500000 baud; see scan --all-bauds" in capsys.readouterr().out


def test_calibrate_asks_and_writes_what_run_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    servos = [EmulatedServo(5, zero_steps=1200, direction=-1), EmulatedServo(2, zero_steps=4000)]
    with EmulatedPort(EmulatedBus(servos, FirstOrderPlant(2), clock=MonotonicClock())) as port:
        answers, theirs = os.pipe()
        os.write(theirs, b"\nwhat?\nl\nr\n")
        keyboard = os.fdopen(answers)
        monkeypatch.setattr("sys.stdin", keyboard)
        out = tmp_path / "snake.json"
        arguments = ["--ids", "5,2", "--limit", "60", "--out", str(out), "--latch", str(tmp_path / "estop")]
        assert main(["calibrate", "--port", port.port, *arguments]) == 0
        os.close(theirs)
        keyboard.close()
        found = load_calibration(out)
        assert found.ids == (5, 2)
        assert found.direction.tolist() == [-1, 1]
        assert found.zero_steps.tolist() == [1200, 2048]
        np.testing.assert_allclose(found.high_rad, math.radians(60.0))
        assert "middle of its range" in capsys.readouterr().out
        assert not torque_on(port)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["scna"], "did you mean 'scan'"),
        (["scan"], "--port"),
        (["scan", "--port", "/dev/none"], "cannot open /dev/none"),
        (["scan", "--port", "memory"], "expected a serial device"),
        (["scan", "--port", "x", "--baud", "9600"], "expected one of 1000000"),
        (["wiggle", "--port", "x", "--ids", "1", "--family", "feetec"], "did you mean 'feetech'?"),
        (["wiggle", "--port", "x", "--ids", "1-"], "ids are '1-'"),
        (["wiggle", "--port", "x", "--ids", "3,3"], "each once"),
        (["wiggle", "--port", "x", "--ids", "1", "--degrees", "90"], "--degrees is 90"),
        (["estop", "--wait", "-1"], "--wait is -1"),
        (["calibrate", "--port", "x", "--ids", "1", "--limit", "1"], "expected 5 to 180"),
        (["run", "ccc"], "did you mean 'cc'"),
        (["run", "cc", "--targets", "1;2"], "expected X,Y"),
        (["run", "cc", "--set", "safty.max_speed_rad_s=1"], "safety"),
        (["run", "cc", "--port", "/dev/none", "--calibration", "none.json"], "none.json does not exist"),
        (["run", "cc", "--pose", "sonar"], "sonar"),
        (["run", "cc", "--robot", "resilient"], "expected 'position'"),
        (["log", "--port", "/dev/none"], "calibration is missing"),
        (["log", "--seconds", "-1"], "expected > 0"),
        (["replay", "none.jsonl"], "does not exist"),
        (["replay", "none.jsonl", "--identify", "x.json"], "ends in .yaml"),
        (["camera"], "is missing"),
        (["camera", "configs/hardware/camera.yaml", "--file", "none.mp4"], "camera none.mp4: it cannot be opened"),
        (["emulate", "--link", "/proc/none"], "--link"),
        (["emulate", "--mounting", "-1"], "--mounting is -1; expected a seed >= 0"),
        (["emulate", "--pose-port", "99999"], "--pose-port is 99999; expected 1 to 65535, or 0 for none"),
        (["emulate", "--seconds", "-1"], "--seconds is -1; expected > 0"),
        (["replay", "none.jsonl", "--to", "-5"], "--to is -5; expected a time > 0 [s]"),
    ],
)
def test_wrong_options_are_one_clear_line(arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as told:
        main(arguments)
    assert message in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "words", [["run", "cc", "--config", "configs/hardware/sts3215.yaml"], ["camera", "configs/hardware/camera.yaml"]]
)
def test_a_library_that_is_not_there_is_one_line(words: list[str]) -> None:
    process = launch(*words, board=True)
    with ending(process):
        out = read_all(process)
    assert process.returncode == 2
    assert out == f"error: {words[0]} needs PyYAML for this, which is not installed: pip install PyYAML\n"


def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        with pytest.raises(SystemExit, match="0"):
            main([name, "--help"])
        assert COMMANDS[name].split(":")[0] in " ".join(capsys.readouterr().out.split())


# --- run and log -----------------------------------------------------------------------------------------------------


def test_a_run_in_memory_reaches_its_targets_and_is_logged_and_one_that_does_not_come_up_is_not(
    tmp_path: Path, latch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "logs" / "run.jsonl"
    arguments = ["run", "cc", "--targets", "-.05,0", "0.3,0", "--set", "course.radius_m=0.3", "--time", "20"]
    arguments += ["--latch", latch, "--plain"]
    assert main([*arguments, "--log", str(log)]) == 0
    out = capsys.readouterr().out
    assert "all targets reached" in out and "2 of 2 targets" in out
    record = read_record(log)
    assert record.start["config"]["course"]["targets"] == [[-0.05, 0.0], [0.3, 0.0]]
    assert record.end is not None and record.end["reason"] == "all targets reached"
    assert (record.end["missed_cycles"], record.end["targets_reached"]) == (0, 2)
    assert record.step_s.size >= 2
    EmergencyStop(Path(latch)).trip("before")
    assert main([*arguments, "--log", str(log.with_name("second.jsonl"))]) == 1
    _, *lines = capsys.readouterr().out.splitlines()  # the first one names the robot
    assert len(lines) == 1 and "is tripped: before" in lines[0]
    assert f"clear it with estop --clear --latch {latch}" in lines[0]
    assert [path.name for path in log.parent.iterdir()] == ["run.jsonl"]


def test_a_run_that_may_leave_torque_on_ends_with_code_1(
    port: EmulatedPort, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def dies() -> None:
        wait_until(lambda: torque_on(port))
        port.bus.servo(3).dead = True

    with ThreadPoolExecutor(1) as pool:
        dead = pool.submit(dies)
        assert main(["run", "cc", *settings(tmp_path, port), "--time", "2", "--log", "none"]) == 1
        dead.result()
    assert "use the hardware stop" in capsys.readouterr().out
    port.bus.servo(3).dead = False
    wait_until(lambda: not torque_on(port))


def test_a_log_is_not_overwritten(port: EmulatedPort, tmp_path: Path, latch: str) -> None:
    for name in ("whole.jsonl", "cut.jsonl.partial"):
        (tmp_path / name).write_text("kept")
        log = str(tmp_path / name.removesuffix(".partial"))
        with pytest.raises(ConfigError, match=rf"{name} exists already"):
            main(["run", "cc", "--time", "1", "--log", log, "--latch", latch])
        with pytest.raises(ConfigError, match=rf"{name} exists already"):
            main(["log", *settings(tmp_path, port), "--log", log])
        assert (tmp_path / name).read_text() == "kept"


def test_servos_of_another_baud_rate_are_looked_for_with_scan(
    port: EmulatedPort, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--baud", "500000", "--log", "none", "--targets", "1,0"]
    assert main(["run", "cc", *settings(tmp_path, port), *arguments]) == 1
    assert "no servo answers at this baud rate; look at power and cable, and" in capsys.readouterr().out


def test_log_drives_on_past_the_targets_of_its_settings(tmp_path: Path, latch: str) -> None:
    log, near = tmp_path / "run.jsonl", tmp_path / "near.yaml"
    near.write_text("course: {targets: [[0.05, 0.0]], radius_m: 0.5}\n")
    arguments = ["--controller", "cc", "--seconds", "1", "--latch", latch, "--plain"]
    assert main(["log", "--config", str(near), "--log", str(log), *arguments]) == 0
    end = read_record(log).end
    assert end is not None and end["reason"] == "the time is over"


def first_line(stream: IO[str] | None, start: str) -> str:
    assert stream is not None
    seen = []
    for line in stream:
        seen.append(line)
        if line.strip().startswith(start):
            return line
    raise AssertionError("".join(seen))


@pytest.mark.parametrize("has_latch", [True, False])
def test_a_key_stops_the_robot_at_once(port: EmulatedPort, tmp_path: Path, has_latch: bool) -> None:
    folder, log = tmp_path / "latch", tmp_path / "run.jsonl"
    folder.mkdir()
    arguments = [*settings(tmp_path, port), "--targets", "9,0", "--log", str(log), "--latch", str(folder / "estop")]
    process = launch("run", "sjc", *arguments)
    with ending(process):
        first_line(process.stdout, "0.")  # the first step of the run
        assert torque_on(port)
        wait_until(lambda: read_record(log).cycle_s.size > 10)
        if has_latch:
            press(process, "x")
            time.sleep(0.1)
            assert torque_on(port), "only space and q stop it"
        else:  # the latch cannot be written any more
            folder.rmdir()
        press(process, "q")
        wait_until(lambda: not torque_on(port))
        out = read_all(process)
    assert process.returncode == 1
    assert "emergency stop: a key was pressed" in out
    record = read_record(log)
    assert record.end is not None and "a key was pressed" in record.end["reason"]
    assert EmergencyStop(folder / "estop").tripped == has_latch
    assert record.cycle_s.size > 10


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_or_killed_goes_limp_and_leaves_its_log(
    port: EmulatedPort, tmp_path: Path, number: signal.Signals
) -> None:
    log = tmp_path / "run.jsonl"
    process = launch("run", "cc", *settings(tmp_path, port), "--targets", "9,0", "--log", str(log))
    with ending(process):
        first_line(process.stdout, "0.")
        process.send_signal(number)
        wait_until(lambda: not torque_on(port))
        process.communicate(timeout=20)
    record = read_record(log)
    assert (record.end is not None) == (number == signal.SIGTERM)
    assert record.step_s.size >= 1
    wait_until(lambda: is_free(port))  # the guard has given it back


def test_run_needs_numpy_and_pyserial_only(port: EmulatedPort, tmp_path: Path) -> None:
    assert {"rich", "yaml", "gymnasium", "scipy"} <= set(ABSENT)
    policy, log = "agents/pretrained/resilient_servo_locked_joints", tmp_path / "run.jsonl"
    for _ in range(5):  # on a busy machine servos of this process miss their turn
        log.unlink(missing_ok=True)
        EmergencyStop(tmp_path / "estop").clear()
        arguments = ["--targets", "9,0", "--time", "0.4", "--log", str(log)]
        process = launch("run", policy, *settings(tmp_path, port, board=True), *arguments, board=True)
        out = read_all(process)
        assert not torque_on(port)
        if process.returncode == 0:
            break
    assert process.returncode == 0, out
    assert "the time is over" in out
    assert 1 <= read_record(log).step_s.size <= 2


def test_log_reads_limp_servos_without_moving_them(port: EmulatedPort, tmp_path: Path) -> None:
    with port.bus.lock:
        port.bus.plant._angle[2] = 0.5  # type: ignore[attr-defined]
    options = [one for one in settings(tmp_path, port) if one != "--plain"]
    for attempt in range(20):  # on a busy machine servos of this process miss their turn
        log = tmp_path / f"limp{attempt}.jsonl"
        assert main(["log", *options, "--seconds", "0.5", "--log", str(log)]) == 0
        record = read_record(log)
        angle = record.joint_angle[:, 2][np.isfinite(record.joint_angle[:, 2])]
        if angle.size > 10:
            break
    assert record.is_limp
    np.testing.assert_allclose(angle, 0.5, atol=2e-3)
    assert angle.size > 10
    assert record.pose_valid.any()
    assert not torque_on(port)


def test_views_show_a_run_on_a_terminal_and_elsewhere() -> None:
    health = ServoHealth(
        np.array([True, False]), np.zeros(2, np.uint8), np.zeros(2), *(np.array([0.3, np.nan]) for _ in range(4))
    )
    lost = np.array([False, True])
    sample = BodySample(np.zeros(2), np.zeros(2), 1.0, 1.0, np.zeros(2), ~lost, lost, health)
    pose = PoseSample(np.array([0.1, 0.2]), 0.3, 1.0, False)
    step = StepRecord(np.zeros(1, np.float32), 0, False, False, None, np.zeros(2), sample, pose, 0, 0, 0, False, ())
    course = MeasuredCourse(CourseConfig(((1.0, 0.0), (2.0, 0.0)), tracked_point="head"), RESILIENT_SERVO)
    course.begin(Measurement(np.zeros((1, 9)), np.zeros((1, 9)), np.array([[0.3, 0.0]]), np.zeros(1), np.ones(1, bool)))
    course.progress_m = 0.4
    timing = Timing(0.02)
    for stamp in (0.0, 0.02, 0.061):
        timing.cycle(stamp)
    timing.step(0.117)
    assert timing.n_missed == 1
    assert timing.worst_s == pytest.approx(0.021)
    plain, table, told = io.StringIO(), io.StringIO(), io.StringIO()
    table.isatty = told.isatty = lambda: True  # type: ignore[method-assign]
    make_view("title", told, plain=True)
    assert told.getvalue() == "title\n"
    view = make_view("robot", plain)
    for time_s in (1.0, 1.1):
        view.show(time_s, step, course, timing)
    assert len(plain.getvalue().splitlines()) == 2  # the title, one line a second
    assert "lost 2" in plain.getvalue() and "no pose" in plain.getvalue()
    assert "head x +0.10 y +0.20 m" in plain.getvalue() and "target 1/2, 0.70 m away" in plain.getvalue()
    drawn = make_view("[robot]", table)
    drawn.say("joint 2 is lost")
    drawn.show(1.0, step, course, timing)
    drawn.close()
    texts = ["[robot]", "[deg]", "clamped", "lost", "NO POSE", "joint 2 is lost", "progress 0.40 m", "1 missed"]
    texts += ["head x +0.10", "(1.00, 0.00) m, 0.70 m away", "latest policy step began 117 ms late"]
    shown = " ".join(table.getvalue().split())  # a narrow terminal folds lines
    for text in texts:
        assert text in shown
