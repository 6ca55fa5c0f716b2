"""Making the environments by name."""

from __future__ import annotations

import gymnasium as gym
import pytest

import snake_gym
from snake_gym.registry import REAL, TASKS, find_task


@pytest.mark.parametrize("env_id", [*TASKS, REAL])
def test_every_env_is_made_by_name(env_id: str) -> None:
    env = gym.make(f"snake_gym:{env_id}")
    assert env.spec is not None
    assert env.spec.id == env_id
    env.close()
    if env_id in TASKS:
        envs = gym.make_vec(env_id, num_envs=2, vectorization_mode="vector_entry_point")
        assert (envs.num_envs, type(envs.unwrapped.core.config)) == (2, find_task(env_id))  # type: ignore[attr-defined]
        envs.close()


def test_names_of_the_package_load_at_first_use() -> None:
    assert snake_gym.load_robot("resilient").n_links == 10
    for name in snake_gym.__all__:
        assert getattr(snake_gym, name) is not None
        assert name in dir(snake_gym)
    with pytest.raises(AttributeError, match="no attribute 'load_robt'"):
        _ = snake_gym.load_robt
