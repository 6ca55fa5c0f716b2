"""Policies in ONNX files: observations in, actions out, computed by onnxruntime. Nothing in such a file is executed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from snake_gym.config import ConfigError, digest, require
from snake_gym.config.records import versions
from snake_gym.interface.policy_file import CONTRACT, FilePolicy, load_policy

_FLOATS = {"tensor(float)": np.float32, "tensor(double)": np.float64}
_ACTIONS = ("action", "actions")
"""Names of the action among several outputs; else it is the first."""


class OnnxPolicy:
    """Policy of the model in ``file``, whose actions are clipped to [-1, 1].

    The model takes observations (batch, D) and gives actions (batch, A). A model of
    ``snake-gym export`` is made for the env of the contract beside it. Raises ConfigError.
    """

    def __init__(self, file: Path) -> None:
        require("an ONNX policy", "onnx", "onnxruntime")
        from .onnx_graph import open_model

        content, self._session, metadata = open_model(file)
        (seen, *others), outputs = self._session.get_inputs(), self._session.get_outputs()
        batch, size = seen.shape if len(seen.shape) == 2 else (None, None)
        if others or seen.type not in _FLOATS or not isinstance(size, int) or (isinstance(batch, int) and batch != 1):
            told = ", ".join(f"{each.name} {each.type} {each.shape}" for each in (seen, *others))
            raise ConfigError(
                f"{file} takes {told}; expected one input, floating-point numbers of shape (batch, observations) with "
                "a dynamic batch or a batch of one; other models: --policy NAME=module:factory"
            )
        self._input, self._type, self._one_by_one = seen.name, _FLOATS[seen.type], batch == 1
        self._output = next((each.name for each in outputs if each.name in _ACTIONS), outputs[0].name)
        trial = self._run(np.zeros((1, size), self._type))
        if trial.ndim != 2 or trial.shape[0] != 1:
            raise ConfigError(f"{file} gives {self._output!r} of shape {trial.shape}; expected (batch, actions)")
        self.observation_space = Box(-np.inf, np.inf, (size,), np.float32)
        self.action_space = Box(-1.0, 1.0, trial.shape[1:], np.float32)
        self.digest = digest(content, versions(["onnxruntime"]))
        contract = _contract_of(file, metadata)
        if contract is not None:
            self.env_id, self.env_config = contract.env_id, contract.env_config

    def predict(
        self, observation: NDArray[Any], state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[NDArray[np.float32], Any]:
        """Actions (W, A) for observations (W, D), or (A,) for (D,)."""
        obs = np.atleast_2d(observation).astype(self._type)
        action = np.concatenate([self._run(one[None]) for one in obs]) if self._one_by_one else self._run(obs)
        return np.clip(action if observation.ndim == 2 else action[0], -1.0, 1.0), state

    def _run(self, obs: NDArray[Any]) -> NDArray[np.float32]:
        return np.asarray(self._session.run([self._output], {self._input: obs})[0])


def _contract_of(file: Path, metadata: dict[str, str]) -> FilePolicy | None:
    """Return the policy file beside a model that was exported with it; None for any other model."""
    wanted, contract = metadata.get("weights_sha256"), file.with_name(CONTRACT)
    if wanted is None or not contract.is_file():
        return None
    policy = load_policy(contract)
    if policy.contract.weights.sha256 != wanted:
        raise ConfigError(f"{file} and {contract} hold different policies; export them again")
    return policy
