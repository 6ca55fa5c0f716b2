"""Stable-Baselines3 and sb3-contrib through SB3's own ``make_vec_env``; our adapter is tested in ``agents``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import snake_gym  # noqa: F401  registers

sb3 = pytest.importorskip("stable_baselines3", reason="extra train")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]
SETTINGS = {"action": {"kind": "gait"}, "max_episode_steps": 20}
IDS = ["SnakeGym/Waypoints-v0", "SnakeGym/Velocity-v0"]


def plain(env_id: str) -> Any:
    from stable_baselines3.common.env_util import make_vec_env

    return make_vec_env(env_id, 4, env_kwargs=SETTINGS)


def weights(model: Any) -> np.ndarray:
    return np.concatenate([p.detach().numpy().ravel() for p in model.policy.parameters()])


@pytest.mark.parametrize("env_id", IDS)
def test_ppo_learns_and_sees_the_time_limit(env_id: str) -> None:
    env = plain(env_id)
    model = sb3.PPO("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=2, seed=0, device="cpu")
    before = weights(model)
    model.learn(256)
    after = weights(model)
    assert np.isfinite(after).all() and not np.array_equal(after, before)
    assert len(model.ep_info_buffer) == 12, "4 worlds, 64 steps, episodes of 20"
    assert {episode["l"] for episode in model.ep_info_buffer} == {20}
    env.seed(1)
    env.reset()
    for _ in range(20):
        obs, _, done, infos = env.step(np.zeros((4, 4), np.float32))
    assert done.all()
    for world, info in enumerate(infos):
        assert info["TimeLimit.truncated"] is True
        assert not np.array_equal(info["terminal_observation"], obs[world]), "the first of the next episode"


@pytest.mark.parametrize("name", ["TQC", "RecurrentPPO"])
def test_contrib_learns(name: str) -> None:
    contrib = pytest.importorskip("sb3_contrib", reason="extra dev")
    policy, more = ("MlpPolicy", {"learning_starts": 50}) if name == "TQC" else ("MlpLstmPolicy", {"n_steps": 32})
    model = getattr(contrib, name)(policy, plain(IDS[0]), seed=0, device="cpu", batch_size=32, **more)
    before = weights(model)
    model.learn(256)
    after = weights(model)
    assert np.isfinite(after).all() and not np.array_equal(after, before)
    assert len(model.ep_info_buffer) == 12
