"""Launching runs: their folders, and who may go on with them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from snake_gym.agents import command
from snake_gym.agents.config import TrainConfig
from snake_gym.agents.run_folder import RunFolder

from snake_gym.config import ConfigError, build, load_yaml
from snake_gym.interface.policy_file import load_policy
from tests.agents.runs import write_small


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    file, run = write_small(folder / "small.yaml", total_steps=256), folder / "run"
    assert command.main(["--config", str(file), "--run-dir", str(run), "--quiet", "--seed", "3"]) == 0
    return run


def test_a_run_folder_explains_itself(finished: Path) -> None:
    config = build(TrainConfig, load_yaml(finished / "config.yaml"))
    assert (config.seed, config.torch_threads, config.env_file) == (3, 1, None)
    assert config.env["action"]["controller"]["amplitude_rad"] > 0, "the controller's settings are written out"
    status = json.loads((finished / "run.json").read_text())
    assert status["status"] == "finished"
    (entry,) = status["launches"]
    assert entry["command"].startswith("snake-gym train --config ")
    assert {"torch", "numpy", "gymnasium", "stable-baselines3", "snake-robot-gym"} <= entry["versions"].keys()
    assert entry["git"] == "unknown" or len(entry["git"].rstrip("+")) == 40
    assert (entry["from_step"], entry["to_step"]) == (0, 256)
    for part in ("policy/best/policy.json", "policy/final/policy.json", "tensorboard"):
        assert (finished / part).exists()


def test_a_finished_run_is_left_alone(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--resume", str(finished)]) == 0
    assert "is finished: 256 steps are done" in capsys.readouterr().err
    assert len(json.loads((finished / "run.json").read_text())["launches"]) == 1


def test_a_run_killed_before_its_first_checkpoint_begins_anew(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    shutil.rmtree(run / "checkpoints")
    (run / "run.json").unlink()
    assert command.main(["--resume", str(run), "--quiet"]) == 0
    one, two = (load_policy(path / "policy" / "final") for path in (finished, run))
    assert one.digest == two.digest


def test_an_existing_run_is_refused_or_continued(finished: Path, tmp_path: Path) -> None:
    config_file = write_small(tmp_path / "small.yaml", total_steps=256)
    arguments = ["--config", str(config_file), "--run-dir", str(finished), "--seed", "3"]
    with pytest.raises(ConfigError, match=f"holds a run already: continue it with snake-gym train --resume {finished}"):
        command.main(arguments)
    assert command.main([*arguments, "--set", "if_exists=continue"]) == 0
    with pytest.raises(ConfigError, match=r"was trained with another algorithm\.gamma; a resumed run may change only"):
        command.main([*arguments, "--set", "if_exists=continue", "--set", "algorithm.gamma=0.5"])


def test_two_processes_cannot_train_in_one_folder(finished: Path) -> None:
    with RunFolder(finished).lock(), pytest.raises(ConfigError, match="is in use: another process"):
        command.main(["--resume", str(finished), "--set", "total_steps=1000"])


def test_runs_of_different_seeds_share_no_world_and_none_with_evaluation() -> None:
    firsts = [TrainConfig(seed=seed, n_envs=256).world_seed for seed in range(500_000 // 256)]
    assert (np.diff(sorted(firsts)) >= 256).all()
    assert TrainConfig(seed=15_617, n_envs=256).world_seed == 0  # larger seeds go round
    assert max(TrainConfig(seed=s, n_envs=256).world_seed for s in range(0, 2**31, 999_983)) + 256 <= 500_000
