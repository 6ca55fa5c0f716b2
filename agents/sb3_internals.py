"""Code that uses private parts of Stable-Baselines3: check each new release of it against this file.

``ppo`` and ``asymmetric`` override one method each, as subclasses.

The state of a PPO run is read from a model and restored bit for bit: SB3's own save keeps networks and optimisers but
loses the random generators, the env, the normaliser's running returns and the observations that the next rollout starts
from. It is complete between rollouts (``BetweenRollouts``). Other algorithms lose their replay buffer and the memory of
recurrent policies, as in SB3's own save.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import TensorBoardOutputFormat
from stable_baselines3.common.save_util import recursive_getattr, recursive_setattr
from stable_baselines3.common.vec_env import VecEnv
from torch.utils.tensorboard import SummaryWriter

from snake_gym.envs.core import POLICY
from snake_gym.interface.actor_network import FrozenNormaliser

from .sb3_vec_env import Sb3VecEnv

Arrays = dict[str, NDArray[Any]]

COUNTERS = ("num_timesteps", "_n_updates", "_current_progress_remaining")
LAST_STEP = ("_last_obs", "_last_episode_starts", "_last_original_obs")
PLAIN_POLICY, RECURRENT_POLICY = "MlpPolicy", "MlpLstmPolicy"


@dataclass
class Snapshot:
    """State of a run, grouped by the form of storage."""

    tensors: dict[str, Any] = field(default_factory=dict)
    """Networks, optimisers and torch's generator: tensors and plain values in dicts and lists."""
    arrays: Arrays = field(default_factory=dict)
    plain: dict[str, Any] = field(default_factory=dict)
    """Plain values for JSON."""


class BetweenRollouts:
    """Mixin for SB3 algorithms: ``between_rollouts`` is called before each rollout, when no work is unfinished.

    A rollout buffer then holds nothing that will be used again.
    """

    between_rollouts: Callable[[], None]

    def collect_rollouts(self, *args: Any, **kwargs: Any) -> Any:
        self.between_rollouts()
        return super().collect_rollouts(*args, **kwargs)  # type: ignore[misc]


class ResumableTensorBoard(TensorBoardOutputFormat):
    """SB3's TensorBoard output in ``folder``; records of a killed launch after ``resumed_from`` are hidden.

    ``resumed_from`` is None if the run starts, or restarts because it was killed before a checkpoint.
    """

    def __init__(self, folder: Path, resumed_from: int | None) -> None:
        purge_step = 0 if resumed_from is None else resumed_from + 1
        self.writer = SummaryWriter(log_dir=str(folder), purge_step=purge_step)
        self._is_closed = False


def is_recurrent(algorithm: BaseAlgorithm | type[BaseAlgorithm]) -> bool:
    """Return True if the policies of an algorithm have a memory: it has no plain ones."""
    return PLAIN_POLICY not in algorithm.policy_aliases


def current_learning_rate(model: BaseAlgorithm) -> float:
    return float(model.lr_schedule(model._current_progress_remaining))


def find_divergence(model: BaseAlgorithm) -> str | None:
    """Return the part of the policy that is not finite, "weights" or "actions"; None if all is finite.

    Draws no random numbers. The action checked is that for the model's last observations.
    """
    if not all(bool(torch.isfinite(values).all()) for values in model.policy.parameters()):
        return "weights"
    if model._last_obs is None:
        return None
    try:
        actions, _ = model.predict(model._last_obs, deterministic=True)
    except ValueError:  # torch's distributions refuse a mean that is no number, or a deviation of 0 or infinity
        return "actions"
    return None if np.isfinite(actions).all() else "actions"


def frozen_normaliser(model: BaseAlgorithm) -> FrozenNormaliser | None:
    """Return the current transformation of observations by SB3's normaliser; None if there is none."""
    normaliser = model.get_vec_normalize_env()
    if normaliser is None or not normaliser.norm_obs:
        return None
    rms: Any = normaliser.obs_rms
    if isinstance(rms, dict):  # of a policy and its critic
        rms = rms[POLICY]
    return FrozenNormaliser(rms.mean.copy(), rms.var.copy(), normaliser.epsilon, normaliser.clip_obs)


