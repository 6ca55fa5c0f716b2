"""Gymnasium's own wrappers around our envs, single and vector, each for two episodes."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import wrappers as single
from gymnasium.wrappers import vector

import snake_gym  # noqa: F401  registers

N_STEPS = 4
LOW, HIGH = np.float32(-1.0), np.float32(1.0)  # a float64 gets a warning about its precision

ARGUMENTS: dict[str, dict[str, Any]] = {
    "ClipReward": {"min_reward": -0.01, "max_reward": 0.01}, "DelayObservation": {"delay": 1},
    "DtypeObservation": {"dtype": np.float64}, "FrameStackObservation": {"stack_size": 3},
    "MaxAndSkipObservation": {"skip": 2}, "RepeatAction": {"num_repeats": 2},
    "RescaleAction": {"min_action": 2 * LOW, "max_action": 2 * HIGH},
    "RescaleObservation": {"min_obs": LOW, "max_obs": HIGH}, "ReshapeObservation": {"shape": (3, 13)},
    "StickyAction": {"repeat_action_probability": 0.5}, "TimeLimit": {"max_episode_steps": 2},
    "TransformAction": {"func": lambda a: 0.5 * a, "action_space": None},
    "TransformObservation": {"func": lambda o: 2.0 * o, "observation_space": None},
    "TransformReward": {"func": lambda r: 2.0 * r}, "VectorizeTransformAction": {"wrapper": single.ClipAction},
    "VectorizeTransformObservation": {"wrapper": single.FlattenObservation},
    "VectorizeTransformReward": {"wrapper": single.ClipReward, "min_reward": -0.01, "max_reward": 0.01},
}  # fmt: skip
NEXT_STEP_ONLY = {
    "DtypeObservation", "FlattenObservation", "NormalizeObservation", "RescaleObservation", "ReshapeObservation",
    "TransformObservation", "VectorizeTransformObservation",
}  # fmt: skip
"""Vector wrappers that Gymnasium itself refuses to put around SAME_STEP."""
NOT_FOR_US = {
    # for pixels, for other action or observation spaces, for other array libraries
    "AddRenderObservation", "AddWhiteNoise", "ArrayConversion", "AtariPreprocessing", "DictInfoToList",
    "DiscretizeAction", "DiscretizeObservation", "FilterObservation", "GrayscaleObservation", "JaxToNumpy",
    "JaxToTorch", "ObstructView", "RecordVideo", "ResizeObservation",
}  # fmt: skip
# NumpyToTorch around a single env knows no numpy.bool, which the infos hold; the other is a module
SINGLE = sorted(set(single.__all__) - NOT_FOR_US - {"NumpyToTorch", "vector"})
VECTOR = sorted(set(vector.__all__) - NOT_FOR_US - {"HumanRendering"})

# Gymnasium casts a float64 box of its own
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")


def play(env: Any, name: str) -> list[int]:
    """Play two episodes and return their lengths, in calls of ``step``."""
    lengths = [0, 0]
    for episode in range(2):
        obs, _ = env.reset(seed=episode)
        ended = False
        while not ended:
            assert np.shape(obs) == env.observation_space.shape
            if name != "NumpyToTorch":
                assert env.observation_space.contains(obs), name
            action = env.action_space.sample()
            if name == "NumpyToTorch":
                import torch

                action = torch.as_tensor(action)
            obs, reward, terminated, truncated, _ = env.step(action)
            assert np.isfinite(np.asarray(reward)).all() and np.isfinite(np.asarray(obs)).all()
            ended = bool(np.asarray(terminated).all() or np.asarray(truncated).all())
            lengths[episode] += 1
    return lengths


def wrap(wrappers: Any, name: str, env: Any) -> Any:
    env.action_space.seed(0)
    wrapped = getattr(wrappers, name)(env, **ARGUMENTS.get(name, {}))
    if name == "TransformObservation":
        wrapped.observation_space = gym.spaces.Box(-20.0, 20.0, env.observation_space.shape, np.float32)
    return wrapped


@pytest.mark.parametrize("name", SINGLE)
def test_a_wrapper_of_single_envs_plays_two_episodes(name: str) -> None:
    mode = None
    if name in ("HumanRendering", "RenderCollection"):
        pytest.importorskip("pygame", reason="extra render")
        mode = "rgb_array"
    wrapped = wrap(single, name, gym.make("SnakeGym/Waypoints-v0", max_episode_steps=N_STEPS, render_mode=mode))
    expected = {"TimeLimit": 2, "RepeatAction": 2, "MaxAndSkipObservation": 2}.get(name, N_STEPS)
    assert play(wrapped, name) == [expected, expected]
    if name == "RecordEpisodeStatistics":
        assert list(wrapped.length_queue) == [N_STEPS, N_STEPS]
    wrapped.close()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("name", VECTOR)
def test_a_wrapper_of_vector_envs_plays_two_episodes(name: str, mode: str) -> None:
    if name == "NumpyToTorch":
        pytest.importorskip("array_api_compat", reason="Gymnasium's NumpyToTorch needs it")
        pytest.importorskip("torch", reason="extra train")
    env = gym.make_vec("SnakeGym/Waypoints-v0", 3, "vector_entry_point", max_episode_steps=N_STEPS, autoreset_mode=mode)
    if mode == "SameStep" and name == "NumpyToTorch":
        pytest.skip("Gymnasium's NumpyToTorch takes no arrays of objects, which final_obs is")
    if mode == "SameStep" and name in NEXT_STEP_ONLY:
        with pytest.raises(ValueError, match="to be NEXT_STEP or DISABLED"):
            wrap(vector, name, env)
        return
    wrapped = wrap(vector, name, env)
    assert play(wrapped, name) == [N_STEPS, N_STEPS]
    if name == "RecordEpisodeStatistics":
        assert list(wrapped.length_queue) == [N_STEPS] * 6
    wrapped.close()
