"""The latch: across processes, and where the file system fails."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from snake_gym.hardware.safety import emergency_stop
from snake_gym.hardware.safety.emergency_stop import EmergencyStop, default_latch, find_marks
from tests.hardware.rig import Rig, ending

ROOT = Path(__file__).parents[3]


def test_the_stop_is_latched_across_processes_and_keeps_its_first_reason(tmp_path: Path) -> None:
    one, other = EmergencyStop(tmp_path / "estop"), EmergencyStop(tmp_path / "estop")
    assert one.writable() and os.listdir(tmp_path) == [], "a trial of the latch leaves nothing behind"
    assert not one.tripped
    one.trip("joint 1 is too hot")
    other.trip("somebody else")
    assert other.tripped
    assert other.reason.startswith("joint 1 is too hot (")
    assert other.clear()
    assert not one.tripped
    assert not one.clear()


def test_a_latch_has_its_reason_from_the_first_moment_on(tmp_path: Path) -> None:
    """The first bytes that anybody can see are all of them, and a stop stands where they cannot be written."""
    stop, told = EmergencyStop(tmp_path / "estop"), []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            told.append(stop.reason)

    reader = threading.Thread(target=look)
    reader.start()
    try:
        for _ in range(300):
            assert EmergencyStop(stop.latch).trip("joint 1 is too hot")
            stop.clear()
    finally:
        done.set()
        reader.join()
    assert "tripped by hand" not in told
    assert os.listdir(tmp_path) == []


def test_a_stop_holds_on_a_disk_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", no_links)
    stop = EmergencyStop(tmp_path / "estop")
    assert stop.trip("joint 1 is too hot")
    assert stop.tripped and os.listdir(tmp_path) == ["estop"]


def test_a_stop_made_by_hand_holds(tmp_path: Path) -> None:
    stop = EmergencyStop(tmp_path / "estop")
    stop.latch.touch()
    assert stop.tripped
    assert stop.reason == "tripped by hand"
    stop.clear()
    stop.latch.symlink_to(tmp_path / "nowhere")
    assert stop.trip("again")
    assert stop.tripped


@pytest.mark.parametrize("missing", ["no_folder/estop", "a_file/estop"])
def test_a_latch_that_cannot_be_written_stays_tripped_in_its_object(tmp_path: Path, missing: str) -> None:
    (tmp_path / "a_file").touch()
    stop = EmergencyStop(tmp_path / missing)
    assert not stop.writable()
    assert not stop.tripped
    assert stop.reason == ""
    assert not stop.trip("joint 1 is too hot")
    assert stop.tripped
    assert stop.reason == "joint 1 is too hot"
    assert not stop.trip("another")
    assert stop.reason == "joint 1 is too hot"
    assert stop.clear()
    assert not stop.tripped


def test_a_latch_that_cannot_be_read_is_tripped(tmp_path: Path) -> None:
    (tmp_path / "estop").mkdir()
    stop = EmergencyStop(tmp_path / "estop")
    assert stop.tripped
    assert "cannot be read" in stop.reason
    assert stop.trip("again")
    loop = EmergencyStop(tmp_path / "loop" / "estop")
    (tmp_path / "loop").symlink_to("loop")
    assert loop.tripped
    assert "cannot be read" in loop.reason


def test_the_latch_is_the_same_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    before = default_latch()
    for name in ("XDG_RUNTIME_DIR", "TMPDIR", "HOME", "USER"):
        monkeypatch.setenv(name, "/elsewhere")
    assert default_latch() == before


def test_a_process_says_that_it_may_have_torque_on_until_it_has_not(tmp_path: Path) -> None:
    stop, other = EmergencyStop(tmp_path / "estop"), EmergencyStop(tmp_path / "other")
    stop.hold("run")
    stop.hold("run")
    other.hold("wiggle")
    (mark,) = find_marks(stop.latch)
    assert (mark.pid, mark.what, mark.latch, mark.alive) == (os.getpid(), "run", stop.latch, True)
    assert {one.latch for one in find_marks()} >= {stop.latch, other.latch}
    stop.release()
    stop.release()
    assert find_marks(stop.latch) == []
    assert len(find_marks(other.latch)) == 1
    other.release()


def test_the_mark_of_a_dead_process_tells_and_goes_with_the_next_run(tmp_path: Path) -> None:
    latch = tmp_path / "estop"
    program = (
        "import sys, time; from pathlib import Path; from snake_gym.hardware.safety.emergency_stop import EmergencyStop"
        "; stop = EmergencyStop(Path(sys.argv[1])); stop.hold('run'); print('on', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(latch)], cwd=ROOT, stdout=subprocess.PIPE)
    with process, ending(process):
        assert process.stdout is not None
        process.stdout.readline()
        (mark,) = find_marks(latch)
        assert (mark.pid, mark.alive) == (process.pid, True)
    (mark,) = find_marks(latch)
    assert not mark.alive
    stop = EmergencyStop(latch)
    stop.hold("run")
    (mark,) = find_marks(latch)
    assert (mark.pid, mark.alive) == (os.getpid(), True)
    stop.clear()
    assert find_marks(latch) == [mark]
    stop.release()


def test_a_mark_that_goes_away_while_it_is_read_is_of_no_dead_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = EmergencyStop(tmp_path / "estop")
    stop.hold("run")
    (mark,) = find_marks(stop.latch)
    is_locked = emergency_stop._is_locked

    def let_go_first(descriptor: int) -> bool:
        stop.release()
        return is_locked(descriptor)

    monkeypatch.setattr(emergency_stop, "_is_locked", let_go_first)
    assert emergency_stop.read_again(mark) is None


def test_a_mark_that_cannot_be_made_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emergency_stop, "FOLDER", tmp_path / "missing")
    stop = EmergencyStop(tmp_path / "estop")
    stop.hold("run")
    assert find_marks() == []
    stop.release()
    (tmp_path / "missing").mkdir()
    (tmp_path / "missing" / "snake_gym-torque-1-1.json").write_text("nonsense")
    assert find_marks() == []


def test_servos_on_a_virtual_clock_are_no_torque_that_a_person_could_meet(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.body.start()
    assert rig.torque_on() == [True] * 4
    assert find_marks(rig.stop.latch) == []
    rig.body.close()
