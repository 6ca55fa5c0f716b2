"""What breaks in mid-run: a policy that diverges is named in one line, and nothing of it is saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from snake_gym.agents.ppo import PPO

from snake_gym.config import ConfigError
from tests.agents.runs import PPO as SETTINGS
from tests.agents.runs import SAC, checkpoints, read, run_to_end, small_config


@pytest.mark.parametrize(
    ("algorithm", "too_high"),
    [(SETTINGS, 1e9), ({**SETTINGS, "use_sde": True}, 1e9), (SAC, 1e6)],
    ids=["ppo", "ppo-sde", "sac"],
)
def test_a_learning_rate_that_is_far_too_high_is_named(
    algorithm: dict[str, Any], too_high: float, tmp_path: Path
) -> None:
    config = small_config(algorithm={**algorithm, "learning_rate": too_high}, checkpoint={"every_steps": 16})
    with pytest.raises(ConfigError, match=r"^training diverged after \d+ steps: the policy's ") as caught:
        run_to_end(config, tmp_path / "run")
    message, kept = str(caught.value), checkpoints(tmp_path / "run")
    assert f"the likely cause is algorithm.learning_rate ({too_high:g})" in message and "\n" not in message
    if kept:
        assert f"the checkpoint of step {int(kept[0].name[5:])} is kept" in message
    for checkpoint in kept:
        weights = read(checkpoint)["learner"]["parameters"]["policy"].values()
        assert all(torch.isfinite(values).all() for values in weights)


@pytest.mark.parametrize(("spoiled_at", "kept"), [(512, [384, 256]), (1280, [1152, 1024])], ids=["update", "end"])
def test_weights_that_are_not_finite_are_never_saved(
    spoiled_at: int, kept: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = PPO.train

    def spoil(self: PPO) -> None:
        update(self)
        if self.num_timesteps >= spoiled_at:
            with torch.no_grad():
                next(iter(self.policy.parameters())).fill_(float("nan"))

    monkeypatch.setattr(PPO, "train", spoil)
    with pytest.raises(ConfigError, match=r"diverged after \d+ steps: the policy's weights are no longer finite"):
        run_to_end(small_config(checkpoint={"every_steps": 128}), tmp_path / "run")
    assert [int(path.name[5:]) for path in checkpoints(tmp_path / "run")] == kept
    assert not (tmp_path / "run" / "policy" / "final").exists()
