"""ONNX model of the acting part of a policy: observations (batch, D) in, actions (batch, A) out, both float32.

The graph is written node by node from the layers of the policy file, normalisation and final clip included. Nothing is
traced, so it holds exactly these layers. Normalisation is computed in double precision, as the learner does, the
network in single precision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from snake_gym.config import ConfigError
from snake_gym.interface.actor_network import GATES, FrozenNormaliser, Layer

OPSET = 17
_IR_VERSION = 8
"""ONNX format version that every onnxruntime since 1.12 reads."""
_NODES = {"relu": "Relu", "tanh": "Tanh", "elu": "Elu"}


class _Graph:
    """Nodes and constants of a graph; ``value`` names the output of the last node."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.value = "observation"

    def add(self, operator: str, *others: str, **attributes: Any) -> str:
        """Apply an operator to the last value, then to constants or values named in ``others``; returns the result."""
        inputs = [self.value, *others]
        self.value = f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [self.value], **attributes))
        return self.value

    def constant(self, name: str, values: NDArray[Any]) -> str:
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def bounds(self, name: str, low: float, high: float, dtype: type) -> tuple[str, str]:
        named = ((f"{name}.low", low), (f"{name}.high", high))
        low_name, high_name = (self.constant(key, np.array(value, dtype)) for key, value in named)
        return low_name, high_name


def encode_onnx(
    layers: Sequence[Layer],
    tensors: Mapping[str, NDArray[Any]],
    normaliser: FrozenNormaliser | None,
    n_inputs: int,
    n_outputs: int,
    metadata: Mapping[str, str],
) -> bytes:
    """Return the model's file, with ``metadata`` stored in it."""
    graph = _Graph()
    if normaliser is not None:
        graph.add("Cast", to=TensorProto.DOUBLE)
        graph.add("Sub", graph.constant("normaliser.mean", normaliser.mean))
        graph.add("Div", graph.constant("normaliser.deviation", np.sqrt(normaliser.var + normaliser.epsilon)))
        graph.add("Clip", *graph.bounds("normaliser", -normaliser.clip, normaliser.clip, np.float64))
        graph.add("Cast", to=TensorProto.FLOAT)
    for index, layer in enumerate(layers):
        if layer.kind in GATES:
            raise ConfigError("a recurrent policy is not written as an ONNX model; expected linear layers alone")
        if layer.weight is not None:
            operands = [name for name in (layer.weight, layer.bias) if name is not None]
            graph.add("Gemm", *(graph.constant(name, tensors[name]) for name in operands), transB=1)
        elif layer.kind == "clip":
            graph.add("Clip", *graph.bounds(f"clip{index}", layer.low, layer.high, np.float32))
        elif layer.kind == "silu":
            before = graph.value
            graph.add("Sigmoid")
            graph.add("Mul", before)
        else:
            graph.add(_NODES[layer.kind])
    graph.nodes[-1].output[0] = "action"
    model = helper.make_model(
        helper.make_graph(
            graph.nodes, "policy",
            [helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["batch", n_inputs])],
            [helper.make_tensor_value_info("action", TensorProto.FLOAT, ["batch", n_outputs])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)], ir_version=_IR_VERSION, producer_name="snake_gym",
    )  # fmt: skip
    helper.set_model_props(model, dict(metadata))
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
