"""Checkpoints: foreign, damaged and greedy ones are refused in one line, and none of them runs code."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save
from snake_gym.agents.checkpoint import FORMAT, list_checkpoints, read_checkpoint

from snake_gym.config import ConfigError
from snake_gym.interface.policy_contract import SEAL, seal, sealed
from snake_gym.interface.policy_file import load_policy
from tests.agents.runs import run_to_end, small_config

ROOT = Path(__file__).parents[2]
MANY = 1_900_000_000
"""Numbers of 8 bytes that take 14 GiB."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    run_to_end(small_config(total_steps=256), path)
    return path


def test_a_checkpoint_holds_the_policy_as_it_was(run: Path) -> None:
    assert load_policy(list_checkpoints(run)[0]).contract.training["steps"] == 256


def test_a_checkpoint_of_an_earlier_version_is_refused(run: Path, tmp_path: Path) -> None:
    old = json.dumps({"format": "snake_gym checkpoint 1"}).encode()
    with pytest.raises(ConfigError, match="its format is 'snake_gym checkpoint 1'; expected"):
        read_checkpoint(checkpoint(run, tmp_path / "old", "state.json", old))


@pytest.mark.parametrize("name", ["state.json", "arrays.safetensors", "tensors.pt"])
def test_a_damaged_checkpoint_is_refused(run: Path, tmp_path: Path, name: str) -> None:
    copy = tmp_path / "step_000000000256"
    shutil.copytree(list_checkpoints(run)[0], copy)
    read_checkpoint(copy)
    content = (copy / name).read_bytes()
    (copy / name).write_bytes(content[:-7])
    with pytest.raises(ConfigError, match="damaged"):
        read_checkpoint(copy)
    (copy / name).unlink()
    with pytest.raises(ConfigError, match="damaged"):
        read_checkpoint(copy)


def test_a_state_with_a_flipped_bit_is_refused_or_the_same(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(list_checkpoints(run)[0], tmp_path / "step_000000000256")
    whole, rng, n_kept = (copy / "state.json").read_bytes(), np.random.default_rng(0), 0
    step, snapshot = read_checkpoint(copy)
    for bit in rng.integers(8 * len(whole), size=200).tolist():
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        (copy / "state.json").write_bytes(damaged)
        try:
            found = read_checkpoint(copy)
        except ConfigError:
            continue
        assert (found[0], found[1].plain) == (step, snapshot.plain)  # a space became a tabulator, or the like
        n_kept += 1
    assert n_kept < 20


def test_a_checkpoint_that_would_run_code_is_refused(tmp_path: Path) -> None:
    class Touch:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "touched"),)

    checkpoint = tmp_path / "step_000000000001"
    checkpoint.mkdir()
    (checkpoint / "arrays.safetensors").write_bytes(save({"a": np.zeros(1)}))
    torch.save(Touch(), checkpoint / "tensors.pt")
    (checkpoint / "state.json").write_text(json.dumps(sealed({"format": FORMAT, "step": 1, "files": {}, "state": {}})))
    with pytest.raises(ConfigError, match="Weights only load failed"):
        read_checkpoint(checkpoint)
    assert not (tmp_path / "touched").exists()


# --- files that declare far more than they hold ----------------------------------------------------------------------

READ = """
import resource, sys
from pathlib import Path
import numpy, torch
import snake_gym.interface.policy_file as policy_file
import snake_gym.agents.checkpoint as checkpoint
from snake_gym.config import ConfigError
from snake_gym.envs import SnakeVectorEnv
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

def play(path):
    policy = policy_file.load_policy(path)
    SnakeVectorEnv(policy.env_id, 1, config=policy.env_config)

read = {"play": play, "checkpoint": checkpoint.read_checkpoint}
for what, path in zip(sys.argv[1::2], sys.argv[2::2]):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        read[what](Path(path))
        print("was read")
    except ConfigError as error:
        taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(error if taken < 500_000 else f"took {taken} kB: {error}")
    except BaseException as error:
        print(f"{type(error).__name__}: {str(error)[:200]!r}")
"""


