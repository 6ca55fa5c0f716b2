"""Gymnasium environments: a batched core and its single and vector shells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium.vector import AutoresetMode

from snake_gym.config import choose
from snake_gym.envs.config import EnvConfig, ObstacleFieldConfig, WaypointsConfig
from snake_gym.envs.snake_env import ObstacleFieldEnv, SnakeEnv, WaypointsEnv
from snake_gym.envs.vector_env import ObstacleFieldVectorEnv, SnakeVectorEnv, WaypointsVectorEnv

__all__ = [
    "DEFAULT_ENV",
    "VECTOR_ENVS",
    "EnvConfig",
    "ObstacleFieldConfig",
    "ObstacleFieldEnv",
    "ObstacleFieldVectorEnv",
    "SnakeEnv",
    "SnakeVectorEnv",
    "WaypointsConfig",
    "WaypointsEnv",
    "WaypointsVectorEnv",
    "choose_env",
    "make_obstacle_field",
    "make_waypoints",
]

VECTOR_ENVS: dict[str, type[SnakeVectorEnv]] = {env.env_id: env for env in (WaypointsVectorEnv, ObstacleFieldVectorEnv)}
"""Vector envs by their registered names."""
DEFAULT_ENV = WaypointsVectorEnv.env_id


def choose_env(env_id: str, where: str = "env_id") -> type[SnakeVectorEnv]:
    """The vector env of a registered name; it knows its ``config_type``. Raises ConfigError."""
    return VECTOR_ENVS[choose(env_id, VECTOR_ENVS, where)]


def make_waypoints(
    num_envs: int,
    config: WaypointsConfig | Mapping[str, Any] | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    render_mode: str | None = None,
) -> WaypointsVectorEnv:
    """The vector env of ``SnakeGym/Waypoints-v0`` for settings at hand (defaults where ``config`` is None)."""
    return WaypointsVectorEnv(num_envs, autoreset_mode, render_mode, config)


def make_obstacle_field(
    num_envs: int,
    config: ObstacleFieldConfig | Mapping[str, Any] | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    render_mode: str | None = None,
) -> ObstacleFieldVectorEnv:
    """The vector env of ``SnakeGym/ObstacleField-v0`` for settings at hand (defaults where ``config`` is None)."""
    return ObstacleFieldVectorEnv(num_envs, autoreset_mode, render_mode, config)
