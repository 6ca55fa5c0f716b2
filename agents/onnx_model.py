"""Policies as ONNX models: observations (batch, D) in, actions (batch, A) out. Nothing in such a file is executed."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from gymnasium.spaces import Box
from numpy.typing import NDArray
from torch.nn import functional

from snake_gym.config import ConfigError, digest
from snake_gym.config.records import versions
from snake_gym.interface.actor_network import Layer, Normaliser
from snake_gym.interface.policy_file import CONTRACT, FilePolicy, load_policy

OPSET = 17
_FLOATS = {"tensor(float)": np.float32, "tensor(double)": np.float64}
_ACTIONS = ("action", "actions")
"""Names of the action among several outputs; else it is the first."""


class Actor(torch.nn.Module):
    """Layers of a policy file with their weights, behind its normaliser, which computes in double precision."""

    def __init__(
        self, layers: Sequence[Layer], tensors: Mapping[str, NDArray[Any]], normaliser: Normaliser | None
    ) -> None:
        super().__init__()
        if any(layer.kind == "lstm" for layer in layers):
            raise ConfigError("a recurrent policy is not written as an ONNX model; expected linear layers alone")
        self.layers, self.normaliser = layers, normaliser
        self.tensors = {name: torch.as_tensor(np.asarray(values, np.float32)) for name, values in tensors.items()}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return actions (batch, A)."""
        if (norm := self.normaliser) is not None:
            mean, variance = torch.tensor([norm.mean, norm.variance], dtype=torch.float64)
            x = ((x.double() - mean) / torch.sqrt(variance + norm.epsilon)).clamp(-norm.clip, norm.clip).float()
        for layer in self.layers:
            if layer.weight is not None:
                x = functional.linear(x, self.tensors[layer.weight], self.tensors[layer.bias] if layer.bias else None)
            elif layer.kind == "clip":
                x = x.clamp(layer.low, layer.high)
            else:
                x = torch.tanh(x) if layer.kind == "tanh" else getattr(functional, layer.kind)(x)
        return x


def encode_onnx(
    layers: Sequence[Layer],
    tensors: Mapping[str, NDArray[Any]],
    normaliser: Normaliser | None,
    n_inputs: int,
    metadata: Mapping[str, str],
) -> bytes:
    """Return the model's file, with ``metadata`` stored in it. Raises ConfigError for a recurrent policy."""
    buffer, names = io.BytesIO(), {"observation": {0: "batch"}, "action": {0: "batch"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter, on itself
        torch.onnx.export(
            Actor(layers, tensors, normaliser), (torch.zeros(1, n_inputs),), buffer,  # type: ignore[arg-type]
            opset_version=OPSET,
            input_names=["observation"], output_names=["action"], dynamic_axes=names, dynamo=False,
        )  # fmt: skip
    model = onnx.load_from_string(buffer.getvalue())
    onnx.helper.set_model_props(model, dict(metadata))
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


def run_onnx(model: bytes, observations: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return actions (W, A) of a model for observations (W, D), computed by onnxruntime on one thread."""
    return np.asarray(_session(model).run(["action"], {"observation": observations})[0], np.float32)


def _session(model: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3  # errors
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class OnnxPolicy:
    """Policy of the model in ``file``; actions are clipped to [-1, 1].

    A model of ``snake-gym export`` is made for the env of the policy file in the same folder. Raises ConfigError.
    """

    def __init__(self, file: Path) -> None:
        try:
            model = onnx.load(file)  # with its external weights
            content = bytes(model.SerializeToString())
            self._session = _session(content)
        except Exception as error:  # each library has exceptions of its own
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise ConfigError(f"{file} is no ONNX model that onnxruntime runs: {reason[0][:200]}") from error
        (seen, *others), outputs = self._session.get_inputs(), self._session.get_outputs()
        batch, size = seen.shape if len(seen.shape) == 2 else (None, None)
        if others or seen.type not in _FLOATS or not isinstance(size, int) or (isinstance(batch, int) and batch != 1):
            inputs = ", ".join(f"{each.name} {each.type} {each.shape}" for each in (seen, *others))
            raise ConfigError(
                f"{file} takes {inputs}; expected one input, floating-point numbers of shape (batch, observations) "
                "with a dynamic batch or a batch of one; other models: --policy NAME=module:factory"
            )
        self._input, self._type, self._one_by_one = seen.name, _FLOATS[seen.type], batch == 1
        self._output = next((each.name for each in outputs if each.name in _ACTIONS), outputs[0].name)
        trial = self._run(np.zeros((1, size), self._type))
        self.observation_space = Box(-np.inf, np.inf, (size,), np.float32)
        self.action_space = Box(-1.0, 1.0, trial.shape[1:], np.float32)
        self.digest = digest(content, versions(["onnxruntime"]))
        exported = _policy_file_of(file, {each.key: each.value for each in model.metadata_props})
        if exported is not None:
            self.env_id, self.env_config = exported.env_id, exported.env_config

    def predict(
        self, observation: NDArray[Any], state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[NDArray[np.float32], Any]:
        """Actions (W, A) for observations (W, D), or (A,) for (D,)."""
        obs = np.atleast_2d(observation).astype(self._type)
        action = np.concatenate([self._run(one[None]) for one in obs]) if self._one_by_one else self._run(obs)
        return np.clip(action if observation.ndim == 2 else action[0], -1.0, 1.0), state

    def _run(self, obs: NDArray[Any]) -> NDArray[np.float32]:
        return np.asarray(self._session.run([self._output], {self._input: obs})[0])


def _policy_file_of(file: Path, metadata: Mapping[str, str]) -> FilePolicy | None:
    """Return the policy file in the folder of an exported model; None for any other model."""
    wanted, contract = metadata.get("weights_sha256"), file.with_name(CONTRACT)
    if wanted is None or not contract.is_file():
        return None
    policy = load_policy(contract)
    if policy.contract.weights.sha256 != wanted:
        raise ConfigError(f"{file} and {contract} hold different policies; export them again")
    return policy
