"""Search for a robot: by the name of a preset, in a YAML file, or as settings laid over a preset."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from snake_gym.config import ConfigError, build, choose, differences, load_yaml, merge, to_dict
from snake_gym.config.errors import hint, join
from snake_gym.plugins import load_object
from snake_gym.robot.chain import ChainSpec
from snake_gym.robot.presets import PRESETS
from snake_gym.robot.spec import RobotSpec

_FILE_SUFFIXES = (".yaml", ".yml")
KINDS = {"spatial": "snake_gym.spatial.spec:SpatialSpec"}
"""What ``chain`` of a robot's settings may be -> class of the settings, ``module:NAME``; without it, a RobotSpec."""


def load_any_robot(
    robot: str | os.PathLike[str] | Mapping[str, Any] | ChainSpec,
    overrides: Mapping[str, Any] | None = None,
    where: str = "robot",
) -> ChainSpec:
    """Return the robot that ``robot`` describes, with ``overrides`` of its settings.

    ``robot`` is a preset's name (``resilient``), the path of a YAML file (it ends in .yaml or .yml, or holds a slash),
    a mapping of settings, or a finished specification. A mapping or file is of a planar robot, or of another kind where
    it holds ``chain: kind``. That of a planar one may hold ``preset: name``: its other settings then override that
    preset's. Raises ConfigError, whose message starts from ``where``.
    """
    if isinstance(robot, ChainSpec):
        spec = robot
    elif isinstance(robot, Mapping):
        spec = _build_robot(robot, where)
    elif not isinstance(robot, (str, os.PathLike)):
        raise ConfigError(f"{where} is {robot!r}; expected {_expected()}, or a group of robot settings")
    elif (name := os.fspath(robot)) in PRESETS:
        spec = PRESETS[name]
    elif name.endswith(_FILE_SUFFIXES) or os.sep in name:
        spec = _build_robot({"name": Path(name).stem, **load_yaml(name)}, name)
    else:
        raise ConfigError(f"{where} is {name!r}; expected {_expected()}{hint(name, PRESETS)}")
    return build(type(spec), merge(to_dict(spec), overrides), where) if overrides else spec


def load_robot(robot: str | os.PathLike[str] | Mapping[str, Any] | ChainSpec, where: str = "robot") -> RobotSpec:
    """Return the planar robot that ``robot`` describes, see ``load_any_robot``. Raises ConfigError for another."""
    spec = load_any_robot(robot, where=where)
    if not isinstance(spec, RobotSpec):
        raise ConfigError(f"{where} is {spec.name}, a spatial robot; expected a planar one, or another env")
    return spec


def find_kind(kind: str) -> type[ChainSpec]:
    """Return the class of the settings of robots with this ``chain``."""
    found: type[ChainSpec] = load_object(KINDS[kind], f"chain {kind}")
    return found


def _expected() -> str:
    return f"a preset ({', '.join(PRESETS)}) or the path of a YAML file"


def _build_robot(settings: Mapping[str, Any], where: str) -> ChainSpec:
    overrides = dict(settings)
    if "chain" in overrides:
        return build(find_kind(choose(overrides["chain"], KINDS, join(where, "chain"))), overrides, where)
    preset = overrides.pop("preset", None)
    if preset is None:
        return build(RobotSpec, overrides, where)
    place = f"{where}: preset" if where.endswith(_FILE_SUFFIXES) else f"{where}.preset"
    base = PRESETS[choose(preset, PRESETS, place)]
    spec = build(RobotSpec, merge(to_dict(base), overrides), where)
    if "source" not in overrides and (changed := changed_settings(to_dict(base), to_dict(spec))):
        spec = replace(spec, source=f"{base.source}; changed: {', '.join(changed)}")
    return spec


def changed_settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return dotted names and both values of the settings that differ, except ``name`` and ``source``."""
    return {name: pair for name, pair in differences(before, after).items() if name not in ("name", "source")}
