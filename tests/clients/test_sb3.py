"""Stable-Baselines3 and sb3-contrib through SB3's own ``make_vec_env``; our adapter is tested in ``agents``."""

from __future__ import annotations

from typing import Any

import pytest

import snake_gym  # noqa: F401  registers

sb3 = pytest.importorskip("stable_baselines3", reason="extra train")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]
SETTINGS = {"action": {"kind": "gait"}, "max_episode_steps": 20}
LEARNERS: dict[str, tuple[str, dict[str, Any]]] = {
    "PPO": ("MlpPolicy", {"n_steps": 32, "n_epochs": 2}),
    "TQC": ("MlpPolicy", {"learning_starts": 50}),
    "RecurrentPPO": ("MlpLstmPolicy", {"n_steps": 32}),
}


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("env_id", ["SnakeGym/Waypoints-v0", "SnakeGym/Velocity-v0"])
def test_a_learner_learns_in_episodes_of_the_time_limit(env_id: str, name: str) -> None:
    from stable_baselines3.common.env_util import make_vec_env

    library = sb3 if name == "PPO" else pytest.importorskip("sb3_contrib", reason="extra dev")
    policy, more = LEARNERS[name]
    env = make_vec_env(env_id, 4, env_kwargs=SETTINGS)
    model = getattr(library, name)(policy, env, seed=0, device="cpu", batch_size=32, **more)
    before = [parameter.detach().clone() for parameter in model.policy.parameters()]
    model.learn(256)
    after = list(model.policy.parameters())
    assert all(bool(values.isfinite().all()) for values in after)
    assert not all(values.equal(old) for values, old in zip(after, before, strict=True))
    assert [episode["l"] for episode in model.ep_info_buffer] == [20] * 12, "4 worlds, 64 steps"
