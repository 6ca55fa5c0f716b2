"""Gymnasium environments: a batched core and its single and vector shells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium.vector import AutoresetMode

from snake_gym.envs.config import WaypointsConfig
from snake_gym.envs.snake_env import SnakeEnv
from snake_gym.envs.vector_env import WaypointsVectorEnv

__all__ = ["SnakeEnv", "WaypointsConfig", "WaypointsVectorEnv", "make_waypoints"]


def make_waypoints(
    num_envs: int,
    config: WaypointsConfig | Mapping[str, Any] | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    render_mode: str | None = None,
) -> WaypointsVectorEnv:
    """The vector env of ``SnakeGym/Waypoints-v0`` for settings at hand (defaults where ``config`` is None)."""
    return WaypointsVectorEnv(num_envs, autoreset_mode, render_mode, config)
