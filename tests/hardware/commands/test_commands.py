"""The commands as a user gives them, on emulated robots behind real serial devices."""

from __future__ import annotations

import math
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from snake_gym.config import ConfigError, OptionParser, dump_yaml
from snake_gym.emulator.bus import EmulatedServo
from snake_gym.emulator.port import EmulatedPort
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.bus.transport import PortGone, SerialTransport
from snake_gym.hardware.calibration.calibration import load_calibration
from snake_gym.hardware.commands.options import add_settings, read_settings
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.guard.servo_body import ServoBody
from snake_gym.hardware.robot.record import read_record
from snake_gym.hardware.robot.run_config import RunConfig
from tests.hardware.programs import ROOT, answering, first_line, launch, press, repeated, settings
from tests.hardware.rig import ending, serve, torque_on, wait_until


def is_free(port: EmulatedPort) -> bool:
    """Whether nobody has the port open."""
    try:
        SerialTransport(port.port, 1_000_000).close()
    except PortGone:
        return False
    return True


# --- scan, wiggle, calibrate -----------------------------------------------------------------------------------------


def test_scan_lists_who_is_there_and_gives_new_ids_and_rates(
    port: EmulatedPort, capsys: pytest.CaptureFixture[str]
) -> None:
    with port.bus.lock:
        port.bus.servos[3].memory.set("id", 77)
    words = ["scan", "--port", port.port]
    code, lines = repeated([*words, "--ids", "1-10,77"], capsys, 10)
    assert code == 0 and [int(line.split()[0]) for line in lines[1:]] == [1, 2, 3, 5, 6, 7, 8, 9, 77]
    assert "STS3215" in lines[1] and "12.0 V" in lines[1]
    assert main([*words, "--ids", "1-3,7", "--baud", "500000"]) == 1
    told = capsys.readouterr().out
    assert f"nobody of 1-3,7 answers on {port.port} at 500000 baud" in told and "try --all-bauds" in told
    assert main([*words, "--change-id", "77", "4"]) == 0
    with pytest.raises(ConfigError, match="id 5 is taken"):
        main([*words, "--change-id", "4", "5"])
    for _ in range(20):  # servos of this process may miss their turn on a busy machine
        try:
            main([*words, "--ids", "4", "--change-baud", "500000"])
            break
        except ConfigError:
            continue
    with port.bus.lock:
        assert (port.bus.servos[3].id, port.bus.servos[3].baud) == (4, 500_000)


