"""Export of a run's policy as a policy file for robots without torch, with an ONNX model on request.

``policy.json`` is the contract (docs/policy_file.md), ``policy.safetensors`` the weights. The contract is written last
and holds the weights' hash, so that a half-written or mixed pair never loads.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from snake_gym.config import ConfigError, OptionParser, require, run_program, write_atomic
from snake_gym.interface.policy_contract import format_contract
from snake_gym.interface.policy_file import (
    CONTRACT,
    FilePolicy,
    describe_missing,
    fallback_note,
    find_policy_file,
    load_policy,
    read_policy_file,
    read_tensors,
)
from snake_gym.plugins import add_plugin_option, load_plugins

from .run_folder import CONFIG

ONNX = "policy.onnx"
_N_COMPARED = 2048
"""Number of observations on which the ONNX model is compared with the policy."""


@dataclass(frozen=True)
class Export:
    """Result of an export."""

    files: tuple[Path, ...]
    deviation: float
    """Largest distance of the NumPy policy's golden actions from SB3's."""
    onnx_deviation: float | None
    """Largest distance of the ONNX model's actions from the NumPy policy's; None without such a model."""

    def describe(self) -> str:
        """Return one line for the terminal."""
        sizes = ", ".join(f"{path.name} {path.stat().st_size / 1000:.0f} kB" for path in self.files)
        onnx = "" if self.onnx_deviation is None else f", ONNX within {self.onnx_deviation:.1e}"
        return f"wrote {sizes} into {self.files[0].parent}; NumPy within {self.deviation:.1e} of SB3's actions{onnx}"


def main(argv: list[str] | None = None) -> int:
    """Export one policy. Raises ConfigError for what the user has to correct."""
    parser = OptionParser(prog="snake-gym export", description="Write a trained policy as a policy file.")
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder, or a policy or checkpoint in it")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the policy file (default: RUN/export)")
    parser.add_argument("--name", help="the policy's name (default: the run's)")
    parser.add_argument("--onnx", action="store_true", help="write an ONNX model too")
    add_plugin_option(parser)
    arguments = parser.parse_args(argv)
    load_plugins(arguments.plugin)
    if (note := fallback_note(arguments.run)) is not None:
        print(f"note: {note}", file=sys.stderr)
    print(export_policy(arguments.run, arguments.out, arguments.onnx, arguments.name).describe())
    return 0


def export_policy(run: Path, out: Path | None = None, onnx: bool = False, name: str | None = None) -> Export:
    """Write the policy of ``run`` (folder of a run, or a policy or checkpoint in it) into its own folder.

    ``out``: that folder; None: ``export`` in the run's. ``onnx``: add an ONNX model. ``name``: None: the run's.
    Raises ConfigError if there is no such policy, or a library is missing.
    """
    if onnx:
        require("an ONNX model", "onnx", "onnxruntime")
    source = find_policy_file(run)
    if source is None:
        raise ConfigError(describe_missing(run))
    out = out or _run_folder(run) / "export"
    policy = load_policy(source)
    contract, weights = read_policy_file(source)
    contract = replace(contract, name=name or contract.name)
    files, onnx_deviation = {contract.weights.file: weights}, None
    if onnx:
        files[ONNX], onnx_deviation = _encode_onnx(policy, weights)
    files[CONTRACT] = format_contract(contract).encode()
    for file, data in files.items():
        write_atomic(out / file, data)
    if not onnx:
        (out / ONNX).unlink(missing_ok=True)  # of an earlier export, with other weights
    load_policy(out)
    golden = contract.golden
    actions, _ = policy.predict(np.array(golden.observations, np.float32))
    deviation = float(np.abs(actions - np.array(golden.actions, np.float32)).max())
    return Export(tuple(out / file for file in files), deviation, onnx_deviation)


def _run_folder(path: Path) -> Path:
    """Return the folder of the run that ``path`` is, or lies in."""
    for candidate in (path, *path.resolve().parents[:4]):
        if (candidate / CONFIG).is_file():
            return candidate
    raise ConfigError(f"{path} is in no run's folder; say with --out where the policy file is to be written")


def _encode_onnx(policy: FilePolicy, weights: bytes) -> tuple[bytes, float]:
    """Return the model, and the largest distance of its actions from the policy's."""
    from .onnx_graph import encode_onnx, run_onnx

    contract = policy.contract
    n_inputs = contract.observation.size
    normaliser = None if contract.normaliser is None else contract.normaliser.make_normaliser(n_inputs)
    metadata = {"name": contract.name, "weights_sha256": contract.weights.sha256, "format": contract.format}
    tensors = read_tensors(weights, contract.weights.file)
    model = encode_onnx(contract.network, tensors, normaliser, n_inputs, metadata)
    obs = np.random.default_rng(0).normal(size=(_N_COMPARED, n_inputs)).astype(np.float32)
    return model, float(np.abs(run_onnx(model, obs) - policy.predict(obs)[0]).max())


if __name__ == "__main__":
    run_program(main)
