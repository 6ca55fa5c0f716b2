"""Reading arrays from files that may come from anywhere: what a file declares is checked before memory is taken for it.

``numpy.load`` takes as much memory as an array's header asks for, and unpacks what is compressed, however large.
``np.savez`` and ``torch.save`` store parts as they are, so that an honest file is as large as what it holds.
"""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

MAX_POLICY_BYTES = 1 << 28
MAX_CHECKPOINT_BYTES = 1 << 32
"""Of one file of a checkpoint; that of a run with 256 worlds has some 2 MB."""
MAX_TEXT_BYTES = 1 << 26
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_arrays(path: Path, most: int) -> dict[str, NDArray[Any]]:
    """The arrays of an ``.npz`` file, by name.

    Args:
        most: bytes that the file may have.

    Raises:
        ValueError: it is no such file, holds compressed parts, or an array whose header and bytes do not fit.
        OSError: it cannot be read.
    """
    check_parts(path, most)
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as stream:
                _check_header(stream, member)
    with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
        return {name: data[name] for name in data.files}


def check_parts(path: Path, most: int) -> None:
    """Raise ValueError unless the parts of a zip file are stored as they are, and fit into the file."""
    n_bytes = check_size(path, most)
    if not zipfile.is_zipfile(path):
        raise ValueError("no zip file")
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"its part {member.filename} is compressed; expected arrays as they are")
    total = sum(member.file_size for member in members)
    if total > n_bytes:
        raise ValueError(f"its parts are said to have {total} bytes; expected at most its own {n_bytes}")


def check_size(path: Path, most: int) -> int:
    """Bytes of a file. Raises ValueError for more than ``most``."""
    n_bytes = path.stat().st_size
    if n_bytes > most:
        raise ValueError(f"{path.name} has {n_bytes} bytes; expected at most {most}")
    return n_bytes


def _check_header(stream: IO[bytes], member: zipfile.ZipInfo) -> None:
    version = npy.read_magic(stream)
    if version not in _HEADERS:
        raise ValueError(f"its part {member.filename} is of version {version}")
    shape, _, dtype = _HEADERS[version](stream)
    held, wanted = member.file_size - stream.tell(), math.prod(shape) * dtype.itemsize
    if held != wanted:
        raise ValueError(f"its part {member.filename} has {held} bytes; expected {wanted}, as its header says")
