"""Gymnasium environments: a batched core and its single and vector shells."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from gymnasium.vector import AutoresetMode

from snake_gym.envs.snake_env import SnakeEnv
from snake_gym.envs.vector_env import SnakeVectorEnv
from snake_gym.registry import DEFAULT_TASK as DEFAULT_ENV
from snake_gym.registry import find_task
from snake_gym.tasks.obstacle_field import ObstacleFieldConfig
from snake_gym.tasks.task import EnvConfig
from snake_gym.tasks.waypoints import WaypointsConfig

__all__ = [
    "DEFAULT_ENV",
    "EnvConfig",
    "EnvMaker",
    "ObstacleFieldConfig",
    "SnakeEnv",
    "SnakeVectorEnv",
    "WaypointsConfig",
    "choose_env",
    "make_obstacle_field",
    "make_waypoints",
]


class EnvMaker(NamedTuple):
    """A registered env: called, it makes the vector env."""

    env_id: str
    config_type: type[EnvConfig]

    def __call__(
        self,
        num_envs: int,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        config: EnvConfig | Mapping[str, Any] | None = None,
    ) -> SnakeVectorEnv:
        """The vector env for settings at hand (defaults where ``config`` is None)."""
        return SnakeVectorEnv(self.env_id, num_envs, autoreset_mode, render_mode, config)


def choose_env(env_id: str, where: str = "env_id") -> EnvMaker:
    """The env of a registered name. Raises ConfigError."""
    return EnvMaker(env_id, find_task(env_id, where))


def _make(
    env_id: str,
    num_envs: int,
    config: EnvConfig | Mapping[str, Any] | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    render_mode: str | None = None,
) -> SnakeVectorEnv:
    return SnakeVectorEnv(env_id, num_envs, autoreset_mode, render_mode, config)


make_waypoints = partial(_make, "SnakeGym/Waypoints-v0")
"""``make_waypoints(num_envs, config, autoreset_mode, render_mode)``: the vector env for settings at hand."""
make_obstacle_field = partial(_make, "SnakeGym/ObstacleField-v0")
"""The same for obstacle fields."""
