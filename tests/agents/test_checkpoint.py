"""Checkpoints: a damaged one is passed over for the one before it, and none of them runs code."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from snake_gym.agents.checkpoint import list_checkpoints, read_checkpoint

from snake_gym.config import ConfigError
from snake_gym.interface.policy_file import load_policy
from tests.agents.runs import make_training, run_to_end, small_config


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    run_to_end(small_config(total_steps=256, checkpoint={"every_steps": 128}), path)
    return path


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "run")


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_checkpoint_holds_the_policy_as_it_was(run: Path) -> None:
    assert load_policy(list_checkpoints(run)[0]).contract.training["steps"] == 256


@pytest.mark.parametrize("name", ["state.json", "arrays.safetensors", "tensors.pt"])
def test_a_damaged_newest_checkpoint_is_named_and_the_run_goes_on_from_the_one_before(
    name: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newest = list_checkpoints(run)[0]
    if name == "state.json":
        (newest / name).write_bytes((newest / name).read_bytes()[:-7])
    else:
        flip_a_bit(newest / name)
    config = small_config(total_steps=384, checkpoint={"every_steps": 128, "keep": 1})
    training = make_training(config, run)
    assert training.resume() == 128
    said = capsys.readouterr().err
    assert f"{newest} is no checkpoint that train.py wrote, or it is damaged ({name}" in said
    assert said.endswith("; going on from step 128\n")
    training.run()
    training.close()
    assert list_checkpoints(run)[0].name == "step_000000000384", "the damaged one takes no place of those kept"
    read_checkpoint(list_checkpoints(run)[0])


def test_a_run_whose_checkpoints_are_all_damaged_is_refused(run: Path) -> None:
    for path in list_checkpoints(run):
        (path / "tensors.pt").unlink()
    with pytest.raises(ConfigError, match=r"is no checkpoint that .* damaged") as caught:
        make_training(small_config(), run).resume()
    assert "\n" not in str(caught.value)


def test_a_checkpoint_that_would_run_code_is_refused(run: Path, tmp_path: Path) -> None:
    class Touch:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "touched"),)

    checkpoint = list_checkpoints(run)[0]
    torch.save(Touch(), checkpoint / "tensors.pt")
    state = json.loads((checkpoint / "state.json").read_text())
    state["files"]["tensors.pt"] = hashlib.sha256((checkpoint / "tensors.pt").read_bytes()).hexdigest()
    (checkpoint / "state.json").write_text(json.dumps(state))
    with pytest.raises(ConfigError, match="Weights only load failed"):
        read_checkpoint(checkpoint)
    assert not (tmp_path / "touched").exists()


def test_a_checkpoint_of_another_network_is_refused(run: Path) -> None:
    other = small_config(algorithm={"name": "PPO", "n_steps": 8, "network": {"net_arch": [8]}})
    with pytest.raises(ConfigError, match="does not fit the run's settings"):
        make_training(other, run).resume()