def test_calibrate_asks_and_writes_what_run_reads(
    tmp_path: Path, latch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    servos = [EmulatedServo(5, zero_steps=1200, direction=-1), EmulatedServo(2, zero_steps=4000)]
    with serve(servos) as port, answering("\nwhat?\nl\nr\n"):
        out = tmp_path / "snake.json"
        words = ["--ids", "5,2", "--limit", "60", "--out", str(out), "--latch", latch]
        assert main(["calibrate", "--port", port.port, *words]) == 0
        found = load_calibration(out)
        assert found.ids == (5, 2)
        assert found.direction.tolist() == [-1, 1]
        assert found.zero_steps.tolist() == [1200, 2048]
        np.testing.assert_allclose(found.high_rad, math.radians(60.0))
        assert "middle of its range" in capsys.readouterr().out
        assert not any(torque_on(port))
        with pytest.raises(ConfigError, match="which exists"):
            main(["calibrate", "--port", port.port, *words])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["scan", "--port", "/dev/none"], "cannot open /dev/none"),
        (["wiggle", "--port", "x", "--ids", "1-"], "ids are '1-'"),
        (["wiggle", "--port", "x", "--ids", "1", "--degrees", "90"], "--degrees: 90 is not in range; expected 1 to 30"),
        (["estop", "--wait", "-1"], "--wait is -1"),
        (["calibrate", "--port", "x", "--ids", "1", "--out", "/none/snake.json"], "there is no folder /none"),
        (["run", "cc", "--targets", "1;2"], "expected X,Y"),
        (["replay", "none.jsonl", "--identify", "x.json"], "ends in .yaml"),
        (["camera", "configs/hardware/camera.yaml", "--file", "none.mp4"], "camera none.mp4: it cannot be opened"),
        (["emulate", "--port", "/tmp/snake-bus"], "named by --link"),
        (["emulate", "--link", "/proc/none"], "the link /proc/none cannot be made"),
        (["emulate", "--mounting", "-1"], "--mounting is -1; expected a seed >= 0"),
        (["register", "write", "id", "3", "--port", "x", "--id", "1"], "scan --change-id"),
        (["register", "write", "goal_position", "9", "--port", "x", "--id", "1"], "wiggle"),
        (["register", "write", "torque_enable", "1", "--port", "x", "--id", "1"], "limp"),
        (["register", "read", "max_torque", "4", "--port", "x", "--id", "1"], "expected read NAME"),
    ],
)
def test_wrong_options_are_one_clear_line_before_a_port_is_opened(arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as told:
        main(arguments)
    assert message in str(told.value)
    assert "\n" not in str(told.value)


# --- run -------------------------------------------------------------------------------------------------------------


def test_a_run_in_memory_reaches_its_targets_and_is_logged_and_one_that_does_not_come_up_is_not(
    tmp_path: Path, latch: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def close_late(body: ServoBody, close: Callable[[ServoBody], None] = ServoBody.close) -> None:
        if body.watch is not None:
            body.watch(body.sample()._replace(cycle_s=1e6))  # a farewell of many missed cycles
        close(body)

    monkeypatch.setattr(ServoBody, "close", close_late)
    log = tmp_path / "logs" / "run.jsonl"
    arguments = ["run", "cc", "--targets", "-.05,0", "0.3,0", "--set", "course.radius_m=0.3", "--time", "20"]
    arguments += ["--latch", latch]
    assert main([*arguments, "--log", str(log)]) == 0
    out, err = capsys.readouterr()
    assert "all targets reached" in out and "2 of 2 targets" in out and "without --config" not in err
    record = read_record(log)
    assert record.start["config"]["course"]["targets"] == [[-0.05, 0.0], [0.3, 0.0]]
    assert record.end is not None and record.end["reason"] == "all targets reached"
    assert (record.end["missed_cycles"], record.end["targets_reached"]) == (0, 2)
    EmergencyStop(Path(latch)).trip("before")
    assert main([*arguments, "--log", str(log.with_name("second.jsonl"))]) == 1
    _, *lines = capsys.readouterr().out.splitlines()  # the first one names the robot
    assert len(lines) == 1 and "is tripped: before" in lines[0]
    assert f"clear it with estop --clear --latch {latch}" in lines[0]
    assert [path.name for path in log.parent.iterdir()] == ["run.jsonl"]
    for taken in (log, log.with_name("cut.jsonl.partial")):  # neither a log nor the rest of one is overwritten
        taken.touch()
        with pytest.raises(ConfigError, match=rf"{taken.name} exists already"):
            main([*arguments, "--log", str(taken).removesuffix(".partial")])


def test_options_lie_over_the_file_and_set_over_both_and_a_device_alone_is_driven_carefully(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def read(*words: str) -> RunConfig:
        parser = OptionParser()
        add_settings(parser)
        return read_settings(parser.parse_args(words))

    dump_yaml({"connection": {"port": "/dev/file", "baud": 500_000}, "robot": "snakesys"}, tmp_path / "mine.yaml")
    config = read("--config", str(tmp_path / "mine.yaml"), "--port", "/dev/option", "--set", "robot=muscle")
    assert (config.connection.port, config.connection.baud, config.robot) == ("/dev/option", 500_000, "muscle")
    assert config.safety.torque_limit == 1.0 and capsys.readouterr().err == ""
    alone = read("--port", "/dev/option", "--set", "safety.max_speed_rad_s=2").safety
    assert (alone.torque_limit, alone.max_speed_rad_s) == (0.5, 2.0)
    assert "safety.torque_limit 0.5 (of stall), safety.max_speed_rad_s 2" in capsys.readouterr().err


def test_a_run_that_may_leave_torque_on_ends_with_code_1(
    port: EmulatedPort, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "cc", *settings(tmp_path, port), "--time", "1", "--log", "none"]
    assert main([*words, "--baud", "500000"]) == 1
    assert "no servo answers at this baud rate; look at power and cable, and" in capsys.readouterr().out

    def dies() -> None:
        wait_until(lambda: any(torque_on(port)))
        port.bus.servo(3).dead = True

    with ThreadPoolExecutor(1) as pool:
        dead = pool.submit(dies)
        assert main(words) == 1
        dead.result()
    assert "use the hardware stop" in capsys.readouterr().out
    port.bus.servo(3).dead = False
    wait_until(lambda: not any(torque_on(port)))


@pytest.mark.parametrize("has_latch", [True, False])
def test_a_key_stops_the_robot_at_once(port: EmulatedPort, tmp_path: Path, has_latch: bool) -> None:
    folder, log = tmp_path / "latch", tmp_path / "run.jsonl"
    folder.mkdir()
    arguments = [*settings(tmp_path, port), "--targets", "9,0", "--log", str(log), "--latch", str(folder / "estop")]
    process = launch("run", "sjc", *arguments)
    with ending(process):
        first_line(process.stdout, "0.")  # the first step of the run
        assert any(torque_on(port))
        wait_until(lambda: read_record(log).cycle_s.size > 10)
        if has_latch:
            press(process, "x")
            time.sleep(0.1)
            assert any(torque_on(port)), "only space and q stop it"
        else:  # the latch cannot be written any more
            folder.rmdir()
        press(process, "q")
        wait_until(lambda: not any(torque_on(port)))
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "emergency stop: a key was pressed" in out
    record = read_record(log)
    assert record.end is not None and "a key was pressed" in record.end["reason"]
    assert EmergencyStop(folder / "estop").tripped == has_latch


def test_a_run_that_is_ended_goes_limp_and_leaves_its_log(port: EmulatedPort, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    process = launch("run", "cc", *settings(tmp_path, port), "--targets", "9,0", "--log", str(log))
    with ending(process):
        first_line(process.stdout, "0.")
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: not any(torque_on(port)))
        process.communicate(timeout=20)
    record = read_record(log)
    assert record.end is not None and record.pose_s.size > 1
    wait_until(lambda: is_free(port))  # the guard has given it back


def test_a_run_whose_terminal_is_closed_goes_limp_and_leaves_its_log(port: EmulatedPort, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    ours, theirs = pty.openpty()
    words = ["run", "cc", *settings(tmp_path, port), "--targets", "9,0", "--log", str(log)]
    process = subprocess.Popen(
        [sys.executable, "-m", "snake_gym.hardware", *words], cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    with ending(process):
        wait_until(lambda: b"progress" in os.read(ours, 4096))
        os.close(ours)
        process.wait(timeout=20)
    assert not any(torque_on(port))
    assert read_record(log).end is not None
