"""Algorithms by name: a class of stable_baselines3 (or sb3_contrib, where installed) and its parameters, checked.

A further algorithm is a YAML file: ``algorithm: {name: TD3, action_noise_std: 0.1, buffer_size: 200000}``. Parameters
are those of the class's constructor; ``learning_rate`` and ``clip_range`` may be schedules ``{start: 3e-4, end: 0}``.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
import os
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv

from agents.network_config import NetworkConfig
from snake_gym.config import ConfigError, build, choose

POLICY = "MlpPolicy"
_SET_ELSEWHERE = {
    "self", "policy", "env", "policy_kwargs", "tensorboard_log", "verbose", "seed", "device", "_init_setup_model",
    "action_noise", "rollout_buffer_class", "rollout_buffer_kwargs", "replay_buffer_class", "replay_buffer_kwargs",
    "stats_window_size", "monitor_wrapper",
}  # fmt: skip


_SHARE = ("in [0, 1]", lambda x: 0.0 <= x <= 1.0)
_COUNT = (">= 1", lambda x: x >= 1)
_POSITIVE = ("finite and > 0", lambda x: 0.0 < x < math.inf)
_WEIGHT = ("finite and >= 0", lambda x: 0.0 <= x < math.inf)
_RANGES: dict[str, tuple[str, Callable[[float], bool]]] = {
    "gamma": _SHARE, "gae_lambda": _SHARE, "tau": _SHARE, "n_epochs": _COUNT, "n_steps": _COUNT, "batch_size": _COUNT,
    "buffer_size": _COUNT, "train_freq": _COUNT, "policy_delay": _COUNT, "target_update_interval": _COUNT,
    "gradient_steps": (">= 1, or -1 for as many as env steps", lambda x: x >= 1 or x == -1),
    "learning_starts": _WEIGHT, "learning_rate": _POSITIVE, "clip_range": _POSITIVE, "clip_range_vf": _POSITIVE,
    "max_grad_norm": _POSITIVE, "target_kl": _POSITIVE, "ent_coef": _WEIGHT, "vf_coef": _WEIGHT,
    "action_noise_std": _WEIGHT, "sde_sample_freq": (">= 1, or -1 for once a rollout", lambda x: x >= 1 or x == -1),
}  # fmt: skip
"""Parameter -> what it may be, where the algorithm has it; SB3 takes others and fails later, or learns nothing."""


@dataclass(frozen=True)
class ScheduleConfig:
    """A value that goes linearly from ``start`` to ``end``, reached after ``fraction`` of the run."""

    start: float
    end: float = 0.0
    fraction: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.fraction <= 1.0:
            raise ValueError(f"fraction is {self.fraction:g}; expected in (0, 1]")


@dataclass(frozen=True)
class Algorithm:
    """A class and the arguments that are to be given to it."""

    name: str
    cls: type[BaseAlgorithm]
    network: NetworkConfig
    parameters: Mapping[str, Any]
    action_noise_std: float | None

    def policy_class(self) -> type[BasePolicy]:
        """The class of its policy."""
        return self.cls.policy_aliases[POLICY]


class BetweenRollouts:
    """Mixin for SB3 algorithms: ``between_rollouts`` is called before each rollout, when nothing is half done.

    At that moment the state of training is the networks, optimisers, counters, random generators, env and, off-policy,
    the replay buffer; a rollout buffer holds nothing that will be used again.
    """

    between_rollouts: Callable[[], None]

    def collect_rollouts(self, *args: Any, **kwargs: Any) -> Any:
        """SB3's method, with the call before it."""
        self.between_rollouts()
        return super().collect_rollouts(*args, **kwargs)  # type: ignore[misc]


def find_algorithm(settings: Mapping[str, Any], where: str = "algorithm") -> Algorithm:
    """The algorithm that a config's group asks for. Raises ConfigError for names, keys and types that are wrong."""
    given = dict(settings)
    classes = known_algorithms()
    if "name" not in given:
        raise ConfigError(f"{where}.name is missing; expected one of {', '.join(classes)}")
    name = choose(given.pop("name"), classes, f"{where}.name")
    network = build(NetworkConfig, given.pop("network", {}), f"{where}.network")
    network.check_parts(name, ("pi", "vf" if issubclass(classes[name], OnPolicyAlgorithm) else "qf"), where)
    checked = build(_parameter_type(classes[name]), given, where)
    for key in given:
        _check_range(key, getattr(checked, key), where)
    values = {key: _as_parameter(getattr(checked, key)) for key in given}
    noise = values.pop("action_noise_std", None)
    return Algorithm(name, classes[name], network, values, noise)


