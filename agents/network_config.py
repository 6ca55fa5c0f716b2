"""The networks of a learner, from settings: how wide, how deep, and no larger than a robot's policy can need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import torch
from gymnasium.spaces import Space

from snake_gym.config import ConfigError

MAX_LAYERS = 64
MAX_WEIGHTS = 1 << 24
"""Of one network: two layers of 4000. A learner holds up to five networks, their gradients and two means of these."""
_WIDEST_DEFAULT = (400, 300)
"""Of TD3 and DDPG."""
MAX_LOG_STD = 20.0
"""Beyond it a standard deviation is 0 or infinite in all that matters."""
_ACTIVATIONS: dict[str, type[torch.nn.Module]] = {
    "tanh": torch.nn.Tanh, "relu": torch.nn.ReLU, "elu": torch.nn.ELU, "silu": torch.nn.SiLU,
}  # fmt: skip


@dataclass(frozen=True)
class NetworkConfig:
    """The policy's network; null takes the algorithm's own default."""

    net_arch: tuple[int, ...] | dict[str, tuple[int, ...]] | None = None
    """Widths of the hidden layers, or {pi: [...], vf: [...]} (qf for off-policy algorithms)."""
    activation: Literal["tanh", "relu", "elu", "silu"] | None = None
    log_std_init: float | None = None
    """Logarithm of the action's standard deviation at the start, in [-20, 20]."""

    def __post_init__(self) -> None:
        widths = self.net_arch.values() if isinstance(self.net_arch, dict) else [self.net_arch or ()]
        if any(width < 1 for layers in widths for width in layers):
            raise ValueError(f"net_arch is {self.net_arch}; expected widths >= 1")
        for layers in widths:
            if len(layers) > MAX_LAYERS:
                raise ValueError(f"net_arch has {len(layers)} layers; expected at most {MAX_LAYERS}")
            _check_weights(layers)
        if self.log_std_init is not None and not abs(self.log_std_init) <= MAX_LOG_STD:
            raise ValueError(f"log_std_init is {self.log_std_init:g}; expected in [-{MAX_LOG_STD:g}, {MAX_LOG_STD:g}]")

    def check_parts(self, algorithm: str, parts: Sequence[str], where: str) -> None:
        """Raise ConfigError where ``net_arch`` names a part that the algorithm's network does not have."""
        for part in self.net_arch if isinstance(self.net_arch, dict) else ():
            if part not in parts:
                known = ", ".join(parts)
                raise ConfigError(
                    f"{where}.network.net_arch.{part} is not a part of {algorithm}'s network; expected {known}"
                )

    def check_size(self, observation_space: Space[Any], action_space: Space[Any]) -> None:
        """Raise ValueError if a network between these spaces would have more than ``MAX_WEIGHTS`` weights."""
        ends = [math.prod(space.shape or ()) for space in (observation_space, action_space)]
        parts = self.net_arch.values() if isinstance(self.net_arch, dict) else [self.net_arch or _WIDEST_DEFAULT]
        for layers in parts:
            _check_weights((sum(ends), *layers, ends[1]))  # a critic takes observation and action

    def policy_kwargs(self) -> dict[str, Any]:
        """The settings as SB3's policies take them."""
        kwargs: dict[str, Any] = {}
        if isinstance(self.net_arch, dict):
            kwargs["net_arch"] = {part: list(layers) for part, layers in self.net_arch.items()}
        elif self.net_arch is not None:
            kwargs["net_arch"] = list(self.net_arch)
        if self.activation is not None:
            kwargs["activation_fn"] = _ACTIVATIONS[self.activation]
        if self.log_std_init is not None:
            kwargs["log_std_init"] = self.log_std_init
        return kwargs


def _check_weights(widths: Sequence[int]) -> None:
    count = sum(inputs * outputs for inputs, outputs in pairwise((1, *widths)))
    if count > MAX_WEIGHTS:
        raise ValueError(f"net_arch asks for a network of {count} weights; expected at most {MAX_WEIGHTS}")
