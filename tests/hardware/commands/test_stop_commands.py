"""Everything that stops what the commands move: ``estop``, keys, signals; on emulated servos behind a serial device."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from snake_gym.config import ConfigError
from snake_gym.emulator.port import EmulatedPort
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.bus.bus import BusPort
from snake_gym.hardware.commands import calibrate
from snake_gym.hardware.guard import emergency_stop
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.robot.key_watch import KeyWatch
from tests.hardware.programs import ROOT, first_line, launch, press
from tests.hardware.rig import Bench, ending, torque_on, wait_until


def wiggle(port: EmulatedPort, latch: str) -> subprocess.Popen[str]:
    """A long wiggle that has begun."""
    process = launch("wiggle", "--port", port.port, "--ids", "1-2", "--degrees", "30", "--latch", latch)
    wait_until(lambda: any(torque_on(port)))
    return process


def stop_by(how: str, process: subprocess.Popen[str], port: EmulatedPort, latch: str) -> int:
    """Stop a command; the exit code to expect."""
    if how == "estop":
        assert main(["estop", "--latch", latch]) == 0
        assert not any(torque_on(port))
    elif not how.startswith("SIG"):
        press(process, how)
    else:
        process.send_signal(getattr(signal, how))
        process.send_signal(getattr(signal, how))  # somebody who is in a hurry
    return 130 if how.startswith("SIG") else 1


@pytest.mark.parametrize("how", ["SIGINT", " ", "estop"])
def test_a_wiggle_is_stopped_with_the_torque_off(
    port: EmulatedPort, latch: str, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    process = wiggle(port, latch)
    with ending(process):
        code = stop_by(how, process, port, latch)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == code, out
    assert not any(torque_on(port))
    assert emergency_stop.find_locks(Path(latch)) == []
    assert EmergencyStop(Path(latch)).tripped == (code == 1)
    if how == " ":
        assert "a key was pressed" in out
    if how == "estop":
        servos = [line for line in out.splitlines() if line.startswith("servo ")]
        assert servos and "stopped: emergency stop: the command estop" in servos[-1]
        assert len(servos) == 1 or "servos 1 do not answer" in servos[0], "on a busy machine"
        assert re.search(r"wiggle \(process \d+\): torque is off in all servos", capsys.readouterr().out)
        for where, message in ((latch, "clear it with estop --clear"), (f"{latch}/none/estop", "cannot be written")):
            with pytest.raises(ConfigError, match=message):
                main(["wiggle", "--port", port.port, "--ids", "1", "--latch", where])


@pytest.mark.parametrize("how", ["estop", pytest.param("SIGTERM", marks=pytest.mark.slow), "q\n", "key"])
def test_a_calibration_that_waits_for_an_answer_or_moves_a_joint_is_stopped(
    port: EmulatedPort, latch: str, how: str
) -> None:
    """``key``: on a terminal, while the joint is on its way; else the joint holds its wiggle."""
    ours, theirs = pty.openpty()
    out_file = Path(latch).parent / "out.json"
    command = [sys.executable, "-m", "tests.hardware.patient", "snake_gym.hardware"]
    command += ["calibrate", "--port", port.port, "--ids", "1-2", "--degrees", "30" if how == "key" else "5"]
    process = subprocess.Popen(
        [*command, "--limit", "60", "--latch", latch, "--out", str(out_file)], cwd=ROOT, text=True,
        stdin=theirs if how == "key" else subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    with ending(process):
        if how == "key":
            os.write(ours, b"\n")
            wait_until(lambda: any(torque_on(port)))
            os.write(ours, b"q")
            code = 1
        else:
            press(process, "\n")
            first_line(process.stdout, "Lay the robot straight; the servos are limp. Then press Enter: joint 1")
            assert any(torque_on(port))
            code = stop_by(how, process, port, latch)
        wait_until(lambda: not any(torque_on(port)))
        out, _ = process.communicate(timeout=30)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == code, out
    assert ("a key was pressed" in out) == (how in ("q\n", "key"))
    assert not out_file.exists()


# --- estop and whom it stops -----------------------------------------------------------------------------------------


def test_estop_trips_clears_and_says_that_nothing_was_moving(
    latch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(emergency_stop, "FOLDER", tmp_path)
    assert main(["estop", "--latch", latch]) == 0
    out = capsys.readouterr().out
    assert "nothing was moving" in out and "tripped: the command estop" in out
    assert EmergencyStop(Path(latch)).tripped
    assert main(["estop", "--clear", "--latch", latch]) == 0
    assert not EmergencyStop(Path(latch)).tripped
    assert main(["estop", "--latch", str(tmp_path / "none" / "estop")]) == 1
    assert "NOT tripped" in capsys.readouterr().out
    lock = {"pid": 1, "what": "run", "latch": "/second_robot", "servos": {}}
    (tmp_path / "bus.json").write_text(json.dumps(lock))  # of a process that died with the torque on
    assert main(["estop", "--clear", "--latch", str(tmp_path / "third_robot")]) == 0
    assert [one.alive for one in emergency_stop.find_locks()] == [False]
    assert main(["estop", "--clear"]) == 0
    assert emergency_stop.find_locks() == []


def test_estop_stops_every_robot_and_waits_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(emergency_stop, "FOLDER", tmp_path)
    one, other = EmergencyStop(), EmergencyStop(tmp_path / "second_robot")
    ports = {name: BusPort(str(tmp_path / name)).to_dict() | {"ids": [1]} for name in ("one", "other")}
    one.hold("run", ports["one"])
    other.hold("run", ports["other"])

    def obey() -> None:
        wait_until(lambda: one.tripped and other.tripped)
        time.sleep(0.1)
        one.release()
        other.release()

    robot = threading.Thread(target=obey)
    robot.start()
    assert main(["estop", "--wait", "20"]) == 0
    robot.join()
    took_ms = re.findall(r"torque is off in all servos, after (\d+) ms", capsys.readouterr().out)
    assert len(took_ms) == 2 and min(map(int, took_ms)) >= 100
    one.clear()
    other.hold("run", ports["other"])
    assert main(["estop", "--wait", "0.1"]) == 1
    assert "has not said within 0.1 s that the torque is off: USE THE HARDWARE STOP" in capsys.readouterr().out
    other.release()


# --- parts -----------------------------------------------------------------------------------------------------------


def test_a_question_about_a_joint_that_holds_torque_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "HOLD_S", 0.1)
    ours, theirs = os.pipe()
    stop = EmergencyStop(tmp_path / "estop")
    with os.fdopen(ours), os.fdopen(theirs, "wb"), KeyWatch(stop, ours) as keys:
        assert calibrate.Person(Bench([1]).driver, keys).look(1, 1) is None


def test_stop_keys_stop_at_once_and_others_are_answers(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    stop = EmergencyStop(tmp_path / "estop")
    try:
        with KeyWatch(stop, theirs) as keys:
            os.write(ours, b"xx")
            assert keys.next(5.0) == "x"
            wait_until(lambda: not keys._keys.empty())
            keys.forget()
            os.write(ours, b"r\n")
            assert [keys.next(5.0), keys.next(5.0), keys.next(0.0)] == ["r", "\n", None]
            assert not stop.tripped
            os.write(ours, b"q")
            wait_until(lambda: stop.tripped)
    finally:
        os.close(ours)
        os.close(theirs)
