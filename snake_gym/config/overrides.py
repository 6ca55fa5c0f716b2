"""Combination of settings: deep merging, keyword arguments, and assignments from the command line."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from snake_gym.config.errors import ConfigError, UnexpectedKeywordError, show
from snake_gym.config.records import to_dict
from snake_gym.config.schema import build, describe_unknown

T = TypeVar("T")


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


def apply_keywords(
    cls: type[T],
    config: T | Mapping[str, Any] | None,
    keywords: Mapping[str, Any],
    where: str,
    beside: Iterable[str] = (),
) -> T:
    """Return an instance of dataclass ``cls`` from ``config``, an object or a mapping, overridden by keyword settings.

    All of it is checked strictly, as by ``build``; ``config`` is not changed. An object of a subclass stays one.
    Raises ConfigError. For a keyword that is no setting, this is a TypeError too; its message also considers names of
    arguments ``beside`` the settings.
    """
    kind = type(config) if isinstance(config, cls) else cls
    known = {f.name for f in fields(kind) if f.init}  # type: ignore[arg-type]
    for key in keywords:
        if key not in known:
            what = describe_unknown(kind, key, where, beside)
            raise UnexpectedKeywordError(f"unexpected keyword argument {key!r}: {what}")
    plain = to_dict({} if config is None else config)
    return build(kind, merge(plain, keywords) if isinstance(plain, Mapping) else plain, where)


def build_over(cls: type[T], in_file: Mapping[str, Any], settings: Mapping[str, Any], where: str) -> T:
    """Return an instance of dataclass ``cls`` from ``settings``: those ``in_file`` with the user's own laid over them.

    Raises ConfigError, naming the file ``where`` only for what is wrong in it.
    """
    try:
        return build(cls, settings, where)
    except ConfigError:
        build(cls, in_file, where)
        return build(cls, settings)


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
