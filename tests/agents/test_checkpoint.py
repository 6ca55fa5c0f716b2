"""Checkpoints: whole policies, refused in one line if damaged or of other settings, and none of them runs code."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch

from snake_gym.config import ConfigError
from snake_gym.interface.policy_file import load_policy
from tests.agents.runs import checkpoints, run_to_end, small_config


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    run_to_end(small_config(total_steps=256, checkpoint={"every_steps": 128}), path)
    return path


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "run")


def refuse(message: str, run: Path, **changes: object) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        run_to_end(small_config(**changes), run)
    assert "\n" not in str(caught.value)


def test_a_checkpoint_holds_the_policy_as_it_was(run: Path) -> None:
    assert load_policy(checkpoints(run)[0]).contract.training["steps"] == 256


def test_a_damaged_checkpoint_is_refused_and_without_it_the_run_goes_on_from_the_one_before(run: Path) -> None:
    newest = checkpoints(run)[0]
    (newest / "state.pt").write_bytes((newest / "state.pt").read_bytes()[:-700])
    refuse(f"{newest} is no checkpoint of this version of snake_gym, or it is damaged", run)
    shutil.rmtree(newest)
    run_to_end(small_config(total_steps=384), run)
    assert checkpoints(run)[0].name == "step_000000000384"


def test_a_checkpoint_that_would_run_code_is_refused(run: Path, tmp_path: Path) -> None:
    class Touch:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "touched"),)

    torch.save(Touch(), checkpoints(run)[0] / "state.pt")
    refuse("Weights only load failed", run)
    assert not (tmp_path / "touched").exists()


def test_a_checkpoint_of_another_network_or_version_is_refused(run: Path) -> None:
    refuse(
        "does not fit the run's settings", run, algorithm={"name": "PPO", "n_steps": 8, "network": {"net_arch": [8]}}
    )
    torch.save({"format": "snake_gym checkpoint 4"}, checkpoints(run)[0] / "state.pt")
    refuse("no checkpoint of this version of snake_gym.*expected 'snake_gym checkpoint 5'", run)
