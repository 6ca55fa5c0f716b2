"""Policy for SB3's actor-critic algorithms with a privileged critic (``observation.privileged``).

Observations have two parts. The actor is given ``policy``, the critic ``policy`` and ``privileged``. What is exported
is the actor, so neither a policy file nor a robot has to know the truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import FlattenExtractor, MlpExtractor

from snake_gym.config import ConfigError
from snake_gym.envs.core import POLICY, PRIVILEGED

from .sb3_internals import PLAIN_POLICY, RECURRENT_POLICY, is_recurrent


class ActorInputs(FlattenExtractor):
    """The policy's part of observations."""

    def __init__(self, space: gym.spaces.Dict) -> None:
        super().__init__(space[POLICY])

    def forward(self, observations: Mapping[str, torch.Tensor]) -> torch.Tensor:  # type: ignore[override]  # parts, not one tensor
        return super().forward(observations[POLICY])


class CriticInputs(FlattenExtractor):
    """Both parts of observations."""

    def forward(self, observations: Mapping[str, torch.Tensor]) -> torch.Tensor:  # type: ignore[override]
        return torch.cat(
            [super(CriticInputs, self).forward(observations[part]) for part in (POLICY, PRIVILEGED)], dim=1
        )


class AsymmetricPolicy(ActorCriticPolicy):
    """SB3's actor-critic policy with inputs of their own for actor and critic."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        own = {"features_extractor_class": ActorInputs, "share_features_extractor": False}
        super().__init__(*args, **{**settings, **own})

    def _build_mlp_extractor(self) -> None:
        super()._build_mlp_extractor()
        self.vf_features_extractor = CriticInputs(self.observation_space)
        n_inputs = self.vf_features_extractor.features_dim
        critic = MlpExtractor(n_inputs, self.net_arch, self.activation_fn, self.device)
        self.mlp_extractor.value_net, self.mlp_extractor.latent_dim_vf = critic.value_net, critic.latent_dim_vf


def choose_policy(cls: type[BaseAlgorithm], space: gym.Space[Any]) -> str | type[AsymmetricPolicy]:
    """Return the policy of an algorithm class for observations of ``space``, by its name if they have one part.

    Raises ConfigError for several parts and an algorithm without a critic that could be given them.
    """
    if not isinstance(space, gym.spaces.Dict):
        return RECURRENT_POLICY if is_recurrent(cls) else PLAIN_POLICY
    if not issubclass(cls, OnPolicyAlgorithm) or is_recurrent(cls):
        raise ConfigError(
            f"env.observation.privileged is set, but the critic of {cls.__name__} sees what its actor sees; expected "
            "none, or PPO, A2C or TRPO"
        )
    return AsymmetricPolicy
