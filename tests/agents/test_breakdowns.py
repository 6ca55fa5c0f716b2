"""What breaks in mid-run: a policy that diverges is named in one line, and nothing of it is saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from snake_gym.agents.checkpoint import list_checkpoints, read_checkpoint
from snake_gym.agents.training import Training

from snake_gym.config import ConfigError
from tests.agents.runs import PPO, SAC, make_training, small_config


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
