"""What people who know Gymnasium expect of an env: keyword settings, time limits, seeds, infos, copies."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import RecordEpisodeStatistics, TimeAwareObservation
from gymnasium.wrappers.vector import RecordEpisodeStatistics as RecordVectorStatistics

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


# --- how long an episode is ------------------------------------------------------------------------------------------


def count_steps(env: gym.Env[Any, Any]) -> int:
    """Steps until truncation under actions of 0."""
    env.reset(seed=0)
    for n in range(1, 2_000):
        _, _, terminated, truncated, _ = env.step(np.zeros(env.action_space.shape or (), np.float32))
        assert not terminated
        if truncated:
            return n
    raise AssertionError("no end")


STEPS: dict[str, tuple[dict[str, Any], int]] = {
    "by default": ({}, 300),
    "longer by time_limit_s": ({"time_limit_s": 100.0}, 500),
    "shorter by time_limit_s": ({"time_limit_s": 2.0}, 10),
    "of another robot": ({"robot": {"preset": "resilient_servo", "control_dt_s": 0.5}}, 120),
    "shorter by make": ({"max_episode_steps": 5}, 5),
    "longer by make": ({"max_episode_steps": 400}, 400),
    "by make against time_limit_s": ({"time_limit_s": 2.0, "max_episode_steps": 12}, 12),
    "left alone by make": ({"max_episode_steps": -1}, 300),
}


@pytest.mark.parametrize(("settings", "expected"), STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("env_id", IDS)
def test_spec_and_truncation_agree_on_the_steps_of_an_episode(
    env_id: str, settings: dict[str, Any], expected: int
) -> None:
    env = gym.make(env_id, **settings)
    assert env.spec is not None
    assert env.spec.max_episode_steps == expected
    if env_id == IDS[0] or expected < 20:
        assert count_steps(env) == expected
    assert TimeAwareObservation(env).max_timesteps == expected
    again = gym.make(env.spec)
    assert again.spec is not None
    assert again.spec.max_episode_steps == expected
    assert again.unwrapped.core.n_steps == expected  # type: ignore[attr-defined]
    assert copy.deepcopy(env).spec == env.spec


@pytest.mark.parametrize(("settings", "expected"), [case for name, case in STEPS.items() if "alone" not in name])
@pytest.mark.parametrize("mode", ["vector_entry_point", "sync"])
def test_a_vector_env_has_the_limit_that_was_asked_for(mode: str, settings: dict[str, Any], expected: int) -> None:
    for env_id in IDS if expected < 20 else IDS[:1]:
        envs = gym.make_vec(env_id, num_envs=2, vectorization_mode=mode, **settings)
        if mode == "vector_entry_point":
            assert envs.spec is not None
            assert envs.spec.max_episode_steps == expected
            assert gym.make_vec(envs.spec).unwrapped.core.n_steps == expected  # type: ignore[attr-defined]
        envs.reset(seed=0)
        ends = [envs.step(np.zeros(envs.action_space.shape or (), np.float32))[3].all() for _ in range(expected)]
        assert np.flatnonzero(ends).tolist() == [expected - 1]


@pytest.mark.parametrize("mode", AutoresetMode)
def test_the_limit_of_make_vec_holds_in_every_autoreset_mode_and_is_recorded(mode: AutoresetMode) -> None:
    envs = RecordVectorStatistics(gym.make_vec(IDS[0], num_envs=3, max_episode_steps=5, autoreset_mode=mode))
    envs.reset(seed=0)
    ended = []
    for _ in range(13):
        _, _, _, truncated, infos = envs.step(np.zeros((3, 9), np.float32))
        if truncated.all():
            ended.append(True)
            recorded = infos["final_info"] if "final_info" in infos and "episode" not in infos else infos
            assert recorded["episode"]["l"].tolist() == [5, 5, 5]
            if mode is AutoresetMode.DISABLED:
                envs.reset(options={"reset_mask": truncated})
        else:
            ended.append(False)
    expected = {AutoresetMode.NEXT_STEP: [4, 10], AutoresetMode.SAME_STEP: [4, 9], AutoresetMode.DISABLED: [4, 9]}
    assert np.flatnonzero(ended).tolist() == expected[mode]


def test_the_statistics_of_a_single_env_count_the_steps_of_the_limit() -> None:
    env = RecordEpisodeStatistics(gym.make(IDS[0], max_episode_steps=7))
    env.reset(seed=0)
    for _ in range(7):
        *_, info = env.step(np.zeros(9, np.float32))
    assert info["episode"]["l"] == 7


def test_a_registered_limit_counts_too() -> None:
    """A user's own name for an env: the limit that it was registered with is the limit."""
    gym.register("Test/LongWaypoints-v0", "snake_gym.envs:WaypointsEnv", max_episode_steps=320,
                 vector_entry_point="snake_gym.envs:WaypointsVectorEnv")  # fmt: skip
    try:
        assert count_steps(gym.make("Test/LongWaypoints-v0")) == 320
        assert gym.make_vec("Test/LongWaypoints-v0").unwrapped.core.n_steps == 320  # type: ignore[attr-defined]
    finally:
        del gym.registry["Test/LongWaypoints-v0"]


@pytest.mark.parametrize("steps", [0, -3, 2.5, True, 10**12, "many"])
def test_a_limit_that_is_no_number_of_steps_is_refused(steps: Any) -> None:
    with pytest.raises(ValueError, match=r"max_episode_steps is .*; expected an integer from 1 to"):
        gym.make_vec(IDS[0], max_episode_steps=steps)
