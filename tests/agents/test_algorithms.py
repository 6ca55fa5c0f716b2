"""Algorithms from settings."""

from __future__ import annotations

from typing import Any

import pytest
import stable_baselines3
from stable_baselines3.common.utils import LinearSchedule

from agents.algorithms import BetweenRollouts, find_algorithm, known_algorithms, make_learner
from agents.sb3_vec_env import Sb3VecEnv
from benchmarks.zero_cost_env import CopyEnv
from snake_gym.config import ConfigError


def test_names_are_classes_of_sb3() -> None:
    known = known_algorithms()
    assert {"PPO", "SAC", "TD3", "A2C", "DDPG", "DQN"} <= known.keys()
    assert known["PPO"] is stable_baselines3.PPO
    assert not {"HER", "HerReplayBuffer", "get_system_info"} & known.keys()


def test_parameters_reach_the_class() -> None:
    settings = {
        "name": "PPO", "learning_rate": {"start": "1e-3", "end": 1e-4}, "n_steps": 4, "batch_size": "8", "gamma": 0.9,
        "clip_range": 0.3, "network": {"net_arch": {"pi": [8], "vf": [4, 4]}, "activation": "relu", "log_std_init": -2},
    }  # fmt: skip
    algorithm = find_algorithm(settings)
    assert isinstance(algorithm.parameters["learning_rate"], LinearSchedule)
    model = make_learner(algorithm, Sb3VecEnv(CopyEnv(2)), seed=0)
    assert isinstance(model, stable_baselines3.PPO)
    assert isinstance(model, BetweenRollouts)
    assert (model.n_steps, model.batch_size, model.gamma, model.lr_schedule(0.5)) == (4, 8, 0.9, 5.5e-4)
    assert str(model.policy.mlp_extractor.value_net).count("Linear") == 2
    assert "ReLU" in str(model.policy)
    assert model.policy.log_std.tolist() == [-2.0, -2.0]


def test_action_noise_comes_from_its_standard_deviation() -> None:
    model = make_learner(find_algorithm({"name": "TD3", "action_noise_std": 0.2}), Sb3VecEnv(CopyEnv(2)), seed=0)
    assert model.action_noise is not None
    assert model.action_noise._sigma.tolist() == [0.2, 0.2]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "algorithm.name is missing; expected one of A2C, DDPG, DQN, PPO, SAC, TD3"),
        ({"name": "ppo"}, "algorithm.name is 'ppo'; .*; did you mean 'PPO'?"),
        ({"name": "os.system"}, "algorithm.name is 'os.system'; expected one of"),
        ({"name": "PPO", "n_step": 3}, "algorithm.n_step is not a setting; did you mean 'n_steps'?"),
        ({"name": "PPO", "gamma": "high"}, "algorithm.gamma is 'high'; expected a number"),
        ({"name": "PPO", "learning_rate": {"begin": 1}}, "algorithm.learning_rate.begin is not a setting"),
        (
            {"name": "PPO", "network": {"activation": "sigmoid"}},
            "algorithm.network.activation is 'sigmoid'; expected one",
        ),
        ({"name": "PPO", "network": {"net_arch": [0]}}, "net_arch .*expected widths >= 1"),
        ({"name": "PPO", "tensorboard_log": "x"}, "algorithm.tensorboard_log is not a setting"),
        ({"name": "PPO", "action_noise_std": 0.1}, "algorithm.action_noise_std is not a setting"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        find_algorithm(settings)


def test_what_sb3_refuses_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"algorithm DQN does not take these settings: .*Box") as caught:
        make_learner(find_algorithm({"name": "DQN"}), Sb3VecEnv(CopyEnv(2)), seed=0)
    assert "\n" not in str(caught.value)
