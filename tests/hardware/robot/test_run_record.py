"""Logs of runs: what is written is read back, whole or cut off anywhere."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from snake_gym.config import ConfigError, build
from snake_gym.hardware.calibration.calibration import straight_chain
from snake_gym.hardware.commands.run import drive
from snake_gym.hardware.guard.body import BodySample
from snake_gym.hardware.guard.checks import ServoHealth
from snake_gym.hardware.pose.source import PoseSample
from snake_gym.hardware.robot.record import PARTIAL, RecordWriter, read_record
from snake_gym.hardware.robot.robot_loop import StepRecord
from snake_gym.hardware.robot.run_config import RunConfig, plan_run
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
    return StepRecord(nothing, None, body.reference, body, pose, 0.0, 0.0, 0.001, False, news)


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
    assert np.argwhere(np.isnan(record.joint_angle)).tolist() == [[2, 3]]
    np.testing.assert_allclose(record.reference[1], sample(100.02).reference, atol=1e-5)
    np.testing.assert_allclose(record.pose_s, 0.02 * np.arange(5) - 0.01, atol=1e-9)
    assert record.pose_valid.tolist() == [True, False, True, True, True]
    np.testing.assert_allclose(record.xy_w[3], [100.06, 2.0])
    assert record.end is not None and record.end["reason"] == "the time is over"
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["a.jsonl"]


def test_a_run_that_was_killed_leaves_a_log_up_to_its_last_step(tmp_path: Path) -> None:
    writer = write(tmp_path / "a.jsonl", close=False)
    partial = tmp_path / ("a.jsonl" + PARTIAL)
    text = partial.read_text()
    whole = read_record(tmp_path / "a.jsonl")
    assert whole.cycle_s.size == 5 and whole.end is None
    for cut in range(len(text.splitlines()[0]) + 1, len(text), 97):
        partial.write_text(text[:cut])
        assert read_record(partial).cycle_s.size <= 5
    writer.close("after all", {})


def test_other_files_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl")
    lines = (tmp_path / "a.jsonl").read_bytes().splitlines()
    row = json.loads(lines[1])
    del row["angle"]
    files = {
        "text": b"hello\nworld\n", "empty": b"", "picture": b"\x89PNG\xff", "list": b"[1]\n",
        "other format": b'{"kind": "start", "format": 99}\n', "hole": b"\n".join([lines[0], b"{", *lines[1:]]),
        "less": b"\n".join([lines[0], json.dumps(row).encode()]),
    }  # fmt: skip
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ConfigError, match="is no log of format 2, or it is damaged"):
            read_record(tmp_path / name)
    with pytest.raises(ConfigError, match="No such file"):
        read_record(tmp_path / "none")
    with pytest.raises(ConfigError, match="cannot be written"):
        RecordWriter("/proc/none/a.jsonl", RESILIENT_SERVO, None, {})


def test_a_full_disk_does_not_stop_the_robot_and_is_said_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = build(RunConfig, {"policy": "cc", "time_limit_s": 2.0, "connection": {"latch": str(tmp_path / "latch")}})
    with pytest.MonkeyPatch.context() as patch:
        real_open = Path.open
        patch.setattr(Path, "open", lambda self, *how, **more: (
            open("/dev/full", "w") if self.name.endswith(PARTIAL) else real_open(self, *how, **more)  # noqa: SIM115
        ))  # fmt: skip
        assert drive(config, plan_run(config), str(tmp_path / "run.jsonl")) == 1
    said = capsys.readouterr()
    assert said.err.count("the log is not written any more: No space left") == 1
    assert "the time is over" in said.out


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_within_a_finaliser_which_python_ignores_ends_the_run(tmp_path: Path) -> None:
    class Dropped:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)

    def predict(observation: Any, carried: Any) -> Any:
        Dropped()
        return plan.policy.predict(observation, carried)

    config = build(RunConfig, {"policy": "cc", "time_limit_s": 5.0, "connection": {"latch": str(tmp_path / "latch")}})
    plan = plan_run(config)
    log = tmp_path / "run.jsonl"
    assert drive(config, plan._replace(policy=cast(Any, SimpleNamespace(predict=predict))), str(log)) == 130
    record = read_record(log)
    assert record.end is not None and record.end["reason"] == "interrupted"
