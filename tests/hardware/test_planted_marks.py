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

from snake_gym.hardware import torque_mark
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.emergency_stop import EmergencyStop
from snake_gym.hardware.torque_mark import seen_marks

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
        monkeypatch.setattr(torque_mark, "FOLDER", folder)
        monkeypatch.setattr("snake_gym.hardware.emergency_stop.default_latch", lambda: folder / "usual")
        yield folder


@contextmanager
def stranger(path: Path, latch: Path, pid: int = 0) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", STRANGER, str(path), str(latch), str(pid)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "there\n"
            yield process
        finally:
            process.kill()


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
        assert seen_marks() == []
        assert main(["estop", "--wait", "0"]) == 0
        assert robot.poll() is None
    assert not (tmp_path / "of-root").exists()
    assert "nothing was moving" in capsys.readouterr().out


@AS_ROOT
def test_whoever_may_not_stop_another_user_s_robot_says_so(shared: Path) -> None:
    program = "import os, sys; from pathlib import Path; from snake_gym.hardware import torque_mark, emergency_stop\n"
    program += "from snake_gym.hardware.commands import estop; from snake_gym.hardware.__main__ import main\n"
    program += "folder = Path(sys.argv[1]); torque_mark.FOLDER = folder\n"
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


def test_what_is_no_plain_file_is_passed_by(shared: Path, tmp_path: Path) -> None:
    told = json.dumps({"pid": os.getpid(), "what": "run", "latch": str(tmp_path / "estop")})
    (tmp_path / "elsewhere").write_text(told)
    os.mkfifo(shared / "snake_gym-torque-fifo.json")
    (shared / "snake_gym-torque-folder.json").mkdir()
    (shared / "snake_gym-torque-link.json").symlink_to(tmp_path / "elsewhere")
    (shared / "snake_gym-torque-escape.json").write_text(told.replace("run", "\\u001b[2J"))
    (shared / "snake_gym-torque-pid.json").write_text(told.replace(f"{os.getpid()}", "-1"))
    assert seen_marks() == []


def test_a_mark_is_where_nobody_can_wait_for_it(shared: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    for number in range(200):  # names that a process of this number might choose
        (shared / f"snake_gym-torque-{os.getpid()}-{number}.draft").symlink_to(victim)
    stops = [EmergencyStop(tmp_path / f"estop{k}") for k in range(3)]
    for stop in stops:
        stop.hold("run")
    assert victim.read_text() == "kept"
    assert sorted(mark.latch for mark in seen_marks()) == [stop.latch for stop in stops]
    names = [mark.path.name for mark in seen_marks()]
    assert not any(str(os.getpid()) in name for name in names), names
    for mark in seen_marks():
        assert stat.S_IMODE(mark.path.stat().st_mode) == 0o644
    for stop in stops:
        stop.release()
    assert seen_marks() == []


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
