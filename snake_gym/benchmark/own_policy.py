"""Policies that this project did not train: the user's own code, and ONNX models.

``FILE.py:NAME`` and ``module:NAME`` are code that the user names on the command line. ``policy.onnx`` executes nothing.
Errors name the policy and the fault, wherever foreign code runs.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from gymnasium import Env
from gymnasium.spaces import Box
from numpy.typing import NDArray

from snake_gym.config import ConfigError, digest, near_path, require
from snake_gym.config.errors import show
from snake_gym.plugins import check_numbers, describe_failure, load_object

_ONNX = "snake_gym.agents.onnx_model"
"""Module of the policies in ONNX files, loaded when one plays."""


def is_code(path: str) -> bool:
    """Return True if ``path`` names an object of the user's own, ``FILE.py:NAME`` or ``module:NAME``, which is code."""
    return ":" in path and not Path(path).exists()


def is_foreign(path: str) -> bool:
    """Return True if ``path`` is code, or an ONNX model."""
    return is_code(path) or Path(path).suffix == ".onnx"


def load_own(name: str, path: str) -> OwnPolicy:
    """Return the policy ``name`` of a path that ``is_foreign``. Raises ConfigError for what is missing or wrong."""
    what = f"policy {name}={path}"
    if is_code(path):
        made = load_object(path, f"policy {name}")
        if not callable(made):
            raise ConfigError(f"{what} is {show(made)}; expected a class or a function")
        sources = _sources(made)
        return OwnPolicy(what, made, _takes_env(made), sources, digest(path, *sources.values()))
    file = Path(path)
    if not file.is_file():
        guess = near_path(file)
        raise ConfigError(f"{what}: {file} does not exist" + (f"; did you mean {str(guess)!r}?" if guess else ""))
    require("an ONNX policy", "onnx", "onnxruntime", "torch")
    return OwnPolicy(what, partial(import_module(_ONNX).OnnxPolicy, file))


class OwnPolicy:
    """Policy that ``make`` makes. Raises ConfigError, here and in ``predict``, where it is wrong.

    Only ``predict`` is needed. ``env_id`` and ``env_config`` (None without) say which env it is made for. ``digest``
    (None without) covers, together with ``basis``, everything that its actions depend on.
    """

    def __init__(
        self,
        what: str,
        make: Callable[..., Any],
        takes_env: bool = False,
        sources: Mapping[str, bytes] | None = None,
        basis: str = "",
    ) -> None:
        self._what, self._make, self._takes_env = what, make, takes_env
        self._sources, self._basis = sources or {}, basis
        self.observation_space: Box | None = None
        self.action_space: Box | None = None
        self.digest: str | None = None
        owner = make if takes_env else self._call()
        self.env_id: str | None = getattr(owner, "env_id", None)
        self.env_config: Mapping[str, Any] | None = getattr(owner, "env_config", None)
        for name, other in (("env_id", self.env_config), ("env_config", self.env_id)):
            if getattr(self, name) is None and other is not None:
                raise ConfigError(f"{what} has no {name}")
        if not takes_env:
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
            raise describe_failure(f"{self._what}: its predict", error, *self._sources) from error
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
        self.observation_space, self.action_space = (
            getattr(own, name, None) for name in ("observation_space", "action_space")
        )
        self.digest = digest(own.digest, self._basis) if hasattr(own, "digest") else None

    def _call(self, *arguments: Any) -> Any:
        try:
            return self._make(*arguments)
        except (Exception, SystemExit) as error:
            what = self._what if isinstance(error, ConfigError) else f"{self._what}: it"
            raise describe_failure(what, error, *self._sources) from error


def _takes_env(made: Callable[..., Any]) -> bool:
    """Return True if the first parameter is called ``env``, or has no default."""
    try:
        first = next(iter(inspect.signature(made).parameters.values()), None)
    except (TypeError, ValueError):
        return False
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return first is not None and first.kind in by_place and (first.name == "env" or first.default is first.empty)


def _sources(made: Any) -> dict[str, bytes]:
    """Return the content of the files of a class and its bases, or of a function, by path."""
    modules = (sys.modules.get(getattr(each, "__module__", "")) for each in getattr(made, "__mro__", (made,)))
    files = (getattr(module, "__file__", None) for module in modules)
    return {file: Path(file).read_bytes() for file in files if file is not None}
