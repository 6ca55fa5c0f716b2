"""Settings of an environment from a file, a config's own group and the command line, checked against its task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from snake_gym.config import build, load_yaml, merge, to_dict
from snake_gym.registry import find_task
from snake_gym.tasks.task import EnvConfig

_NOT_SCENARIO = ("robot", "action", "reward", "costs", "n_threads", "observation", "view")
"""Settings that are no part of a scenario."""


def build_env(env_id: str, settings: Mapping[str, Any], where: str = "env") -> EnvConfig:
    """Return the checked settings of an environment. Raises ConfigError; its message starts with ``where``."""
    return build(find_task(env_id), settings, where)


def laid_over(env_id: str, env_file: str | None, env: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of ``env_file`` overridden by ``env``. Raises ConfigError, naming the file for its mistakes."""
    if env_file is None:
        return dict(env)
    in_file = load_yaml(env_file)
    build_env(env_id, in_file, env_file)
    return merge(in_file, env)


def scenario_settings(config: EnvConfig | Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an episode but the robot's: course or field, faults, start, sensors, time limit.

    Sizes of faults that do not come are at their defaults in those of an EnvConfig.
    """
    if isinstance(config, EnvConfig):
        config = replace(config, faults=config.faults.without_unused_sizes())
    settings = {name: value for name, value in to_dict(config).items() if name not in _NOT_SCENARIO}
    if not (varied := settings.get("randomisation", {})).get("functions"):
        varied.pop("functions", None)  # frozen hashes are older than this setting
    for name, older in (("precision", "float64"), ("stretch_m", 0.0)):
        if settings.get(name) == older:
            del settings[name]  # and than these
    return settings
