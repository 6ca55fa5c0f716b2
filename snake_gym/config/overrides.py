"""Combination of settings: deep merging, differences, and assignments from the command line."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from snake_gym.config.errors import ConfigError, show


def merge(base: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of ``base`` overridden by ``override``, group by group; lists and scalars are replaced."""
    merged = {key: copy.deepcopy(value) for key, value in base.items()}
    for key, value in override.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            merged[key] = merge(below, value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def differences(before: Mapping[str, Any], after: Mapping[str, Any], group: str = "") -> dict[str, tuple[Any, Any]]:
    """Return dotted names of the settings that differ, with both values; None for a missing one."""
    found: dict[str, tuple[Any, Any]] = {}
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key), after.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            found |= differences(old, new, f"{group}{key}.")
        elif old != new:
            found[group + key] = (old, new)
    return found


def apply_overrides(mapping: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """Return ``mapping`` with assignments ``a.b=value`` applied in order; each value is read as YAML."""
    from snake_gym.config.yaml_text import parse_yaml

    result = merge(mapping, {})
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        keys = [key.strip() for key in path.split(".")]
        if not equals or not all(keys):
            raise ConfigError(f"{assignment!r} is not an assignment; expected key=value, as in env.time_limit_s=30")
        group = result
        for depth, key in enumerate(keys[:-1], start=1):
            if group.get(key) is None:
                group[key] = {}
            if not isinstance(group[key], dict):
                parent = ".".join(keys[:depth])
                raise ConfigError(f"{assignment!r} cannot be set: {parent} is {show(group[key])}, not a group")
            group = group[key]
        group[keys[-1]] = parse_yaml(text, f"the value in {assignment!r}")
    return result
