"""Making the environments by name."""

from __future__ import annotations

import importlib
import warnings

import gymnasium as gym
import pytest

import snake_gym
from snake_gym.config import ConfigError
from snake_gym.envs import VECTOR_ENVS, choose_env
from snake_gym.registry import ENVS, register_envs


@pytest.mark.parametrize("env_id", ENVS)
def test_every_env_is_made_by_name(env_id: str) -> None:
    env = gym.make(f"snake_gym:{env_id}")
    assert env.spec is not None
    assert env.spec.id == env_id
    # Registered without a limit: a simulated env says its own.
    assert env.spec.max_episode_steps == (300 if ENVS[env_id].vector else None)
    env.close()
    if ENVS[env_id].vector is None:
        return
    envs = gym.make_vec(env_id, num_envs=2, vectorization_mode="vector_entry_point")
    assert envs.num_envs == 2
    envs.close()


def test_the_names_that_a_config_may_give_are_the_registered_ones() -> None:
    simulated = {env_id: entry.vector for env_id, entry in ENVS.items() if entry.vector is not None}
    assert set(VECTOR_ENVS) == set(simulated)
    for env_id, entry_point in simulated.items():
        module, name = entry_point.split(":")
        assert choose_env(env_id) is getattr(importlib.import_module(module), name)
    with pytest.raises(ConfigError, match="did you mean 'SnakeGym/ObstacleField-v0'"):
        choose_env("SnakeGym/ObstaclesField-v0")


def test_registering_twice_is_harmless() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        register_envs()
        importlib.reload(snake_gym)


def test_names_of_the_package_load_at_first_use() -> None:
    assert snake_gym.load_robot("resilient").n_links == 10
    for name in snake_gym.__all__:
        assert getattr(snake_gym, name) is not None
        assert name in dir(snake_gym)
    with pytest.raises(AttributeError, match="no attribute 'load_robt'"):
        _ = snake_gym.load_robt
