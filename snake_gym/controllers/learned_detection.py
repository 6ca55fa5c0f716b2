"""Learned estimator of joint faults: kind, probability and severity of each joint, for W worlds at once. Numpy only.

A small network, one for all joints, sees the ``FaultWindow`` of a joint and gives the probability of each kind of
fault it was trained on, with severities. ``python -m snake_gym.agents.fault_estimator`` trains one and writes its file.

The probabilities are averaged over the last ``memory_s``, with exponential weights. They are not multiplied as
independent evidence would be: neighbouring windows tell largely the same, and what is ambiguous, such as a servo that
is too weak for the ground, stays ambiguous however often it is seen. A joint counts as failed when the average of the
healthy kind falls below ``1 - alarm``, and as healthy again when it rises above one half.

Files are JSON with every number checked: nothing in them is executed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from snake_gym.config import ConfigError, Range, Settings, build, digest, find_config, near_path, read_json, to_dict
from snake_gym.config.files import read_file
from snake_gym.config.settings import PositiveCount
from snake_gym.controllers.base import ControllerState
from snake_gym.controllers.fault_detection import FREE, HEALTHY, LOCKED, OFFSET, SLOW, WEAK
from snake_gym.controllers.fault_window import FaultWindow, n_features
from snake_gym.robot.measurement import Measurement
from snake_gym.robot.spec import FloatArray, RobotSpec

CODES = {"healthy": HEALTHY, "locked": LOCKED, "free": FREE, "weak": WEAK, "slow": SLOW, "offset": OFFSET}
"""Kinds that an estimator may know, with their codes."""
SEVERITIES = ("share", "offset")
"""Severities that a network gives behind the kinds: share left of torque (weak) or speed (slow), offset [rad]."""
_SEVERITY_MEMORY = 0.8
"""Share of the last severity that stays with each sample."""

Number = Annotated[float, Range(-1e6, 1e6)]


@dataclass(frozen=True)
class EstimatorFile(Settings):
    """Content of an estimator's file."""

    format: Literal["snake_gym fault estimator 1"]
    source: str
    """What it was trained on."""
    actuators: tuple[str, ...]
    """Kinds of actuators of the robots it was trained on."""
    kinds: tuple[Literal["healthy", "locked", "free", "weak", "slow", "offset"], ...]
    """Kinds of joint faults in the order of the network's outputs."""
    n_samples: PositiveCount
    """Length of the window."""
    weights: tuple[tuple[tuple[Number, ...], ...], ...]
    """Weights (outputs, inputs) of each layer; between layers negative numbers become 0."""
    biases: tuple[tuple[Number, ...], ...]

    def digest(self) -> str:
        """Return a text that changes with the content."""
        return digest(to_dict(self))

    def check(self) -> None:
        """Raise ValueError unless kinds and layers fit each other."""
        if self.kinds[:1] != ("healthy",) or len(self.kinds) < 2 or len(set(self.kinds)) < len(self.kinds):
            raise ValueError(f"kinds is {list(self.kinds)}; expected healthy and then others, each once")
        if not self.weights or len(self.biases) != len(self.weights):
            raise ValueError(f"biases has {len(self.biases)} layers, weights {len(self.weights)}; expected as many")
        width = n_features(self.n_samples)
        for n, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if {len(row) for row in weight} != {width} or len(bias) != len(weight):
                raise ValueError(f"weights[{n}] does not fit; expected {len(bias)} rows of {width} numbers")
            width = len(weight)
        if width != len(self.kinds) + len(SEVERITIES):
            raise ValueError(f"the last layer gives {width} numbers; expected {len(self.kinds) + len(SEVERITIES)}")


@dataclass(frozen=True)
class LearnedDetectorConfig(Settings):
    """Settings of the learned fault detector."""

    kind: Literal["learned"]
    file: str = "configs/detectors/servo_faults.json"
    """File of the estimator."""
    digest: str | None = None
    """Digest of the estimator's content, which records of results have; another one is refused. None: any will do."""
    alarm: Annotated[float, Range(0.5, 1.0, without_high=True)] = 0.7
    """Probability of a fault from which on a joint counts as failed; a larger one is later and has fewer false
    alarms."""
    memory_s: Annotated[float, Range(1e-3, 1e3)] = 0.5
    """Time [s] over which probabilities are averaged."""

    def resolved(self) -> LearnedDetectorConfig:
        """Return these settings with the digest of the file's present content, unless they name one."""
        return self if self.digest is not None else replace(self, digest=read_estimator(self.file).digest())


