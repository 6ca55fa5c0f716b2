"""How many steps an episode has: the env's own clock, and Gymnasium's ``max_episode_steps`` that replaces it.

The envs truncate by their own clock (``time_limit_s``), whose steps depend on the robot, so their ids are registered
without a limit. Gymnasium's vector envs are told ``max_episode_steps`` by ``make_vec``. A single env is not: ``make``
puts a ``TimeLimit`` around it, which can only shorten. All that ``make`` does with the env itself is to set its
``spec``; then the env looks up, in the frame of ``make``, what it was asked for, and makes that its own limit.
"""

from __future__ import annotations

import copy
import sys
from types import FrameType
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from snake_gym.config import ConfigError
from snake_gym.config.errors import show
from snake_gym.envs.config import MAX_STEPS
from snake_gym.envs.core import SnakeCore

OWN_CLOCK = -1
"""Gymnasium's ``max_episode_steps`` for: no limit but the env's own."""


class TellsItsLimit:
    """An env whose ``spec`` says the true number of steps of an episode."""

    core: SnakeCore
    _spec: EnvSpec | None = None

    @property
    def spec(self) -> EnvSpec | None:
        """What the env was made from; its ``max_episode_steps`` is the number of steps after which it truncates."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        limit_steps(self.core, _asked_of_make(sys._getframe(1)))
        self._spec = copy.copy(spec)
        if self._spec is not None:
            self._spec.max_episode_steps = self.core.n_steps


def limit_steps(core: SnakeCore, max_episode_steps: Any) -> None:
    """Make ``max_episode_steps`` the limit of ``core`` unless it is None or -1. Raises ConfigError."""
    if max_episode_steps is None or max_episode_steps == OWN_CLOCK:
        return
    is_number = isinstance(max_episode_steps, int) and not isinstance(max_episode_steps, bool)
    if not (is_number and 1 <= max_episode_steps <= MAX_STEPS):
        raise ConfigError(
            f"max_episode_steps is {show(max_episode_steps)}; expected an integer from 1 to {MAX_STEPS}, or "
            f"{OWN_CLOCK} for time_limit_s"
        )
    core.limit_steps(max_episode_steps)


def _asked_of_make(frame: FrameType) -> int | None:
    """``max_episode_steps`` of the ``gymnasium.make`` that runs in ``frame``; None for another function."""
    if frame.f_code is not gym.make.__code__:
        return None
    given: int | None = frame.f_locals.get("max_episode_steps")
    registered: EnvSpec | None = frame.f_locals.get("env_spec")
    return registered.max_episode_steps if given is None and registered is not None else given
