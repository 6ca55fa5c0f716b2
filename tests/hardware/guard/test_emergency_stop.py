"""The latch: across processes, and where the file system fails. The locks of ports: of living and dead processes."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from snake_gym.hardware.guard import emergency_stop
from snake_gym.hardware.guard.emergency_stop import EmergencyStop, find_locks
from tests.hardware.rig import ending

ROOT = Path(__file__).parents[3]


def servos(folder: Path, port: str = "bus") -> dict[str, Any]:
    """Servos of a port that there is not."""
    return {"device": str(folder / port), "baud": 1_000_000, "family": {}, "ids": [1, 2]}


def test_the_stop_is_latched_across_processes_and_keeps_its_first_reason(tmp_path: Path) -> None:
    one, other = EmergencyStop(tmp_path / "estop"), EmergencyStop(tmp_path / "estop")
    assert one.writable() and os.listdir(tmp_path) == [], "a trial of the latch leaves nothing behind"
    assert not one.tripped
    one.trip("joint 1 is too hot")
    other.trip("somebody else")
    assert other.tripped and other.reason.startswith("joint 1 is too hot (")
    assert other.clear() and not one.tripped and not one.clear()
    one.latch.write_text("[]")
    assert one.reason == "tripped by hand"
    one.clear()
    one.latch.symlink_to(tmp_path / "nowhere")
    assert one.trip("again") and one.tripped


def test_a_latch_has_its_reason_from_the_first_moment(tmp_path: Path) -> None:
    for k in range(100):
        stop = EmergencyStop(tmp_path / f"estop{k}")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(EmergencyStop(stop.latch).trip, "joint 1 is too hot")
            while not stop.tripped:
                pass
            assert stop.reason.startswith("joint 1 is too hot (")


def test_a_latch_that_cannot_be_written_stays_tripped_in_its_object_and_one_that_cannot_be_read_is_tripped(
    tmp_path: Path,
) -> None:
    stop = EmergencyStop(tmp_path / "no_folder" / "estop")
    assert not stop.writable() and not stop.tripped and stop.reason == ""
    assert not stop.trip("joint 1 is too hot") and not stop.trip("another")
    assert stop.tripped and stop.reason == "joint 1 is too hot"
    assert stop.clear() and not stop.tripped
    (tmp_path / "estop").mkdir()
    stop = EmergencyStop(tmp_path / "estop")
    assert stop.tripped and "cannot be read" in stop.reason and stop.trip("again")


def test_the_folder_is_the_user_s_and_the_same_whatever_the_environment_says() -> None:
    program = "from snake_gym.hardware.guard.emergency_stop import EmergencyStop; print(EmergencyStop().latch)"
    elsewhere = dict.fromkeys(("XDG_RUNTIME_DIR", "TMPDIR", "HOME", "USER"), "/elsewhere")
    command, env = [sys.executable, "-c", program], os.environ | elsewhere
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(EmergencyStop().latch)
    assert EmergencyStop().latch.parent.stat().st_mode & 0o777 == 0o700


def test_a_port_is_held_until_its_torque_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emergency_stop, "FOLDER", tmp_path / "user")
    stop, other = EmergencyStop(tmp_path / "estop"), EmergencyStop()
    stop.hold("run", servos(tmp_path))
    stop.hold("run", servos(tmp_path))
    other.hold("wiggle", servos(tmp_path, "other"))
    (lock,) = find_locks(stop.latch)
    assert (lock.pid, lock.what, lock.latch, lock.alive) == (os.getpid(), "run", stop.latch, True)
    assert lock.servos == servos(tmp_path)
    assert {one.latch for one in find_locks()} == {stop.latch, other.latch}
    stop.release()
    stop.release()
    assert [one.latch for one in find_locks()] == [other.latch]
    other.release()
    assert os.listdir(tmp_path / "user") == []


def test_the_lock_of_a_dead_process_stays_until_another_takes_the_port(tmp_path: Path) -> None:
    latch = tmp_path / "estop"
    program = (
        "import sys, time; from pathlib import Path; from snake_gym.hardware.guard.emergency_stop import EmergencyStop"
        "; stop = EmergencyStop(Path(sys.argv[1])); stop.hold('run', {'device': sys.argv[2]}); print('on', flush=True)"
        "; time.sleep(60)"
    )
    command = [sys.executable, "-c", program, str(latch), str(tmp_path / "bus")]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    with process, ending(process):
        assert process.stdout is not None
        process.stdout.readline()
        assert [(lock.pid, lock.alive) for lock in find_locks(latch)] == [(process.pid, True)]
    assert [lock.alive for lock in find_locks(latch)] == [False]
    stop, late = EmergencyStop(latch), EmergencyStop(latch)
    stop.hold("run", servos(tmp_path))
    late.hold("wiggle", servos(tmp_path))
    stop.release()
    (lock,) = find_locks(latch)
    assert (lock.what, lock.alive) == ("wiggle", True), "a process that has been replaced leaves its heir's lock"
    late.release()


def test_a_lock_that_cannot_be_made_or_read_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emergency_stop, "FOLDER", tmp_path / "user" / "missing")
    stop = EmergencyStop(tmp_path / "estop")
    stop.hold("run", servos(tmp_path))
    stop.release()
    (tmp_path / "user" / "missing").mkdir(parents=True)
    for name, content in {"list": "[]", "empty": "", "half": '{"pid": 1, "latch": "/x"}'}.items():
        (tmp_path / "user" / "missing" / f"{name}.json").write_text(content)
    assert find_locks() == []
