"""Critics with privileged observations: they use them, their actors never see them, and no policy file holds them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from snake_gym.agents.export import export_policy
from snake_gym.agents.metrics import play_episodes
from snake_gym.agents.policy_writer import LearnerPolicy

from snake_gym.envs import make_waypoints
from snake_gym.interface.policy_file import load_policy
from tests.agents.copy_env import CopyEnv
from tests.agents.runs import PPO, SNAKE, run_to_end, small_config
from tests.agents.test_learning import IDLE
from tests.agents.test_learning import PPO as LEARNS

TRUTH = ["true_joint_angle", "true_velocity", "fault_kind", "randomisation/friction_across"]
ENV = {
    **SNAKE,
    "randomisation": {"friction_across": {"low": 0.5, "high": 2.0}},
    "observation": {"columns": ["standard", "turning_rate"], "history": 2, "privileged": TRUTH},
}


class LuckyCopyEnv(CopyEnv):
    """``CopyEnv`` whose rewards add luck of standard deviation 1, seen in the privileged part alone."""

    def __init__(self, num_envs: int, mode: AutoresetMode = AutoresetMode.SAME_STEP) -> None:
        super().__init__(num_envs, mode=mode)
        truth = gym.spaces.Box(-10.0, 10.0, (1,), np.float32)
        self.single_observation_space = gym.spaces.Dict(policy=self.single_observation_space, privileged=truth)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.luck = np.zeros((num_envs, 1), np.float32)

    def _draw(self) -> Any:
        obs = super()._draw()
        rng = np.random.default_rng([7, int(self._count[0])])
        self.luck = rng.normal(size=self.luck.shape).astype(np.float32)
        return Parts(policy=obs, privileged=self.luck.copy())

    def step(self, actions: Any) -> Any:
        luck = self.luck[:, 0].astype(np.float64)
        obs, reward, *rest = super().step(actions)
        return dict(obs), reward + luck, *rest

    def reset(self, **kw: Any) -> Any:
        obs, infos = super().reset(**kw)
        return dict(obs), infos


class Parts(dict[str, Any]):
    """Parts of observations; an index picks rows of each, for ``report_ends``."""

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) if isinstance(key, str) else {name: own[key] for name, own in self.items()}


def lucky_envs(n_worlds: int, mode: AutoresetMode) -> CopyEnv:
    return LuckyCopyEnv(n_worlds, mode) if mode is AutoresetMode.SAME_STEP else CopyEnv(n_worlds, mode=mode)


def test_the_critic_uses_the_truth_and_the_actor_learns(tmp_path: Path) -> None:
    config = small_config(
        algorithm=LEARNS, stagger=False, total_steps=12_288, eval={"every_steps": None, "episodes": 64}
    )
    training = run_to_end(config, tmp_path / "run", make_env=lucky_envs)
    columns = play_episodes(LearnerPolicy(training.model), CopyEnv(64, mode=AutoresetMode.DISABLED), seed=1)
    assert columns is not None and columns["return"].mean() > 0.1 * IDLE
    truth = np.linspace(-2.0, 2.0, 200, dtype=np.float32)[:, None]
    obs = {"policy": np.zeros((200, 2), np.float32), "privileged": truth}
    policy: Any = training.model.policy
    with torch.no_grad():
        values = policy.predict_values(policy.obs_to_tensor(obs)[0])[:, 0].numpy()
    slope, _ = np.polyfit(obs["privileged"][:, 0], values, 1)
    assert 0.8 < slope < 1.2  # the luck itself
    actions = policy.predict(obs, deterministic=True)[0]
    np.testing.assert_array_equal(actions, np.tile(actions[:1], (200, 1)))


def test_the_exported_policy_is_the_actor_alone(tmp_path: Path) -> None:
    config = small_config(env=ENV, algorithm=PPO, total_steps=384)
    run, path = run_to_end(config, tmp_path / "run"), tmp_path / "run"
    (path / "config.yaml").write_text("")
    export_policy(path / "policy" / "final", tmp_path / "out", onnx=True)
    content = json.loads((tmp_path / "out" / "policy.json").read_text())
    assert content["env"]["settings"]["observation"].pop("privileged") == []
    for column in [*TRUTH, "privileged"]:
        assert column not in json.dumps({**content, "robot": {}, "training": {}})
    policy = load_policy(tmp_path / "out")
    env = make_waypoints(4, policy.env_config, "DISABLED")
    assert env.single_observation_space == policy.observation_space
    learner, (obs, _) = LearnerPolicy(run.model), env.reset(seed=1)
    assert obs.shape[1] == 2 * policy.make_layout().step_size == content["observation"]["size"]
    for _ in range(10):
        expected = learner.predict(obs, deterministic=True)[0]
        action = policy.predict(obs)[0]
        np.testing.assert_allclose(action, expected, atol=2e-6)
        obs = env.step(action)[0]