class LearnedDetector:
    """Estimator of the faults of J joints in W worlds.

    State: that of the ``FaultWindow``, ``belief`` (W, J, C) the averaged probability of each kind, and (W, J) ``kind``
    the estimate and ``severity`` of it: the share of torque or speed that is left, or the offset [rad]; 0 for others.
    Raises ConfigError for a file that is none, or a robot whose actuators the estimator does not know.
    """

    def __init__(self, config: LearnedDetectorConfig, spec: RobotSpec) -> None:
        self.config = config
        content = read_estimator(config.file)
        if config.digest not in (None, found := content.digest()):
            raise ConfigError(
                f"detector.file is {config.file}, an estimator of digest {found[:12]}; expected {config.digest:.12}, "
                "as in detector.digest: give the file of that one, or leave digest out"
            )
        if spec.actuator.kind not in content.actuators:
            raise ConfigError(
                f"detector.file is {config.file}, trained on actuators of kind {' or '.join(content.actuators)}; "
                f"{spec.name} has {spec.actuator.kind}: take detector kind model, or train one for such robots"
            )
        self.kinds = content.kinds
        self.window = FaultWindow(spec, content.n_samples)
        self._network = Network(content)
        self._codes = np.array([CODES[kind] for kind in content.kinds])
        self._has_share = np.array([kind in ("weak", "slow") for kind in content.kinds])
        self._has_offset = np.array([kind == "offset" for kind in content.kinds])

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state with all joints healthy and nothing seen."""
        shape = (n_worlds, self.window.n_joints)
        belief = np.zeros((*shape, len(self.kinds)))
        belief[..., 0] = 1.0
        own = {"belief": belief, "kind": np.zeros(shape), "severity": np.zeros(shape)}
        return {**self.window.initial_state(n_worlds), **own}

    def update(self, state: ControllerState, measurement: Measurement, dt_s: float) -> FloatArray:
        """Judge the joints' motion in the last ``dt_s`` [s]; return the estimate (W, J) and advance ``state``.

        After it, the caller gives its next command to ``command_given``.
        """
        length = self.window.advance(state, measurement, dt_s)
        due = length > 0.0
        if due.any():
            output = self._network(self.window.features(state["window"][due]))
            self._believe(state, output, due, length[due])
        return state["kind"]

    def command_given(self, state: ControllerState, reference: FloatArray) -> None:
        """Note the joint references (W, J) [rad] that were sent after ``update``."""
        state["reference"][:] = reference

    def _believe(self, state: ControllerState, output: FloatArray, due: Any, length_s: FloatArray) -> None:
        """Take the network's ``output`` for the worlds ``due`` into belief, estimate and severity."""
        n, alarm = len(self.kinds), self.config.alarm
        weight = -np.expm1(-length_s / self.config.memory_s)[:, None, None]
        belief = state["belief"][due]
        belief += weight * (softmax(output[..., :n]) - belief)
        state["belief"][due] = belief
        before, healthy = state["kind"][due], belief[..., 0]
        named = 1 + belief[..., 1:].argmax(axis=-1)
        kind = np.where(healthy < 1.0 - alarm, self._codes[named], np.where(healthy > 0.5, HEALTHY, before))
        share = 1.0 / (1.0 + np.exp(-np.clip(output[..., n], -30.0, 30.0)))
        now = np.where(self._has_share[named], share, np.where(self._has_offset[named], output[..., n + 1], 0.0))
        memory = np.where(kind == before, _SEVERITY_MEMORY, 0.0)
        severity = memory * state["severity"][due] + (1.0 - memory) * now
        state["kind"][due] = kind
        state["severity"][due] = np.where(kind == HEALTHY, 0.0, severity)


class Network:
    """Perceptron of an estimator: outputs (W, J, C + 2) for features (W, J, D).

    The product is one small matrix product for each world, so that a world in a batch and alone are rounded alike.
    """

    def __init__(self, content: EstimatorFile) -> None:
        self._weights = [np.ascontiguousarray(np.array(weight).T) for weight in content.weights]
        self._biases = [np.array(bias) for bias in content.biases]

    def __call__(self, features: FloatArray) -> FloatArray:
        """Return the outputs of the last layer."""
        x = features
        for n, (weight, bias) in enumerate(zip(self._weights, self._biases, strict=True)):
            x = np.matmul(x if n == 0 else np.maximum(x, 0.0), weight) + bias
        return x


def softmax(x: FloatArray) -> FloatArray:
    """Return the probabilities (..., C) that the last axis stands for."""
    weight = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))


def read_estimator(path: str) -> EstimatorFile:
    """Return the content of an estimator's file. Raises ConfigError if it is missing or none."""
    file = find_config(path)
    try:
        text = read_file(file).decode()
    except (OSError, UnicodeDecodeError) as error:
        guess = None if file.exists() else near_path(file, (".json",))
        told = (
            f"; did you mean '{guess}'?"
            if guess
            else "; expected a file of `python -m snake_gym.agents.fault_estimator`"
        )
        reason = "does not exist" if not file.exists() else f"cannot be read ({getattr(error, 'strerror', 'no text')})"
        raise ConfigError(f"detector.file {path} {reason}{told}") from None
    return build(EstimatorFile, read_json(text, str(file)), str(file))
