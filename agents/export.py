"""``python -m agents.export RUN [--out DIR] [--onnx]``: a run's policy as a policy file for robots without torch.

Writes ``policy.safetensors`` (the actor's weights), ``policy.json`` (the contract; see docs/policy_file.md) and, on
request, ``policy.onnx``, into RUN/export or DIR. RUN is a run's folder (its best policy is taken), or a policy or
checkpoint in it. The contract comes last and holds the weights' hash, so that a half-written or mixed pair never loads.

What is written is read back and compared with SB3's deterministic actions before it counts.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch is loaded: waiting threads leave the cores to others

import hashlib
import importlib.util
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from agents.actor_layers import actor_layers
from agents.checkpoint import load_policy as load_trained
from agents.config import TrainConfig
from agents.policy import LoadedPolicy
from agents.run_folder import CONFIG, RunFolder, versions
from snake_gym.config import ConfigError, OptionParser, build, run_program, to_dict, write_atomic
from snake_gym.envs import choose_env
from snake_gym.envs.core import SnakeCore
from snake_gym.interface.actor_network import ActorNetwork
from snake_gym.interface.observations import BOUND
from snake_gym.interface.policy_contract import (
    FORMAT,
    EnvOrigin,
    Golden,
    NormaliserContract,
    ObservationContract,
    PolicyContract,
    WeightsFile,
    action_contract,
    field_rows,
    format_contract,
    golden_references,
)
from snake_gym.interface.policy_file import CONTRACT, WEIGHTS, load_policy
from snake_gym.plugins import add_plugin_option, load_plugins

ONNX = "policy.onnx"
ACCURACY = 1e-6
"""Largest distance from SB3's action that goes without saying."""
_N_GOLDEN = 8
"""Golden observations from resets of the env, and as many drawn at random."""
_N_COMPARED = 2048
_PROGRAM = "python -m agents.export"
_PACKAGES = {False: ("safetensors",), True: ("safetensors", "onnx", "onnxruntime")}


@dataclass(frozen=True)
class Export:
    """What was written."""

    files: tuple[Path, ...]
    deviation: float
    """Largest distance of the NumPy policy's actions from SB3's."""
    onnx_deviation: float | None
    """Of the ONNX model's; None: there is none."""

    def describe(self) -> str:
        """One line for the terminal."""
        sizes = ", ".join(f"{path.name} {path.stat().st_size / 1000:.0f} kB" for path in self.files)
        onnx = "" if self.onnx_deviation is None else f", ONNX within {self.onnx_deviation:.1e}"
        return f"wrote {sizes} into {self.files[0].parent}; NumPy within {self.deviation:.1e} of SB3's actions{onnx}"


def main(argv: list[str] | None = None) -> int:
    """Export one policy. Raises ConfigError for what the user has to correct."""
    parser = OptionParser(prog=_PROGRAM, description="Write a trained policy as a policy file.")
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder, or a policy or checkpoint in it")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the policy file (default: RUN/export)")
    parser.add_argument("--name", help="the policy's name (default: the run's)")
    parser.add_argument("--onnx", action="store_true", help="write an ONNX model too")
    add_plugin_option(parser)
    arguments = parser.parse_args(argv)
    load_plugins(arguments.plugin)
    print(export_policy(arguments.run, arguments.out, arguments.onnx, arguments.name).describe())
    return 0


def export_policy(run: Path, out: Path | None = None, onnx: bool = False, name: str | None = None) -> Export:
    """Write the policy file of a run.

    Args:
        run: a run's folder, or a policy or checkpoint in it.
        out: the policy file's folder; None: ``export`` in the run's.
        onnx: write an ONNX model too.
        name: the policy's name; None: the run's.

    Raises:
        ConfigError: there is no such policy, a policy file cannot hold it, or a library is missing.
    """
    check_libraries(onnx)
    trained = load_trained(run)
    folder = _run_folder(run)
    config = folder.read_config()
    core = _make_core(config)
    layers, tensors = actor_layers(trained.network)
    weights = _encode_weights(tensors)
    observations = _sample_observations(core)
    actions = trained.predict(observations)[0]
    normalised = observations if trained.normaliser is None else trained.normaliser(observations)
    network = ActorNetwork(layers, tensors, core.layout.size, core.decoder.size)
    error = np.abs(network(normalised) - actions)
    contract = PolicyContract(
        format=FORMAT, name=name or trained.name,
        weights=WeightsFile(WEIGHTS, len(weights), hashlib.sha256(weights).hexdigest()),
        robot=core.spec, control_dt_s=core.spec.control_dt_s, observation=_observation_contract(core),
        action=action_contract(core.config.action, core.decoder), normaliser=_normaliser_contract(trained),
        network=layers, golden=_golden(core, observations, actions, error), env=_env_origin(config, core),
        training=_training_summary(trained, folder, config), versions=versions(),
    )  # fmt: skip
    files: dict[str, bytes] = {WEIGHTS: weights}
    onnx_deviation = None
    if onnx:
        from agents.onnx_graph import run_onnx

        files[ONNX] = _encode_onnx(contract, tensors)
        onnx_deviation = float(np.abs(run_onnx(files[ONNX], observations) - actions).max())
    files[CONTRACT] = format_contract(contract).encode()
    out = out or folder.path / "export"
    for file, data in files.items():
        write_atomic(out / file, data)
    if not onnx:
        (out / ONNX).unlink(missing_ok=True)  # of an earlier export, with other weights
    load_policy(out)
    return Export(tuple(out / file for file in files), float(error.max()), onnx_deviation)


