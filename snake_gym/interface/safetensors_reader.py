"""Reading arrays from a safetensors file with numpy alone, strictly.

The format (huggingface/safetensors, README "Format"): 8 bytes, the length n of the header as an unsigned little-endian
integer; n bytes of JSON, ``{name: {"dtype", "shape", "data_offsets": [begin, end]}}``, where ``__metadata__`` maps text
to text; then the arrays' bytes, little-endian, row by row, which the offsets count from. Nothing in a file is executed.

Stricter than the format, since files are small and may come from anywhere: ``MAX_HEADER_BYTES`` and ``MAX_FILE_BYTES``,
floating-point arrays only. As the format demands, offsets neither overlap nor leave gaps nor bytes behind the last
array, and no name stands twice.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError

MAX_HEADER_BYTES = 1 << 20
MAX_FILE_BYTES = 1 << 26
DTYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}
_MAX_DIMENSIONS = 8
_LENGTH_BYTES = 8


def read_tensors(data: bytes, where: str) -> dict[str, NDArray[Any]]:
    """The arrays of a file's content, copies that may be written to.

    Args:
        data: the whole file.
        where: what to call the file in messages.

    Raises:
        ConfigError: it is no safetensors file, or it breaks one of the rules above.
    """
    try:
        return _read(data)
    except ValueError as error:
        raise ConfigError(f"{where} is no valid safetensors file: {error}") from None


def _read(data: bytes) -> dict[str, NDArray[Any]]:
    header, body = _split(data)
    entries = {name: _entry(name, value) for name, value in header.items() if name != "__metadata__"}
    _check_metadata(header.get("__metadata__", {}))
    reached = 0
    for begin, end, name in sorted((begin, end, name) for name, (_, _, begin, end) in entries.items()):
        if begin != reached:
            raise ValueError(f"the bytes of {name[:40]!r} begin at {begin}; expected {reached}")
        reached = end
    if reached != len(body):
        raise ValueError(f"its arrays take {reached} bytes, but {len(body)} follow the header")
    return {
        name: np.ndarray(shape, DTYPES[dtype], body, begin).astype(DTYPES[dtype][1:])
        for name, (dtype, shape, begin, _) in entries.items()
    }


def _split(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Header and body."""
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"it has {len(data)} bytes; expected at most {MAX_FILE_BYTES}")
    if len(data) < _LENGTH_BYTES + 2:
        raise ValueError(f"it has only {len(data)} bytes")
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    if length > min(MAX_HEADER_BYTES, len(data) - _LENGTH_BYTES):
        most = min(MAX_HEADER_BYTES, len(data) - _LENGTH_BYTES)
        raise ValueError(f"its header is said to have {length} bytes; expected at most {most}")
    raw = data[_LENGTH_BYTES : _LENGTH_BYTES + length]
    if not raw.startswith(b"{"):
        raise ValueError("its header does not begin with '{'")
    try:
        header = json.loads(raw.decode("utf-8"), object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("its header is nested too deeply") from None
    if not isinstance(header, dict):
        raise ValueError("its header is no JSON object")
    return header, data[_LENGTH_BYTES + length :]


def _entry(name: str, value: object) -> tuple[str, tuple[int, ...], int, int]:
    """dtype, shape, begin and end of an array, each checked by itself."""
    if not isinstance(value, dict) or value.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"the entry of {name[:40]!r} has not just dtype, shape and data_offsets")
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"the dtype of {name[:40]!r} is {str(dtype)[:20]!r}; expected one of {', '.join(DTYPES)}")
    if not _are_counts(shape) or len(shape) > _MAX_DIMENSIONS:
        raise ValueError(f"the shape of {name[:40]!r} is no list of at most {_MAX_DIMENSIONS} integers >= 0")
    if not _are_counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise ValueError(f"the data_offsets of {name[:40]!r} are no two integers 0 <= begin <= end")
    wanted = math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize
    if wanted != offsets[1] - offsets[0]:
        raise ValueError(f"{name[:40]!r} has {offsets[1] - offsets[0]} bytes; expected {wanted}")
    return dtype, tuple(shape), offsets[0], offsets[1]


def _are_counts(values: object) -> bool:
    return isinstance(values, list) and all(type(value) is int and 0 <= value < 1 << 63 for value in values)


def _check_metadata(metadata: object) -> None:
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("its __metadata__ does not map text to text")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in its header")
    return found


def _no_constant(text: str) -> float:
    raise ValueError(f"its header holds {text}, which is no JSON")
