"""Whatever moves servos and is killed by SIGKILL leaves no torque on."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from snake_gym.emulator.port import EmulatedPort
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.guard.emergency_stop import find_locks
from tests.hardware.programs import N, launch
from tests.hardware.rig import ending, torque_on, wait_until


def start(port: EmulatedPort, folder: Path) -> subprocess.Popen[str]:
    """A wiggle, as far as the first torque."""
    words = ["--port", port.port, "--ids", f"1-{N}", "--degrees", "30", "--latch", str(folder / "estop")]
    for _ in range(5):  # servos of this process may miss their turn on a busy machine
        process = launch("wiggle", *words, patient=True)
        wait_until(lambda one=process: any(torque_on(port)) or one.poll() is not None, 60.0)
        if process.poll() is None:
            return process
    raise AssertionError(process.communicate()[0])


def test_what_is_killed_leaves_no_torque_on(port: EmulatedPort, tmp_path: Path) -> None:
    process = start(port, tmp_path)
    process.send_signal(signal.SIGKILL)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGKILL, out
    wait_until(lambda: not find_locks(tmp_path / "estop"), 10.0)  # nobody talks any more
    assert not any(torque_on(port))


def test_a_wiggle_that_is_killed_while_the_port_is_away_is_switched_off_when_it_is_back(
    port: EmulatedPort, tmp_path: Path
) -> None:
    process = start(port, tmp_path)
    with ending(process):
        port.unplug()
    wait_until(lambda: [lock.alive for lock in find_locks(tmp_path / "estop")] == [True])  # somebody is in charge of it
    assert any(torque_on(port))
    port.plug()
    wait_until(lambda: not find_locks(tmp_path / "estop"))
    assert not any(torque_on(port))
    process.communicate(timeout=20)


def test_nobody_stays_behind_when_all_went_well(port: EmulatedPort, tmp_path: Path) -> None:
    words = ["wiggle", "--port", port.port, "--ids", "1", "--latch", str(tmp_path / "estop")]
    process = launch(*words, patient=True)
    watchers = lambda: [  # noqa: E731
        path for path in Path("/proc").glob("[0-9]*/cmdline") if port.port.encode() in _read(path)
    ]
    with ending(process):
        wait_until(lambda: len(watchers()) == 2 or process.poll() is not None)
        assert process.poll() is None
        out, _ = process.communicate(timeout=20)
        assert process.returncode == 0, out
        wait_until(lambda: not watchers())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_what_loses_the_process_that_waits_for_its_death_ends_with_the_torque_off(
    port: EmulatedPort, tmp_path: Path
) -> None:
    process = start(port, tmp_path)
    with ending(process):
        os.kill(watcher_of(process), signal.SIGKILL)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 1, out
    assert out.count("the process that would switch the torque off if this one dies has ended") == 1, out
    assert "Traceback" not in out
    assert not any(torque_on(port))
    assert not find_locks(tmp_path / "estop")
    assert not (tmp_path / "estop").exists(), "nothing has to be cleared"


def watcher_of(process: subprocess.Popen[str]) -> int:
    """The child of a command that waits for its death."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    (watcher,) = (one for one in children if b"torque_off" in _read(Path(f"/proc/{one}/cmdline")))
    return int(watcher)


def test_estop_ends_a_process_without_guard_that_hangs(
    port: EmulatedPort, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process = start(port, tmp_path)
    with ending(process):
        process.send_signal(signal.SIGSTOP)
        code = main(["estop", "--latch", str(tmp_path / "estop"), "--wait", "60"])
        out = capsys.readouterr().out
        assert f"(process {process.pid}) does not obey: it is ended" in out
        process.communicate(timeout=20)
        assert process.returncode == -signal.SIGKILL
    assert code == 0 and "torque is off in all servos" in out, out
    assert not any(torque_on(port))
    assert not find_locks(tmp_path / "estop")