def check_batch(algorithm: Algorithm, n_envs: int) -> None:
    """Raise ConfigError where a batch is larger than what it is drawn from, or where worlds do not end together."""
    given = {name: p.default for name, p in inspect.signature(algorithm.cls.__init__).parameters.items()}
    given |= algorithm.parameters
    if isinstance(given.get("train_freq"), tuple) and given["train_freq"][1] == "episode" and n_envs > 1:
        raise ConfigError(
            f"algorithm.train_freq counts episodes; expected n_envs 1 (here {n_envs}), or a count of steps"
        )
    if "batch_size" not in algorithm.parameters:
        return
    if issubclass(algorithm.cls, OnPolicyAlgorithm):
        most, what = given["n_steps"] * n_envs, "n_steps times n_envs"
    else:
        most, what = given["buffer_size"], "buffer_size"
    if given["batch_size"] > most:
        raise ConfigError(f"algorithm.batch_size is {given['batch_size']}; expected <= {most}, {what}")


def check_device(name: str, where: str = "device") -> None:
    """Raise ConfigError unless torch can compute on the device of that name."""
    if name == "auto":
        return
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).split("\n")[0].rstrip(".")
        raise ConfigError(f"{where} is {name!r}, which torch cannot use here ({reason}); cpu always works") from None


def known_algorithms() -> dict[str, type[BaseAlgorithm]]:
    """Classes by name: those of stable_baselines3 and, if installed, sb3_contrib that collect rollouts."""
    found: dict[str, type[BaseAlgorithm]] = {}
    for module in (stable_baselines3, _contrib()):
        for name, value in sorted(vars(module).items() if module else ()):
            collects = isinstance(value, type) and issubclass(value, (OnPolicyAlgorithm, OffPolicyAlgorithm))
            if collects and POLICY in value.policy_aliases:
                found.setdefault(name, value)
    return found


def make_learner(algorithm: Algorithm, venv: VecEnv, seed: int, device: str = "cpu") -> BaseAlgorithm:
    """A fresh SB3 model with ``BetweenRollouts``.

    Raises ConfigError for what SB3 finds wrong with the parameters, and for networks and buffers that are too large.
    """
    try:
        algorithm.network.check_size(venv.observation_space, venv.action_space)
    except ValueError as error:
        raise ConfigError(f"algorithm.network.{error}") from None
    _check_memory(algorithm, venv)
    parameters = dict(algorithm.parameters)
    if algorithm.action_noise_std is not None:
        shape = venv.action_space.shape or ()
        parameters["action_noise"] = NormalActionNoise(np.zeros(shape), np.full(shape, algorithm.action_noise_std))
    # The bases are found at run time. The name stays the algorithm's: it appears in SB3's messages.
    cls = typing.cast(Any, type(algorithm.name, (BetweenRollouts, algorithm.cls), {}))
    try:
        model = cls(
            POLICY, venv, seed=seed, device=device, policy_kwargs=algorithm.network.policy_kwargs(), **parameters
        )
    except (AssertionError, ValueError, TypeError, RuntimeError, MemoryError) as error:
        raise ConfigError(f"algorithm {algorithm.name} does not take these settings: {error}") from error
    model.between_rollouts = lambda: None
    return typing.cast(BaseAlgorithm, model)


