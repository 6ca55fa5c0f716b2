"""ONNX model of the acting part of a policy: observations (batch, D) in, actions (batch, A) out, both float32.

Normalisation is computed in double precision, as the learner does, the network in single precision.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from torch.nn import functional

from snake_gym.config import ConfigError
from snake_gym.interface.actor_network import FrozenNormaliser, Layer

OPSET = 17


class Actor(torch.nn.Module):
    """Layers of a policy file with their weights, behind its normaliser."""

    def __init__(
        self, layers: Sequence[Layer], tensors: Mapping[str, NDArray[Any]], normaliser: FrozenNormaliser | None
    ) -> None:
        super().__init__()
        if any(layer.kind == "lstm" for layer in layers):
            raise ConfigError("a recurrent policy is not written as an ONNX model; expected linear layers alone")
        self.layers, self.normaliser = layers, normaliser
        self.tensors = {name: torch.as_tensor(np.asarray(values, np.float32)) for name, values in tensors.items()}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return actions (batch, A)."""
        if (norm := self.normaliser) is not None:
            mean, deviation = torch.as_tensor(norm.mean), torch.as_tensor(np.sqrt(norm.var + norm.epsilon))
            x = ((x.double() - mean) / deviation).clamp(-norm.clip, norm.clip).float()
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
    normaliser: FrozenNormaliser | None,
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


def open_model(file: Path) -> tuple[bytes, Any, dict[str, str]]:
    """Return a model's content with its external weights, a session of it, and its metadata. Raises ConfigError."""
    try:
        model = onnx.load(file)
        content = bytes(model.SerializeToString())
        return content, _session(content), {each.key: each.value for each in model.metadata_props}
    except Exception as error:  # each library has exceptions of its own
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ConfigError(f"{file} is no ONNX model that onnxruntime runs: {reason[0][:200]}") from error


def _session(model: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3  # errors
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
