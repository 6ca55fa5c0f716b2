"""Writer of the policy of an SB3 model as a policy file: contract and weights. ``snake_gym.interface`` plays it.

The acting part of a policy is written as plain layers, those of an LSTM (RecurrentPPO) first. Gaussian policies (PPO,
A2C, TRPO) have ``mlp_extractor.policy_net`` and ``action_net``, clipped to the action space; squashed ones (SAC, TQC)
``latent_pi``, ``mu`` and tanh; TD3 and DDPG ``mu``, with tanh as its last layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.spaces import flatdim
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy

from snake_gym.config import ConfigError, build
from snake_gym.envs.core import POLICY, PRIVILEGED, SnakeCore
from snake_gym.interface.actor_network import Layer
from snake_gym.interface.policy_writing import N_GOLDEN, Arrays, encode_policy, golden_observations
from snake_gym.registry import find_task

from .algorithms import ACTIVATIONS
from .config import TrainConfig
from .run_folder import RunFolder, run_versions
from .sb3_internals import is_recurrent

_LSTM = {"weight": "weight_ih", "hidden_weight": "weight_hh", "bias": "bias_ih", "hidden_bias": "bias_hh"}
"""Weights of a recurrent layer, and what torch calls them."""


class LearnerPolicy:
    """Policy of the model as it now is; it leaves the random generators unchanged."""

    def __init__(self, model: BaseAlgorithm) -> None:
        self._model = model
        space: Any = model.observation_space
        self._n_privileged = flatdim(space[PRIVILEGED]) if isinstance(space, gym.spaces.Dict) else None

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        """Return SB3's actions (W, A) for observations (W, D), the policy's part of them."""
        if self._n_privileged is not None:  # SB3 asks for all parts; an actor has no use for this one
            privileged = np.zeros((len(observation), self._n_privileged), np.float32)
            observation = {POLICY: observation, PRIVILEGED: privileged}
        return self._model.predict(observation, state, episode_start, deterministic)

    def play(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return actions (G, A) for observations (G, D); if recurrent, of one episode that makes them in turn."""
        if not is_recurrent(self._model):
            return np.asarray(self.predict(observations, deterministic=True)[0], np.float32)
        state, actions = None, []
        for observation in observations:
            action, state = self.predict(observation[None], state, deterministic=True)
            actions.append(action[0])
        return np.array(actions, np.float32)


class PolicyWriter:
    """Maker of policy files from the model of a run with complete settings."""

    def __init__(self, config: TrainConfig, folder: RunFolder) -> None:
        self._config, self._folder = config, folder
        self._core = SnakeCore(build(find_task(config.env_id), config.env, "env").without_privileged(), N_GOLDEN)
        self._observations = golden_observations(self._core)

    def encode(self, model: BaseAlgorithm, evaluation: Mapping[str, float] | None = None) -> dict[str, bytes]:
        """Return the files of the model's policy, the contract last; ``evaluation`` is recorded in it.

        Raises ConfigError if a policy file cannot hold the policy, FloatingPointError or ValueError if its actions
        are not finite.
        """
        config, launch = self._config, (self._folder.launches() or [{}])[-1]
        training: dict[str, Any] = {
            "algorithm": config.algorithm, "steps": model.num_timesteps, "n_envs": config.n_envs, "seed": config.seed,
            "evaluation": dict(evaluation or {}),
            **{key: launch[key] for key in ("started", "git", "versions") if key in launch},
        }  # fmt: skip
        actions = LearnerPolicy(model).play(self._observations)
        return encode_policy(
            self._core, config.env_id, actor_layers(model.policy), None, self._observations, actions,
            training=training, name=self._folder.path.resolve().name, versions=run_versions(),
        )  # fmt: skip


def actor_layers(policy: BasePolicy) -> list[Layer | Arrays]:
    """Return the layers from the observation to the action, those with weights as their arrays.

    Raises ConfigError unless they are linear, LSTMs or the usual functions between them.
    """
    layers: list[Layer | Arrays] = []
    for module in _modules(policy):
        if isinstance(module, torch.nn.Linear):
            layers.append({"weight": module.weight, "bias": module.bias})
        elif isinstance(module, torch.nn.LSTM):
            for i in range(module.num_layers):
                layers.append({part: getattr(module, f"{own}_l{i}", None) for part, own in _LSTM.items()})
        else:
            layers.append(_activation(module))
    if layers[-1] != Layer("tanh") or not policy.squash_output:
        layers.append(Layer("tanh") if policy.squash_output else Layer("clip"))
    return layers


def _modules(policy: BasePolicy) -> Iterator[torch.nn.Module]:
    """Yield the modules that an observation passes through, with containers expanded."""
    actor = getattr(policy, "actor", policy)
    if isinstance(policy, ActorCriticPolicy):
        parts = [getattr(policy, "lstm_actor", None), policy.mlp_extractor.policy_net, policy.action_net]
    else:
        parts = [getattr(actor, "latent_pi", None), getattr(actor, "mu", None)]
    for part in filter(None, parts):
        yield from (module for module in part.modules() if not isinstance(module, torch.nn.Sequential))


def _activation(module: torch.nn.Module) -> Layer:
    if isinstance(module, torch.nn.Hardtanh):  # SAC with state-dependent exploration bounds its mean
        return Layer("clip", low=float(module.min_val), high=float(module.max_val))
    for kind, function in ACTIVATIONS.items():
        if isinstance(module, function):
            return Layer(kind)
    raise ConfigError(
        f"a network with {module} cannot be written; expected linear layers with relu, tanh, elu or silu between them"
    )
