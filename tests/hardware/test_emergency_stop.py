"""The latch: across processes, and where the file system fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from snake_gym.hardware.emergency_stop import EmergencyStop, default_latch


def test_the_stop_is_latched_across_processes_and_keeps_its_first_reason(tmp_path: Path) -> None:
    one, other = EmergencyStop(tmp_path / "estop"), EmergencyStop(tmp_path / "estop")
    assert not one.tripped
    one.trip("joint 1 is too hot")
    other.trip("somebody else")
    assert other.tripped
    assert other.reason.startswith("joint 1 is too hot (")
    assert other.clear()
    assert not one.tripped
    assert not one.clear()


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


def test_a_trial_of_the_latch_leaves_nothing_behind(tmp_path: Path) -> None:
    assert EmergencyStop(tmp_path / "estop").writable()
    assert os.listdir(tmp_path) == []


def test_the_latch_is_the_same_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    before = default_latch()
    for name in ("XDG_RUNTIME_DIR", "TMPDIR", "HOME", "USER"):
        monkeypatch.setenv(name, "/elsewhere")
    assert default_latch() == before
