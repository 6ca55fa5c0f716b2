"""Export of a run's policy as a policy file for robots without torch, with an ONNX model on request.

``policy.json`` is the contract (docs/policy_file.md), ``policy.safetensors`` the weights. The contract is written last
and holds the weights' hash, so that a half-written or mixed pair never loads.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from snake_gym.config import ConfigError, OptionParser, require, run_program, write_atomic
from snake_gym.interface.policy_contract import MAX_TOLERANCE, format_contract, parse_contract
from snake_gym.interface.policy_file import (
    CONTRACT,
    FilePolicy,
    describe_missing,
    fallback_note,
    find_policy_file,
    load_policy,
)
from snake_gym.plugins import add_plugin_option, load_plugins

from .run_folder import CONFIG

ONNX = "policy.onnx"


def main(argv: list[str] | None = None) -> int:
    """Export one policy. Raises ConfigError for what the user has to correct."""
    parser = OptionParser(prog="snake-gym export", description="Write a trained policy as a policy file.")
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder, or a policy or checkpoint in it")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the policy file (default: RUN/export)")
    parser.add_argument("--name", help="the policy's name (default: the run's)")
    parser.add_argument("--estimator", action="store_true", help="with action.estimator on")
    parser.add_argument("--onnx", action="store_true", help="write an ONNX model too")
    add_plugin_option(parser)
    arguments = parser.parse_args(argv)
    load_plugins(arguments.plugin)
    if (note := fallback_note(arguments.run)) is not None:
        print(f"note: {note}", file=sys.stderr)
    files = export_policy(arguments.run, arguments.out, arguments.onnx, arguments.name, arguments.estimator)
    print(f"wrote {', '.join(path.name for path in files)} into {files[0].parent}")
    return 0


def export_policy(
    run: Path, out: Path | None = None, onnx: bool = False, name: str | None = None, estimator: bool = False
) -> list[Path]:
    """Write the policy of ``run`` (folder of a run, or a policy or checkpoint in it); return the files.

    ``out``: that folder; None: ``export`` in the run's. ``onnx``: add an ONNX model. ``name``: None: the run's.
    ``estimator``: switch on ``action.estimator``.
    Raises ConfigError if there is no such policy, a library is missing, or the ONNX model acts otherwise.
    """
    if onnx:
        require("an ONNX model", "onnx", "onnxruntime")
    source = find_policy_file(run)
    if source is None:
        raise ConfigError(describe_missing(run))
    if out is None and not (run / CONFIG).is_file():
        raise ConfigError(f"{run} is no run's folder; say with --out where the policy file is to be written")
    out = out or run / "export"
    policy = load_policy(source)
    contract = replace(policy.contract, name=name or policy.name)
    if estimator:
        action = contract.action.settings
        action = replace(action, estimator=replace(action.estimator, on=True))
        contract = replace(contract, action=replace(contract.action, settings=action))
    files = {contract.weights.file: (source.parent / contract.weights.file).read_bytes()}
    if onnx:
        files[ONNX] = _encode_onnx(policy)
    files[CONTRACT] = format_contract(contract).encode()
    FilePolicy(parse_contract(files[CONTRACT], str(out / CONTRACT)), files[contract.weights.file], out / CONTRACT)
    for file, data in files.items():
        write_atomic(out / file, data)
    if not onnx:
        (out / ONNX).unlink(missing_ok=True)  # of an earlier export, with other weights
    return [out / file for file in files]


def _encode_onnx(policy: FilePolicy) -> bytes:
    """Return the model. Raises ConfigError unless its actions are those of the policy."""
    from .onnx_model import encode_onnx, run_onnx

    contract = policy.contract
    n_inputs = contract.observation.size
    metadata = {"name": contract.name, "weights_sha256": contract.weights.sha256, "format": contract.format}
    model = encode_onnx(contract.network, policy.tensors, contract.normaliser, n_inputs, metadata)
    obs = np.random.default_rng(0).normal(size=(2048, n_inputs)).astype(np.float32)
    distance = float(np.abs(run_onnx(model, obs) - policy.predict(obs)[0]).max())
    if not distance <= MAX_TOLERANCE:
        raise ConfigError(
            f"the ONNX model's actions differ by {distance:.3g} from the policy's; expected {MAX_TOLERANCE}"
        )
    return model


if __name__ == "__main__":
    run_program(main)
