"""Writer of the policy of an SB3 model as a policy file: contract and weights. ``snake_gym.interface`` plays it.

The acting part of a policy is written as plain layers, those of an LSTM (RecurrentPPO) first. Gaussian policies (PPO,
A2C, TRPO) have ``mlp_extractor.policy_net`` and ``action_net``, clipped to the action space; squashed ones (SAC, TQC)
``latent_pi``, ``mu`` and tanh; TD3 and DDPG ``mu``, whose last layer is tanh.
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
from stable_baselines3.common.torch_layers import FlattenExtractor

from snake_gym.config import ConfigError, build, to_dict
from snake_gym.envs.core import POLICY, PRIVILEGED, SnakeCore
from snake_gym.interface.actor_network import FrozenNormaliser, Layer, LayerKind
from snake_gym.interface.policy_writing import N_GOLDEN, encode_policy, golden_observations
from snake_gym.registry import find_task

from .config import TrainConfig
from .run_folder import RunFolder, run_versions
from .sb3_internals import frozen_normaliser, is_recurrent

_LSTM = {"weight": "weight_ih", "hidden_weight": "weight_hh", "bias": "bias_ih", "hidden_bias": "bias_hh"}
"""Weights of a recurrent layer, and what torch calls them."""
Tensors = dict[str, NDArray[np.float32]]
_PLAIN: dict[type[torch.nn.Module], Layer] = {
    torch.nn.ReLU: Layer("relu"), torch.nn.Tanh: Layer("tanh"), torch.nn.SiLU: Layer("silu"),
}  # fmt: skip


class LearnerPolicy:
    """Policy of the model behind its normaliser as it now is; it leaves the random generators unchanged."""

    def __init__(self, model: BaseAlgorithm) -> None:
        self._model = model
        space: Any = model.observation_space
        self._n_privileged = flatdim(space[PRIVILEGED]) if isinstance(space, gym.spaces.Dict) else None
        self.normaliser: FrozenNormaliser | None = frozen_normaliser(model)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        """Return SB3's actions (W, A) for observations (W, D), the policy's part of them."""
        obs = observation if self.normaliser is None else self.normaliser(observation)
        if self._n_privileged is not None:  # SB3 asks for all parts; an actor has no use for this one
            obs = {POLICY: obs, PRIVILEGED: np.zeros((len(obs), self._n_privileged), np.float32)}
        return self._model.predict(obs, state, episode_start, deterministic)

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

        Raises ConfigError if a policy file cannot hold the policy, FloatingPointError if its actions are not
        finite.
        """
        layers, tensors = actor_layers(model.policy)
        policy = LearnerPolicy(model)
        try:
            actions = policy.play(self._observations)
        except ValueError as error:
            raise FloatingPointError(str(error)) from error
        return encode_policy(
            self._core, self._config.env_id, layers, tensors, policy.normaliser, self._observations, actions,
            name=self._folder.name, training=self._training_summary(model, evaluation or {}), versions=run_versions(),
        )  # fmt: skip

    def _training_summary(self, model: BaseAlgorithm, evaluation: Mapping[str, float]) -> dict[str, Any]:
        config, launch = self._config, (self._folder.launches() or [{}])[-1]
        return {
            "algorithm": config.algorithm, "steps": model.num_timesteps, "n_envs": config.n_envs, "seed": config.seed,
            "normalise": to_dict(config.normalise), "evaluation": dict(evaluation),
            **{key: launch[key] for key in ("started", "git", "versions") if key in launch},
        }  # fmt: skip


def actor_layers(policy: BasePolicy) -> tuple[tuple[Layer, ...], Tensors]:
    """Return the layers from the (normalised) observation to the action, and their weights by name.

    Raises ConfigError unless they are linear, LSTMs or the usual functions between them, with actions in [-1, 1].
    """
    space = policy.action_space
    low, high = np.asarray(space.low), np.asarray(space.high)  # type: ignore[attr-defined]
    if not ((low == -1.0).all() and (high == 1.0).all()):
        raise ConfigError(f"the policy's actions are in [{low.min():g}, {high.max():g}]; expected [-1, 1]")
    layers: list[Layer] = []
    tensors: Tensors = {}
    for module in _modules(policy):
        if isinstance(module, torch.nn.Linear):
            layers.append(_add_layer("linear", {"weight": module.weight, "bias": module.bias}, tensors))
        elif isinstance(module, torch.nn.LSTM):
            for i in range(module.num_layers):
                parts = {part: getattr(module, f"{own}_l{i}", None) for part, own in _LSTM.items()}
                layers.append(_add_layer("lstm", parts, tensors))
        else:
            layers.append(_activation(module))
    if layers[-1].kind != "tanh" or not policy.squash_output:
        layers.append(Layer("tanh") if policy.squash_output else Layer("clip"))
    return tuple(layers), tensors


def _add_layer(kind: LayerKind, parts: Mapping[str, torch.Tensor | None], tensors: Tensors) -> Layer:
    """Return a layer with these weights, and add them to ``tensors``."""
    number = len({name.partition(".")[0] for name in tensors})
    given = {part: values for part, values in parts.items() if values is not None}
    for part, values in given.items():
        tensors[f"layer{number}.{part}"] = np.ascontiguousarray(values.detach().cpu().numpy(), np.float32)
    return Layer(kind, **{part: f"layer{number}.{part}" for part in given})  # type: ignore[arg-type]


def _modules(policy: BasePolicy) -> Iterator[torch.nn.Module]:
    """Yield the modules that an observation passes through, with containers expanded."""
    actor = getattr(policy, "actor", policy)
    extractor = getattr(actor, "pi_features_extractor", getattr(actor, "features_extractor", None))
    if not isinstance(extractor, FlattenExtractor):
        raise ConfigError(f"a policy with a {type(extractor).__name__} cannot be written; expected plain observations")
    lstm = getattr(policy, "lstm_actor", None)
    if lstm is not None:
        yield lstm
    if isinstance(policy, ActorCriticPolicy):
        parts = [policy.mlp_extractor.policy_net, policy.action_net]
    else:
        parts = [part for part in (getattr(actor, "latent_pi", None), getattr(actor, "mu", None)) if part is not None]
    if not parts:
        raise ConfigError(f"a {type(policy).__name__} cannot be written; expected a plain multilayer perceptron")
    for part in parts:
        yield from (module for module in part.modules() if not isinstance(module, torch.nn.Sequential))


def _activation(module: torch.nn.Module) -> Layer:
    if isinstance(module, torch.nn.Hardtanh):  # SAC with state-dependent exploration bounds its mean
        return Layer("clip", low=float(module.min_val), high=float(module.max_val))
    if isinstance(module, torch.nn.ELU) and module.alpha == 1.0:
        return Layer("elu")
    if type(module) in _PLAIN:
        return _PLAIN[type(module)]
    raise ConfigError(
        f"a network with {module} cannot be written; expected linear layers with relu, tanh, elu or silu between them"
    )
