"""Policies in files that can execute code when they are loaded, and are loaded only if the user trusts them.

A zip of Stable-Baselines3 or sb3-contrib and the statistics of its VecNormalize are pickles. A TorchScript archive is a
program whose operations also read and write files; PyTorch's security policy asks to treat it as executable code.
"""

from __future__ import annotations

import importlib.util
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError, digest, require
from snake_gym.config.records import versions

_ALGORITHMS = {
    "sb3_contrib.common.recurrent.policies": ("sb3_contrib", "RecurrentPPO"),
    "sb3_contrib.tqc.policies": ("sb3_contrib", "TQC"),
    "sb3_contrib.crossq.policies": ("sb3_contrib", "CrossQ"),
    "sb3_contrib.ars.policies": ("sb3_contrib", "ARS"),
    "stable_baselines3.sac.policies": ("stable_baselines3", "SAC"),
    "stable_baselines3.td3.policies": ("stable_baselines3", "TD3"),
}
"""Module of a policy's class, or of a base of it -> library and algorithm; on-policy ones share theirs."""
_NOT_NEEDED = {"learning_rate": 0.0, "lr_schedule": None, "clip_range": 0.2, "clip_range_vf": None, "buffer_size": 1}
"""Parts of a training that playing does not need: functions, often of another Python version, and memory."""


class Sb3Policy:
    """Model that ``model.save`` wrote, behind the VecNormalize of a pickle; recurrent ones keep their states."""

    def __init__(self, file: Path, statistics: Path | None = None) -> None:
        require("a policy of Stable-Baselines3", "stable_baselines3", "torch")
        self._model = _load_model(file)
        self._normalise = None if statistics is None else load_statistics(statistics)
        self.observation_space, self.action_space = self._model.observation_space, self._model.action_space
        contents = [each.read_bytes() for each in (file, statistics) if each is not None]
        self.digest = digest(*contents, versions(["stable-baselines3", "sb3-contrib", "torch"]))
        beside = file.with_name("vecnormalize.pkl")
        self.notes: tuple[str, ...] = ()
        if statistics is None and beside.is_file():
            self.notes = (f"plays without {beside}; {file}+{beside.name} takes it",)

    def predict(
        self, observation: NDArray[Any], state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[NDArray[np.float32], Any]:
        """The model's actions."""
        obs = observation if self._normalise is None else self._normalise(observation)
        return self._model.predict(obs, state, episode_start, deterministic)


class TorchScriptPolicy:
    """Policy of a TorchScript module: observations (W, D) in, actions (W, A) or a tuple that begins with them out."""

    def __init__(self, file: Path, statistics: Path | None = None) -> None:
        require("a TorchScript policy", "torch")
        import torch

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                self._module = torch.jit.load(str(file), map_location="cpu").eval()  # type: ignore[no-untyped-call]
        except RuntimeError as error:
            raise ConfigError(
                f"{file} is no TorchScript archive ({str(error).splitlines()[0][:120]}); for weights without their "
                "network, give a function that makes the policy, as name=module:factory"
            ) from error
        self._normalise = None if statistics is None else load_statistics(statistics)
        contents = [each.read_bytes() for each in (file, statistics) if each is not None]
        self.digest = digest(*contents, versions(["torch"]))
        self.notes: tuple[str, ...] = ()

    def predict(
        self, observation: NDArray[Any], state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[NDArray[np.float32], Any]:
        """The module's actions, clipped to [-1, 1]."""
        import torch

        obs = observation if self._normalise is None else self._normalise(observation)
        with torch.no_grad():
            found = self._module(torch.as_tensor(np.atleast_2d(obs), dtype=torch.float32))
        action = (found[0] if isinstance(found, tuple) else found).numpy()
        return np.clip(action if observation.ndim == 2 else action[0], -1.0, 1.0), state


def load_statistics(file: Path) -> Callable[[NDArray[Any]], NDArray[np.float32]]:
    """Return the normalisation of observations (W, D) or (D,) by the VecNormalize that ``file`` holds."""
    from stable_baselines3.common.save_util import load_from_pkl
    from stable_baselines3.common.vec_env import VecNormalize

    try:
        found = load_from_pkl(file)
    except Exception as error:
        raise ConfigError(f"{file} cannot be unpickled: {type(error).__name__}: {error}") from error
    if not isinstance(found, VecNormalize):
        raise ConfigError(f"{file} holds a {type(found).__name__}; expected the VecNormalize that its save() wrote")
    return lambda obs: np.asarray(found.normalize_obs(obs), np.float32)


def _load_model(file: Path) -> Any:
    from stable_baselines3.common.save_util import load_from_zip_file

    if not zipfile.is_zipfile(file) or "data" not in zipfile.ZipFile(file).namelist():
        raise ConfigError(f"{file} is no zip that a model of Stable-Baselines3 was saved to")
    try:
        data, _, _ = load_from_zip_file(file, device="cpu", custom_objects=_NOT_NEEDED)
        library, name = _algorithm(file, data or {})
        if importlib.util.find_spec(library) is None:
            raise ConfigError(f"{file} is a {name} policy, and {library} is not installed: pip install sb3-contrib")
        model: Any = getattr(importlib.import_module(library), name)
        model = model.load(file, device="cpu", custom_objects=_NOT_NEEDED)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"{file} cannot be loaded: {type(error).__name__}: {error}") from error
    model.policy.set_training_mode(False)
    return model


def _algorithm(file: Path, data: Mapping[str, Any]) -> tuple[str, str]:
    """Return library and name of the algorithm, found from the class of the policy and the algorithm's settings."""
    kind = data.get("policy_class")
    for base in getattr(kind, "__mro__", ()):
        if base.__module__ in _ALGORITHMS:
            return _ALGORITHMS[base.__module__]
        if base.__module__ == "stable_baselines3.common.policies" and base.__name__.startswith("ActorCritic"):
            if "cg_max_steps" in data:
                return "sb3_contrib", "TRPO"
            return "stable_baselines3", "PPO" if "clip_range" in data else "A2C"
    raise ConfigError(
        f"{file} holds a policy of class {getattr(kind, '__name__', kind)!r}, whose algorithm is not known; give a "
        "function that loads it, as name=module:factory"
    )
