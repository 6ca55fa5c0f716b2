"""Records: settings as plain data, strict JSON, digests of inputs of results, and versions of the libraries."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from importlib import metadata
from typing import Any

from snake_gym.config.errors import ConfigError, show


def to_dict(obj: object) -> Any:
    """Return plain data for JSON or YAML: dataclasses become dicts, tuples and arrays lists."""
    if is_dataclass(obj) and not isinstance(obj, type):
        return {f.name: to_dict(getattr(obj, f.name)) for f in fields(obj) if f.init}
    if obj is None or isinstance(obj, (bool, str)):
        return obj
    if isinstance(obj, Mapping):
        return {str(key): to_dict(value) for key, value in obj.items()}
    if isinstance(obj, (list, tuple)):
        return [to_dict(value) for value in obj]
    if hasattr(obj, "tolist"):  # a numpy array or scalar
        return to_dict(obj.tolist())
    if isinstance(obj, (int, float)):
        return obj
    if isinstance(obj, os.PathLike):
        return os.fspath(obj)
    raise TypeError(f"a {type(obj).__name__} cannot be written as plain data: {show(obj)}")


def to_json(value: object, indent: int | None = 1) -> str:
    """Return ``value`` as strict JSON text; numbers that are not finite become the texts "inf", "-inf" and "nan"."""
    text = json.dumps(_with_text_infinities(to_dict(value)), indent=indent, allow_nan=False, ensure_ascii=False)
    return text + "\n" if indent else text


def read_json(text: str | bytes, where: str) -> Any:
    """Return the value of JSON text; ConfigError, beginning with ``where``, if it is no JSON or repeats a key."""
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ConfigError(f"{where} is not JSON: {reason}") from None


def digest(*parts: object) -> str:
    """Return the SHA-256 of bytes, texts, arrays and plain data, with parts kept distinct."""
    whole = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes) else to_json(part, indent=None).encode()
        whole.update(len(content).to_bytes(8, "little") + content)
    return whole.hexdigest()


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return versions of Python and of the installed ones of ``packages``, and the kind of machine."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {**found, "machine": f"{platform.system()} {platform.machine()}"}


def _with_text_infinities(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _with_text_infinities(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_text_infinities(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} stands there twice")
    return content


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")