def _check_memory(algorithm: Algorithm, venv: VecEnv) -> None:
    """Raise ConfigError for what takes more than the machine's memory: a buffer, filled bit by bit, or a batch.

    A batch of off-policy returns over n_steps holds a table of (batch_size, n_steps): indices, rewards and three more.
    """
    given = {name: p.default for name, p in inspect.signature(algorithm.cls.__init__).parameters.items()}
    given |= algorithm.parameters
    n_obs, n_actions = (math.prod(space.shape or ()) for space in (venv.observation_space, venv.action_space))
    if issubclass(algorithm.cls, OnPolicyAlgorithm):
        needs = {"n_steps": ("buffer", 4 * venv.num_envs * (n_obs + n_actions + 6), "16 to 4096 are usual")}
    else:
        needs = {
            "buffer_size": ("buffer", 4 * (2 * n_obs + n_actions + 3), "100000 to 1000000 are usual"),
            "n_steps": ("batch", 5 * 8 * given.get("batch_size", 1), "1 to 10 are usual"),
        }
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for name, (what, each, usual) in needs.items():
        wanted = each * given.get(name, 1)
        if wanted > memory:
            raise ConfigError(
                f"algorithm.{name} is {given[name]}: the {what} takes {wanted / 1e9:.0f} GB; this machine has "
                f"{memory / 1e9:.0f} GB; expected at most {memory // each} ({usual})"
            )


def find_divergence(model: BaseAlgorithm) -> str | None:
    """What of the policy is no longer finite, "weights" or "actions"; None if all is well.

    Draws no random numbers. An action is that for the model's last observations.
    """
    policy: Any = model.policy
    if not all(bool(torch.isfinite(values).all()) for values in policy.parameters()):
        return "weights"
    if model._last_obs is None:
        return None
    try:
        with torch.no_grad():
            actions = policy._predict(policy.obs_to_tensor(model._last_obs)[0], deterministic=True)
    except ValueError:  # torch's distributions refuse a mean that is no number, or a deviation of 0 or infinity
        return "actions"
    return None if bool(torch.isfinite(actions).all()) else "actions"


def _contrib() -> types.ModuleType | None:
    try:
        return importlib.import_module("sb3_contrib")
    except ImportError:
        return None


def _parameter_type(cls: type[BaseAlgorithm]) -> type[Any]:
    """A dataclass with the constructor's parameters that a config may set, for the strict loader."""
    signature = inspect.signature(cls.__init__)
    fields: list[tuple[str, Any, Any]] = []
    for name, parameter in signature.parameters.items():
        plain = _plain_type(parameter.annotation)
        if name not in _SET_ELSEWHERE and plain is not None:
            default = None if parameter.default is inspect.Parameter.empty else parameter.default
            fields.append((name, plain, dataclasses.field(default=default)))
    if "action_noise" in signature.parameters:
        fields.append(("action_noise_std", Union[float, None], dataclasses.field(default=None)))  # noqa: UP007
    return dataclasses.make_dataclass(cls.__name__, fields, frozen=True)


def _plain_type(declared: Any) -> Any:
    """The part of a declared type that YAML can hold; a callable becomes a schedule. None if nothing is left."""
    is_union = typing.get_origin(declared) in (Union, types.UnionType)
    members = []
    for member in typing.get_args(declared) if is_union else (declared,):
        origin = typing.get_origin(member) or member
        if member in (bool, int, float, str, type(None)) or origin is tuple:
            members.append(member)
        elif origin is Callable:
            members.append(ScheduleConfig)
    if all(member is type(None) for member in members):
        return None
    return Union[tuple(members)]  # noqa: UP007  # the members are known at run time only


def _check_range(name: str, value: Any, where: str) -> None:
    """Raise ConfigError for a number, or a schedule's, outside the parameter's range; a schedule may end at 0."""
    if name not in _RANGES:
        return
    expected, holds = _RANGES[name]
    if isinstance(value, tuple):  # train_freq
        if value[0] < 1 or value[1] not in ("step", "episode"):
            raise ConfigError(f"{where}.{name} is {list(value)}; expected [count >= 1, 'step' or 'episode']")
        return
    if isinstance(value, ScheduleConfig):
        fine = holds(value.start) and (value.end == 0.0 or holds(value.end))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        fine = holds(value)
    else:  # null, or the algorithm's own word, such as auto
        return
    if not fine:
        shown = f"{value.start:g} to {value.end:g}" if isinstance(value, ScheduleConfig) else f"{value:g}"
        raise ConfigError(f"{where}.{name} is {shown}; expected {expected}")


def _as_parameter(value: Any) -> Any:
    if isinstance(value, ScheduleConfig):
        return LinearSchedule(value.start, value.end, value.fraction)
    return value
