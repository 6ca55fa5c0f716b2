"""Logs of runs: what is written is read back, whole or cut off anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from snake_gym.config import ConfigError
from snake_gym.hardware.calibration.calibration import straight_chain
from snake_gym.hardware.guard.body import BodySample
from snake_gym.hardware.guard.checks import ServoHealth
from snake_gym.hardware.pose.source import PoseSample
from snake_gym.hardware.robot.record import PARTIAL, RecordWriter, read_record
from snake_gym.hardware.robot.robot_loop import StepRecord
from snake_gym.robot.presets import RESILIENT_SERVO

N = 9


def sample(stamp_s: float, silent: int | None = None) -> BodySample:
    angle = 0.1 * np.arange(N) + stamp_s
    answered = np.ones(N, bool)
    load = np.full(N, 0.25)
    if silent is not None:
        answered[silent] = False
        load[silent] = np.nan
    health = ServoHealth(
        answered, np.zeros(N, np.uint8), np.zeros(N), load, np.full(N, 30.0), np.full(N, 12.0), np.full(N, 0.5)
    )
    return BodySample(angle, np.ones(N), stamp_s, stamp_s, angle + 0.01, np.zeros(N, bool), ~answered, health)


def step(stamp_s: float, news: tuple[str, ...] = (), valid: bool = True) -> StepRecord:
    pose = PoseSample(np.array([stamp_s, 2.0]), 0.5, stamp_s - 0.01, valid)
    body = sample(stamp_s)
    nothing = np.zeros(3, np.float32)
    return StepRecord(nothing, 0.1, False, False, None, body.reference, body, pose, 0.0, 0.0, 0.001, False, news)


def write(path: Path, n: int = 5, close: bool = True) -> RecordWriter:
    writer = RecordWriter(path, RESILIENT_SERVO, straight_chain(range(1, 10), 1.5), {"policy": "test"})
    for k in range(n):
        stamp = 100.0 + 0.02 * k
        writer.cycle(sample(stamp, silent=3 if k == 2 else None))
        writer.step(step(stamp, ("joint 4 is lost",) if k == 2 else (), k != 1), stamp, np.ones(2), 0.1 * k)
    if close:
        writer.close("the time is over", {"progress_m": 1.0})
    return writer


def test_a_log_comes_back_as_arrays(tmp_path: Path) -> None:
    write(tmp_path / "runs" / "a.jsonl")
    record = read_record(tmp_path / "runs" / "a.jsonl")
    assert record.spec == RESILIENT_SERVO
    np.testing.assert_allclose(record.cycle_s, 0.02 * np.arange(5), atol=1e-9)
    np.testing.assert_allclose(record.joint_angle[0], sample(100.0).joint_angle, atol=1e-5)
    assert np.isnan(record.joint_angle[2, 3])
    assert np.isfinite(np.delete(record.joint_angle, 2, axis=0)).all()
    np.testing.assert_allclose(record.reference[1], sample(100.02).reference, atol=1e-5)
    np.testing.assert_allclose(record.pose_s, 0.02 * np.arange(5) - 0.01, atol=1e-9)
    assert record.pose_valid.tolist() == [True, False, True, True, True]
    np.testing.assert_allclose(record.xy_w[3], [100.06, 2.0])
    assert record.news == ("joint 4 is lost",)
    assert record.end is not None and record.end["reason"] == "the time is over"
    assert not (tmp_path / "runs" / ("a.jsonl" + PARTIAL)).exists()


def test_a_run_that_was_killed_leaves_a_log_up_to_its_last_step(tmp_path: Path) -> None:
    writer = write(tmp_path / "a.jsonl", close=False)
    partial = tmp_path / ("a.jsonl" + PARTIAL)
    assert not (tmp_path / "a.jsonl").exists()
    text = partial.read_text()
    whole = read_record(tmp_path / "a.jsonl")
    assert whole.cycle_s.size == 5
    assert whole.end is None
    for cut in range(len(text.splitlines()[0]) + 1, len(text), 97):
        partial.write_text(text[:cut])
        record = read_record(partial)
        assert record.cycle_s.size <= 5
        assert record.end is None
    writer.close("after all")


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("hello\nworld\n")
    (tmp_path / "json").write_text('{"kind": "start", "format": 99}\n')
    write(tmp_path / "a.jsonl")
    lines = (tmp_path / "a.jsonl").read_text().splitlines()
    (tmp_path / "hole").write_text("\n".join([lines[0], "{", *lines[1:]]))
    row = json.loads(lines[1])
    del row["angle"]
    (tmp_path / "less").write_text("\n".join([lines[0], json.dumps(row)]))
    (tmp_path / "one").write_text("hello")
    (tmp_path / "picture").write_bytes(b"\x89PNG\xff")
    (tmp_path / "list").write_text("[1]\n")
    no_log = [(name, "no log that run or log wrote") for name in ("other", "one", "picture", "list", "json")]
    others = [("hole", "line 2 is damaged"), ("less", "is damaged: KeyError"), ("none", "does not exist")]
    for name, message in no_log + others:
        with pytest.raises(ConfigError, match=message):
            read_record(tmp_path / name)
    with pytest.raises(ConfigError, match="cannot be written"):
        RecordWriter("/proc/none/a.jsonl", RESILIENT_SERVO, None, {})


def test_a_full_disk_does_not_stop_the_robot() -> None:
    writer = RecordWriter.__new__(RecordWriter)
    writer.path, writer._partial, writer.fault, writer._begun_s = Path("/dev/full"), Path("/dev/full"), "", None
    writer._file = open("/dev/full", "w", buffering=1)  # noqa: SIM115
    for k in range(3):
        writer.cycle(sample(float(k)))
        writer.flush()
    assert "not written any more" in writer.fault
    writer.close("done")
