"""Gymnasium environments: a batched core and its single and vector shells."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from gymnasium.vector import AutoresetMode

from snake_gym.envs.snake_env import SnakeEnv
from snake_gym.envs.vector_env import SnakeVectorEnv
from snake_gym.registry import DEFAULT_ENV
from snake_gym.tasks.obstacle_field import ObstacleFieldConfig
from snake_gym.tasks.task import EnvConfig
from snake_gym.tasks.waypoints import WaypointsConfig

__all__ = [
    "DEFAULT_ENV",
    "EnvConfig",
    "ObstacleFieldConfig",
    "SnakeEnv",
    "SnakeVectorEnv",
    "WaypointsConfig",
    "make_obstacle_field",
    "make_waypoints",
]


def _make(
    env_id: str,
    num_envs: int,
    config: EnvConfig | Mapping[str, Any] | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    render_mode: str | None = None,
) -> SnakeVectorEnv:
    return SnakeVectorEnv(env_id, num_envs, autoreset_mode, render_mode, config)


make_waypoints = partial(_make, "SnakeGym/Waypoints-v0")
"""Maker ``make_waypoints(num_envs, config, autoreset_mode, render_mode)`` of the vector env for given settings."""
make_obstacle_field = partial(_make, "SnakeGym/ObstacleField-v0")
"""Maker of the vector env for obstacle fields, with the same arguments."""
