"""The acting part of a trained policy in numpy: normalisation, then layers of a perceptron, recurrent ones among them.

Layers: ``linear`` (y = W x + b); ``relu``, ``tanh``, ``elu`` and ``silu`` element by element; ``clip`` to [low, high];
``lstm`` with the gates of torch (input, forget, cell, output), zero at the start.
A Gaussian policy (PPO, A2C) ends with ``clip``, as Stable-Baselines3 clips its mean; a squashed one (SAC, TD3) with
``tanh``.

Departure from the learner, which computes in single precision: layers are computed in double precision and the action
is rounded once, at the end. Results then do not depend on the processor or its linear-algebra library, and the distance
to the learner's action is that one's own rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import Settings
from snake_gym.config.errors import show
from snake_gym.config.settings import Limit, NonNegative, Positive

SMALL_PRODUCT = 1 << 18
"""Multiplications up to which OpenBLAS, numpy's usual library, keeps a matrix product on one thread. With more threads
these products gain nothing, and next to a busy neighbour lose a hundredfold: threads wait for each other."""

LayerKind = Literal["linear", "relu", "tanh", "elu", "silu", "clip", "lstm"]
N_GATES = 4
"""Gates of an LSTM, stacked in the rows of its weights."""
Array = NDArray[Any]


class Layer(Settings):
    """One layer."""

    kind: LayerKind
    weight: str | None = None
    """``linear``: name of W (outputs, inputs); ``lstm``: (4 * units, inputs)."""
    bias: str | None = None
    """Name of b, one for each row of W; None: no bias."""
    low: float = -1.0
    """``clip``: lower bound."""
    high: float = 1.0
    """``clip``: upper bound."""
    hidden_weight: str | None = None
    """``lstm``: name of U (4 * units, units), for the layer's last output."""
    hidden_bias: str | None = None
    """``lstm``: name of the bias of U; None: no bias."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its tensors."""
        return tuple(n for n in (self.weight, self.bias, self.hidden_weight, self.hidden_bias) if n is not None)

    def check(self) -> None:
        has = (self.weight is not None, self.hidden_weight is not None)
        if has != (self.kind in ("linear", "lstm"), self.kind == "lstm"):
            raise ValueError(
                f"a layer of kind {self.kind!r} has weight {self.weight!r} and hidden_weight {self.hidden_weight!r}"
            )


class Normaliser(Settings):
    """Frozen running normalisation: ``clip((obs - mean) / sqrt(variance + epsilon))``, mean and variance (D,)."""

    mean: tuple[float, ...]
    variance: tuple[NonNegative, ...]
    epsilon: Positive
    clip: Limit

    def __call__(self, obs: Array) -> NDArray[np.float32]:
        """Normalised observations, (W, D) or (D,)."""
        scaled = (obs - np.array(self.mean)) / np.sqrt(np.array(self.variance) + self.epsilon)
        return np.clip(scaled, -self.clip, self.clip).astype(np.float32)


