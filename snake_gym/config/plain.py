"""Settings as plain data for JSON or YAML."""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from snake_gym.config.errors import show


def to_dict(obj: object) -> Any:
    """Plain data for JSON or YAML: dataclasses become dicts, tuples and arrays lists, enums their values."""
    if is_dataclass(obj) and not isinstance(obj, type):
        return {f.name: to_dict(getattr(obj, f.name)) for f in fields(obj) if f.init}
    if isinstance(obj, enum.Enum):
        return to_dict(obj.value)
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
