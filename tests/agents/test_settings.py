"""Settings of a training: they reach the algorithm, and wrong ones are one line before there is a run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import stable_baselines3
from snake_gym.agents import command
from snake_gym.agents.algorithms import find_algorithm, make_model
from snake_gym.agents.run_folder import RunFolder
from snake_gym.agents.sb3_vec_env import Sb3VecEnv
from stable_baselines3.common.utils import LinearSchedule

from snake_gym.config import ConfigError
from tests.agents.copy_env import CopyEnv
from tests.agents.runs import write_small

MIRROR = "algorithm.mirror=0.25"
TABLE = [
    ("total_step=1", "total_step is not a setting; did you mean 'total_steps'"),
    ("total_steps=1e30", r"total_steps is 1\d*; expected <= 1e\+12"),
    ("env.action.controller.kind=sjx", "'sjx'; expected one of"),
    ("algorithm={gamma: 0.9}", "algorithm.name is missing; expected one of A2C, DDPG, PPO, SAC, TD3"),
    ("algorithm.learning_rat=1", "algorithm.learning_rat is not a setting; did you mean 'learning_rate'"),
    ("algorithm.batch_size=1", "algorithm PPO does not take these settings: .*batch_size"),
    ("algorithm.max_grad_norm={actor: 0.5, kritic: 1}", "max_grad_norm.kritic is not .*critic"),
    ("algorithm.network.activation=sigmoid", "network.activation is 'sigmoid'; expected one"),
    ("algorithm.network.net_arch={qf: [8]}", "network.net_arch is 'qf'; expected one of pi, vf"),
    ("algorithm={name: SAC, ent_coef: x}", "algorithm SAC does not take these settings: .*'x'"),
    (f"{MIRROR} env.action.controller={{kind: serpenoid, offset_rad: 0.1}}", "offset_rad is 0.1, not the same in a"),
    (f"{MIRROR} algorithm.use_sde=true", "mirror needs noise that does not depend on the state"),
    ("algorithm={name: SAC} env.observation.privileged=[true_velocity]", "the critic of SAC .*; expected none, or PPO"),
]


@pytest.mark.parametrize(("assignments", "message"), TABLE)
def test_wrong_settings_are_one_line(assignments: str, message: str, tmp_path: Path) -> None:
    # A space before a name begins the next setting; those within braces are part of a value.
    words, run = re.split(r" (?=[a-z_.]+=)", assignments), tmp_path / "run"
    config = write_small(tmp_path / "small.yaml")
    with pytest.raises(ConfigError, match=message) as caught:
        command.main(["--config", str(config), "--run-dir", str(run), "--set", *words])
    assert "\n" not in str(caught.value)
    assert not RunFolder(run).holds_run()


def test_parameters_reach_the_class() -> None:
    settings = {
        "name": "PPO", "learning_rate": {"start": 1e-3, "end": 1e-4}, "n_steps": 4, "batch_size": 8, "gamma": 0.9,
        "clip_range": 0.3, "network": {"net_arch": {"pi": [8], "vf": [4, 4]}, "activation": "relu", "log_std_init": -2},
    }  # fmt: skip
    assert isinstance(find_algorithm(settings)[1]["learning_rate"], LinearSchedule)
    model = make_model(settings, Sb3VecEnv(CopyEnv(2)), seed=0)
    assert isinstance(model, stable_baselines3.PPO)
    assert (model.n_steps, model.batch_size, model.gamma, model.lr_schedule(0.5)) == (4, 8, 0.9, 5.5e-4)
    assert str(model.policy.mlp_extractor.value_net).count("Linear") == 2
    assert "ReLU" in str(model.policy)
    assert model.policy.log_std.tolist() == [-2.0, -2.0]


def test_action_noise_comes_from_its_standard_deviation() -> None:
    model = make_model({"name": "TD3", "action_noise_std": 0.2}, Sb3VecEnv(CopyEnv(2)), seed=0)
    assert model.action_noise is not None
    assert model.action_noise._sigma.tolist() == [0.2, 0.2]  # type: ignore[attr-defined]
