"""Registry of environments: their names for Gymnasium and the settings files.

A task is the class of its settings (``tasks.task.EnvConfig``), which makes it. A task needs one line here,
or ``register_task`` in a user's module. A small board that only plays a policy has no Gymnasium and registers nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any, TypeVar

from snake_gym.config import ConfigError, choose
from snake_gym.config.errors import show
from snake_gym.plugins import check_free, plugin_of

TASKS: dict[str, str | type[Any]] = {
    "SnakeGym/Waypoints-v0": "snake_gym.tasks.waypoints:WaypointsConfig",
    "SnakeGym/ObstacleField-v0": "snake_gym.tasks.obstacle_field:ObstacleFieldConfig",
    "SnakeGym/PathFollow-v0": "snake_gym.tasks.path_follow:PathFollowConfig",
    "SnakeGym/Velocity-v0": "snake_gym.tasks.velocity:VelocityConfig",
    "SnakeGym/Escape-v0": "snake_gym.tasks.escape:EscapeConfig",
    "SnakeGym/SpatialWaypoints-v0": "snake_gym.spatial.waypoints:SpatialWaypointsConfig",
    "SnakeGym/Terrain-v0": "snake_gym.spatial.terrain:TerrainConfig",
    "SnakeGym/Climb-v0": "snake_gym.spatial.climb:ClimbConfig",
}
"""Settings class of each simulated task; those given as text are imported when the env is made."""
REAL = "SnakeGym/Real-v0"
"""Name of the env of the physical robot, which no reset puts back."""
DEFAULT_ENV = next(iter(TASKS))
Config = TypeVar("Config", bound=type[Any])


def check_env_id(env_id: str, where: str) -> None:
    """Raise ConfigError unless this is a plain name: Gymnasium imports the module before a colon, whoever wrote it."""
    if not isinstance(env_id, str) or not re.fullmatch(r"([\w-]+/)?[\w.-]+-v\d+", env_id, re.ASCII):
        raise ConfigError(f"{where} is {show(env_id)}; expected the plain name of an env such as Mine/Reach-v0")


def find_task(env_id: str, where: str = "env_id") -> type[Any]:
    """Return the class of a task's settings. Raises ConfigError for a name that is not registered."""
    check_env_id(env_id, where)
    if env_id not in TASKS and not env_id.startswith("SnakeGym/"):
        raise ConfigError(f"{where} is {env_id!r}, which no imported module registers; give it with --plugin FILE.py")
    known = TASKS[choose(env_id, TASKS, where)]
    if isinstance(known, str):
        module, _, name = known.partition(":")
        return getattr(import_module(module), name)
    return known


def register_task(env_id: str) -> Callable[[Config], Config]:
    """Return a decorator that registers the task of a settings class as an env of that name, such as ``Mine/Reach-v0``.

    Raises ConfigError for a name that is not plain with a version, or that another class has.
    """
    check_env_id(env_id, "the name of a task")

    def add(config_type: Config) -> Config:
        from gymnasium.envs.registration import registry

        if not is_dataclass(config_type) or not hasattr(config_type, "make_task"):
            raise ConfigError(
                f"task {env_id} is {show(config_type)}; expected a dataclass that inherits from EnvConfig"
            )
        known = TASKS.get(env_id)
        check_free(f"task {env_id!r}", known or registry.get(env_id), config_type)
        TASKS[env_id] = config_type
        register_envs()
        return config_type

    return add


def register_envs() -> None:
    """Register every environment once, without ``max_episode_steps``: the environments truncate by their own clock.

    The number of steps depends on the robot; a simulated environment's ``spec`` gives it.
    """
    try:
        from gymnasium.envs.registration import register, registry
    except ModuleNotFoundError as error:
        if error.name != "gymnasium":
            raise
        return
    if REAL not in registry:
        register(REAL, entry_point="snake_gym.hardware.robot.real_env:RealSnakeEnv", nondeterministic=True)
    for env_id, task in TASKS.items():
        if env_id not in registry:
            plugin = None if isinstance(task, str) else plugin_of(task)  # for processes that have not imported it
            register(
                env_id,
                entry_point="snake_gym.envs.snake_env:SnakeEnv",
                vector_entry_point="snake_gym.envs.vector_env:SnakeVectorEnv",
                kwargs={"env_id": env_id} | ({} if plugin is None else {"plugin": plugin}),
            )
