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
from gymnasium.spaces import Box, Space
from numpy.typing import NDArray

from snake_gym.config import ConfigError, digest, near_path
from snake_gym.config.errors import show
from snake_gym.plugins import check_numbers, describe_failure, load_object

_ENV, _PLAYED = ("env_id", "env_config"), ("predict", "digest", "observation_space", "action_space")
"""Attributes that say which env a policy is made for, and those by which it plays."""
_PAIRS = (_ENV, _PLAYED[2:])
"""Attributes that a policy has both of, or neither."""
_TYPES: dict[str, Any] = {
    "predict": Callable, "digest": str, "observation_space": Box, "action_space": Box, "env_id": str,
    "env_config": Mapping,
}  # fmt: skip
"""Types of the attributes."""
_ONNX = "snake_gym.agents.onnx_policy"
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
        if not path.rpartition(":")[0].endswith(".py"):
            _reach_working_folder()
        made = load_object(path, f"policy {name}")
        if not callable(made):
            raise ConfigError(f"{what} is {show(made)}; expected a class or a function")
        sources = _sources(made)
        return OwnPolicy(what, made, _takes_env(made), sources, digest(path, *sources.values()))
    file = Path(path)
    if not file.is_file():
        guess = near_path(file)
        raise ConfigError(f"{what}: {file} does not exist" + (f"; did you mean {str(guess)!r}?" if guess else ""))
    return OwnPolicy(what, partial(import_module(_ONNX).OnnxPolicy, file))


class OwnPolicy:
    """Policy that ``make`` makes, with checks. Raises ConfigError, here and in ``predict``, where it is wrong.

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
        self.env_id: str | None = None
        self.env_config: Mapping[str, Any] | None = None
        self.observation_space: Box | None = None
        self.action_space: Space[Any] | None = None
        self.digest: str | None = None
        if takes_env:
            self._take(make, _ENV)
        else:
            self._own = self._call()
            self._take(self._own, (*_PLAYED, *_ENV))

    def in_env(self, env: Callable[[], Env[Any, Any]], action_space: Space[Any]) -> OwnPolicy:
        """Return the policy for the env of a benchmark: ``make`` gets one from ``env``, if it takes one."""
        ready = copy.copy(self)
        if self._takes_env:
            ready._own = ready._call(env())
            ready._take(ready._own, _PLAYED)
        ready.action_space = ready.action_space or action_space
        return ready

    def predict(
        self, observation: NDArray[Any], state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[NDArray[Any], Any]:
        """Actions (W, A) for observations (W, D), or (A,) for (D,), finite, and the state to pass to the next call."""
        try:
            returned = self._own.predict(observation, state, episode_start, deterministic=deterministic)
        except (Exception, SystemExit) as error:
            raise self._failure("its predict", error) from error
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise ConfigError(f"{self._what}: its predict returned {show(returned)}; expected (actions, state)")
        assert self.action_space is not None and self.action_space.shape is not None
        shape = (*observation.shape[:-1], *self.action_space.shape)
        return check_numbers(returned[0], shape, f"{self._what}: its action"), returned[1]

    def _call(self, *arguments: Any) -> Any:
        try:
            return self._make(*arguments)
        except (Exception, SystemExit) as error:
            raise self._failure("it", error) from error

    def _take(self, owner: Any, names: tuple[str, ...]) -> None:
        """Take over the attributes of ``owner`` that are in ``names``, checked."""
        try:
            found = {name: getattr(owner, name) for name in names if hasattr(owner, name)}
        except (Exception, SystemExit) as error:
            raise self._failure("it", error) from error
        missing = ["predict"] if "predict" in names and "predict" not in found else []
        missing += [n for pair in _PAIRS if len(found.keys() & set(pair)) == 1 for n in pair if n not in found]
        if missing:
            raise ConfigError(f"{self._what} has no {', '.join(missing)}")
        for name, value in found.items():
            if not isinstance(value, _TYPES[name]):
                raise ConfigError(f"{self._what}: its {name} is {show(value)}; expected {_TYPES[name].__name__}")
            if name == "digest":
                self.digest = digest(value, self._basis)
            elif name != "predict":
                setattr(self, name, value)

    def _failure(self, part: str, error: BaseException) -> ConfigError:
        told = part == "it" and isinstance(error, ConfigError)  # which says by itself what is wrong
        return describe_failure(self._what if told else f"{self._what}: {part}", error, *self._sources)


def _takes_env(made: Callable[..., Any]) -> bool:
    """Return True if the first parameter is called ``env``, or has no default."""
    try:
        parameters = list(inspect.signature(made).parameters.values())
    except (TypeError, ValueError):
        return False
    if not parameters or parameters[0].kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        return False
    return parameters[0].name == "env" or parameters[0].default is inspect.Parameter.empty


def _reach_working_folder() -> None:
    """Let Python find modules in the working folder, after all others."""
    folder = str(Path.cwd())
    if "" not in sys.path and folder not in sys.path:
        sys.path.append(folder)


def _sources(made: Any) -> dict[str, bytes]:
    """Return the content of the files of a class and its bases, or of a function, by path."""
    modules = (sys.modules.get(getattr(each, "__module__", "")) for each in getattr(made, "__mro__", (made,)))
    files = (getattr(module, "__file__", None) for module in modules)
    return {file: Path(file).read_bytes() for file in files if file is not None}
