"""Everything that the rest of a training run depends on, taken out of an SB3 model and put back bit for bit.

Valid between rollouts only (``algorithms.BetweenRollouts``). SB3's own save keeps the networks and optimisers but loses
the random generators, the env, the normaliser's running returns and the observations that the next rollout starts from.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.save_util import recursive_getattr, recursive_setattr
from stable_baselines3.common.vec_env import VecEnv

from agents.sb3_vec_env import Sb3VecEnv

Arrays = dict[str, NDArray[Any]]

COUNTERS = (
    "num_timesteps", "_n_updates", "_episode_num", "_current_progress_remaining", "_n_calls", "exploration_rate",
)  # fmt: skip
LAST_STEP = ("_last_obs", "_last_episode_starts", "_last_original_obs")


@dataclass
class Snapshot:
    """The state of a run, sorted by how it is stored."""

    tensors: dict[str, Any] = field(default_factory=dict)
    """Networks, optimisers and torch's generator: tensors and plain values in dicts and lists."""
    arrays: Arrays = field(default_factory=dict)
    replay: Arrays = field(default_factory=dict)
    """Replay buffer of an off-policy algorithm: the filled rows."""
    plain: dict[str, Any] = field(default_factory=dict)
    """Values for JSON."""


def unwrap(venv: VecEnv | None) -> Sb3VecEnv:
    """The adapter below SB3's wrappers."""
    inner = None if venv is None else venv.unwrapped
    if not isinstance(inner, Sb3VecEnv):
        raise TypeError(f"the model's env is a {type(inner).__name__}; expected an Sb3VecEnv")
    return inner


def capture(model: BaseAlgorithm) -> Snapshot:
    """The state of ``model`` and its env; tensors and replay rows are the model's own: store them before it goes on."""
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
        if value is not None:
            arrays[f"model/{name}"] = np.array(value)
    arrays |= {f"normaliser/{name}": values for name, values in _normaliser_arrays(model).items()}
    # SB3 draws from numpy's global generator.
    kind, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)  # noqa: NPY002
    arrays["numpy_generator"] = np.asarray(keys)
    snapshot.arrays = arrays
    snapshot.plain = {
        "counters": {name: getattr(model, name) for name in COUNTERS if hasattr(model, name)},
        "episodes": [[float(e["r"]), int(e["l"]), float(e["t"])] for e in model.ep_info_buffer or ()],
        "successes": [bool(s) for s in model.ep_success_buffer or ()],
        "numpy_generator": [kind, int(position), int(has_gauss), float(gauss)],
        "action_generator": model.action_space.np_random.bit_generator.state,
    }
    if isinstance(model, OffPolicyAlgorithm) and model.replay_buffer is not None:
        buffer = model.replay_buffer
        snapshot.plain["replay"] = {"position": buffer.pos, "full": buffer.full}
        filled = buffer.size()
        snapshot.replay = {name: values[:filled] for name, values in _replay_arrays(model).items()}
    return snapshot


def restore(model: BaseAlgorithm, snapshot: Snapshot) -> None:
    """Put a captured state into a freshly made model of the same settings.

    Raises:
        KeyError, ValueError, RuntimeError, TypeError: the state is not of such a model.
    """
    tensors, arrays, plain = snapshot.tensors, snapshot.arrays, snapshot.plain
    model.set_parameters(tensors["parameters"], exact_match=True, device=model.device)
    for name in model._get_torch_save_params()[1]:
        recursive_setattr(model, f"{name}.data", tensors["variables"][name].to(model.device))
    unwrap(model.env).set_state(_part(arrays, "venv/"))
    for name, values in _part(arrays, "model/").items():
        setattr(model, name, values)
    own = _normaliser_arrays(model)
    stored = _part(arrays, "normaliser/")
    for name in own:
        _set_normaliser(model, name, stored[name])
    for name in COUNTERS:
        if hasattr(model, name):
            setattr(model, name, plain["counters"][name])
    size = model._stats_window_size
    model.ep_info_buffer = deque(({"r": r, "l": n, "t": t} for r, n, t in plain["episodes"]), maxlen=size)
    model.ep_success_buffer = deque(plain["successes"], maxlen=size)
    if isinstance(model, OffPolicyAlgorithm) and model.replay_buffer is not None:
        _restore_replay(model, snapshot)
    restore_generators(model, snapshot)


def restore_generators(model: BaseAlgorithm, snapshot: Snapshot) -> None:
    """Set numpy's, torch's and the action space's generators, all that SB3 draws from, to the captured state."""
    kind, position, has_gauss, gauss = snapshot.plain["numpy_generator"]
    np.random.set_state((kind, snapshot.arrays["numpy_generator"], position, has_gauss, gauss))  # noqa: NPY002
    model.action_space.np_random.bit_generator.state = snapshot.plain["action_generator"]
    torch.set_rng_state(snapshot.tensors["generator"])
    if model.device.type == "cuda" and "cuda_generators" in snapshot.tensors:
        torch.cuda.set_rng_state_all(snapshot.tensors["cuda_generators"])


def _restore_replay(model: OffPolicyAlgorithm, snapshot: Snapshot) -> None:
    buffer = model.replay_buffer
    assert buffer is not None
    own = _replay_arrays(model)
    if own.keys() != snapshot.replay.keys():
        raise ValueError("the replay buffer has other parts")
    for name, values in own.items():
        stored = snapshot.replay[name]
        if stored.shape[1:] != values.shape[1:] or stored.shape[0] > values.shape[0] or stored.dtype != values.dtype:
            raise ValueError(f"the replay buffer's {name} is {stored.dtype} {stored.shape}; expected {values.shape}")
        values[: stored.shape[0]] = stored
    buffer.pos = int(snapshot.plain["replay"]["position"])
    buffer.full = bool(snapshot.plain["replay"]["full"])


def _replay_arrays(model: OffPolicyAlgorithm) -> Arrays:
    buffer = model.replay_buffer
    return {
        name: values
        for name, values in vars(buffer).items()
        if isinstance(values, np.ndarray) and values.shape[:1] == (getattr(buffer, "buffer_size", -1),)
    }


def _normaliser_arrays(model: BaseAlgorithm) -> Arrays:
    """State of SB3's VecNormalize, or nothing."""
    normaliser = model.get_vec_normalize_env()
    if normaliser is None:
        return {}
    arrays: Arrays = {"returns": np.array(normaliser.returns)}
    for part in ("obs_rms", "ret_rms"):
        statistics = getattr(normaliser, part, None)
        if statistics is not None:
            arrays |= {f"{part}/{name}": np.array(getattr(statistics, name)) for name in ("mean", "var", "count")}
    return arrays


def _set_normaliser(model: BaseAlgorithm, name: str, values: NDArray[Any]) -> None:
    normaliser = model.get_vec_normalize_env()
    part, _, inner = name.partition("/")
    if inner:
        setattr(getattr(normaliser, part), inner, float(values) if inner == "count" else np.array(values))
    else:
        setattr(normaliser, part, np.array(values))


def _part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> Arrays:
    return {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}
