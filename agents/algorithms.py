"""Algorithms by name: a class of stable_baselines3 (or of sb3_contrib, if installed), its network and its parameters.

A further algorithm is a YAML file: ``algorithm: {name: TD3, action_noise_std: 0.1, buffer_size: 200000}``. Parameters
are those of the class's constructor; ``learning_rate`` and ``clip_range`` may be schedules ``{start: 3e-4, end: 0}``.
Stable-Baselines3 checks them, except for ranges outside which it fails late or learns nothing (``_TYPES``).
"""

from __future__ import annotations

import importlib.util
import inspect
import math
import os
import typing
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
import stable_baselines3
import torch
from gymnasium.spaces import flatdim
from pydantic import Field
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.utils import LinearSchedule, get_device
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize

from snake_gym.config import ConfigError, Settings, build, choose, to_dict
from snake_gym.config.errors import hint
from snake_gym.config.settings import Count, NonNegative, Positive, PositiveCount, PositiveShare, Share, convert
from snake_gym.envs.core import SnakeCore
from snake_gym.envs.mirror import env_reflections
from snake_gym.interface.mirror import Reflection, side_by_side

from .asymmetric import choose_policy
from .ppo import PPO, multiplies_bfloat16
from .sb3_internals import PLAIN_POLICY, RECURRENT_POLICY, BetweenRollouts, is_recurrent, unwrap

