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
"""Names by which the action is found among several outputs; else it is the first."""


class OnnxPolicy:
    """Policy of the model in ``file``, whose actions are clipped to [-1, 1]; ``statistics`` as for ``trusted_policy``.

    A model that ``snake-gym export`` wrote is made for the env of the contract beside it. Raises ConfigError.
    """

    def __init__(self, file: Path, statistics: Path | None = None) -> None:
        require("an ONNX policy", "onnx", "onnxruntime")
        from .onnx_graph import open_model

        content, self._session, metadata = open_model(file)
        self._normalise: Any = None
        if statistics is not None:
            from .trusted_policy import load_statistics

            self._normalise = load_statistics(statistics)
            content += statistics.read_bytes()
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        if len(inputs) != 1:
            names = ", ".join(each.name for each in inputs)
            raise ConfigError(f"{file} has the inputs {names}; expected one, the observation")
        (seen,) = inputs
        if seen.type not in _FLOATS or len(seen.shape) != 2 or not isinstance(seen.shape[1], int):
            raise ConfigError(
                f"{file} takes {seen.type} of shape {tuple(seen.shape)} as {seen.name!r}; expected floating-point "
                "numbers of shape (batch, observations)"
            )
        self._input, self._type, size = seen.name, _FLOATS[seen.type], seen.shape[1]
        self._output = next((each.name for each in outputs if each.name in _ACTIONS), outputs[0].name)
        batch = seen.shape[0]
        if isinstance(batch, int) and batch != 1:
            raise ConfigError(f"{file} is for batches of {batch}; expected any number (dynamic axes), or 1")
        self._one_by_one = batch == 1
        trial = self._run(np.zeros((1, size), np.float32))
        if trial.ndim != 2 or trial.shape[0] != 1:
            raise ConfigError(f"{file} gives {self._output!r} of shape {trial.shape}; expected (batch, actions)")
        self.observation_space = Box(-np.inf, np.inf, (size,), np.float32)
        self.action_space = Box(-1.0, 1.0, trial.shape[1:], np.float32)
        self.digest = digest(content, versions(["onnxruntime"]))
        self.notes = ("its model takes one observation at a time, which is slow",) if self._one_by_one else ()
        contract = _contract_of(file, metadata)
        if contract is not None:
            self.env_id, self.env_config = contract.env_id, contract.env_config

    def predict(
        self, observation: NDArray[Any], state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[NDArray[np.float32], Any]:
        """Actions (W, A) for observations (W, D), or (A,) for (D,)."""
        obs = observation if self._normalise is None else self._normalise(observation)
        action = self._run(np.atleast_2d(obs))
        return np.clip(action if observation.ndim == 2 else action[0], -1.0, 1.0), state

    def _run(self, obs: NDArray[Any]) -> NDArray[np.float32]:
        given = obs.astype(self._type)
        blocks = [given[i : i + 1] for i in range(len(given))] if self._one_by_one else [given]
        return np.concatenate([self._session.run([self._output], {self._input: each})[0] for each in blocks])


def _contract_of(file: Path, metadata: dict[str, str]) -> FilePolicy | None:
    """Return the policy file beside a model that was exported with it; None for any other model."""
    wanted, contract = metadata.get("weights_sha256"), file.with_name(CONTRACT)
    if wanted is None or not contract.is_file():
        return None
    policy = load_policy(contract)
    if policy.contract.weights.sha256 != wanted:
        raise ConfigError(f"{file} and {contract} hold different policies; export them again")
    return policy
