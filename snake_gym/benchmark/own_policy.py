"""Policy of the user's own code, or of an ONNX model. Errors name the policy and the fault, wherever its code runs."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from gymnasium import Env
from gymnasium.spaces import Box
from numpy.typing import NDArray

from snake_gym.config import ConfigError
from snake_gym.config.errors import show
from snake_gym.plugins import check_numbers, describe_failure


class OwnPolicy:
    """Policy that ``make`` makes: a class, of ``arguments``, or a function of an env.

    Only ``predict`` is needed. ``env_id`` and ``env_config`` (None without) say which env it is made for. ``digest``
    (None without) identifies its behaviour. Raises ConfigError, here and later, where it is wrong.
    """

    def __init__(self, what: str, make: Callable[..., Any], *arguments: Any) -> None:
        self._what, self._make, self._takes_env = what, make, not inspect.isclass(make)
        self.observation_space: Box | None = None
        self.action_space: Box | None = None
        self.digest: str | None = None
        owner = make if self._takes_env else self._call(*arguments)
        self.env_id: str | None = getattr(owner, "env_id", None)
        self.env_config: Mapping[str, Any] | None = getattr(owner, "env_config", None)
        if (self.env_id is None) != (self.env_config is None):
            raise ConfigError(f"{what} has no {'env_id' if self.env_id is None else 'env_config'}")
        if not self._takes_env:
            self._adopt(owner)

    def in_env(self, env: Callable[[], Env[Any, Any]], action_space: Box) -> OwnPolicy:
        """Return the policy for the env of a benchmark: ``make`` gets one from ``env``, if it takes one."""
        ready = copy.copy(self)
        if self._takes_env:
            ready._adopt(ready._call(env()))
        ready.action_space = ready.action_space or action_space
        return ready

    def predict(
        self, observation: NDArray[Any], state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[NDArray[Any], Any]:
        """Actions (W, A) for observations (W, D), or (A,) for (D,), finite, and the state to pass to the next call."""
        try:
            returned = self._own.predict(observation, state, episode_start, deterministic=deterministic)
        except (Exception, SystemExit) as error:
            raise describe_failure(f"{self._what}: its predict", error, self._file) from error
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise ConfigError(f"{self._what}: its predict returned {show(returned)}; expected (actions, state)")
        assert self.action_space is not None
        shape = (*observation.shape[:-1], *self.action_space.shape)
        return check_numbers(returned[0], shape, f"{self._what}: its action"), returned[1]

    def _adopt(self, own: Any) -> None:
        """Take over what ``make`` returned."""
        if not hasattr(own, "predict"):
            raise ConfigError(f"{self._what} has no predict")
        self._own = own
        for name in ("observation_space", "action_space", "digest"):
            setattr(self, name, getattr(own, name, None))

    def _call(self, *arguments: Any) -> Any:
        try:
            return self._make(*arguments)
        except (Exception, SystemExit) as error:
            raise describe_failure(self._what, error, self._file) from error

    @property
    def _file(self) -> str:
        """Path of the code of ``make``."""
        return str(getattr(sys.modules.get(self._make.__module__), "__file__", ""))
