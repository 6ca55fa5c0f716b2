"""Algorithms from settings."""

from __future__ import annotations

import stable_baselines3
from snake_gym.agents.algorithms import find_algorithm, make_model
from snake_gym.agents.sb3_vec_env import Sb3VecEnv
from stable_baselines3.common.utils import LinearSchedule

from tests.agents.copy_env import CopyEnv


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
