"""The acting part of an SB3 policy as plain layers and arrays, for policy files.

Gaussian policies (PPO, A2C, TRPO): ``mlp_extractor.policy_net``, ``action_net``, clipped to the action space. Squashed
ones (SAC, TQC): ``latent_pi``, ``mu`` and tanh; TD3 and DDPG: ``mu``, whose last layer is tanh.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.torch_layers import FlattenExtractor

from snake_gym.config import ConfigError
from snake_gym.interface.actor_network import Layer

_PLAIN: dict[type[torch.nn.Module], Layer] = {
    torch.nn.ReLU: Layer("relu"), torch.nn.Tanh: Layer("tanh"), torch.nn.SiLU: Layer("silu"),
}  # fmt: skip


def actor_layers(policy: BasePolicy) -> tuple[tuple[Layer, ...], dict[str, NDArray[np.float32]]]:
    """Layers, from the (normalised) observation to the action, and their weights by name.

    Raises:
        ConfigError: the policy is not a plain multilayer perceptron with actions in [-1, 1].
    """
    space = policy.action_space
    low, high = np.asarray(space.low), np.asarray(space.high)  # type: ignore[attr-defined]
    if not ((low == -1.0).all() and (high == 1.0).all()):
        raise ConfigError(f"the policy's actions are in [{low.min():g}, {high.max():g}]; expected [-1, 1]")
    layers: list[Layer] = []
    tensors: dict[str, NDArray[np.float32]] = {}
    for module in _modules(policy):
        if isinstance(module, torch.nn.Linear):
            name = f"layer{sum(layer.kind == 'linear' for layer in layers)}"
            tensors[f"{name}.weight"] = _as_array(module.weight)
            has_bias = module.bias is not None
            if has_bias:
                tensors[f"{name}.bias"] = _as_array(module.bias)
            layers.append(Layer("linear", f"{name}.weight", f"{name}.bias" if has_bias else None))
        else:
            layers.append(_activation(module))
    if layers[-1].kind != "tanh" or not policy.squash_output:
        layers.append(Layer("tanh") if policy.squash_output else Layer("clip"))
    return tuple(layers), tensors


def _modules(policy: BasePolicy) -> Iterator[torch.nn.Module]:
    """The modules that an observation passes through, containers opened."""
    extractor = getattr(policy, "pi_features_extractor", getattr(policy, "features_extractor", None))
    actor = getattr(policy, "actor", policy)
    if actor is not policy:
        extractor = actor.features_extractor
    if not isinstance(extractor, FlattenExtractor):
        raise ConfigError(f"a policy with a {type(extractor).__name__} cannot be exported; expected plain observations")
    if type(policy).__name__.startswith("Recurrent"):
        raise ConfigError("a recurrent policy cannot be exported; expected a plain multilayer perceptron")
    if isinstance(policy, ActorCriticPolicy):
        parts = [policy.mlp_extractor.policy_net, policy.action_net]
    else:
        parts = [part for part in (getattr(actor, "latent_pi", None), getattr(actor, "mu", None)) if part is not None]
    if not parts:
        raise ConfigError(f"a {type(policy).__name__} has no actor that can be exported")
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
        f"a network with {module} cannot be exported; expected linear layers with relu, tanh, elu or silu between them"
    )


def _as_array(values: torch.Tensor) -> NDArray[np.float32]:
    return np.ascontiguousarray(values.detach().cpu().numpy(), np.float32)
