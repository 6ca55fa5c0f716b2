"""Checkpoints of training runs on disk.

A checkpoint is a folder ``checkpoints/step_000123456`` that appears whole or not at all: ``state.json`` (counters,
checksums of the other files), ``arrays.safetensors`` (env, normaliser, running statistics), ``tensors.pt`` (networks,
optimisers; read with ``weights_only``) and ``policy``, the policy file. Nothing in it is unpickled.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load, save

from snake_gym.config import ConfigError, read_json, to_json

from .sb3_internals import Snapshot

FORMAT = "snake_gym checkpoint 4"
FOLDER = "checkpoints"
_STATE, _ARRAYS, _TENSORS = "state.json", "arrays.safetensors", "tensors.pt"


def write_checkpoint(run: Path, step: int, snapshot: Snapshot, policy: Mapping[str, bytes], keep: int) -> Path:
    """Write the checkpoint of ``step``, with ``policy`` files by name, then remove older checkpoints except the newest
    ``keep``.

    Raises OSError, with nothing new in the folder, if it cannot be written.
    """
    tensors = io.BytesIO()
    torch.save(snapshot.tensors, tensors)
    arrays = save({name: np.asarray(values, order="C") for name, values in snapshot.arrays.items()})
    files = {_ARRAYS: arrays, _TENSORS: tensors.getvalue()}
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    state = {"format": FORMAT, "step": step, "files": checksums, "state": snapshot.plain}
    files[_STATE] = to_json(state, indent=None).encode()
    final = run / FOLDER / f"step_{step:012d}"
    write_folder(final, files | {f"policy/{name}": content for name, content in policy.items()})
    found = list_checkpoints(run)
    for old in found[found.index(final) + keep :]:  # those before it are damaged: the run did not go on from them
        shutil.rmtree(old)
    return final


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Replace ``folder`` by one with these files, by path in it, once all of them are on the disk.

    Raises OSError, with the folder as it was, if they cannot be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left_over in folder.parent.glob(".partial-*"):
        shutil.rmtree(left_over)
    new, old = folder.with_name(".partial-new"), folder.with_name(".partial-old")
    try:
        for name, content in files.items():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            (new / name).write_bytes(content)
        for path in (new, *new.rglob("*")):
            _flush(path)
    except OSError:
        shutil.rmtree(new, ignore_errors=True)  # a full disk has a use for the room
        raise
    if folder.exists():
        folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
    _flush(folder.parent)


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
        state = read_json((path / _STATE).read_bytes(), _STATE)
        if state["format"] != FORMAT:
            raise ValueError(f"its format is {state['format']!r}; expected {FORMAT!r}")
        files = {name: (path / name).read_bytes() for name in (_ARRAYS, _TENSORS)}
        for name, content in files.items():
            if hashlib.sha256(content).hexdigest() != state["files"][name]:
                raise ValueError(f"{name} has changed since it was written")
        tensors = torch.load(io.BytesIO(files[_TENSORS]), map_location="cpu", weights_only=True)
        return int(state["step"]), Snapshot(tensors, load(files[_ARRAYS]), state["state"])
    except Exception as error:  # damaged files fail in any way
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error).split("\n")[0]
        raise ConfigError(f"{path} is no checkpoint that train.py wrote, or it is damaged ({reason})") from None


def newest_checkpoint(run: Path, say: Callable[[str], None] = lambda text: None) -> tuple[Path, int, Snapshot]:
    """Return the newest readable checkpoint of a run. Raises ConfigError if there is none.

    ``say`` is given a line for each damaged newer one, with the step from which the run continues.
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
