"""Policies in ONNX files: observations in, actions out, computed by onnxruntime. Nothing in such a file is executed.

A recurrent model takes states beside the observation, and returns as many, in the same order, beside the action.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from snake_gym.config import ConfigError, digest, require
from snake_gym.config.records import versions
from snake_gym.interface.policy_file import CONTRACT, FilePolicy, load_policy

_FLOATS = {"tensor(float)": np.float32, "tensor(double)": np.float64}
_ACTIONS = ("action", "actions")
"""Names by which the action is found among several outputs; else it is the first."""
_OBSERVATIONS = ("obs", "observation", "observations")
"""Names by which the observation is found among several inputs; else it is the first."""


class _State(NamedTuple):
    """Input of a recurrent model: what it returned in the step before, 0 when an episode begins."""

    name: str
    shape: tuple[int, ...]
    """Shape for one world."""
    axis: int
    """Axis that counts the worlds of a batch."""
    type: Any


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
        seen = next((each for each in inputs if each.name in _OBSERVATIONS), inputs[0])
        if seen.type not in _FLOATS or len(seen.shape) != 2 or not isinstance(seen.shape[1], int):
            raise ConfigError(
                f"{file} takes {seen.type} of shape {tuple(seen.shape)} as {seen.name!r}; expected floating-point "
                "numbers of shape (batch, observations)"
            )
        self._input, self._type, size = seen.name, _FLOATS[seen.type], seen.shape[1]
        batch = seen.shape[0]
        if isinstance(batch, int) and batch != 1:
            raise ConfigError(f"{file} is for batches of {batch}; expected any number (dynamic axes), or 1")
        self._one_by_one = batch == 1
        action = next((each.name for each in outputs if each.name in _ACTIONS), outputs[0].name)
        self._states = [self._read_state(each) for each in inputs if each is not seen]
        returned = [each.name for each in outputs if each.name != action]
        self._outputs = [action, *returned[: len(self._states)]]
        began = [np.zeros(state.shape, state.type) for state in self._states]
        known = len(returned) >= len(began) and all(state.shape for state in self._states)
        tried = self._call(np.zeros((1, size), self._type), began) if known else []
        if [each.shape for each in tried[1:]] != [each.shape for each in began]:
            names = ", ".join(each.name for each in inputs)
            raise ConfigError(
                f"{file} has the inputs {names}; expected one, the observation, or states beside it that the outputs "
                f"beside {action!r} return in this order and of their shapes"
            )
        trial: NDArray[Any] = tried[0]
        if trial.ndim != 2 or trial.shape[0] != 1:
            raise ConfigError(f"{file} gives {action!r} of shape {trial.shape}; expected (batch, actions)")
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
        obs = np.atleast_2d(observation if self._normalise is None else self._normalise(observation))
        states = [np.zeros((len(obs), *each.shape), each.type) for each in self._states]
        if states and state is not None:
            states = [each.copy() for each in state]
            for each in states if episode_start is not None else ():
                each[np.atleast_1d(episode_start)] = 0.0
        action, after = self._run(obs.astype(self._type), states)
        return np.clip(action if observation.ndim == 2 else action[0], -1.0, 1.0), after if states else state

    def _read_state(self, given: Any) -> _State:
        """Return the state that an input takes; of shape () if it takes none."""
        free = [axis for axis, size in enumerate(given.shape) if not isinstance(size, int)]
        fits = given.type in _FLOATS and len(free) == (not self._one_by_one)
        shape = tuple(size if isinstance(size, int) else 1 for size in given.shape) if fits else ()
        return _State(given.name, shape, free[0] if fits and free else 0, _FLOATS.get(given.type))

    def _run(self, obs: NDArray[Any], states: list[NDArray[Any]]) -> tuple[NDArray[np.float32], list[NDArray[Any]]]:
        """Return actions (W, A), and states as they are given: (W, ...), with one world along the axis of a batch."""
        if self._one_by_one:
            each = [self._call(obs[w : w + 1], [state[w] for state in states]) for w in range(len(obs))]
            return np.concatenate([one[0] for one in each]), [
                np.stack(new) for new in list(zip(*each, strict=True))[1:]
            ]
        axes = [each.axis for each in self._states]
        action, *new = self._call(
            obs, [np.concatenate(list(state), axis) for state, axis in zip(states, axes, strict=True)]
        )
        return action, [
            np.expand_dims(np.moveaxis(one, axis, 0), axis + 1) for one, axis in zip(new, axes, strict=True)
        ]

    def _call(self, obs: NDArray[Any], states: list[NDArray[Any]]) -> list[Any]:
        given = {each.name: state for each, state in zip(self._states, states, strict=True)}
        return list(self._session.run(self._outputs, {self._input: obs, **given}))


def _contract_of(file: Path, metadata: dict[str, str]) -> FilePolicy | None:
    """Return the policy file beside a model that was exported with it; None for any other model."""
    wanted, contract = metadata.get("weights_sha256"), file.with_name(CONTRACT)
    if wanted is None or not contract.is_file():
        return None
    policy = load_policy(contract)
    if policy.contract.weights.sha256 != wanted:
        raise ConfigError(f"{file} and {contract} hold different policies; export them again")
    return policy
