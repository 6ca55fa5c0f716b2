"""A trained policy as one small file, and the policy read back from it.

The file is a zip of plain arrays (``.npz``, no pickles): the weights, the running normaliser, the bounds of the spaces,
and ``meta``, JSON that says which algorithm and network it is and the settings of the env it was trained in. Of
off-policy algorithms it holds the actor alone.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.vec_env import VecNormalize

from agents.algorithms import Algorithm, find_algorithm
from agents.array_files import MAX_POLICY_BYTES, read_arrays
from snake_gym.config import ConfigError, to_dict, write_atomic
from snake_gym.envs import DEFAULT_ENV
from snake_gym.interface.actor_network import FrozenNormaliser
from snake_gym.interface.policy_contract import TRAINING_ONLY
from snake_gym.registry import TASKS, find_task

FORMAT = "snake_gym policy 1"
_WEIGHT, _NORMALISER = "weight/", "normaliser/"
_UNREADABLE = (
    ValueError, KeyError, TypeError, EOFError, RuntimeError, AttributeError, MemoryError, zipfile.BadZipFile,
)  # fmt: skip


class ObservationNormaliser(FrozenNormaliser):
    """SB3's running normalisation of observations, frozen."""

    @classmethod
    def of(cls, normaliser: VecNormalize | None) -> ObservationNormaliser | None:
        """What SB3's normaliser does to observations now; None if nothing."""
        if normaliser is None or not normaliser.norm_obs:
            return None
        rms: Any = normaliser.obs_rms  # of a flat observation; SB3 declares that of a dict of them
        return cls(rms.mean.copy(), rms.var.copy(), normaliser.epsilon, normaliser.clip_obs)


@dataclass(frozen=True)
class LoadedPolicy:
    """A trained policy that plays."""

    name: str
    """Name of the run it comes from."""
    algorithm: str
    env_id: str
    """Registered name of the env it was trained in."""
    env_config: dict[str, Any]
    """Settings of that env, complete: ``gym.make(policy.env_id, config=policy.env_config)``."""
    steps: int
    """Env steps of training."""
    evaluation: dict[str, float]
    """Last evaluation during training, {} if there was none."""
    digest: str
    """Changes whenever the policy would act differently."""
    path: Path
    observation_space: gym.spaces.Box
    action_space: gym.spaces.Box
    network: BasePolicy
    normaliser: ObservationNormaliser | None

    def predict(
        self,
        observation: NDArray[Any],
        state: Any = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[np.float32], Any]:
        """Actions (W, A) for observations (W, D), or (A,) for (D,), and the state to pass to the next call."""
        obs = observation if self.normaliser is None else self.normaliser(observation)
        action, carried = self.network.predict(obs, state, episode_start, deterministic)
        return np.asarray(action, np.float32), carried


def encode_policy(
    model: BaseAlgorithm,
    algorithm: Algorithm,
    name: str,
    env_config: Mapping[str, Any],
    evaluation: Mapping[str, float] | None = None,
    env_id: str = DEFAULT_ENV,
) -> bytes:
    """The content of a policy file for the model as it stands."""
    spaces = (model.observation_space, model.action_space)
    if not all(isinstance(space, gym.spaces.Box) for space in spaces):
        raise TypeError(f"the spaces are {spaces}; expected boxes")
    meta = {
        "format": FORMAT, "name": name, "algorithm": algorithm.name, "network": to_dict(algorithm.network),
        "use_sde": bool(model.use_sde), "env_id": env_id, "env": to_dict(env_config), "steps": model.num_timesteps,
        "evaluation": dict(evaluation or {}),
    }  # fmt: skip
    arrays: dict[str, Any] = {"meta": np.array(json.dumps(meta))}
    for part, space in zip(("observation", "action"), spaces, strict=True):
        arrays |= {f"{part}/low": space.low, f"{part}/high": space.high}  # type: ignore[attr-defined]
    for key, values in _network(model.policy).state_dict().items():
        arrays[_WEIGHT + key] = values.detach().cpu().numpy()
    normaliser = ObservationNormaliser.of(model.get_vec_normalize_env())
    if normaliser is not None:
        arrays |= {_NORMALISER + part: np.array(value) for part, value in vars(normaliser).items()}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def save_policy(path: Path, content: bytes) -> None:
    """Write what ``encode_policy`` made, atomically."""
    write_atomic(path, content)