def unwrap(venv: VecEnv | None) -> Sb3VecEnv:
    """Return the adapter below SB3's wrappers."""
    inner = None if venv is None else venv.unwrapped
    if not isinstance(inner, Sb3VecEnv):
        raise TypeError(f"the model's env is a {type(inner).__name__}; expected an Sb3VecEnv")
    return inner


def capture(model: BaseAlgorithm) -> Snapshot:
    """Return the state of ``model`` and env; tensors are not copied: store them before it goes on."""
    snapshot = Snapshot()
    _, variables = model._get_torch_save_params()
    snapshot.tensors = {
        "parameters": model.get_parameters(),
        "variables": {name: recursive_getattr(model, name).detach() for name in variables},
        "generator": torch.get_rng_state(),
    }
    if model.device.type == "cuda":
        snapshot.tensors["cuda_generators"] = torch.cuda.get_rng_state_all()
    arrays = {f"venv/{name}": values for name, values in unwrap(model.env).get_state().items()}
    for name in LAST_STEP:
        value = getattr(model, name, None)
        if isinstance(value, dict):
            arrays |= {f"model/{name}/{part}": np.array(values) for part, values in value.items()}
        elif value is not None:
            arrays[f"model/{name}"] = np.array(value)
    places = _normaliser_places(model)
    arrays |= {f"normaliser/{path}": np.array(getattr(owner, name)) for path, (owner, name) in places.items()}
    snapshot.arrays = arrays
    snapshot.plain = {
        "counters": {name: getattr(model, name) for name in COUNTERS if hasattr(model, name)},
        "numpy_generator": np.random.get_state(legacy=False),  # noqa: NPY002  # SB3 draws from the global one
    }
    return snapshot


def restore(model: BaseAlgorithm, snapshot: Snapshot) -> None:
    """Restore a captured state into a freshly made model with the same settings.

    Raises KeyError, ValueError, RuntimeError or TypeError if the state is not of such a model.
    """
    tensors, arrays, plain = snapshot.tensors, snapshot.arrays, snapshot.plain
    model.set_parameters(tensors["parameters"], exact_match=True, device=model.device)
    for name in model._get_torch_save_params()[1]:
        recursive_setattr(model, f"{name}.data", tensors["variables"][name].to(model.device))
    unwrap(model.env).set_state(_part(arrays, "venv/"))
    for path, values in _part(arrays, "model/").items():
        name, _, part = path.partition("/")
        setattr(model, name, {**(getattr(model, name) or {}), part: values} if part else values)
    stored = _part(arrays, "normaliser/")
    for path, (owner, name) in _normaliser_places(model).items():
        setattr(owner, name, float(stored[path]) if name == "count" else np.array(stored[path]))
    for name in COUNTERS:
        if hasattr(model, name):
            setattr(model, name, plain["counters"][name])
    np.random.set_state(plain["numpy_generator"])  # noqa: NPY002
    torch.set_rng_state(tensors["generator"])
    if model.device.type == "cuda" and "cuda_generators" in tensors:
        torch.cuda.set_rng_state_all(tensors["cuda_generators"])


def _normaliser_places(model: BaseAlgorithm) -> dict[str, tuple[Any, str]]:
    """Return object and attribute of each part of the state of SB3's VecNormalize, empty without one."""
    normaliser: Any = model.get_vec_normalize_env()
    if normaliser is None:
        return {}
    means = {"ret_rms": normaliser.ret_rms}
    of_obs = getattr(normaliser, "obs_rms", None)
    if isinstance(of_obs, dict):
        means |= {f"obs_rms/{part}": mean for part, mean in of_obs.items()}
    elif of_obs is not None:
        means["obs_rms"] = of_obs
    places = {f"{part}/{name}": (mean, name) for part, mean in means.items() for name in ("mean", "var", "count")}
    return {"returns": (normaliser, "returns"), **places}


def _part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> Arrays:
    return {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}
