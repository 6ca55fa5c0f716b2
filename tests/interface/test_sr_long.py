"""The reader of safetensors: it takes what the format's own library takes, and refuses everything else in one line."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snake_gym.config import ConfigError
from snake_gym.interface.safetensors_reader import MAX_HEADER_BYTES, read_tensors

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.array([1.5, -2.0], np.float64),
    "empty": np.zeros((0, 4), np.float16),
}
NAMES = {np.dtype(np.float32): "F32", np.dtype(np.float64): "F64", np.dtype(np.float16): "F16"}


def file_of(header: Any, body: bytes) -> bytes:
    """A file from its parts, by the text of the format."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + body


def parts_of(arrays: dict[str, np.ndarray]) -> tuple[dict[str, Any], bytes]:
    header: dict[str, Any] = {"__metadata__": {"made": "here"}}
    body = b""
    for name, values in arrays.items():
        span = [len(body), len(body) + values.nbytes]
        header[name] = {"dtype": NAMES[values.dtype], "shape": list(values.shape), "data_offsets": span}
        body += values.tobytes()
    return header, body


HEADER, BODY = parts_of(ARRAYS)


def changed(path: str, value: Any) -> dict[str, Any]:
    """The header with one entry, or one part of it, replaced."""
    header = json.loads(json.dumps(HEADER))
    name, _, part = path.partition(".")
    if part:
        header[name][part] = value
    else:
        header[name] = value
    return dict(header)


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].shape == values.shape and found[name].dtype == values.dtype
        assert found[name].tobytes() == values.tobytes()


def test_arrays_written_by_the_text_of_the_format_are_read() -> None:
    found = read_tensors(file_of(HEADER, BODY), "x")
    assert_same(found, ARRAYS)
    found["a"][0, 0] = 7.0  # a copy that may be written to
    padded = json.dumps(HEADER).encode() + b"    "
    assert_same(read_tensors(file_of(padded, BODY), "x"), ARRAYS)
    assert read_tensors(file_of({}, b""), "x") == {}


def test_arrays_written_by_the_library_are_read() -> None:
    library = pytest.importorskip("safetensors.numpy")
    assert_same(read_tensors(library.save(ARRAYS, {"note": "text"}), "x"), ARRAYS)


