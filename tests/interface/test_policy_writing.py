"""Policies of any learner as policy files: torch computes the oracle, the file plays as it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from snake_gym.config import ConfigError
from snake_gym.envs import SnakeEnv, SnakeVectorEnv
from snake_gym.interface.policy_file import load_policy
from snake_gym.interface.policy_writing import write_policy

GAIT = {"action": {"kind": "gait"}, "time_limit_s": 2.0}
ENV = SnakeEnv(config=GAIT)
SIZE = ENV.observation_space.shape[0]
OBS = np.random.default_rng(3).normal(size=(200, SIZE)).astype(np.float32)


class CleanRlAgent(torch.nn.Module):
    """The network of CleanRL's ppo_continuous_action.py, with outputs that reach the bounds."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.actor_mean = torch.nn.Sequential(
            torch.nn.Linear(SIZE, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4)
        )
        with torch.no_grad():
            self.actor_mean[4].weight *= 5.0

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return self.actor_mean(obs).clamp(-1.0, 1.0)


def linear_layers(net: torch.nn.Module) -> list[Any]:
    kept = [module for module in net.modules() if isinstance(module, torch.nn.Linear)]
    return [(module.weight, module.bias) for module in kept]


def as_learner(net: torch.nn.Module) -> Any:
    def act(obs: Any) -> Any:
        with torch.no_grad():
            return net(torch.as_tensor(obs, dtype=torch.float32)).numpy()

    return act


AGENT = CleanRlAgent()
ACT = as_learner(AGENT)


def test_a_cleanrl_agent_acts_from_its_file_as_in_torch(tmp_path: Path) -> None:
    contract = write_policy(tmp_path / "mine", ENV, linear_layers(AGENT), "tanh", learner=ACT)
    policy = load_policy(contract)
    np.testing.assert_allclose(policy.predict(OBS)[0], ACT(OBS), rtol=0, atol=5e-6)
    assert 0.01 < (np.abs(ACT(OBS)) == 1.0).mean() < 0.95  # both of them matter
    assert (policy.name, policy.env_id) == ("mine", "SnakeGym/Waypoints-v0")
    assert policy.env_config["time_limit_s"] == 2.0


def test_normalisation_is_that_of_gymnasium(tmp_path: Path) -> None:
    wrapped = gym.wrappers.NormalizeObservation(SnakeEnv(config=GAIT))
    wrapped.reset(seed=0)
    for _ in range(9):
        wrapped.step(wrapped.action_space.sample())
    wrapped.update_running_mean = False
    mean, var = wrapped.obs_rms.mean, wrapped.obs_rms.var
    given = {"observation_mean": mean, "observation_var": var, "clip": 10.0}
    path = write_policy(tmp_path, wrapped, linear_layers(AGENT), **given)
    normalised = np.clip((OBS - mean) / np.sqrt(var + wrapped.epsilon), -10.0, 10.0)
    np.testing.assert_allclose(load_policy(path).predict(OBS)[0], ACT(normalised), rtol=0, atol=5e-6)


@pytest.mark.parametrize("n_layers", [1, 2])
def test_recurrent_weights_act_as_in_torch_with_a_state_for_each_world(n_layers: int, tmp_path: Path) -> None:
    torch.manual_seed(1)
    first, core = torch.nn.Linear(SIZE, 24), torch.nn.LSTM(24, 16, n_layers)
    last = torch.nn.Linear(16, 4)
    with torch.no_grad():
        last.weight *= 4.0

    def episode(obs: Any) -> Any:
        """Actions (T, W, A) of episodes (T, W, D)."""
        with torch.no_grad():
            return last(core(torch.relu(first(torch.as_tensor(obs))))[0]).clamp(-1, 1).numpy()

    def held(module: torch.nn.Module, *names: str) -> tuple[Any, ...]:
        return tuple(getattr(module, name).detach().numpy() for name in names)

    layers = [held(first, "weight", "bias")]
    parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    layers += [held(core, *(f"{part}_l{i}" for part in parts)) for i in range(n_layers)]
    layers += [held(last, "weight", "bias")]
    path = write_policy(tmp_path / "mine", SnakeVectorEnv(num_envs=3, config=GAIT), layers, "relu",
                        learner=lambda obs: episode(obs[:, None])[:, 0])  # fmt: skip
    policy = load_policy(path)
    obs = OBS.reshape(20, 10, SIZE)
    expected = episode(obs)
    assert np.abs(expected[5] - episode(obs[5:])[0]).max() > 0.01  # what came before counts
    state, one = None, None
    for t, now in enumerate(obs):
        action, state = policy.predict(now, state)
        np.testing.assert_allclose(action, expected[t], rtol=0, atol=5e-6)
        single, one = policy.predict(now[4], one)
        np.testing.assert_allclose(single, expected[t, 4], rtol=0, atol=5e-6)
    begins = np.arange(10) == 7
    action, _ = policy.predict(obs[0], state, begins)
    np.testing.assert_allclose(action[7], expected[0, 7], rtol=0, atol=5e-6)
    assert np.abs(action - expected[0])[~begins].max() > 0.01
    with pytest.raises(ValueError, match=r"state has shape \(2, 5\); expected \(10, "):
        policy.predict(obs[0], np.zeros((2, 5)))


def test_squashed_actions_are_a_tanh(tmp_path: Path) -> None:
    path = write_policy(tmp_path, ENV, linear_layers(AGENT), squash=True)
    expected = np.tanh(as_learner(AGENT.actor_mean)(OBS))
    np.testing.assert_allclose(load_policy(path).predict(OBS)[0], expected, rtol=0, atol=5e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: {"layers": w[:-1]}, r"of \d+ observations: the last .* 64 numbers; expected 4"),
        (lambda w: {"layers": w[1:]}, r"'layer0.weight' has shape \(64, 64\); expected \(64, \d+\)"),
        (lambda w: {"activation": "relu"}, r"its golden actions are missed by .*; expected at most"),
        (lambda w: {"env": gym.make("CartPole-v1")}, r"env is a .*; expected a simulated env of snake_gym"),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_is_written(change: Any, message: str, tmp_path: Path) -> None:
    weights = linear_layers(AGENT)
    given = {"env": ENV, "layers": weights, "learner": ACT, **change(weights)}
    with pytest.raises(ConfigError, match=message) as caught:
        write_policy(tmp_path / "mine", **given)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "mine").exists()