def contract(run: Path, folder: Path, change: Callable[[dict[str, Any]], object], weights: bytes | None = None) -> Path:
    """A copy of the run's policy with another contract, sealed, and other weights."""
    shutil.copytree(run / "policy" / "best", folder)
    content = json.loads((folder / "policy.json").read_text())
    if weights is not None:
        (folder / "policy.safetensors").write_bytes(weights)
        content["weights"].update(n_bytes=len(weights), sha256=hashlib.sha256(weights).hexdigest())
    change(content)
    content[SEAL] = seal(content)
    (folder / "policy.json").write_text(json.dumps(content))
    return folder


def checkpoint(run: Path, folder: Path, name: str, content: bytes) -> Path:
    """A copy of a checkpoint with one file made anew, and listed with its size and checksum as it should be."""
    shutil.copytree(list_checkpoints(run)[0], folder)
    (folder / name).write_bytes(content)
    if name == "state.json":
        return folder
    state = json.loads((folder / "state.json").read_text())
    state["files"][name] = hashlib.sha256(content).hexdigest()
    (folder / "state.json").write_text(json.dumps(sealed(state)))
    return folder


def greedy_safetensors() -> bytes:
    entry = {"dtype": "F32", "shape": [MANY, 2], "data_offsets": [0, 8 * MANY]}
    header = json.dumps({"layer0.weight": entry}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(8)


def greedy_pickle() -> bytes:
    class Greedy:
        def __reduce__(self) -> Any:
            return bytearray, (8 * MANY,)

    buffer = io.BytesIO()
    torch.save(Greedy(), buffer)
    return buffer.getvalue()


def compressed_tensors() -> bytes:
    stored, packed = io.BytesIO(), io.BytesIO()
    torch.save({"x": torch.zeros(1_000_000)}, stored)
    with zipfile.ZipFile(stored) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new:
        for info in old.infolist():
            new.writestr(info.filename, old.read(info))
    return packed.getvalue()


def test_what_declares_gigabytes_is_refused_before_memory_is_taken(run: Path, tmp_path: Path) -> None:
    def targets(content: dict[str, Any]) -> None:
        content["env"]["settings"]["course"].update(n_targets=1_000_000_000)

    weights = greedy_safetensors()
    sparse = checkpoint(run, tmp_path / "sparse", "tensors.pt", b"")
    with (sparse / "state.json").open("wb") as stream:
        stream.truncate(15_000_000_000)
    greedy = [
        ("play", contract(run, tmp_path / "targets", targets), "n_targets is 1000000000"),
        ("play", contract(run, tmp_path / "beams", lambda c: c["observation"].update(n_beams=MANY)), ""),
        ("play", contract(run, tmp_path / "links", lambda c: c["robot"].update(n_links=MANY)), "n_links is 1900000000"),
        ("play", contract(run, tmp_path / "weights", lambda c: None, weights), "is no valid safetensors file"),
        ("checkpoint", checkpoint(run, tmp_path / "arrays", "arrays.safetensors", weights), "damaged"),
        ("checkpoint", checkpoint(run, tmp_path / "pickle", "tensors.pt", greedy_pickle()), "damaged"),
        ("checkpoint", checkpoint(run, tmp_path / "bomb", "tensors.pt", compressed_tensors()), "is compressed"),
        ("checkpoint", sparse, "it has more than 268435456 bytes"),
    ]
    arguments = [text for what, path, _ in greedy for text in (what, str(path))]
    done = subprocess.run(
        [sys.executable, "-c", READ, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    for (_, path, message), line in zip(greedy, done.stdout.splitlines(), strict=True):
        assert "Error:" not in line and not line.startswith("took") and line != "was read", f"{path.name}: {line}"
        assert message in line, f"{path.name}: {line}"