ENTRY = HEADER["a"]
BAD = {
    "nothing": (b"", "only 0 bytes"),
    "seven bytes": (b"1234567", "only 7 bytes"),
    "header longer than the file": (struct.pack("<Q", 1000) + b"{}", "header is said to have 1000 bytes; expected at"),
    "header of 2^63": (struct.pack("<Q", 1 << 63) + b"{}" + bytes(64), "header is said to have 9223372036854775808"),
    "huge header": (struct.pack("<Q", MAX_HEADER_BYTES + 1) + b"{" + bytes(2 * MAX_HEADER_BYTES), "header is said"),
    "not JSON": (file_of(b"{hello", b""), "Expecting property name"),
    "a list": (file_of(b"[]", b""), "does not begin with"),
    "spaces first": (file_of(b" {}", b""), "does not begin with"),
    "not UTF-8": (file_of(b'{"\xff": 1}', b""), "utf-8"),
    "name twice": (file_of(b'{"a": 1, "a": 2}', b""), "stands twice"),
    "deep": (file_of(b'{"a":' * 100_000, b""), "nested too deeply"),
    "NaN": (file_of(b'{"a": NaN}', b""), "NaN"),
    "entry is a number": (file_of(changed("a", 3), BODY), "has not just dtype, shape and data_offsets"),
    "entry too long": (file_of(changed("a", {**ENTRY, "more": 1}), BODY), "has not just"),
    "unknown dtype": (file_of(changed("a.dtype", "I8"), BODY), "dtype of 'a' is 'I8'; expected one of F16, F32, F64"),
    "dtype is a list": (file_of(changed("a.dtype", ["F32"]), BODY), "dtype of 'a'"),
    "negative shape": (file_of(changed("a.shape", [-2, -3]), BODY), "shape of 'a'"),
    "float shape": (file_of(changed("a.shape", [2.0, 3]), BODY), "shape of 'a'"),
    "true as a size": (file_of(changed("a.shape", [6, True]), BODY), "shape of 'a'"),
    "nine dimensions": (file_of(changed("a.shape", [6] + [1] * 8), BODY), "shape of 'a'"),
    "shape that overflows": (file_of(changed("a.shape", [1 << 62, 6]), BODY), "expected 110"),
    "shape too large": (file_of(changed("a.shape", [2, 4]), BODY), "'a' has 24 bytes; expected 32"),
    "offsets backwards": (file_of(changed("a.data_offsets", [24, 0]), BODY), "data_offsets of 'a'"),
    "three offsets": (file_of(changed("a.data_offsets", [0, 12, 24]), BODY), "data_offsets of 'a'"),
    "overlap": (file_of(changed("b.data_offsets", [16, 32]), BODY), "begin at 16; expected 24"),
    "gap": (file_of(changed("b.data_offsets", [32, 48]), BODY + bytes(8)), "begin at 32; expected 24"),
    "bytes left over": (file_of(HEADER, BODY + b"x"), "take 40 bytes, but 41 follow"),
    "bytes missing": (file_of(HEADER, BODY[:-1]), "take 40 bytes, but 39 follow"),
    "metadata is text": (file_of({**HEADER, "__metadata__": "x"}, BODY), "__metadata__"),
    "metadata holds a number": (file_of({**HEADER, "__metadata__": {"a": 1}}, BODY), "__metadata__"),
    "empty but immense": (
        file_of({"z": {"dtype": "F32", "shape": [0, 1 << 62, 1 << 62], "data_offsets": [0, 0]}}, b""), "x is no valid",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_breaks_a_rule_is_refused_in_one_line(name: str) -> None:
    data, message = BAD[name]
    with pytest.raises(ConfigError, match="x is no valid safetensors file") as caught:
        read_tensors(data, "x")
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300


def library_reads(data: bytes) -> dict[str, np.ndarray] | None:
    """What the format's own library makes of a file."""
    library = pytest.importorskip("safetensors")
    try:
        return dict(pytest.importorskip("safetensors.numpy").load(data))
    except (library.SafetensorError, KeyError, ValueError, TypeError):
        return None


def read_or_complain(data: bytes) -> tuple[dict[str, np.ndarray] | None, str]:
    """What is read, or why not; any error but a ConfigError comes through."""
    try:
        return read_tensors(data, "x"), ""
    except ConfigError as error:
        return None, str(error)


@settings(max_examples=20000, deadline=None, derandomize=False)
@given(st.data())
def test_mutated_files_are_read_as_the_library_reads_them_or_refused(data: st.DataObject) -> None:
    content = bytearray(file_of(HEADER, BODY))
    for _ in range(data.draw(st.integers(1, 4))):
        kind = data.draw(st.sampled_from(["flip", "set", "cut", "insert", "digit"]))
        if not content:
            break
        place = data.draw(st.integers(0, len(content) - 1))
        if kind == "flip":
            content[place] ^= 1 << data.draw(st.integers(0, 7))
        elif kind == "set":
            content[place] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del content[place : place + data.draw(st.integers(1, 16))]
        elif kind == "insert":
            content[place:place] = data.draw(st.binary(min_size=1, max_size=8))
        else:  # another number in the header: most likely to give a header that still parses
            digits = [i for i, byte in enumerate(content[8 : 8 + content[0]], start=8) if chr(byte).isdigit()]
            if digits:
                content[data.draw(st.sampled_from(digits))] = ord(data.draw(st.sampled_from("0123456789")))
    expected = library_reads(bytes(content))
    found, complaint = read_or_complain(bytes(content))
    if found is None:
        by_our_own_limits = any(rule in complaint for rule in ("dtype", "begin with", "twice", "just dtype"))
        assert expected is None or by_our_own_limits
    else:
        assert expected is not None
        assert_same(found, expected)


@settings(max_examples=20000, deadline=None, derandomize=False)
@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_but_the_one_error(data: bytes) -> None:
    for content in (data, file_of(data, b""), file_of(b"{" + data, data)):
        found, complaint = read_or_complain(content)
        assert (found is None) != (complaint == "")
        assert "\n" not in complaint
