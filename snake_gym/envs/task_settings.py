"""Settings of an environment from a file, a config's own group and the command line, checked against its task.

The environments share most of their settings (robot, faults, sensors ...). The other groups belong to one task each.
Another task, in which they have no or another meaning, refuses them: they are neither dropped nor merged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from snake_gym.config import ConfigError, apply_overrides, build, differences, load_yaml, merge, to_dict
from snake_gym.registry import DEFAULT_ENV, TASKS, find_task
from snake_gym.tasks.task import EnvConfig

_NOT_SCENARIO = ("robot", "action", "reward", "costs", "n_threads", "observation")
"""Settings that are no part of a scenario."""


def task_groups(env_id: str) -> tuple[str, ...]:
    """Return the groups of settings that belong to the task of an environment."""
    shared = {setting.name for setting in fields(EnvConfig)}
    return tuple(setting.name for setting in fields(find_task(env_id)) if setting.name not in shared)


def build_env(env_id: str, settings: Mapping[str, Any], where: str = "env") -> EnvConfig:
    """Return the checked settings of an environment. Raises ConfigError, whose message starts with ``where``."""
    return build(find_task(env_id), settings, where)


def laid_over(env_id: str, env_file: str | None, env: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of ``env_file`` overridden by ``env``. Raises ConfigError, naming the file for its mistakes."""
    if env_file is None:
        return dict(env)
    in_file = load_yaml(env_file)
    build_env(env_id, in_file, env_file)
    return merge(in_file, env)


def check_task(config: Mapping[str, Any], assignments: Sequence[str], where: str) -> None:
    """Raise ConfigError if ``--set env_id=...`` changes the task of a config that has settings of its former task.

    Args:
        config: content of a file with ``env_id``, ``env_file`` and ``env``, of a training or a benchmark.
        assignments: those of the command line; a group that one of them replaces no longer belongs to the config.
        where: name of the config.
    """
    replaced = {text.partition("=")[0].strip() for text in assignments}
    before = config.get("env_id", DEFAULT_ENV)
    after = apply_overrides({"env_id": before}, [text for text in assignments if text.startswith("env_id")])["env_id"]
    if after == before or before not in TASKS or after not in TASKS:
        return
    groups = task_groups(before)
    env = (config.get("env") or {}) if "env" not in replaced else {}
    kept = [f"env.{group}" for group in groups if env.get(group) and f"env.{group}" not in replaced]
    file = config.get("env_file") if "env_file" not in replaced else None
    if isinstance(file, str):
        content = load_yaml(file)
        kept += [f"{group} (in {file})" for group in groups if content.get(group)]
    if kept:
        raise ConfigError(
            f"env_id is {after}, but {where} is made for {before}, and {', '.join(kept)} belongs to that task; "
            f"expected settings of {after}"
        )


def scenario_settings(config: EnvConfig | Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an episode besides the robot: course or field, faults, start, sensors, time limit.

    Sizes of faults that do not come are at their defaults in those of an EnvConfig.
    """
    if isinstance(config, EnvConfig):
        config = replace(config, faults=config.faults.without_unused_sizes())
    settings = {name: value for name, value in to_dict(config).items() if name not in _NOT_SCENARIO}
    if not (varied := settings.get("randomisation", {})).get("functions"):
        varied.pop("functions", None)  # frozen hashes are older than this setting
    return settings


def changed_assignments(config: EnvConfig) -> list[str]:
    """Return the scenario's non-default settings as assignments of a command line: ``env.faults.n_max=3``."""
    changed = differences(scenario_settings(type(config)()), scenario_settings(config))
    return [f"env.{name}={_as_yaml(value)}" for name, (_, value) in changed.items()]


def _as_yaml(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value).replace("Infinity", ".inf")
