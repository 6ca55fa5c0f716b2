"""Classical gait controllers: joint references from measurements and a goal, for W robots at once. Numpy only.

``make_controller({"kind": "sjc", "amplitude_rad": 0.4}, spec)`` builds one. ``{"tuned": "sjc"}`` takes the settings
that ``snake-gym tune`` found for the robot, ``{"file": "mine.yaml"}`` those of a file it wrote.
A user's module adds a controller with ``register_controller``, as each module here does.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from snake_gym.config import ConfigError, build, merge, to_dict
from snake_gym.controllers.base import (
    CONTROLLERS,
    Controller,
    ControllerState,
    Gait,
    PerWorld,
    register_controller,
    searched,
)  # fmt: skip
from snake_gym.controllers.tuned import Tuning, find_tuned, read_tuned
from snake_gym.plugins import choose_registered
from snake_gym.robot.chain import ChainSpec

MODULES = (
    "controllers.serpenoid", "controllers.sjc", "controllers.cc", "controllers.cpg",
    "controllers.feedback_linearization", "controllers.speed_control", "controllers.fault_aware", "controllers.mpc",
    "controllers.reflex", "spatial.gaits",
)  # fmt: skip
"""Modules that register controllers, in the order in which users read of them."""
for _module in MODULES:
    importlib.import_module(f"snake_gym.{_module}")


def resolve_controller(
    config: str | Mapping[str, Any],
    where: str = "controller",
    spec: ChainSpec | None = None,
) -> dict[str, Any]:
    """Return all settings of a controller as plain data, ``kind`` first, checked and with the defaults filled in.

    ``config`` is a mapping {kind: sjc, amplitude_rad: ..}; {tuned: sjc} takes the settings that were tuned for a robot
    of the name of ``spec``, {file: path} those of a tuned YAML file, and other keys override them; a text is a kind or,
    ending in .yaml or .yml, such a path. Controllers within it are resolved likewise (see ``register_controller``).
    Raises ConfigError.
    """
    kind, settings, _ = _settings(config, where, spec)
    parameters = build(CONTROLLERS[kind].config_type, settings, where)
    found = to_dict(parameters)
    for name, inner in _inner_controllers(parameters).items():
        found[name] = resolve_controller(inner, f"{where}.{name}", spec)
    return {"kind": kind, **found}


def check_unused(config: Mapping[str, Any], where: str = "controller") -> None:
    """Raise ConfigError for settings that no controller has; no controller is made and no tuned file is needed."""
    settings = dict(config)
    tuned = settings.pop("tuned", None)
    if tuned is not None:
        settings.setdefault("kind", choose_registered(tuned, CONTROLLERS, f"{where}.tuned"))
    if "file" not in settings:
        kind, settings, _ = _settings(settings, where, None)
        parameters = build(CONTROLLERS[kind].config_type, settings, where)
        for name, inner in _inner_controllers(parameters).items():
            check_unused(inner, f"{where}.{name}")


def tuning_of(config: str | Mapping[str, Any], spec: ChainSpec, where: str = "controller") -> Tuning | None:
    """Return robot and env that ``config`` was tuned with; None where no tuned file names them."""
    return _settings(config, where, spec)[2]


def make_controller(
    config: str | Mapping[str, Any], spec: ChainSpec, per_world: PerWorld | None = None, where: str = "controller"
) -> Controller:
    """Return the controller that ``config`` describes (see ``resolve_controller``), for the nominal robot ``spec``.

    ``per_world`` gives parameters one value for each world, arrays (W,), in place of the configured one. Raises
    ConfigError, whose message starts from ``where``.
    """
    kind, settings, _ = _settings(config, where, spec)
    controller = CONTROLLERS[kind]
    parameters = build(controller.config_type, settings, where)
    fitting = [name for name, one in CONTROLLERS.items() if getattr(one, "spatial", spec.in_space) == spec.in_space]
    if kind not in fitting:
        own, other = ("spatial", "planar") if spec.in_space else ("planar", "spatial")
        known = ", ".join(fitting)
        raise ConfigError(f"{where} is {kind}, which is for {other} robots; {spec.name} is {own}: expected {known}")
    try:
        built: Controller = controller(parameters, spec, per_world)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error
    return built


def _inner_controllers(parameters: Any) -> dict[str, Any]:
    """Return the settings of the controllers within one that has these ``parameters``, by name."""
    return {f.name: getattr(parameters, f.name) for f in fields(parameters) if f.metadata.get("controller")}


def _settings(
    config: str | Mapping[str, Any], where: str, spec: ChainSpec | None
) -> tuple[str, dict[str, Any], Tuning | None]:
    """Return kind, other settings, and the robot and env of the tuning where a file names them."""
    if isinstance(config, str):
        config = {"file": config} if config.endswith((".yaml", ".yml")) else {"kind": config}
    if not isinstance(config, Mapping):
        raise ConfigError(f"{where} is {config!r}; expected settings such as {{kind: sjc}}, a kind, or a YAML file")
    settings, tuning = dict(config), None
    path, tuned_kind = settings.pop("file", None), settings.pop("tuned", None)
    if tuned_kind is not None:
        if path is not None:
            raise ConfigError(f"{where} has both tuned and file; expected one of them")
        if spec is None:
            raise ConfigError(f"{where}.tuned is {tuned_kind!r}; expected kind or file here, where no robot is known")
        path = find_tuned(choose_registered(tuned_kind, CONTROLLERS, f"{where}.tuned"), spec)
    if path is not None:
        tuned, tuning = read_tuned(str(path))
        if settings.get("kind", tuned.get("kind")) != tuned.get("kind"):
            raise ConfigError(f"{where}.kind is {settings['kind']!r}; expected {tuned.get('kind')!r}, as in {path}")
        settings = merge(tuned, settings)
    if "kind" not in settings:
        raise ConfigError(f"{where}.kind is missing; expected one of {', '.join(CONTROLLERS)}")
    kind = choose_registered(settings.pop("kind"), CONTROLLERS, f"{where}.kind")
    return kind, settings, tuning


__all__ = [
    "CONTROLLERS", "Controller", "ControllerState", "Gait", "PerWorld", "check_unused", "make_controller",
    "register_controller", "resolve_controller", "searched", "tuning_of",
]  # fmt: skip
