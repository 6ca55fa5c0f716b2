"""Number of steps of an episode, by the env's own clock or by Gymnasium's ``max_episode_steps`` in its place.

The steps of ``time_limit_s`` depend on the robot, so ids are registered without a limit. Vector envs are told
``max_episode_steps`` by ``make_vec``. ``make`` puts a ``TimeLimit`` around a single env, which can only shorten; when
it sets the env's ``spec``, the env reads the requested number in the frame of ``make``, and makes that its limit.

A ``spec`` gives the number that follows from the env's clock, but not to ``make`` (``OwnClockSpec``), since it changes
with time limit and robot. Made again from a spec with a requested number, an env refuses another time limit unless a
number is given with it.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from snake_gym.config import ConfigError
from snake_gym.config.errors import show
from snake_gym.envs.core import SnakeCore
from snake_gym.tasks.task import MAX_STEPS

OWN_CLOCK = -1
"""Value of Gymnasium's ``max_episode_steps`` that means: no limit but the env's own."""


class OwnClockSpec(EnvSpec):
    """Spec whose ``max_episode_steps`` follows from its other settings; ``make`` and ``make_vec`` read None."""

    @property
    def max_episode_steps(self) -> int | None:
        """Steps after which the env truncates; None for ``make`` and ``make_vec``, which would keep the number."""
        is_made = sys._getframe(1).f_code in (gym.make.__code__, gym.make_vec.__code__)
        return None if is_made else self.__dict__["max_episode_steps"]

    @max_episode_steps.setter
    def max_episode_steps(self, steps: int | None) -> None:
        """Fix the number of steps, as ``TimeLimit`` does."""
        self.__class__ = EnvSpec  # type: ignore[assignment]
        self.max_episode_steps = steps


class TellsItsLimit:
    """Env whose ``spec`` gives the true number of steps of an episode."""

    core: SnakeCore
    _spec: EnvSpec | None = None
    _has_own_clock: bool = True
    """True if the number of steps follows from ``time_limit_s``; False if it was requested."""

    @property
    def spec(self) -> EnvSpec | None:
        """Spec of the env; its ``max_episode_steps`` is the number of steps after which it truncates."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        maker = sys._getframe(1)
        self.limit_steps(_asked_of_make(maker))
        _check_time_limit(maker, self.core)
        self._spec = copy.copy(spec)
        if self._spec is not None:
            self._spec.max_episode_steps = self.core.n_steps
            if self._has_own_clock:
                self._spec.__class__ = OwnClockSpec

    def limit_steps(self, max_episode_steps: Any) -> None:
        """Make ``max_episode_steps`` the limit of the episodes unless it is None or -1. Raises ConfigError."""
        if max_episode_steps is None or max_episode_steps == OWN_CLOCK:
            return
        is_number = isinstance(max_episode_steps, int) and not isinstance(max_episode_steps, bool)
        if not (is_number and 1 <= max_episode_steps <= MAX_STEPS):
            raise ConfigError(
                f"max_episode_steps is {show(max_episode_steps)}; expected an integer from 1 to {MAX_STEPS}, or "
                f"{OWN_CLOCK} for time_limit_s"
            )
        self.core.limit_steps(max_episode_steps)
        self._has_own_clock = False


def _asked_of_make(frame: FrameType) -> int | None:
    """Return ``max_episode_steps`` of the ``gymnasium.make`` that runs in ``frame``; None for another function."""
    if frame.f_code is not gym.make.__code__:
        return None
    given: int | None = frame.f_locals.get("max_episode_steps")
    registered: EnvSpec | None = frame.f_locals.get("env_spec")
    is_asked = given is None and registered is not None and not isinstance(registered, OwnClockSpec)
    return registered.max_episode_steps if is_asked and registered is not None else given


def _check_time_limit(frame: FrameType, core: SnakeCore) -> None:
    """Raise ConfigError if ``frame`` makes an env with a time limit that the steps of the given spec shorten or extend.

    Steps that are given beside a time limit, in the same call, replace it.
    """
    if frame.f_code not in (gym.make.__code__, gym.make_vec.__code__):
        return
    given, steps = frame.f_locals["kwargs"], frame.f_locals.get("max_episode_steps")
    if steps is not None or given.get("max_episode_steps") is not None:
        return
    config = given.get("config")
    in_config = config.get("time_limit_s") if isinstance(config, Mapping) else getattr(config, "time_limit_s", None)
    wanted = given.get("time_limit_s", in_config)
    if wanted is not None and abs(float(wanted) - core.config.time_limit_s) > 1e-9 * float(wanted):
        raise ConfigError(
            f"time_limit_s is {float(wanted):g}, but the spec given has max_episode_steps {core.n_steps}; expected "
            f"max_episode_steps={OWN_CLOCK} beside time_limit_s, or no time_limit_s"
        )
