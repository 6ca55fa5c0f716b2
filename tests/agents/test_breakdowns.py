"""What breaks in mid-run: a full disk, a policy that diverges, a damaged checkpoint. One line each, nothing lost."""

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
import yaml
from snake_gym.agents import train
from snake_gym.agents.checkpoint import list_checkpoints, read_checkpoint
from snake_gym.agents.training import Training, TrainingStopped

from snake_gym.config import ConfigError
from tests.agents.runs import PPO, SAC, assert_same_state, make_training, run_to_end, small_config, stop_after

SETTINGS = {
    "env": {"action": {"kind": "residual"}, "time_limit_s": 4.0, "n_threads": 1}, "stagger": True, "algorithm": PPO,
    "n_envs": 16, "torch_threads": 1, "log_every_steps": 128, "eval": {"every_steps": 0, "episodes": 4},
    "checkpoint": {"every_steps": 128},
}  # fmt: skip


def damage(checkpoint: Path, name: str = "tensors.pt") -> None:
    path = checkpoint / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


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
    (folder / "small.yaml").write_text(yaml.safe_dump({**SETTINGS, "total_steps": 256}))
    short, whole = folder / "short", folder / "whole"
    assert train.main(["--config", str(folder / "small.yaml"), "--run-dir", str(short), "--quiet"]) == 0
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
    assert "the checkpoint of step 256 is kept" in line
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


def test_a_damaged_newest_checkpoint_is_named_with_the_step_that_the_run_goes_on_from(
    runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs[0], run)
    newest = list_checkpoints(run)[0]
    damage(newest)
    capsys.readouterr()
    assert train.main(["--resume", str(run), "--set", "total_steps=384", "--quiet"]) == 0
    said = capsys.readouterr().err
    assert f"{newest} is no checkpoint that train.py wrote, or it is damaged (tensors.pt has changed" in said
    assert "; going on from step 128\n" in said
    assert [path.name for path in list_checkpoints(run)] == ["step_000000000384", "step_000000000256"]
    read_checkpoint(newest)


def test_a_damaged_checkpoint_takes_no_place_of_those_that_are_kept(tmp_path: Path) -> None:
    config = small_config(total_steps=1280, checkpoint={"every_steps": 256, "keep": 1})
    run_to_end(config, tmp_path / "run")
    stop_after(config, tmp_path / "early", rollouts=4)
    damage(list_checkpoints(tmp_path / "run")[0])
    shutil.copytree(list_checkpoints(tmp_path / "early")[0], tmp_path / "run" / "checkpoints" / "step_000000000512")
    training = make_training(config, tmp_path / "run")
    assert training.resume() == 512
    training.should_stop = lambda: training.model.num_timesteps >= 768
    with pytest.raises(TrainingStopped):
        training.run()
    training.close()
    again = make_training(config, tmp_path / "run")
    assert again.resume() == 768
    again.close()
