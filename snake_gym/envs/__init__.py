"""Gymnasium environments: a batched core and its single and vector shells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium.vector import AutoresetMode

from snake_gym.envs.snake_env import SnakeEnv
from snake_gym.envs.vector_env import SnakeVectorEnv
from snake_gym.registry import DEFAULT_ENV
from snake_gym.tasks.obstacle_field import ObstacleFieldConfig
from snake_gym.tasks.task import EnvConfig
from snake_gym.tasks.waypoints import WaypointsConfig

__all__ = [
    "DEFAULT_ENV", "EnvConfig", "ObstacleFieldConfig", "SnakeEnv", "SnakeVectorEnv", "WaypointsConfig",
    "make_waypoints",
]  # fmt: skip


def make_waypoints(
    num_envs: int,
    config: EnvConfig | Mapping[str, Any] | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
) -> SnakeVectorEnv:
    """Return the vector env of the waypoints task with the given settings."""
    return SnakeVectorEnv(DEFAULT_ENV, num_envs, autoreset_mode, config=config)