_DISCRETE = ("DQN", "QRDQN", "MaskablePPO")
"""Algorithms whose actions are choices of a list; a snake's are continuous."""
MAX_WEIGHTS = 1 << 24
"""Largest number of weights of a network: two layers of 4000. A learner holds up to five, with gradients and means."""
_WIDEST_DEFAULT = (400, 300)
"""Hidden layers of TD3 and DDPG, the widest default of any algorithm."""
_ACTIVATIONS: dict[str, type[torch.nn.Module]] = {
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

    def check_parts(self, algorithm: str, parts: Sequence[str], where: str) -> None:
        """Raise ConfigError where a setting is of a part that the algorithm's network does not have."""
        for name in ("lstm_hidden_size", "n_lstm_layers"):
            if getattr(self, name) is not None and not is_recurrent(known_algorithms()[algorithm]):
                raise ConfigError(
                    f"{where}.network.{name} is set, but {algorithm} has no LSTM; expected null, or RecurrentPPO"
                )
        for part in self.net_arch if isinstance(self.net_arch, dict) else ():
            if part not in parts:
                known = ", ".join(parts)
                raise ConfigError(
                    f"{where}.network.net_arch.{part} is not a part of {algorithm}'s network; expected {known}"
                )

    def check_size(self, n_inputs: int, n_outputs: int) -> None:
        """Raise ConfigError if a network with these inputs and outputs would have more than ``MAX_WEIGHTS`` weights."""
        units = self.lstm_hidden_size or 1
        if 4 * units * (n_inputs + units) > MAX_WEIGHTS:
            raise ConfigError(
                f"algorithm.network.lstm_hidden_size is {units}: {4 * units * (n_inputs + units)} weights; expected at "
                f"most {MAX_WEIGHTS}"
            )
        parts = self.net_arch.values() if isinstance(self.net_arch, dict) else [self.net_arch or _WIDEST_DEFAULT]
        for layers in parts:  # a critic takes observation and action
            count = sum(a * b for a, b in pairwise((n_inputs + n_outputs, *layers, n_outputs)))
            if count > MAX_WEIGHTS:
                raise ConfigError(
                    f"algorithm.network.net_arch asks for a network of {count} weights; expected at most {MAX_WEIGHTS}"
                )

    def policy_kwargs(self) -> dict[str, Any]:
        """Return the settings in the form that SB3's policies take."""
        activation = _ACTIVATIONS.get(self.activation or "")
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
_TYPES: dict[str, Any] = {
    "gamma": Share, "gae_lambda": Share, "tau": Share, "n_epochs": PositiveCount, "n_steps": PositiveCount,
    "batch_size": PositiveCount, "buffer_size": PositiveCount, "policy_delay": PositiveCount,
    "target_update_interval": PositiveCount, "learning_starts": Count, "learning_rate": Schedule,
    "clip_range": Schedule, "clip_range_vf": Schedule | None, "max_grad_norm": Positive | GradientNorms,
    "mirror": Share, "target_kl": Positive | None,
    "ent_coef": NonNegative | str, "target_entropy": float | str, "vf_coef": NonNegative,
    "action_noise_std": NonNegative,
    "train_freq": PositiveCount | tuple[PositiveCount, Literal["step", "episode"]],
    "gradient_steps": PositiveCount | Literal[-1], "sde_sample_freq": PositiveCount | Literal[-1],
}  # fmt: skip
"""Allowed type of each parameter that the algorithm has; any other parameter has the type of its default."""
_SET_ELSEWHERE = {
    "self", "policy", "env", "policy_kwargs", "tensorboard_log", "verbose", "seed", "device", "_init_setup_model",
    "action_noise", "rollout_buffer_class", "rollout_buffer_kwargs", "replay_buffer_class", "replay_buffer_kwargs",
    "stats_window_size", "monitor_wrapper",
}  # fmt: skip


@dataclass(frozen=True)
class Algorithm:
    """Algorithm class of SB3 and the arguments to construct it with."""

    name: str
    cls: type[BaseAlgorithm]
    network: NetworkConfig
    parameters: Mapping[str, Any]
    action_noise_std: float | None

    def value(self, name: str) -> Any:
        """Return the given value of a parameter, or its default; None if it has neither."""
        return self.parameters.get(name, _defaults(self.cls).get(name))


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


def find_algorithm(settings: Mapping[str, Any], where: str = "algorithm") -> Algorithm:
    """Return the algorithm that a config's group asks for. Raises ConfigError for wrong names, keys and values."""
    given = dict(settings)
    classes = known_algorithms()
    if "name" not in given:
        raise ConfigError(f"{where}.name is missing; expected one of {', '.join(classes)}")
    name = choose(given.pop("name"), classes, f"{where}.name")
    network = build(NetworkConfig, given.pop("network", {}), f"{where}.network")
    network.check_parts(name, ("pi", "vf" if issubclass(classes[name], OnPolicyAlgorithm) else "qf"), where)
    defaults = _defaults(classes[name])
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key not in defaults:
            raise ConfigError(
                f"{where}.{key} is not a setting{hint(key, defaults)} (settings: name, network, {', '.join(defaults)})"
            )
        own = type(defaults[key]) if isinstance(defaults[key], (bool, int, float, str)) else Any
        found = convert(_TYPES.get(key, own), value, f"{where}.{key}")
        if key == "ent_coef":
            _check_entropy(found, defaults[key], f"{where}.{key}", name)
        if key == "target_entropy" and isinstance(found, str) and found != "auto":
            raise ConfigError(f"{where}.{key} is {found!r}; expected a number or auto")
        is_schedule = isinstance(found, ScheduleConfig)
        if isinstance(found, GradientNorms):
            if not issubclass(classes[name], PPO):
                raise ConfigError(f"{where}.{key} has parts, which {name} does not have; expected one number > 0")
            found = to_dict(found)
        values[key] = LinearSchedule(found.start, found.end, found.fraction) if is_schedule else found
    return Algorithm(name, classes[name], network, values, values.pop("action_noise_std", None))


def check_batch(algorithm: Algorithm, n_envs: int) -> tuple[str, ...]:
    """Return a note on batches of a rollout of which the last one is smaller; no notes if there is none.

    Raises ConfigError if a batch exceeds the data it is drawn from, or if training by episodes has several worlds.
    """
    frequency = algorithm.value("train_freq")
    if isinstance(frequency, tuple) and frequency[1] == "episode" and n_envs > 1:
        raise ConfigError(
            f"algorithm.train_freq counts episodes; expected n_envs 1 (here {n_envs}), or a count of steps"
        )
    size = algorithm.value("batch_size")
    on_policy = issubclass(algorithm.cls, OnPolicyAlgorithm)
    if on_policy:
        most, what = algorithm.value("n_steps") * n_envs, "n_steps times n_envs"
    else:
        most, what = algorithm.value("buffer_size"), "buffer_size"
    if "batch_size" in algorithm.parameters and size > most:
        raise ConfigError(f"algorithm.batch_size is {size}; expected <= {most}, {what}")
    by_batch = issubclass(algorithm.cls, PPO) or is_recurrent(algorithm.cls)
    if size == 1 and by_batch and algorithm.value("normalize_advantage"):
        raise ConfigError(
            "algorithm.batch_size is 1; expected >= 2, or algorithm.normalize_advantage=false: the advantages of a "
            "batch are normalised by their standard deviation"
        )
    if not on_policy or not size or size >= most or most % size == 0:
        return ()
    return (
        f"algorithm.batch_size is {size}, which does not divide {most}, {what}: the last batch of each pass over a "
        f"rollout has {most % size}",
    )


def rollout_steps(algorithm: Algorithm, n_envs: int) -> float:
    """Return the env steps of all worlds in a rollout; infinity for rollouts of whole episodes."""
    frequency = algorithm.value("n_steps" if issubclass(algorithm.cls, OnPolicyAlgorithm) else "train_freq")
    count, unit = frequency if isinstance(frequency, tuple) else (frequency, "step")
    return math.inf if unit == "episode" else int(count) * n_envs


def precision_notes(algorithm: Algorithm, device: str) -> tuple[str, ...]:
    """Return a note on bfloat16 that the processor has no instructions for; no notes if it has, or if none is asked."""
    if not algorithm.parameters.get("bfloat16") or multiplies_bfloat16(get_device(device)):
        return ()
    return ("algorithm.bfloat16 is true, but this processor has no instructions for it: updates are in float32",)


def check_device(name: str, where: str = "device") -> None:
    """Raise ConfigError unless torch can compute on the device with this name."""
    if name == "auto":
        return
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).split("\n")[0].rstrip(".")
        raise ConfigError(f"{where} is {name!r}, which torch cannot use here ({reason}); cpu always works") from None


