"""What breaks in mid-run: a full disk, a policy that diverges. One line each, nothing lost."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from snake_gym.agents import train
from snake_gym.agents.checkpoint import list_checkpoints, read_checkpoint
from snake_gym.agents.training import Training

from snake_gym.config import ConfigError
from tests.agents.runs import PPO, SAC, assert_same_state, make_training, small_config, write_small


@contextmanager
def room_for(n_bytes: int) -> Iterator[None]:
    """The system refuses files of more than ``n_bytes``, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run of 256 steps, and the same one gone on with to 768."""
    folder = tmp_path_factory.mktemp("runs")
    file = write_small(folder / "small.yaml", total_steps=256, checkpoint={"every_steps": 128})
    short, whole = folder / "short", folder / "whole"
    assert train.main(["--config", str(file), "--run-dir", str(short), "--quiet"]) == 0
    shutil.copytree(short, whole)
    assert train.main(["--resume", str(whole), "--set", "total_steps=768", "--quiet"]) == 0
    return short, whole


@pytest.mark.parametrize("too_large", ["checkpoint", "tensorboard"])
def test_a_full_disk_ends_the_run_in_one_line_and_loses_nothing(
    too_large: str, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    short, whole = runs
    run = tmp_path / "run"
    shutil.copytree(short, run)
    sizes = {path.name: path.stat().st_size for path in run.rglob("*") if path.is_file()}
    room = {"checkpoint": sizes["arrays.safetensors"] - 1000, "tensorboard": sizes["config.yaml"] + 100}
    with pytest.raises(ConfigError) as caught, room_for(room[too_large]):
        train.main(["--resume", str(run), "--set", "total_steps=768", "--quiet"])
    line = str(caught.value)
    assert line.startswith("training stopped after ")
    assert "File too large" in line
    assert f"continue with: snake-gym train --resume {run}" in line
    assert [path.name for path in (run / "checkpoints").iterdir() if "partial" in path.name] == []
    assert list_checkpoints(run)[0].name == "step_000000000256"
    assert train.main(["--resume", str(run), "--quiet"]) == 0
    assert_same_state(list_checkpoints(run)[0], list_checkpoints(whole)[0])


@pytest.mark.parametrize(
    ("algorithm", "too_high"), [(PPO, 1e9), ({**PPO, "use_sde": True}, 1e9), (SAC, 1e6)], ids=["ppo", "ppo-sde", "sac"]
)
def test_a_learning_rate_that_is_far_too_high_is_named(
    algorithm: dict[str, Any], too_high: float, tmp_path: Path
) -> None:
    config = small_config(
        algorithm={**algorithm, "learning_rate": too_high}, checkpoint={"every_steps": 16}, total_steps=1280
    )
    training = make_training(config, tmp_path / "run")
    with pytest.raises(ConfigError) as caught:
        training.run()
    training.close()
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"training diverged after {training.model.num_timesteps} steps: the policy's ")
    assert f"the likely cause is algorithm.learning_rate ({too_high:g})" in message
    kept = list_checkpoints(tmp_path / "run")
    if kept:
        assert f"the checkpoint of step {int(kept[0].name[5:])} is kept" in message
    for checkpoint in kept:
        assert all(np.isfinite(values).all() for values in parameters(checkpoint))


@pytest.mark.parametrize("moment", ["update", "end"])
def test_weights_that_are_not_finite_are_never_saved(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small_config(checkpoint={"every_steps": 128})
    training = make_training(config, tmp_path / "run")
    spoil_after(training, 1280 if moment == "end" else 512, monkeypatch)
    with pytest.raises(ConfigError, match=r"diverged after \d+ steps: the policy's weights are no longer finite"):
        training.run()
    training.close()
    kept = list_checkpoints(tmp_path / "run")
    assert [int(path.name[5:]) for path in kept] == ([1152, 1024] if moment == "end" else [384, 256])
    assert not (tmp_path / "run" / "policy" / "final").exists()


def parameters(checkpoint: Path) -> list[np.ndarray]:
    _, snapshot = read_checkpoint(checkpoint)
    return [value.numpy() for value in snapshot.tensors["parameters"]["policy"].values()]


def spoil_after(training: Training, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the update at ``step`` end with a weight that is no number."""
    update: Callable[[], None] = training.model.train  # type: ignore[attr-defined]

    def spoiled() -> None:
        update()
        if training.model.num_timesteps >= step:
            with torch.no_grad():
                next(iter(training.model.policy.parameters())).fill_(float("nan"))

    monkeypatch.setattr(training.model, "train", spoiled)