def check_libraries(onnx: bool = False) -> None:
    """Raise ConfigError unless the libraries that an export needs are installed."""
    missing = [package for package in _PACKAGES[onnx] if importlib.util.find_spec(package) is None]
    if missing:
        raise ConfigError(f"an export needs {', '.join(missing)}, which is missing: pip install 'snake_gym[export]'")


def _run_folder(path: Path) -> RunFolder:
    """The folder of the run that ``path`` is, or lies in."""
    for candidate in (path, *path.resolve().parents[:3]):
        if (candidate / CONFIG).is_file():
            return RunFolder(candidate)
    raise ConfigError(f"{path} is in no run's folder; expected a folder that train.py made, with its {CONFIG}")


def _make_core(config: TrainConfig) -> SnakeCore:
    """The env's core, whose layout and decoder are those of the training."""
    env = choose_env(config.env_id)
    return env(_N_GOLDEN, AutoresetMode.DISABLED, config=build(env.config_type, config.env, "env")).core


def _encode_weights(tensors: dict[str, NDArray[np.float32]]) -> bytes:
    from safetensors.numpy import save

    return save(tensors)


def _sample_observations(core: SnakeCore) -> NDArray[np.float32]:
    """Observations (n, D): first those of fresh episodes, then ones drawn at random, of the size of what is seen."""
    drawn = np.random.default_rng(0).normal(size=(_N_COMPARED, core.layout.size))
    return np.concatenate([core.reset(np.arange(_N_GOLDEN)), np.clip(drawn, -BOUND, BOUND).astype(np.float32)])


def _golden(
    core: SnakeCore,
    observations: NDArray[np.float32],
    actions: NDArray[np.float32],
    error: NDArray[np.float32],
) -> Golden:
    """The first pairs; their tolerance is the usual one, or, for networks on which SB3 rounds more, a power of ten."""
    chosen = slice(2 * _N_GOLDEN)
    worst = float(error[chosen].max())
    tolerance = ACCURACY if worst <= ACCURACY else 10.0 ** math.ceil(math.log10(worst))
    obs, expected = observations[chosen], actions[chosen]
    references = golden_references(core.layout, core.decoder, obs, expected)
    plain: Any = tuple(tuple(tuple(row) for row in step) for step in np.round(references, 9).tolist())
    return Golden(_short(obs), _short(expected), plain, tolerance)


def _short(values: NDArray[np.float32]) -> tuple[tuple[float, ...], ...]:
    """Single-precision numbers in their shortest form that reads back the same."""
    return tuple(tuple(float(str(value)) for value in row) for row in values)


def _observation_contract(core: SnakeCore) -> ObservationContract:
    contact, scan, layout = core.sensors.contact, core.sensors.range_scan, core.layout
    return ObservationContract(
        size=layout.size, bound=BOUND, tracked_point="head" if layout.point == "head" else "centre",
        reveal_faults=core.config.faults.reveal, contact_limit_n=None if contact is None else contact.limit_n,
        n_beams=0 if scan is None else scan.n_beams, max_range_m=layout.max_range_m, fields=field_rows(layout),
        columns=layout.columns,
    )  # fmt: skip


def _normaliser_contract(trained: LoadedPolicy) -> NormaliserContract | None:
    own = trained.normaliser
    if own is None:
        return None
    return NormaliserContract(tuple(own.mean.tolist()), tuple(own.var.tolist()), own.epsilon, own.clip)


def _env_origin(config: TrainConfig, core: SnakeCore) -> EnvOrigin:
    settings = to_dict(core.config)
    return EnvOrigin(config.env_id, {key: value for key, value in settings.items() if key not in ("robot", "action")})


def _training_summary(trained: LoadedPolicy, folder: RunFolder, config: TrainConfig) -> dict[str, Any]:
    launch = (folder.launches() or [{}])[-1]
    return {
        "algorithm": config.algorithm, "steps": trained.steps, "n_envs": config.n_envs, "seed": config.seed,
        "normalise": to_dict(config.normalise), "evaluation": trained.evaluation,
        **{key: launch[key] for key in ("started", "git", "versions") if key in launch},
    }  # fmt: skip


def _encode_onnx(contract: PolicyContract, tensors: dict[str, NDArray[np.float32]]) -> bytes:
    from agents.onnx_graph import encode_onnx

    n_inputs, n_outputs = contract.observation.size, contract.action.size
    normaliser = None if contract.normaliser is None else contract.normaliser.make_normaliser(n_inputs)
    metadata = {"name": contract.name, "weights_sha256": contract.weights.sha256, "format": FORMAT}
    return encode_onnx(contract.network, tensors, normaliser, n_inputs, n_outputs, metadata)


if __name__ == "__main__":
    run_program(main)
