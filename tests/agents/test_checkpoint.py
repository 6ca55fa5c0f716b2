"""Checkpoints: whole policies, refused if damaged or of other settings; none runs code, none holds what diverged."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from snake_gym.agents.ppo import PPO

from snake_gym.config import ConfigError
from snake_gym.interface.policy_file import load_policy
from tests.agents.runs import PPO as SETTINGS
from tests.agents.runs import SAC, checkpoints, read, run_to_end, small_config


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


@pytest.mark.parametrize(
    ("algorithm", "too_high"),
    [(SETTINGS, 1e9), ({**SETTINGS, "use_sde": True}, 1e9), ({**SETTINGS, "overlap": True}, 1e9), (SAC, 1e6)],
    ids=["ppo", "ppo-sde", "ppo-overlap", "sac"],
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
        saved = read(checkpoint)["learner"]["parameters"]
        networks = [values for name, values in saved.items() if not name.endswith("optimizer")]
        assert all(torch.isfinite(values).all() for network in networks for values in network.values())


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