class ActorNetwork:
    """Normaliser, if any, and layers, from the observation (D numbers) to the action (A), with their weights:
    ``tensors``, W and b by name.

    Raises ValueError for a tensor that is missing, not needed, not finite, or of a shape that does not fit.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        tensors: Mapping[str, Array],
        n_inputs: int,
        n_outputs: int,
        normaliser: Normaliser | None = None,
    ) -> None:
        self.layers, self.normaliser, self.n_outputs = tuple(layers), normaliser, n_outputs
        if normaliser is not None and (sizes := {len(normaliser.mean), len(normaliser.variance)}) != {n_inputs}:
            raise ValueError(f"normaliser has {sizes} means and variances; expected {n_inputs}")
        wanted = [name for layer in layers for name in layer.names]
        if sorted(wanted) != sorted(tensors):
            raise ValueError(f"it holds the tensors {show(sorted(tensors))}; expected {show(sorted(wanted))}")
        for name, values in tensors.items():
            if not np.isfinite(values).all():
                raise ValueError(f"tensor {name!r} is not finite")
        self._tensors = {name: values.astype(np.float64) for name, values in tensors.items()}
        width, self.n_state = n_inputs, 0
        for layer in self.layers:
            width = self._width_after(layer, width)
            self.n_state += 2 * width * (layer.kind == "lstm")
        if width != n_outputs:
            raise ValueError(f"the last layer gives {width} numbers; expected {n_outputs}, one for each action")
        self._block = max(1, SMALL_PRODUCT // max((values.size for values in self._tensors.values()), default=1))

    def play(self, observations: Array) -> NDArray[np.float32]:
        """Actions (G, A) for observations (G, D); if recurrent, of one episode that makes them in turn."""
        if self.n_state == 0:
            return self.advance(observations, np.zeros((len(observations), 0)))[0]
        state, actions = np.zeros((1, self.n_state)), []
        for obs in observations:
            action, state = self.advance(obs[None], state)
            actions.append(action[0])
        return np.array(actions)

    def advance(self, obs: Array, state: Array) -> tuple[NDArray[np.float32], Array]:
        """Actions (W, A) for observations (W, D), and the next state, for the ``state`` (W, n_state)."""
        obs = obs if self.normaliser is None else self.normaliser(obs)
        actions = np.empty((obs.shape[0], self.n_outputs), np.float32)
        after = np.empty_like(state)
        for first in range(0, obs.shape[0], self._block):
            rows = slice(first, first + self._block)
            x, kept = obs[rows].astype(np.float64), 0
            for layer in self.layers:
                if layer.kind == "lstm":
                    x, new = self._advance(layer, x, state[rows, kept:])
                    after[rows, kept : kept + new.shape[1]] = new
                    kept += new.shape[1]
                else:
                    x = self._apply(layer, x)
            actions[rows] = x
        return actions, after

    def _width_after(self, layer: Layer, width: int) -> int:
        """Return how many numbers a layer makes of ``width``. Raises ValueError for shapes that do not fit."""
        if layer.weight is None:
            return width
        rows = self._tensors[layer.weight].shape[:1]
        units = sum(rows) // (N_GATES if layer.kind == "lstm" else 1)
        hidden = {layer.hidden_weight: (N_GATES * units, units), layer.hidden_bias: rows}
        for name, shape in {layer.weight: (*rows, width), layer.bias: rows, **hidden}.items():
            if name is not None and self._tensors[name].shape != shape:
                raise ValueError(f"tensor {name!r} has shape {self._tensors[name].shape}; expected {shape}")
        return units

    def _linear(self, x: Array, weight: str | None, bias: str | None) -> Array:
        assert weight is not None
        y = x @ self._tensors[weight].T
        return y if bias is None else y + self._tensors[bias]

    def _advance(self, layer: Layer, x: Array, state: Array) -> tuple[Array, Array]:
        """Return output and next state of an LSTM; ``state`` begins with its last output and cell."""
        units = self._tensors[layer.hidden_weight or ""].shape[1]
        last, cell = state[:, :units], state[:, units : 2 * units]
        of_input = self._linear(x, layer.weight, layer.bias)
        of_last = self._linear(last, layer.hidden_weight, layer.hidden_bias)
        let_in, keep, new, show = np.split(of_input + of_last, N_GATES, axis=1)
        cell = _sigmoid(keep) * cell + _sigmoid(let_in) * np.tanh(new)
        output = _sigmoid(show) * np.tanh(cell)
        return output, np.concatenate([output, cell], axis=1)

    def _apply(self, layer: Layer, x: Array) -> Array:
        if layer.weight is not None:
            return self._linear(x, layer.weight, layer.bias)
        return np.clip(x, layer.low, layer.high) if layer.kind == "clip" else _FUNCTIONS[layer.kind](x)


def _sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)), which would overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "tanh": np.tanh,
    "elu": lambda x: np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0))),
    "silu": lambda x: x * _sigmoid(x),
}
