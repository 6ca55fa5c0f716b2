"""Algorithms from settings."""

from __future__ import annotations

import os
from typing import Any

import pytest
import stable_baselines3
from snake_gym.agents.algorithms import (
    BetweenRollouts,
    check_batch,
    check_device,
    find_algorithm,
    known_algorithms,
    make_learner,
)
from snake_gym.agents.ppo import PPO
from snake_gym.agents.sb3_vec_env import Sb3VecEnv
from stable_baselines3.common.utils import LinearSchedule

from snake_gym.config import ConfigError
from tests.agents.copy_env import CopyEnv


def test_names_are_classes_of_sb3() -> None:
    known = known_algorithms()
    assert {"PPO", "SAC", "TD3", "A2C", "DDPG"} <= known.keys()
    assert known["PPO"] is PPO and issubclass(PPO, stable_baselines3.PPO)
    assert not {"DQN", "QRDQN", "MaskablePPO"} & known.keys()  # a snake's actions are continuous
    assert not {"HER", "HerReplayBuffer", "get_system_info"} & known.keys()


def test_parameters_reach_the_class() -> None:
    settings = {
        "name": "PPO", "learning_rate": {"start": 1e-3, "end": 1e-4}, "n_steps": 4, "batch_size": 8, "gamma": 0.9,
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
        ({}, "algorithm.name is missing; expected one of A2C, DDPG, PPO, SAC, TD3"),
        ({"name": "ppo"}, "algorithm.name is 'ppo'; .*; did you mean 'PPO'?"),
        ({"name": "PPO", "n_step": 3}, "algorithm.n_step is not a setting; did you mean 'n_steps'?"),
        ({"name": "PPO", "gamma": "high"}, "algorithm.gamma is 'high'; expected a number"),
        ({"name": "PPO", "network": {"activation": "sigmoid"}}, "network.activation is 'sigmoid'; expected one"),
        ({"name": "PPO", "network": {"net_arch": [0]}}, r"net_arch\[0\] is 0; expected >= 1"),
        ({"name": "SAC", "network": {"net_arch": {"foo": [8]}}}, "net_arch.foo is not a part of SAC's .* pi, qf"),
        ({"name": "PPO", "network": {"log_std_init": 1000}}, r"log_std_init is 1000; expected in \[-20, 20\]"),
        ({"name": "SAC", "train_freq": [0, "step"]}, r"train_freq\[0\] is 0; expected >= 1"),
        ({"name": "SAC", "train_freq": [4, "steps"]}, r"train_freq\[1\] is 'steps'; expected one of"),
        ({"name": "PPO", "gamma": 2.0}, r"gamma is 2; expected in \[0, 1\]"),
        ({"name": "PPO", "learning_rate": {"start": -1.0}}, r"learning_rate.start is -1; expected finite and > 0"),
        ({"name": "PPO", "clip_range": -1.0}, "clip_range is -1; expected finite and > 0"),
        ({"name": "PPO", "n_epochs": 0}, "n_epochs is 0; expected >= 1"),
        ({"name": "PPO", "use_sde": "yes"}, "use_sde is 'yes'; expected true or false"),
        ({"name": "SAC", "gradient_steps": 0}, "gradient_steps is 0; expected >= 1"),
        ({"name": "TD3", "action_noise_std": -0.1}, "action_noise_std is -0.1; expected finite and >= 0"),
        ({"name": "PPO", "ent_coef": "x"}, "^algorithm.ent_coef is 'x'; expected a number >= 0 for PPO$"),
        ({"name": "A2C", "ent_coef": "auto"}, "ent_coef is 'auto'; expected a number >= 0 for A2C"),
        ({"name": "SAC", "ent_coef": "x"}, "ent_coef is 'x'; expected a number >= 0, auto, or auto_ and a number > 0"),
        ({"name": "SAC", "ent_coef": "auto_0"}, "ent_coef is 'auto_0'; expected"),
        ({"name": "SAC", "ent_coef": "auto_"}, "ent_coef is 'auto_'; expected"),
        ({"name": "SAC", "target_entropy": "foo"}, "target_entropy is 'foo'; expected a number or auto"),
        ({"name": "PPO", "tensorboard_log": "x"}, "algorithm.tensorboard_log is not a setting"),
        ({"name": "PPO", "action_noise_std": 0.1}, "algorithm.action_noise_std is not a setting"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        find_algorithm(settings)


def test_words_nulls_and_schedules_to_zero_are_taken() -> None:
    assert find_algorithm({"name": "SAC", "target_entropy": -3}).parameters == {"target_entropy": -3.0}
    find_algorithm({"name": "SAC", "ent_coef": "auto_0.1", "gradient_steps": -1, "train_freq": [1, "episode"]})
    find_algorithm({"name": "PPO", "learning_rate": {"start": 1e-3}, "clip_range_vf": None, "target_kl": None})


def test_a_batch_is_no_larger_than_what_it_is_drawn_from() -> None:
    on_policy = find_algorithm({"name": "PPO", "n_steps": 8, "batch_size": 65})
    check_batch(on_policy, 9)
    with pytest.raises(ConfigError, match="batch_size is 65; expected <= 64, n_steps times n_envs"):
        check_batch(on_policy, 8)
    with pytest.raises(ConfigError, match="batch_size is 2000000; expected <= 1000000, buffer_size"):
        check_batch(find_algorithm({"name": "SAC", "batch_size": 2_000_000}), 1)


def test_training_by_the_episode_takes_one_world() -> None:
    by_episode = find_algorithm({"name": "SAC", "train_freq": [1, "episode"]})
    check_batch(by_episode, 1)
    with pytest.raises(ConfigError, match=r"algorithm.train_freq counts episodes; expected n_envs 1 \(here 4\), or"):
        check_batch(by_episode, 4)


@pytest.mark.parametrize(
    ("name", "setting"), [("PPO", "n_steps"), ("A2C", "n_steps"), ("SAC", "n_steps"), ("SAC", "buffer_size")]
)
def test_what_the_machine_has_no_memory_for_is_named_with_what_is_usual(name: str, setting: str) -> None:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    rows = memory // 30  # of nine numbers and more, each of 4 bytes
    algorithm = find_algorithm({"name": name, setting: rows})
    message = rf"algorithm.{setting} is {rows}: the \w+ takes \d+ GB; .*; expected at most \d+ \(.* are usual"
    with pytest.raises(ConfigError, match=message):
        make_learner(algorithm, Sb3VecEnv(CopyEnv(2)), seed=0)


def test_a_network_too_large_between_its_spaces_is_refused() -> None:
    wide = find_algorithm({"name": "PPO", "network": {"net_arch": [5000, 5000]}})
    with pytest.raises(ConfigError, match=r"a network of \d+ weights; expected at most 16777216"):
        make_learner(wide, Sb3VecEnv(CopyEnv(2)), seed=0)


def test_a_device_that_torch_lacks_is_named() -> None:
    check_device("cpu")
    check_device("auto")
    for name in ("cuda:99", "meta", "graphics"):
        with pytest.raises(ConfigError, match=f"device is '{name}', which torch cannot use here"):
            check_device(name)


def test_what_sb3_refuses_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"algorithm PPO does not take these settings: .*batch_size") as caught:
        make_learner(find_algorithm({"name": "PPO", "batch_size": 1}), Sb3VecEnv(CopyEnv(2)), seed=0)
    assert "\n" not in str(caught.value)