def make_learner(algorithm: Algorithm, venv: VecEnv, seed: int, device: str = "cpu") -> BaseAlgorithm:
    """Return a fresh SB3 model with ``BetweenRollouts``.

    Raises ConfigError for what SB3 finds wrong with the parameters, and for networks and buffers that are too large.
    """
    policy = choose_policy(algorithm.cls, venv.observation_space)
    n_inputs, n_outputs = (flatdim(space) for space in (venv.observation_space, venv.action_space))
    algorithm.network.check_size(n_inputs, n_outputs)
    _check_memory(algorithm, venv.num_envs, n_inputs, n_outputs)
    parameters = dict(algorithm.parameters)
    if algorithm.action_noise_std is not None:
        shape = venv.action_space.shape or ()
        parameters["action_noise"] = NormalActionNoise(np.zeros(shape), np.full(shape, algorithm.action_noise_std))
    # The bases are found at run time. The name stays the algorithm's: it appears in SB3's messages.
    cls = typing.cast(Any, type(algorithm.name, (BetweenRollouts, algorithm.cls), {}))
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "You have specified a mini-batch size")  # check_batch notes it
            model = cls(
                policy, venv, seed=seed, device=device, policy_kwargs=algorithm.network.policy_kwargs(), **parameters
            )
    except (AssertionError, ValueError, TypeError, RuntimeError, MemoryError) as error:
        raise ConfigError(f"algorithm {algorithm.name} does not take these settings: {error}") from error
    if isinstance(model, PPO) and model.mirror > 0.0:
        model.reflection = _reflection_of(venv)
    model.between_rollouts = lambda: None
    return typing.cast(BaseAlgorithm, model)


def _reflection_of(venv: VecEnv) -> Reflection:
    """Return how observations and actions in a row look in a mirror. Raises ConfigError where that is not known."""
    normaliser = unwrap_vec_normalize(venv)
    if normaliser is not None and normaliser.norm_obs:
        raise ConfigError(
            "normalise.observation is true, but means of what was seen lie to one side; expected false with "
            "algorithm.mirror > 0"
        )
    core = getattr(unwrap(venv).env, "core", None)
    if not isinstance(core, SnakeCore):
        raise ConfigError("algorithm.mirror needs an env of snake_gym, which says how it looks in a mirror; expected 0")
    return side_by_side(env_reflections(core))


def _defaults(cls: type[BaseAlgorithm]) -> dict[str, Any]:
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


def _check_entropy(value: float | str, default: float | str, where: str, algorithm: str) -> None:
    """Raise ConfigError for text that is no weight of the entropy: some algorithms learn it from ``auto`` on."""
    if not isinstance(value, str):
        return
    begin, _, start = value.partition("_")
    if isinstance(default, str) and begin == "auto" and ("_" not in value or _is_positive(start)):
        return
    learned = ", auto, or auto_ and a number > 0 to start from" if isinstance(default, str) else ""
    raise ConfigError(f"{where} is {value!r}; expected a number >= 0{learned} for {algorithm}")


def _is_positive(text: str) -> bool:
    try:
        return 0.0 < float(text) < math.inf
    except ValueError:
        return False


def _check_memory(algorithm: Algorithm, n_envs: int, n_inputs: int, n_outputs: int) -> None:
    """Raise ConfigError if a replay buffer, which fills gradually, or a batch would exceed the machine's memory.

    A batch of off-policy returns over n_steps holds a table of (batch_size, n_steps): indices, rewards and three more.
    """
    if issubclass(algorithm.cls, OnPolicyAlgorithm):
        network = algorithm.network
        recurrent = is_recurrent(algorithm.cls)
        kept = 4 * (network.lstm_hidden_size or 256) * (network.n_lstm_layers or 1) if recurrent else 0
        needs = {"n_steps": ("buffer", 4 * n_envs * (n_inputs + n_outputs + 6 + kept), "16 to 4096 are usual")}
    else:
        needs = {
            "buffer_size": ("buffer", 4 * (2 * n_inputs + n_outputs + 3), "100000 to 1000000 are usual"),
            "n_steps": ("batch", 5 * 8 * (algorithm.value("batch_size") or 1), "1 to 10 are usual"),
        }
    if not hasattr(os, "sysconf"):  # Windows
        return
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for name, (what, each, usual) in needs.items():
        count = algorithm.value(name) or 1
        if each * count > memory:
            raise ConfigError(
                f"algorithm.{name} is {count}: the {what} takes {each * count / 1e9:.0f} GB; this machine has "
                f"{memory / 1e9:.0f} GB; expected at most {memory // each} ({usual})"
            )
