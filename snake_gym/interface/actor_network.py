"""The acting part of a trained policy in numpy: normalisation, then layers of a multilayer perceptron.

Layers: ``linear`` (y = W x + b); ``relu``, ``tanh``, ``elu`` and ``silu`` element by element; ``clip`` to [low, high].
A Gaussian policy (PPO, A2C) ends with ``clip``, as Stable-Baselines3 clips its mean; a squashed one (SAC, TD3) with
``tanh``.

Departure from the learner, which computes in single precision: layers are computed in double precision and the action
is rounded once, at the end. Results then do not depend on the processor or its linear-algebra library, and the distance
to the learner's action is that one's own rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import Settings

SMALL_PRODUCT = 1 << 18
"""Multiplications up to which OpenBLAS, numpy's usual library, keeps a matrix product on one thread. With more threads
these products gain nothing, and beside a busy neighbour lose a hundredfold, as the threads wait for each other."""

LayerKind = Literal["linear", "relu", "tanh", "elu", "silu", "clip"]
Array = NDArray[Any]


@dataclass(frozen=True)
class Layer(Settings):
    """One layer."""

    kind: LayerKind
    weight: str | None = None
    """``linear``: name of W (outputs, inputs)."""
    bias: str | None = None
    """``linear``: name of b (outputs,); None: no bias."""
    low: float = -1.0
    """``clip``: lower bound."""
    high: float = 1.0
    """``clip``: upper bound."""

    def check(self) -> None:
        if (self.kind == "linear") != (self.weight is not None) or (self.bias is not None and self.kind != "linear"):
            raise ValueError(f"a layer of kind {self.kind!r} has weight {self.weight!r} and bias {self.bias!r}")
        if not self.low < self.high:
            raise ValueError(f"low is {self.low:g}, high {self.high:g}; expected low < high")


class FrozenNormaliser:
    """Running normalisation as it stood at the end: ``clip((obs - mean) / sqrt(var + epsilon))``, each (D,)."""

    def __init__(self, mean: NDArray[np.float64], var: NDArray[np.float64], epsilon: float, clip: float) -> None:
        self.mean, self.var, self.epsilon, self.clip = mean, var, epsilon, clip

    def __call__(self, obs: Array) -> NDArray[np.float32]:
        """Normalised observations, (W, D) or (D,)."""
        scaled = (obs - self.mean) / np.sqrt(self.var + self.epsilon)
        return np.clip(scaled, -self.clip, self.clip).astype(np.float32)


class ActorNetwork:
    """Layers, from the input (D numbers) to the action (A), with their weights: ``tensors``, W and b by name.

    Raises ValueError for a tensor that is missing, not needed, not finite, or of a shape that does not fit.
    """

    def __init__(self, layers: Sequence[Layer], tensors: Mapping[str, Array], n_inputs: int, n_outputs: int) -> None:
        self.layers = tuple(layers)
        wanted = [name for layer in layers for name in (layer.weight, layer.bias) if name is not None]
        if sorted(wanted) != sorted(tensors):
            raise ValueError(f"it holds the tensors {_listed(tensors)}; expected {_listed(wanted)}")
        for name, values in tensors.items():
            if not np.isfinite(values).all():
                raise ValueError(f"tensor {name!r} is not finite")
        self._tensors = {name: values.astype(np.float64) for name, values in tensors.items()}
        width = n_inputs
        for layer in self.layers:
            width = self._width_after(layer, width)
        if width != n_outputs:
            raise ValueError(f"the last layer gives {width} numbers; expected {n_outputs}, one for each action")
        self.n_outputs = n_outputs
        self._block = max(1, SMALL_PRODUCT // max((values.size for values in self._tensors.values()), default=1))

    def __call__(self, obs: Array) -> NDArray[np.float32]:
        """Actions (W, A) for normalised observations (W, D)."""
        actions = np.empty((obs.shape[0], self.n_outputs), np.float32)
        for first in range(0, obs.shape[0], self._block):
            x = obs[first : first + self._block].astype(np.float64)
            for layer in self.layers:
                x = self._apply(layer, x)
            actions[first : first + self._block] = x
        return actions

    def _width_after(self, layer: Layer, width: int) -> int:
        if layer.weight is None:
            return width
        shape = self._tensors[layer.weight].shape
        if len(shape) != 2 or shape[1] != width or shape[0] < 1:
            raise ValueError(f"tensor {layer.weight!r} has shape {shape}; expected (outputs, {width})")
        if layer.bias is not None and self._tensors[layer.bias].shape != shape[:1]:
            found = self._tensors[layer.bias].shape
            raise ValueError(f"tensor {layer.bias!r} has shape {found}; expected ({shape[0]},)")
        return int(shape[0])

    def _apply(self, layer: Layer, x: Array) -> Array:
        if layer.weight is not None:
            y = x @ self._tensors[layer.weight].T
            return y if layer.bias is None else y + self._tensors[layer.bias]
        if layer.kind == "clip":
            return np.clip(x, layer.low, layer.high)
        if layer.kind == "relu":
            return np.maximum(x, 0.0)
        if layer.kind == "elu":
            return np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0)))
        if layer.kind == "silu":
            return 0.5 * x * (1.0 + np.tanh(0.5 * x))  # x / (1 + exp(-x)), which would overflow
        return np.tanh(x)


def _listed(names: Sequence[str] | Mapping[str, Any]) -> str:
    return ", ".join(repr(name[:40]) for name in sorted(names)[:12]) or "none"
