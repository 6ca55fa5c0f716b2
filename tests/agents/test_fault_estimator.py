"""Training of the fault estimator: the file plays what torch computes, and finished logs are not made again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from snake_gym.agents import fault_estimator

from snake_gym.benchmark.fault_logs import FaultLog
from snake_gym.config import ConfigError, build
from snake_gym.controllers.fault_window import n_features
from snake_gym.controllers.learned_detection import EstimatorFile, Network, read_estimator


def test_the_file_plays_what_the_learner_computes() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(4096, n_features(fault_estimator.N_SAMPLES))).astype(np.float32)
    label = 3 * (features[:, -3] > 0.0)  # the joint's place, which a mirrored robot shares: weak, with a share of 0.3
    data = fault_estimator.Windows(features, label, np.full(4096, 0.3, np.float32))
    network = fault_estimator.fit(data, 60, 0, fault_estimator.Console(quiet=True))
    with torch.no_grad():
        expected = network(torch.from_numpy(features)).numpy()
    assert (expected[:, :6].argmax(axis=1) == label).mean() > 0.9
    assert np.median(1.0 / (1.0 + np.exp(-expected[label == 3, 6]))) == pytest.approx(0.3, abs=0.1)
    file = build(EstimatorFile, fault_estimator.content(network, "here"))
    np.testing.assert_allclose(Network(file)(features[None].astype(np.float64))[0], expected, atol=1e-3)


def test_a_training_goes_on_with_the_logs_that_are_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    real = fault_estimator.record

    def record(**job: Any) -> FaultLog:
        made.append(job["seed"])
        if len(made) == 2:
            raise KeyboardInterrupt
        return real(**job)

    monkeypatch.setattr(fault_estimator, "record", record)
    robot = tmp_path / "robot.yaml"
    robot.write_text("preset: resilient_servo")
    monkeypatch.setattr(fault_estimator, "ROBOTS", (str(robot),))
    monkeypatch.setattr(fault_estimator, "LEVELS", (1.0,))
    out = tmp_path / "mine.json"
    small = ["--worlds", "4", "--seconds", "8", "--epochs", "1"]
    command = [*small, "--folder", str(tmp_path / "logs"), "--out", str(out)]
    with pytest.raises(KeyboardInterrupt):
        fault_estimator.main(command)
    assert not out.exists()
    fault_estimator.main(command)
    assert len(made) == 3  # the first log was kept
    assert read_estimator(str(out)).kinds == fault_estimator.NAMES
    robot.write_text("{preset: resilient_servo, n_links: 9}")
    fault_estimator.main(command)
    assert len(made) == 5  # those of the former robot are of no use


@pytest.mark.parametrize("words", [("--epochs", "0"), ("--worlds", "-1"), ("--seconds", "nan"), ("--seconds", "inf")])
def test_a_training_without_anything_to_learn_is_one_line(words: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"{words[0]} is {words[1]}; expected a number > 0"):
        fault_estimator.main([*words, "--folder", str(tmp_path / "logs"), "--out", str(tmp_path / "out.json")])
    assert not (tmp_path / "logs").exists()
