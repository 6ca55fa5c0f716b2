"""A policy class of the user's own, checked wherever its code runs: errors name the policy and what was expected."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from snake_gym.config import ConfigError, digest
from snake_gym.config.errors import show
from snake_gym.plugins import check_numbers, describe_failure, load_object

_PARTS = ("predict", "env_id", "env_config", "digest", "observation_space", "action_space")
"""Attributes that the class must have."""


class OwnPolicy:
    """The policy ``name`` of a class ``FILE.py:CLASS``. Raises ConfigError, here and in ``predict``, where it is wrong.

    Its ``digest`` covers the class's own text, the class, and the files of the class and its bases: two classes never
    share results, although one may inherit the other's text.
    """

    def __init__(self, name: str, path: str) -> None:
        self._what = f"policy {name}={path}"
        made = load_object(path, f"policy {name}")
        if not callable(made):
            raise ConfigError(f"{self._what} is {show(made)}; expected a class")
        self._sources = _sources(made)
        try:
            self._own = made()
            found = {part: getattr(self._own, part) for part in _PARTS if hasattr(self._own, part)}
        except Exception as error:
            raise self._failure("it", error) from error
        missing = [part for part in _PARTS if part not in found]
        if missing:
            raise ConfigError(f"{self._what} has no {', '.join(missing)}")
        for part, fits, expected in (
            ("predict", callable(found["predict"]), "a method"),
            ("env_id", isinstance(found["env_id"], str), "the name of a registered env"),
            ("env_config", isinstance(found["env_config"], Mapping), "the env's settings by name"),
            ("digest", isinstance(found["digest"], str), "text that changes whenever the policy would act differently"),
            *(
                (part, isinstance(found[part], Box), "a gymnasium Box")
                for part in ("observation_space", "action_space")
            ),
        ):
            if not fits:
                raise ConfigError(f"{self._what}: its {part} is {show(found[part])}; expected {expected}")
        self.env_id: str = found["env_id"]
        self.env_config: Mapping[str, Any] = found["env_config"]
        self.observation_space: Box = found["observation_space"]
        self.action_space: Box = found["action_space"]
        self.digest = digest(found["digest"], path, *self._sources.values())

    def predict(
        self,
        observation: NDArray[np.float32],
        state: Any = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], Any]:
        """Actions (W, A) for observations (W, D), or (A,) for (D,), finite, and the state to pass to the next call."""
        try:
            returned = self._own.predict(observation, state, episode_start, deterministic=deterministic)
        except Exception as error:
            raise self._failure("its predict", error) from error
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise ConfigError(f"{self._what}: its predict returned {show(returned)}; expected (actions, state)")
        shape = (*observation.shape[:-1], *self.action_space.shape)
        return check_numbers(returned[0], shape, f"{self._what}: its action"), returned[1]

    def _failure(self, part: str, error: Exception) -> ConfigError:
        return describe_failure(f"{self._what}: {part}", error, *self._sources)


def _sources(made: Any) -> dict[str, bytes]:
    """Return the content of the files of a class and its bases, or of a function, by path."""
    files = (getattr(sys.modules.get(each.__module__), "__file__", None) for each in getattr(made, "__mro__", (made,)))
    return {file: Path(file).read_bytes() for file in files if file is not None}
