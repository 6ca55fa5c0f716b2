"""Algorithms by name: a class of stable_baselines3 (or of sb3_contrib, if installed), its network and its parameters.

A further algorithm is a YAML file: ``algorithm: {name: TD3, action_noise_std: 0.1, buffer_size: 200000}``. Parameters
are those of the class's constructor; ``learning_rate`` and ``clip_range`` may be schedules ``{start: 3e-4, end: 0}``.
Stable-Baselines3 checks them, except for ranges outside which it fails late or learns nothing (``PARAMETER_TYPES``).
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import stable_baselines3
import torch
from pydantic import Field
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.utils import LinearSchedule, get_device

from snake_gym.config import ConfigError, Settings, build, choose, to_dict
from snake_gym.config.errors import hint
from snake_gym.config.settings import Count, NonNegative, Positive, PositiveCount, PositiveShare, Share, convert
from snake_gym.envs.mirror import env_reflections
from snake_gym.interface.actor_network import LayerKind
from snake_gym.interface.mirror import side_by_side

from .asymmetric import choose_policy
from .ppo import PPO
from .sb3_internals import PLAIN_POLICY, RECURRENT_POLICY
from .sb3_vec_env import Sb3VecEnv

_DISCRETE = ("DQN", "QRDQN", "MaskablePPO")
"""Algorithms with discrete actions; those of a snake are continuous."""
ACTIVATIONS: dict[LayerKind, type[torch.nn.Module]] = {
    "tanh": torch.nn.Tanh, "relu": torch.nn.ReLU, "elu": torch.nn.ELU, "silu": torch.nn.SiLU,
}  # fmt: skip


class NetworkConfig(Settings):
    """Network of the policy; null takes the algorithm's own default."""

    net_arch: tuple[PositiveCount, ...] | dict[str, tuple[PositiveCount, ...]] | None = None
    """Widths of the hidden layers, or {pi: [...], vf: [...]} (qf for off-policy algorithms)."""
    activation: Literal["tanh", "relu", "elu", "silu"] | None = None
    """Function between layers: tanh, relu, elu or silu."""
    log_std_init: Annotated[float, Field(ge=-20.0, le=20.0)] | None = None
    """Logarithm of the action's standard deviation at the start."""
    lstm_hidden_size: PositiveCount | None = None
    """Units of each LSTM layer before the hidden layers, of RecurrentPPO."""
    n_lstm_layers: Annotated[int, Field(ge=1, le=8)] | None = None
    """Number of these layers."""

    def policy_kwargs(self) -> dict[str, Any]:
        """Return the settings in the form that SB3's policies take."""
        activation = ACTIVATIONS[self.activation] if self.activation else None
        given = {**to_dict(self), "activation_fn": activation}
        del given["activation"]
        return {name: value for name, value in given.items() if value is not None}


class ScheduleConfig(Settings):
    """Schedule of a value that changes linearly from ``start`` to ``end`` over the first ``fraction`` of the run."""

    start: Positive
    """Value at the first step."""
    end: NonNegative = 0.0
    """Value from the end of the fraction on."""
    fraction: PositiveShare = 1.0
    """Share of the run after which the end is reached."""


class GradientNorms(Settings):
    """Bounds of the gradient's norm, of actor and critic apart."""

    actor: Positive = 0.5
    """Bound of the part of the actor and its standard deviation."""
    critic: Positive = 0.5
    """Bound of the critic's part."""


Schedule = Positive | ScheduleConfig
PARAMETER_TYPES: dict[str, Any] = {
    "gamma": Share, "gae_lambda": Share, "tau": Share, "n_epochs": PositiveCount, "n_steps": PositiveCount,
    "batch_size": PositiveCount, "buffer_size": PositiveCount, "policy_delay": PositiveCount,
    "target_update_interval": PositiveCount, "learning_starts": Count, "learning_rate": Schedule,
    "clip_range": Schedule, "clip_range_vf": Schedule | None, "max_grad_norm": Positive | GradientNorms,
    "mirror": Share, "target_kl": Positive | None,
    "target_entropy": float | str, "vf_coef": NonNegative, "action_noise_std": NonNegative, "train_freq": PositiveCount,
    "gradient_steps": PositiveCount | Literal[-1], "sde_sample_freq": PositiveCount | Literal[-1],
}  # fmt: skip
"""Allowed type of each parameter that the algorithm has; any other parameter has the type of its default."""
_SET_ELSEWHERE = {
    "self", "policy", "env", "policy_kwargs", "tensorboard_log", "verbose", "seed", "device", "_init_setup_model",
    "action_noise", "rollout_buffer_class", "rollout_buffer_kwargs", "replay_buffer_class", "replay_buffer_kwargs",
    "stats_window_size", "monitor_wrapper",
}  # fmt: skip