def read_policy(path: Path) -> LoadedPolicy:
    """The policy in a file. Raises ConfigError if it is no policy of this project, or damaged."""
    try:
        arrays = read_arrays(path, MAX_POLICY_BYTES)
        meta = json.loads(str(arrays["meta"]))
        if meta["format"] != FORMAT:
            raise ValueError(f"its format is {meta['format']!r}")
        algorithm = find_algorithm({"name": meta["algorithm"], "network": meta["network"]}, f"{path}: policy")
        observation_space, action_space = (_box(arrays, part) for part in ("observation", "action"))
        algorithm.network.check_size(observation_space, action_space)
        policy = _build_policy(algorithm, observation_space, action_space, bool(meta["use_sde"]))
        weights = {k.removeprefix(_WEIGHT): torch.from_numpy(v) for k, v in arrays.items() if k.startswith(_WEIGHT)}
        _network(policy).load_state_dict(weights)
        policy.set_training_mode(False)
        parts = {k.removeprefix(_NORMALISER): v for k, v in arrays.items() if k.startswith(_NORMALISER)}
        return LoadedPolicy(
            name=str(meta["name"]), algorithm=algorithm.name, env_id=_env_id(meta), env_config=_env_config(meta),
            steps=int(meta["steps"]), evaluation=dict(meta["evaluation"]), digest=_digest(arrays), path=path,
            observation_space=observation_space, action_space=action_space, network=policy,
            normaliser=_normaliser(parts) if parts else None,
        )  # fmt: skip
    except ConfigError:
        raise
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None
    except _UNREADABLE as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error).split("\n")[0]
        raise ConfigError(
            f"{path} is no policy that train.py wrote, or it is damaged ({reason}); expected a run or policy file"
        ) from None


def _env_config(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in dict(meta["env"]).items() if name not in TRAINING_ONLY}


def _env_id(meta: Mapping[str, Any]) -> str:
    """The env of that id; of earlier files, which have none, the one that knows all their settings."""
    if "env_id" in meta:
        return str(meta["env_id"])
    settings = _env_config(meta).keys()
    fits = [i for i in TASKS if settings <= {field.name for field in fields(find_task(i))}]
    return fits[0] if fits else DEFAULT_ENV


def _build_policy(
    algorithm: Algorithm, observation_space: gym.spaces.Box, action_space: gym.spaces.Box, use_sde: bool
) -> BasePolicy:
    kwargs = algorithm.network.policy_kwargs() | ({"use_sde": True} if use_sde else {})
    policy_class: Any = algorithm.policy_class()
    policy: BasePolicy = policy_class(observation_space, action_space, lambda _: 0.0, **kwargs)
    return policy


def _network(policy: BasePolicy) -> torch.nn.Module:
    """What acts: the actor where there is one, else the whole policy."""
    actor = getattr(policy, "actor", None)
    return actor if isinstance(actor, torch.nn.Module) else policy


def _digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def _box(arrays: Mapping[str, NDArray[Any]], part: str) -> gym.spaces.Box:
    low = arrays[f"{part}/low"]
    return gym.spaces.Box(low, arrays[f"{part}/high"], low.shape, np.float32)


def _normaliser(parts: Mapping[str, NDArray[Any]]) -> ObservationNormaliser:
    return ObservationNormaliser(parts["mean"], parts["var"], float(parts["epsilon"]), float(parts["clip"]))
