"""Code that uses private parts of Stable-Baselines3: check each new release of it against this file.

``ppo`` and ``asymmetric`` override methods, as subclasses.

The state of a PPO run is read from a model and restored bit for bit: SB3's own save keeps networks and optimisers but
loses the random generators, the env and the observations that the next rollout starts from. It is complete at the
beginning of a rollout. Other algorithms lose their replay buffer and the memory of recurrent policies, as in SB3's own
save.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import Logger, TensorBoardOutputFormat
from stable_baselines3.common.save_util import recursive_getattr, recursive_setattr
from torch.utils.tensorboard import SummaryWriter

from snake_gym.config.yaml_text import format_yaml

from .sb3_vec_env import Sb3VecEnv

COUNTERS = ("num_timesteps", "_n_updates", "_current_progress_remaining")
LAST_STEP = ("_last_obs", "_last_episode_starts")
PLAIN_POLICY, RECURRENT_POLICY = "MlpPolicy", "MlpLstmPolicy"


class ResumableTensorBoard(TensorBoardOutputFormat):
    """SB3's TensorBoard output in ``folder``, without records of a killed launch from ``purge_step`` on."""

    def __init__(self, folder: Path, purge_step: int) -> None:
        self.writer = SummaryWriter(log_dir=str(folder), purge_step=purge_step)
        self._is_closed = False


def open_tensorboard(folder: Path, resumed_from: int | None, config: object) -> Logger:
    """Return a logger into TensorBoard; ``resumed_from``: step of the checkpoint, or None.

    The first launch writes ``config`` as a text.
    """
    output = ResumableTensorBoard(folder, 0 if resumed_from is None else resumed_from + 1)
    if resumed_from is None:
        output.writer.add_text("config", f"```\n{format_yaml(config)}\n```", 0)
    return Logger(str(folder), [output])


def is_recurrent(algorithm: BaseAlgorithm | type[BaseAlgorithm]) -> bool:
    """Return True if the policies of an algorithm have a memory: it has no plain ones."""
    return PLAIN_POLICY not in algorithm.policy_aliases


def current_learning_rate(model: BaseAlgorithm) -> float:
    return float(model.lr_schedule(model._current_progress_remaining))


def find_divergence(model: BaseAlgorithm) -> str | None:
    """Return what is not finite, "weights" of any network to be saved or "actions" of the policy; None if all is.

    Draws no random numbers. The action checked is that for the model's last observations.
    """
    networks = [values for name, values in model.get_parameters().items() if not name.endswith("optimizer")]
    if not all(bool(torch.isfinite(values).all()) for network in networks for values in network.values()):
        return "weights"
    if model._last_obs is None:
        return None
    try:
        actions, _ = model.predict(model._last_obs, deterministic=True)
    except ValueError:  # torch's distributions refuse a mean that is no number, or a deviation of 0 or infinity
        return "actions"
    return None if np.isfinite(actions).all() else "actions"


def env_of(model: BaseAlgorithm) -> Sb3VecEnv:
    """Return the env of a model."""
    assert isinstance(model.env, Sb3VecEnv)
    return model.env


def capture(model: BaseAlgorithm) -> dict[str, Any]:
    """Return the state of ``model`` and env, not copied: tensors, arrays and plain values in dicts and lists."""
    return {
        "parameters": model.get_parameters(),
        "variables": {name: recursive_getattr(model, name).detach() for name in model._get_torch_save_params()[1]},
        "counters": {name: getattr(model, name) for name in COUNTERS if hasattr(model, name)},
        "last_step": {name: getattr(model, name, None) for name in LAST_STEP},
        "env": env_of(model).get_state(),
        "torch_generator": torch.get_rng_state(),
        "numpy_generator": np.random.get_state(legacy=False),  # noqa: NPY002  # SB3 draws from the global one
    }


def restore(model: BaseAlgorithm, state: dict[str, Any]) -> None:
    """Restore a captured state, its arrays as tensors, into a freshly made model with the same settings.

    Raises KeyError, ValueError, RuntimeError or TypeError if the state is not of such a model.
    """
    model.set_parameters(state["parameters"], exact_match=True, device=model.device)
    for name in model._get_torch_save_params()[1]:
        recursive_setattr(model, f"{name}.data", state["variables"][name].to(model.device))
    for name, value in {**state["counters"], **as_arrays(state["last_step"])}.items():
        setattr(model, name, value)
    env_of(model).set_state(as_arrays(state["env"]))
    np.random.set_state(as_arrays(state["numpy_generator"]))  # noqa: NPY002
    torch.set_rng_state(state["torch_generator"])


def as_arrays(state: Any) -> Any:
    """Return ``state`` with arrays in place of its tensors."""
    if isinstance(state, dict):
        return {name: as_arrays(value) for name, value in state.items()}
    return state.numpy() if isinstance(state, torch.Tensor) else state
