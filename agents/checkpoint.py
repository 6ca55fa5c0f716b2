"""Checkpoints of training runs on disk.

A checkpoint is a folder ``checkpoints/step_000123456`` that appears whole or not at all: ``state.json`` (counters,
checksums of the other files; sealed as a policy file is), ``arrays.safetensors`` (env, normaliser, running statistics),
``tensors.pt`` (networks, optimisers; read with ``weights_only``), ``replay/*.npy`` (off-policy), and ``policy``, the
policy file. Nothing in it is unpickled, and declared sizes are checked before memory is allocated.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load, save

from snake_gym.config import ConfigError, read_json, to_json
from snake_gym.config.files import LARGEST_RECORD_BYTES, read_file
from snake_gym.interface.policy_contract import check_seal, sealed

from .sb3_internals import Snapshot

FORMAT = "snake_gym checkpoint 3"
FOLDER = "checkpoints"
POLICY = "policy"
_STATE, _ARRAYS, _TENSORS, _REPLAY = "state.json", "arrays.safetensors", "tensors.pt", "replay"
_MAX_BYTES = 1 << 32
"""Largest file of arrays or tensors; with 256 worlds they take about 2 MB."""


def write_checkpoint(run: Path, step: int, snapshot: Snapshot, policy: Mapping[str, bytes], keep: int) -> Path:
    """Write the checkpoint of ``step``, with ``policy`` files by name, then remove older checkpoints except the newest
    ``keep``.

    Raises OSError, with nothing new in the folder, if it cannot be written.
    """
    tensors = io.BytesIO()
    torch.save(snapshot.tensors, tensors)
    arrays = save({name: np.asarray(values, order="C") for name, values in snapshot.arrays.items()})

    def write(folder: Path) -> None:
        files = {_ARRAYS: arrays, _TENSORS: tensors.getvalue()}
        files |= {f"{POLICY}/{name}": content for name, content in policy.items()}
        write_files(folder, files)
        for name, values in snapshot.replay.items():
            (folder / _REPLAY).mkdir(exist_ok=True)
            np.save(folder / _REPLAY / f"{name}.npy", values)
        state = {"format": FORMAT, "step": step, "files": _checksums(folder), "state": snapshot.plain}
        (folder / _STATE).write_text(to_json(sealed(state), indent=None), encoding="utf-8")

    final = run / FOLDER / f"step_{step:012d}"
    write_folder(final, write)
    found = list_checkpoints(run)
    for old in found[found.index(final) + keep :]:  # those before it are damaged: the run did not go on from them
        shutil.rmtree(old)
    return final


def write_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Replace ``folder`` by one with the files that ``write`` makes, once all of them are on the disk.

    Raises OSError, with the folder as it was, if they cannot be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left_over in folder.parent.glob(".partial-*"):
        shutil.rmtree(left_over)
    new, old = folder.with_name(".partial-new"), folder.with_name(".partial-old")
    try:
        new.mkdir()
        write(new)
        for path in new.rglob("*"):
            _flush(path)
    except OSError:
        shutil.rmtree(new, ignore_errors=True)  # a full disk has a use for the room
        raise
    if folder.exists():
        folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
    _flush(folder.parent)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write each file under its name in the folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def list_checkpoints(run: Path) -> list[Path]:
    """Return the checkpoints of a run, newest first."""
    found = [path for path in (run / FOLDER).glob("step_*") if path.name[5:].isdecimal()]
    return sorted(found, key=checkpoint_step, reverse=True)


def checkpoint_step(path: Path) -> int:
    """Return the step of a checkpoint from ``list_checkpoints``."""
    return int(path.name[5:])


def read_checkpoint(path: Path) -> tuple[int, Snapshot]:
    """Return step and state of a checkpoint. Raises ConfigError if it is damaged or not one of ours."""
    try:
        for name in (_ARRAYS, _TENSORS):
            if (path / name).stat().st_size > _MAX_BYTES:
                raise ValueError(f"{name} has {(path / name).stat().st_size} bytes; expected at most {_MAX_BYTES}")
        state = read_json(read_file(path / _STATE, LARGEST_RECORD_BYTES), _STATE)
        if state["format"] != FORMAT:
            raise ValueError(f"its format is {state['format']!r}; expected {FORMAT!r}")
        check_seal(state, _STATE)
        found = _checksums(path)
        for name, checksum in state["files"].items():
            if found.get(name) != checksum:
                raise ValueError(f"{name} has changed since it was written")
        arrays = load((path / _ARRAYS).read_bytes())
        _check_parts(path / _TENSORS)
        tensors = torch.load(path / _TENSORS, map_location="cpu", weights_only=True)
        files = sorted((path / _REPLAY).glob("*.npy"))
        replay = {file.stem: np.load(file, mmap_mode="r", allow_pickle=False) for file in files}
        return int(state["step"]), Snapshot(tensors, arrays, replay, state["state"])
    except Exception as error:  # damaged files fail in any way
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error).split("\n")[0]
        raise ConfigError(f"{path} is no checkpoint that train.py wrote, or it is damaged ({reason})") from None


def newest_checkpoint(run: Path, say: Callable[[str], None] = lambda text: None) -> tuple[Path, int, Snapshot]:
    """Return the newest readable checkpoint of a run. Raises ConfigError if there is none.

    ``say`` is told the damaged newer ones and the step from which the run continues.
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


def _check_parts(path: Path) -> None:
    """Raise ValueError unless the parts of a zip file are stored uncompressed and fit into it: no more is unpacked."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"its part {member.filename} is compressed; expected arrays as they are")
    if sum(member.file_size for member in members) > path.stat().st_size:
        raise ValueError("its parts are said to have more bytes than the file")


def _checksums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file in a checkpoint, by its path there."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as stream:
            found[path.relative_to(folder).as_posix()] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def _flush(path: Path) -> None:
    """Flush a file's content, or a folder's entries, to the disk."""
    try:
        handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)  # Windows flushes what can be written to
    except PermissionError:
        if path.is_dir():  # Windows opens none
            return
        raise
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
