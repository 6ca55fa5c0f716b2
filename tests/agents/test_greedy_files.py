"""Files that declare far more than they hold are refused in one line before memory is taken for them."""

from __future__ import annotations

import hashlib
import io
import json
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

from agents.checkpoint import _checksum, list_checkpoints
from agents.export import export_policy
from agents.policy import FORMAT
from snake_gym.interface.policy_contract import SEAL, seal
from tests.agents.runs import run_to_end, small_config

ROOT = Path(__file__).parents[2]
MANY = 1_900_000_000
"""Numbers of 8 bytes that take 14 GiB."""
READ = """
import resource, sys
from pathlib import Path
import numpy, torch
import snake_gym.interface.policy_file as policy_file
import agents.checkpoint as checkpoint
from snake_gym.config import ConfigError
from snake_gym.envs import choose_env
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

def play(path):
    policy = policy_file.load_policy(path)
    choose_env(policy.env_id)(1, config=policy.env_config)

read = {"play": play, "trained": checkpoint.load_policy, "checkpoint": checkpoint.read_checkpoint}
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


def npy(shape: tuple[int, ...], dtype: str = "<f8", content: bytes = b"") -> bytes:
    """A .npy file whose header promises more than follows."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


def npz(path: Path, parts: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(f"{name}.npy", content)


def as_npy(value: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, value)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    training = run_to_end(small_config(total_steps=128), path)
    training.folder.write_config(training.config)
    export_policy(path)
    return path


def policy_parts(run: Path, change: Callable[[dict[str, Any]], object] = lambda meta: None) -> dict[str, bytes]:
    with np.load(run / "policy" / "best.npz") as data:
        arrays = {name: data[name] for name in data.files}
    meta = json.loads(str(arrays["meta"]))
    assert meta["format"] == FORMAT
    change(meta)
    return {name: as_npy(value) for name, value in {**arrays, "meta": np.array(json.dumps(meta))}.items()}


def contract(run: Path, folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    content = json.loads((run / "export" / "policy.json").read_text())
    change(content)
    content[SEAL] = seal(content)
    folder.mkdir()
    (folder / "policy.json").write_text(json.dumps(content))
    (folder / "policy.safetensors").write_bytes((run / "export" / "policy.safetensors").read_bytes())
    return folder


def checkpoint(run: Path, folder: Path, name: str, content: Callable[[Path], object]) -> Path:
    """A copy of a checkpoint with one file made anew, and listed with its size and checksum as it should be."""
    shutil.copytree(list_checkpoints(run)[0], folder)
    (folder / name).unlink()
    content(folder / name)
    state = json.loads((folder / "state.json").read_text())
    state["files"][name] = [(folder / name).stat().st_size, _checksum(folder / name)]
    (folder / "state.json").write_text(json.dumps(state))
    return folder


def compressed_zeros(path: Path, member: str) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(member, "w", force_zip64=True) as stream,
    ):
        stream.write(npy((1_000_000,)) + bytes(8_000_000))


def test_what_declares_gigabytes_is_refused_before_memory_is_taken(run: Path, tmp_path: Path) -> None:
    greedy: dict[str, tuple[str, Path, str]] = {}

    def add(name: str, what: str, path: Path, message: str) -> None:
        greedy[name] = (what, path, message)

    def trained(name: str, parts: dict[str, bytes], message: str) -> None:
        npz(tmp_path / f"{name}.npz", parts)
        add(name, "trained", tmp_path / f"{name}.npz", message)

    def network(net_arch: Any) -> dict[str, bytes]:
        return policy_parts(run, lambda meta: meta["network"].update(net_arch=net_arch))

    trained("header", {**policy_parts(run), "weight/x": npy((MANY,))}, "weight/x.npy has 0 bytes; expected 15200000000")
    trained("text", {**policy_parts(run), "meta": npy((), "<U400000000")}, "meta.npy has 0 bytes; expected 1600000000")
    trained("wide network", network([MANY]), "expected at most")
    trained("square network", network([50_000, 50_000]), "expected at most")
    trained("deep network", network([1] * 1_000_000), "expected at most")
    trained("wide critic", network({"pi": [16], "vf": [40_000, 40_000]}), "expected at most")
    compressed_zeros(tmp_path / "bomb.npz", "weight/x.npy")
    add("bomb", "trained", tmp_path / "bomb.npz", "weight/x.npy is compressed; expected arrays as they are")

    folder = contract(
        run, tmp_path / "targets", lambda c: c["env"]["settings"]["course"].update(n_targets=1_000_000_000)
    )
    add("targets", "play", folder, "n_targets is 1000000000")
    folder = contract(run, tmp_path / "beams", lambda c: c["observation"].update(n_beams=MANY, size=MANY + 41))
    add("beams", "play", folder, "")
    folder = contract(run, tmp_path / "links", lambda c: c["robot"].update(n_links=MANY))
    add("links", "play", folder, "n_links is 1900000000")

    def safetensors(path: Path) -> None:
        entry = {"dtype": "F32", "shape": [MANY, 2], "data_offsets": [0, 8 * MANY]}
        header = json.dumps({"layer0.weight": entry}).encode()
        path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))

    folder = contract(run, tmp_path / "tensors", lambda c: None)
    safetensors(folder / "policy.safetensors")

    def fitting(content: dict[str, Any]) -> None:
        data = (tmp_path / "tensors" / "policy.safetensors").read_bytes()
        content["weights"].update(n_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())

    folder = contract(run, tmp_path / "tensors2", fitting)
    safetensors(folder / "policy.safetensors")
    add("safetensors", "play", folder, "its arrays take 15200000000 bytes, but 8 follow the header")

    arrays = checkpoint(run, tmp_path / "arrays", "arrays.npz", lambda p: npz(p, {"x": npy((MANY,))}))
    add("checkpoint header", "checkpoint", arrays, "x.npy has 0 bytes; expected 15200000000")
    bomb = checkpoint(run, tmp_path / "arrays bomb", "arrays.npz", lambda p: compressed_zeros(p, "x.npy"))
    add("checkpoint bomb", "checkpoint", bomb, "x.npy is compressed")

    def huge_bytes(path: Path) -> None:
        class Greedy:
            def __reduce__(self) -> Any:
                return bytearray, (8 * MANY,)

        torch.save(Greedy(), path)

    add("pickle", "checkpoint", checkpoint(run, tmp_path / "pickle", "tensors.pt", huge_bytes), "damaged")

    def compressed_tensors(path: Path) -> None:
        buffer = io.BytesIO()
        torch.save({"x": torch.zeros(1_000_000)}, buffer)
        with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new:
            for info in old.infolist():
                new.writestr(info.filename, old.read(info))

    tensors = checkpoint(run, tmp_path / "tensors bomb", "tensors.pt", compressed_tensors)
    add("tensors bomb", "checkpoint", tensors, "is compressed")

    def sparse(path: Path) -> None:
        with path.open("wb") as stream:
            stream.truncate(15_000_000_000)

    sparse(tmp_path / "sparse.npz")
    add("sparse policy", "trained", tmp_path / "sparse.npz", "expected")
    state = tmp_path / "state"
    checkpoint(run, state, "policy.npz", lambda p: p.write_bytes(b""))
    sparse(state / "state.json")
    add("sparse state", "checkpoint", state, "state.json has 15000000000 bytes; expected at most")

    arguments = [text for what, path, _ in greedy.values() for text in (what, str(path))]
    done = subprocess.run(
        [sys.executable, "-c", READ, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    for (name, (_, _, message)), line in zip(greedy.items(), done.stdout.splitlines(), strict=True):
        assert "Error:" not in line and not line.startswith("took") and line != "was read", f"{name}: {line}"
        assert message in line, f"{name}: {line}"
