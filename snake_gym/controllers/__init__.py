"""Classical gait controllers: measurements and a goal in, joint references out, for W robots at once. Numpy only.

``make_controller({"kind": "sjc", "amplitude_rad": 0.4}, spec)`` builds one; settings may also come from a file that
``python -m snake_gym.controllers.tune`` wrote: ``{"file": "configs/controllers/resilient_servo/sjc.yaml"}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from snake_gym.config import ConfigError, build, choose, load_yaml, merge, to_dict
from snake_gym.controllers.adaptive_bias import AdaptiveBias
from snake_gym.controllers.base import Controller, ControllerState, PerWorld, reset_worlds
from snake_gym.controllers.cc import Cc
from snake_gym.controllers.cpg import Cpg
from snake_gym.controllers.fault_aware import FaultAware
from snake_gym.controllers.feedback_linearization import Pfl
from snake_gym.controllers.serpenoid import Serpenoid
from snake_gym.controllers.sjc import Sjc
from snake_gym.controllers.speed_control import SpeedControl
from snake_gym.robot.spec import RobotSpec

CONTROLLERS: dict[str, type[Any]] = {
    "serpenoid": Serpenoid,
    "sjc": Sjc,
    "cc": Cc,
    "cpg": Cpg,
    "pfl": Pfl,
    "speed": SpeedControl,
    "adaptive_bias": AdaptiveBias,
    "fault_aware": FaultAware,
}
"""Controllers by name; each class has ``config_type``, its frozen dataclass of settings."""


def resolve_controller(config: str | Mapping[str, Any], where: str = "controller") -> dict[str, Any]:
    """All settings of a controller as plain data, ``kind`` first, checked and with the defaults filled in.

    ``config`` is a mapping {kind: sjc, amplitude_rad: ..}; {file: path} takes the settings of a tuned YAML file, which
    other keys override; a text is a kind or, ending in .yaml or .yml, such a path. Raises ConfigError.
    """
    kind, settings, place = _settings(config, where)
    return {"kind": kind, **to_dict(build(CONTROLLERS[kind].config_type, settings, place))}


def make_controller(
    config: str | Mapping[str, Any], spec: RobotSpec, per_world: PerWorld | None = None, where: str = "controller"
) -> Controller:
    """The controller that ``config`` asks for (see ``resolve_controller``), for the nominal robot ``spec``.

    ``per_world`` gives parameters one value for each world, arrays (W,), in place of the configured one. Raises
    ConfigError, whose message starts from ``where``.
    """
    kind, settings, place = _settings(config, where)
    controller = CONTROLLERS[kind]
    parameters = build(controller.config_type, settings, place)
    try:
        built: Controller = controller(parameters, spec, per_world)
    except ValueError as error:
        raise ConfigError(f"{place}: {error}") from error
    return built


def _settings(config: str | Mapping[str, Any], where: str) -> tuple[str, dict[str, Any], str]:
    """Kind, other settings, and the place to name in messages."""
    if isinstance(config, str):
        config = {"file": config} if config.endswith((".yaml", ".yml")) else {"kind": config}
    if not isinstance(config, Mapping):
        raise ConfigError(f"{where} is {config!r}; expected settings such as {{kind: sjc}}, a kind, or a YAML file")
    settings = dict(config)
    path = settings.pop("file", None)
    if path is not None:
        tuned = load_yaml(str(path)).get("controller")
        if not isinstance(tuned, Mapping):
            raise ConfigError(f"{path} holds no group 'controller'; expected a file written by the tuner")
        if settings.get("kind", tuned.get("kind")) != tuned.get("kind"):
            raise ConfigError(f"{where}.kind is {settings['kind']!r}; expected {tuned.get('kind')!r}, as in {path}")
        settings = merge(tuned, settings)
    if "kind" not in settings:
        raise ConfigError(f"{where}.kind is missing; expected one of {', '.join(CONTROLLERS)}")
    kind = choose(settings.pop("kind"), CONTROLLERS, f"{where}.kind")
    return kind, settings, where


__all__ = [
    "CONTROLLERS",
    "Controller",
    "ControllerState",
    "PerWorld",
    "make_controller",
    "reset_worlds",
    "resolve_controller",
]
