"""Writer of policy files from plain weights: the result of any learner becomes what a robot plays.

``write_policy`` takes the layers of a multilayer perceptron, with recurrent layers or not, and the env that it was
trained in. The file that it writes has been loaded again, with every check that a robot makes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from safetensors.numpy import save

from snake_gym.config import ConfigError, choose, to_dict, write_atomic
from snake_gym.config.records import versions as installed_versions
from snake_gym.interface.actor_network import ActorNetwork, Layer, LayerKind, Normaliser
from snake_gym.interface.observations import BOUND
from snake_gym.interface.policy_contract import (
    FORMAT,
    ActionContract,
    EnvOrigin,
    Golden,
    ObservationContract,
    PolicyContract,
    WeightsFile,
    format_contract,
    parse_contract,
)
from snake_gym.interface.policy_file import CONTRACT, WEIGHTS, FilePolicy
from snake_gym.registry import TASKS, find_task

N_GOLDEN = 8
"""Number of golden observations from resets of the env; as many again are drawn at random."""
_ACTIVATIONS = tuple(kind for kind in get_args(LayerKind) if kind not in ("linear", "clip", "lstm"))
_PARTS = {2: ("weight", "bias"), 4: ("weight", "hidden_weight", "bias", "hidden_bias")}
"""Names of the arrays of a layer, by their number."""

Arrays = Mapping[str, Any]
"""Arrays of a layer by the fields of ``Layer`` that name them; None: without."""


def write_policy(
    path: str | os.PathLike[str],
    env: Any,
    layers: Sequence[Sequence[ArrayLike | None]],
    activation: str = "tanh",
    *,
    squash: bool = False,
    observation_mean: ArrayLike | None = None,
    observation_var: ArrayLike | None = None,
    epsilon: float = 1e-8,
    clip: float = 10.0,
    learner: Callable[[NDArray[np.float32]], ArrayLike] | None = None,
    training: Mapping[str, Any] | None = None,
) -> Path:
    """Write a policy file into the folder ``path``, and return its contract.

    Args:
        path: a folder, which names the policy; a policy file in it is replaced.
        env: the env that the policy was trained in, single or vector, wrapped or not. It is not changed.
        layers: from the observation to the action, each (W, b), with W (outputs, inputs) as in torch and b or None; or
            (W_ih, W_hh, b_ih, b_hh) of ``torch.nn.LSTM``.
        activation: after each (W, b) but the last: relu, tanh, elu or silu.
        squash: True: the action is the tanh of the last layer (SAC); False: it is clipped to [-1, 1] (PPO).
        observation_mean, observation_var: (D,) running normalisation ``clip((obs - mean) / sqrt(var + epsilon))``;
            the defaults of ``epsilon`` and ``clip`` are those of Gymnasium's NormalizeObservation and of CleanRL.
        learner: function that returns the learner's own deterministic actions (G, A) for raw observations (G, D); for a
            recurrent policy, of one episode that makes them one after the other. The file is checked against it.
        training: plain data on how the policy came about.

    Raises ConfigError if the layers do not fit each other or the env, or if the ``learner`` acts otherwise.
    """
    core = getattr(getattr(env, "unwrapped", env), "core", None)
    if core is None or not hasattr(core, "layout"):
        raise ConfigError(f"env is a {type(env).__name__}; expected a simulated env of snake_gym")
    own = type(core)(core.config.without_privileged(), N_GOLDEN)
    between = Layer(choose(activation, _ACTIVATIONS, "activation"))  # type: ignore[arg-type]
    described: list[Layer | Arrays] = []
    for i, arrays in enumerate(layers):
        if len(arrays) not in _PARTS:
            raise ConfigError(f"layers[{i}] has {len(arrays)} parts; expected (W, b) or (W_ih, W_hh, b_ih, b_hh)")
        described.append(dict(zip(_PARTS[len(arrays)], arrays, strict=True)))
        described += [between] if len(arrays) == 2 and i < len(layers) - 1 else []
    described.append(Layer("tanh" if squash else "clip"))
    normaliser = None
    if observation_mean is not None or observation_var is not None:
        mean, var = (
            tuple(np.asarray(values, np.float64).ravel().tolist()) for values in (observation_mean, observation_var)
        )
        normaliser = Normaliser(mean, var, epsilon, clip)
    folder, env_id, observations = Path(path), _env_id(env, core), golden_observations(own)
    try:
        files = encode_policy(
            own, env_id, described, normaliser, observations,
            None if learner is None else np.asarray(learner(observations.copy()), np.float32),
            name=folder.resolve().name, training={"algorithm": None, **(training or {})},
            versions=installed_versions(["numpy", "torch"]),
        )  # fmt: skip
    except (ValueError, FloatingPointError) as error:
        raise ConfigError(f"layers do not make a policy of {own.layout.size} observations: {error}") from None
    FilePolicy(parse_contract(files[CONTRACT], str(folder / CONTRACT)), files[WEIGHTS], folder / CONTRACT)
    for file, data in files.items():
        write_atomic(folder / file, data)
    return folder / CONTRACT


def golden_observations(core: Any) -> NDArray[np.float32]:
    """Return observations of the first resets of the ``core`` of an env, and as many drawn at random."""
    drawn = np.random.default_rng(0).normal(size=(core.n_worlds, core.layout.size))
    fresh = core.reset(np.arange(core.n_worlds))
    return np.concatenate([fresh, np.clip(drawn, -BOUND, BOUND).astype(np.float32)])


def encode_policy(
    core: Any,
    env_id: str,
    layers: Sequence[Layer | Arrays],
    normaliser: Normaliser | None,
    observations: NDArray[np.float32],
    actions: NDArray[np.float32] | None,
    *,
    name: str,
    training: Mapping[str, Any],
    versions: Mapping[str, str],
) -> dict[str, bytes]:
    """Return the files of a policy by name, the contract last.

    ``core`` is that of its env; ``layers``: those without weights, and the arrays of the others; ``actions`` (G, A) the
    learner's for golden ``observations`` (G, D), None: those of the layers. Raises FloatingPointError for actions that
    are not finite, ValueError for layers that do not fit.
    """
    named, tensors = _name_arrays(layers)
    weights = save(tensors)
    layout, decoder = core.layout, core.decoder
    network = ActorNetwork(named, tensors, layout.size, decoder.size, normaliser)
    with np.errstate(all="ignore"):
        here = network.play(observations)
        actions = here if actions is None else actions
        deviation = float(np.abs(here - actions).max())
    if not np.isfinite(actions).all():
        raise FloatingPointError("an action is not finite")
    settings = to_dict(core.config)
    contract = format_contract(
        PolicyContract(
            format=FORMAT, name=name, weights=WeightsFile(WEIGHTS, len(weights), hashlib.sha256(weights).hexdigest()),
            robot=core.spec, control_dt_s=core.spec.control_dt_s, observation=ObservationContract.of(layout),
            action=ActionContract.of(decoder), normaliser=normaliser, network=named,
            golden=Golden.of(layout, decoder, observations, actions, deviation),
            env=EnvOrigin(env_id, {k: v for k, v in settings.items() if k not in ("robot", "action")}),
            training=dict(training), versions=dict(versions),
        )
    ).encode()  # fmt: skip
    return {WEIGHTS: weights, CONTRACT: contract}


def _name_arrays(layers: Sequence[Layer | Arrays]) -> tuple[tuple[Layer, ...], dict[str, NDArray[np.float32]]]:
    """Return the layers with names for their arrays, and the arrays by name."""
    named: list[Layer] = []
    tensors: dict[str, NDArray[np.float32]] = {}
    for layer in layers:
        if not isinstance(layer, Layer):
            name = f"layer{sum(one.weight is not None for one in named)}"
            given = {part: values for part, values in layer.items() if values is not None}
            for part, values in given.items():
                plain = values.detach().cpu() if hasattr(values, "detach") else values  # of torch
                tensors[f"{name}.{part}"] = np.ascontiguousarray(plain, np.float32)
            kind: LayerKind = "lstm" if "hidden_weight" in given else "linear"
            layer = Layer(kind, **{part: f"{name}.{part}" for part in given})  # type: ignore[arg-type]
        named.append(layer)
    return tuple(named), tensors


def _env_id(env: Any, core: Any) -> str:
    """Return the name under which the env is registered. Raises ConfigError if it has none."""
    spec = getattr(getattr(env, "unwrapped", env), "spec", None)
    names = ([] if spec is None else [spec.id]) + list(TASKS)
    found = next((name for name in names if name in TASKS and find_task(name) is type(core.config)), None)
    if found is None:
        raise ConfigError(f"the task {type(core.config).__name__} of the env has no name; register it (register_task)")
    return found
