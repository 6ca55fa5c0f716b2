"""What people who know Gymnasium expect of an env: keyword settings, time limits, seeds, infos, copies."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import snake_gym  # noqa: F401  registers
from snake_gym.config import ConfigError
from snake_gym.envs import ObstacleFieldConfig, WaypointsConfig, WaypointsEnv
from snake_gym.envs.vector_env import WaypointsVectorEnv
from snake_gym.interface.actions import ActionConfig
from snake_gym.simulation.faults import FaultConfig

IDS = ["SnakeGym/Waypoints-v0", "SnakeGym/ObstacleField-v0"]
CONFIGS = {"mapping": {"faults": {"n_max": 2}}, "object": WaypointsConfig(faults=FaultConfig(n_max=2))}


# --- settings beside a config ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("make", [WaypointsEnv, WaypointsVectorEnv])
def test_keyword_settings_are_laid_over_a_config(make: Any, config: Any) -> None:
    made = make(config=config, faults={"reveal": True}, time_limit_s=4.0).core.config
    assert (made.faults.n_max, made.faults.reveal, made.time_limit_s) == (2, True, 4.0)
    assert CONFIGS["object"] == WaypointsConfig(faults=FaultConfig(n_max=2))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("env_id", IDS)
def test_a_misspelt_keyword_beside_a_config_is_an_error(env_id: str, config: Any) -> None:
    given = ObstacleFieldConfig() if env_id == IDS[1] and isinstance(config, WaypointsConfig) else config
    for make in (gym.make, gym.make_vec):
        with pytest.raises(ConfigError, match=r"env.fautls is not a setting; did you mean 'faults'"):
            make(env_id, config=given, fautls={"n_max": 9})
        with pytest.raises(ConfigError, match=r"faults.n_max is 20; expected at most 9"):
            make(env_id, config=given, faults={"n_max": 20})


@pytest.mark.parametrize("config", [3, "waypoints.yaml", [("faults", {})]])
def test_a_config_of_another_kind_is_one_clear_error(config: Any) -> None:
    with pytest.raises(ConfigError, match=r"env is .*; expected a group of settings"):
        WaypointsEnv(config=config)


def test_an_object_is_checked_as_strictly_as_a_mapping() -> None:
    with pytest.raises(ConfigError, match=r"env.action.kind is 'gaits'; expected one of .*; did you mean 'gait'"):
        WaypointsEnv(config=WaypointsConfig(action=ActionConfig(kind="gaits")))  # type: ignore[arg-type]


@pytest.mark.parametrize("env_id", IDS)
def test_an_unknown_keyword_is_a_type_error_as_of_any_function(env_id: str) -> None:
    """Libraries find out by it what an env takes: TorchRL tries ``frameskip``."""
    for make in (gym.make, gym.make_vec):
        with pytest.raises(TypeError, match="unexpected keyword argument 'frameskip'") as caught:
            make(env_id, frameskip=1)
        assert isinstance(caught.value, ConfigError)
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'fautls'.*did you mean 'faults'"):
            make(env_id, fautls={})
    with pytest.raises(ConfigError) as nested:
        gym.make(env_id, faults={"n_mx": 1})
    assert not isinstance(nested.value, TypeError)


@pytest.mark.parametrize("env_id", IDS)
def test_infos_of_a_single_env_are_numpy_scalars(env_id: str) -> None:
    env = gym.make(env_id)
    _, first = env.reset(seed=0)
    *_, second = env.step(env.action_space.sample())
    for info in (first, second):
        assert {name: type(value) for name, value in info.items() if not isinstance(value, np.generic)} == {}
        assert type(info["is_success"]) is np.bool_
        assert type(info["progress_m"]) is np.float64
        assert type(info["n_faults"]) is np.int64