def known_algorithms() -> dict[str, type[BaseAlgorithm]]:
    """Return classes by name: those of stable_baselines3 and, if installed, sb3_contrib that collect rollouts."""
    found: dict[str, type[BaseAlgorithm]] = {}
    contrib = [importlib.import_module("sb3_contrib")] if importlib.util.find_spec("sb3_contrib") else []
    for module in (stable_baselines3, *contrib):
        for name, value in sorted(vars(module).items()):
            collects = isinstance(value, type) and issubclass(value, (OnPolicyAlgorithm, OffPolicyAlgorithm))
            if collects and name not in _DISCRETE and {PLAIN_POLICY, RECURRENT_POLICY} & value.policy_aliases.keys():
                found.setdefault(name, value)
    return {**found, "PPO": PPO}


def find_algorithm(settings: Mapping[str, Any]) -> tuple[type[BaseAlgorithm], dict[str, Any]]:
    """Return the class that a config's ``algorithm`` asks for, and its arguments; ConfigError for what is wrong."""
    given = dict(settings)
    classes = known_algorithms()
    if "name" not in given:
        raise ConfigError(f"algorithm.name is missing; expected one of {', '.join(classes)}")
    cls = classes[choose(given.pop("name"), classes, "algorithm.name")]
    network = build(NetworkConfig, given.pop("network", {}), "algorithm.network")
    critic = "vf" if issubclass(cls, OnPolicyAlgorithm) else "qf"
    for part in network.net_arch if isinstance(network.net_arch, dict) else ():
        choose(part, ("pi", critic), "algorithm.network.net_arch")
    defaults = defaults_of(cls)
    arguments: dict[str, Any] = {"policy_kwargs": network.policy_kwargs()}
    for key, value in given.items():
        if key not in defaults:
            known = ", ".join(defaults)
            raise ConfigError(
                f"algorithm.{key} is not a setting{hint(key, defaults)} (settings: name, network, {known})"
            )
        expected = parameter_type(key, defaults[key])
        if key == "ent_coef":
            expected = NonNegative | str if expected is str else NonNegative  # "auto" where it is learned
        if key == "max_grad_norm" and cls is not PPO:
            expected = Positive
        found = convert(expected, value, f"algorithm.{key}")
        if isinstance(found, ScheduleConfig):
            found = LinearSchedule(found.start, found.end, found.fraction)
        arguments[key] = to_dict(found) if isinstance(found, GradientNorms) else found
    return cls, arguments


def make_model(settings: Mapping[str, Any], venv: Sb3VecEnv, seed: int, device: str = "cpu") -> BaseAlgorithm:
    """Return a fresh model of a config's ``algorithm``. Raises ConfigError for what is wrong, or what SB3 refuses."""
    cls, arguments = find_algorithm(settings)
    try:
        get_device(device)
    except RuntimeError as error:
        reason = str(error).split("\n")[0]
        raise ConfigError(f"device is {device!r}; expected cpu, cuda, auto or another of torch ({reason})") from None
    if (deviation := arguments.pop("action_noise_std", None)) is not None:
        shape = venv.action_space.shape or ()
        arguments["action_noise"] = NormalActionNoise(np.zeros(shape), np.full(shape, deviation))
    policy = choose_policy(cls, venv.observation_space)
    try:
        model = cls(policy, venv, seed=seed, device=device, **arguments)
    except (AssertionError, ValueError, TypeError, RuntimeError, MemoryError) as error:
        reason = str(error).split("\n")[0]
        raise ConfigError(f"algorithm {cls.__name__} does not take these settings: {reason}") from error
    if isinstance(model, PPO) and model.mirror > 0.0:
        model.reflection = side_by_side(env_reflections(venv.core))
    return model


def parameter_type(name: str, default: Any) -> Any:
    """Return the type of values that a parameter takes."""
    return PARAMETER_TYPES.get(name, type(default) if isinstance(default, (bool, int, float, str)) else Any)


def defaults_of(cls: type[BaseAlgorithm]) -> dict[str, Any]:
    """Return the parameters that a config may set, with their default values."""
    parameters: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__:  # one that passes further settings on has those of the next
        own = inspect.signature(vars(base)["__init__"]).parameters if "__init__" in vars(base) else {}
        parameters = {**own, **parameters}
        if own and not any(p.kind is p.VAR_KEYWORD for p in own.values()):
            break
    parameters = {name: p for name, p in parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    settable = {name: None if p.default is p.empty else p.default for name, p in parameters.items()}
    noise = {"action_noise_std": None} if "action_noise" in settable else {}
    return {name: value for name, value in settable.items() if name not in _SET_ELSEWHERE} | noise
