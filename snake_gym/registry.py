"""Names under which Gymnasium finds the environments.

A small board that only plays a policy on a robot has no Gymnasium: there, nothing is registered.
"""

from __future__ import annotations

from typing import NamedTuple


class EnvEntry(NamedTuple):
    """Where an environment lives; the modules are imported when it is made."""

    single: str
    vector: str | None = None
    """None: there is one robot."""
    nondeterministic: bool = False
    """The world does not begin anew at a reset."""


ENVS = {
    "SnakeGym/Waypoints-v0": EnvEntry(
        single="snake_gym.envs.snake_env:WaypointsEnv",
        vector="snake_gym.envs.vector_env:WaypointsVectorEnv",
    ),
    "SnakeGym/ObstacleField-v0": EnvEntry(
        single="snake_gym.envs.snake_env:ObstacleFieldEnv",
        vector="snake_gym.envs.vector_env:ObstacleFieldVectorEnv",
    ),
    "SnakeGym/Real-v0": EnvEntry(single="snake_gym.hardware.run.real_env:RealSnakeEnv", nondeterministic=True),
}


def register_envs() -> None:
    """Register every environment once. No ``max_episode_steps``: the environments truncate by their own clock.

    How many steps that is depends on the robot; a simulated environment's ``spec`` says it.
    """
    try:
        from gymnasium.envs.registration import register, registry
    except ModuleNotFoundError as error:
        if error.name != "gymnasium":
            raise
        return
    for env_id, entry in ENVS.items():
        if env_id not in registry:
            register(
                env_id,
                entry_point=entry.single,
                vector_entry_point=entry.vector,
                nondeterministic=entry.nondeterministic,
            )
