"""Checkpoints of training runs on disk, and finding a policy under a path.

A checkpoint is a folder ``checkpoints/step_000123456`` that appears whole or not at all (written under another name,
then renamed): ``state.json`` (counters, sizes and checksums of the other files), ``arrays.npz``
(env, normaliser, running statistics), ``tensors.pt`` (networks, optimisers; read with ``weights_only``),
``replay/*.npy`` (off-policy), and ``policy.npz``, the policy as it was. Nothing in it is unpickled.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch

from agents.array_files import MAX_CHECKPOINT_BYTES, MAX_TEXT_BYTES, check_parts, check_size, read_arrays
from agents.learner_state import Snapshot
from agents.policy import LoadedPolicy, read_policy
from snake_gym.config import ConfigError, nearest, to_dict, write_atomic

FORMAT = "snake_gym checkpoint 1"
FOLDER = "checkpoints"
_STATE, _ARRAYS, _TENSORS, _REPLAY, _POLICY = "state.json", "arrays.npz", "tensors.pt", "replay", "policy.npz"
_UNREADABLE = (
    OSError, ValueError, KeyError, TypeError, EOFError, RuntimeError, MemoryError, UnpicklingError,
    zipfile.BadZipFile,
)  # fmt: skip


def write_checkpoint(run: Path, step: int, snapshot: Snapshot, policy: bytes, keep: int) -> Path:
    """Write the checkpoint of ``step`` into a run's folder, then remove all that are older but the newest ``keep``.

    Raises OSError, with nothing new in the folder, if it cannot be written.
    """
    folder = run / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for left_over in folder.glob(".partial-*"):
        shutil.rmtree(left_over)
    partial = folder / f".partial-{os.getpid()}"
    final = folder / f"step_{step:012d}"
    try:
        _write_files(partial, step, snapshot, policy)
        if final.exists():  # left by a run that was resumed from an older one because this one is damaged
            shutil.rmtree(final)
        partial.rename(final)
    except OSError:
        shutil.rmtree(partial, ignore_errors=True)  # a full disk has a use for the room
        raise
    _flush(folder)
    found = list_checkpoints(run)
    for old in found[found.index(final) + keep :]:  # those before it are damaged: the run did not go on from them
        shutil.rmtree(old)
    return final


def _write_files(folder: Path, step: int, snapshot: Snapshot, policy: bytes) -> None:
    folder.mkdir()
    arrays, tensors = io.BytesIO(), io.BytesIO()
    np.savez(arrays, **snapshot.arrays)  # type: ignore[arg-type]
    torch.save(snapshot.tensors, tensors)
    for name, content in ((_ARRAYS, arrays.getvalue()), (_TENSORS, tensors.getvalue()), (_POLICY, policy)):
        (folder / name).write_bytes(content)
    for name, values in snapshot.replay.items():
        (folder / _REPLAY).mkdir(exist_ok=True)
        np.save(folder / _REPLAY / f"{name}.npy", values)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    listed = {path.relative_to(folder).as_posix(): [path.stat().st_size, _checksum(path)] for path in files}
    for path in files:
        _flush(path)
    state = {"format": FORMAT, "step": step, "files": listed, "state": to_dict(snapshot.plain)}
    write_atomic(folder / _STATE, json.dumps(state))


def list_checkpoints(run: Path) -> list[Path]:
    """The checkpoints of a run, newest first."""
    found = [path for path in (run / FOLDER).glob("step_*") if path.name[5:].isdecimal()]
    return sorted(found, key=checkpoint_step, reverse=True)


def checkpoint_step(path: Path) -> int:
    """The step of a checkpoint of ``list_checkpoints``."""
    return int(path.name[5:])


def read_checkpoint(path: Path) -> tuple[int, Snapshot]:
    """Step and state of a checkpoint. Raises ConfigError if it is none of ours, or damaged."""
    try:
        check_size(path / _STATE, MAX_TEXT_BYTES)
        state = json.loads((path / _STATE).read_text(encoding="utf-8"))
        if state["format"] != FORMAT:
            raise ValueError(f"its format is {state['format']!r}")
        for name, (size, checksum) in state["files"].items():
            if (path / name).stat().st_size != size or _checksum(path / name) != checksum:
                raise ValueError(f"{name} has changed since it was written")
        arrays = read_arrays(path / _ARRAYS, MAX_CHECKPOINT_BYTES)
        check_parts(path / _TENSORS, MAX_CHECKPOINT_BYTES)
        tensors = torch.load(path / _TENSORS, map_location="cpu", weights_only=True)
        files = sorted((path / _REPLAY).glob("*.npy"))
        replay = {file.stem: np.load(file, mmap_mode="r", allow_pickle=False) for file in files}
        return int(state["step"]), Snapshot(tensors, arrays, replay, state["state"])
    except _UNREADABLE as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error).split("\n")[0]
        raise ConfigError(f"{path} is no checkpoint that train.py wrote, or it is damaged ({reason})") from None


def newest_checkpoint(run: Path, say: Callable[[str], None] = lambda text: None) -> tuple[Path, int, Snapshot]:
    """The newest checkpoint of a run that can be read. Raises ConfigError if there is none.

    Args:
        say: hears which newer ones are damaged, and from which step the run goes on.
    """
    errors: list[ConfigError] = []
    for path in list_checkpoints(run):
        try:
            step, snapshot = read_checkpoint(path)
        except ConfigError as error:
            errors.append(error)
            continue
        for damage in errors:
            say(f"{damage}; going on from step {step:,}")
        return path, step, snapshot
    if errors:
        raise errors[0]
    raise ConfigError(f"{run} holds no checkpoint to resume from; expected the folder of a run that train.py made")


def load_policy(path: str | os.PathLike[str]) -> LoadedPolicy:
    """The policy under ``path``: a run's folder (its best policy), a checkpoint's folder, or a policy file.

    Raises:
        ConfigError: nothing is there, or it is no policy that ``train.py`` wrote.
    """
    path = Path(path)
    if path.is_file():
        return read_policy(path)
    if path.is_dir():
        candidates = [folder / name for folder in (path / "policy", path) for name in ("best.npz", "final.npz")]
        candidates += [folder / _POLICY for folder in (path, *list_checkpoints(path))]
        for candidate in candidates:
            if candidate.is_file():
                return read_policy(candidate)
        raise ConfigError(f"{path} holds no trained policy; expected the folder of a run that train.py made")
    raise ConfigError(missing_run(path))


def missing_run(path: Path) -> str:
    """Message for a run or policy that is not there, naming the nearest that is."""
    beside = sorted(entry.name for entry in path.parent.iterdir()) if path.parent.is_dir() else []
    guess = nearest(path.name, beside)
    return f"{path} does not exist" + (f"; did you mean '{path.parent / guess}'?" if guess else "")


def _checksum(path: Path) -> int:
    value = 0
    with path.open("rb") as stream:
        while block := stream.read(1 << 22):
            value = zlib.crc32(block, value)
    return value


def _flush(path: Path) -> None:
    """Have the system write a file's content, or a folder's entries, to the disk."""
    handle: Any = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
