"""Policies that this project did not train, checked wherever foreign code runs: errors name the policy and the fault.

``FILE.py:NAME`` and ``module:NAME`` are code of the user, who names it on the command line. ``model.zip`` (of
Stable-Baselines3) and ``policy.pt`` (TorchScript) can execute code, and are loaded only if the user trusts them.
``policy.onnx`` executes nothing.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

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
_EXPECTED: dict[str, tuple[Any, str]] = {
    "predict": (Callable, "a method"),
    "digest": (str, "text that changes whenever the policy would act differently"),
    "observation_space": (Box, "a gymnasium Box"),
    "action_space": (Box, "a gymnasium Box"),
    "env_id": (str, "the name of a registered env"),
    "env_config": (Mapping, "the env's settings by name"),
}
"""Attribute -> its type, and what is expected."""


class Format(NamedTuple):
    """Kind of file that other libraries write."""

    loader: str
    """Module and function that make the policy of a path."""
    danger: str | None = None
    """What loading does that needs the user's trust; None: it executes nothing."""


FORMATS = {
    ".onnx": Format("snake_gym.agents.onnx_policy:OnnxPolicy"),
    ".zip": Format("snake_gym.agents.trusted_policy:Sb3Policy", "loading a Stable-Baselines3 zip unpickles it"),
    ".pt": Format("snake_gym.agents.trusted_policy:TorchScriptPolicy", "a TorchScript archive is a program"),
}
"""Ending of a file's name -> its format."""


def is_code(path: str) -> bool:
    """Return True if ``path`` names an object of the user's own, ``FILE.py:NAME`` or ``module:NAME``, which is code."""
    return ":" in path and not Path(path).exists()


def is_foreign(path: str) -> bool:
    """Return True if ``path`` is code, or a file of a format that others write."""
    return is_code(path) or _split(path)[0].suffix in FORMATS


def load_own(name: str, path: str, trust: bool = False) -> OwnPolicy:
    """Return the policy ``name`` of a path that ``is_foreign``.

    Raises ConfigError for what is missing or wrong, and for a file that needs ``trust`` without it; then nothing of it
    is read.
    """
    what = f"policy {name}={path}"
    if is_code(path):
        if not path.rpartition(":")[0].endswith(".py"):
            _reach_working_folder()
        made = load_object(path, f"policy {name}")
        if not callable(made):
            raise ConfigError(f"{what} is {show(made)}; expected a class or a function")
        sources = _sources(made)
        return OwnPolicy(what, made, _takes_env(made), sources, digest(path, *sources.values()))
    file, statistics = _split(path)
    for each in (file, statistics):
        if each is not None and not each.is_file():
            guess = None if each.exists() else near_path(each, (each.suffix,))
            raise ConfigError(
                f"{what}: {each} {'is no file' if each.exists() else 'does not exist'}"
                + (f"; did you mean {str(guess)!r}?" if guess else "")
            )
    loader, danger = FORMATS[file.suffix]
    if danger is None and statistics is not None:
        danger = "loading statistics of VecNormalize unpickles them"
    if danger is not None and not trust:
        raise ConfigError(
            f"{what}: {danger}, which may execute code that somebody put there; give --trust if you know where it "
            "comes from, or play a policy file (docs/policy_file.md) or an ONNX model, which execute nothing"
        )
    if danger is not None:
        _reach_working_folder()  # a policy class of the user's own is found where he trained it
    module, _, maker = loader.partition(":")
    policy = OwnPolicy(what, partial(getattr(import_module(module), maker), file, statistics))
    policy.notes = tuple(policy._own.notes)
    return policy


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
        self.notes: tuple[str, ...] = ()
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
            kind, expected = _EXPECTED[name]
            if not isinstance(value, kind):
                raise ConfigError(f"{self._what}: its {name} is {show(value)}; expected {expected}")
            if name == "digest":
                self.digest = digest(value, self._basis)
            elif name != "predict":
                setattr(self, name, value)

    def _failure(self, part: str, error: BaseException) -> ConfigError:
        told = part == "it" and isinstance(error, ConfigError)  # which says by itself what is wrong
        return describe_failure(self._what if told else f"{self._what}: {part}", error, *self._sources)


def _split(path: str) -> tuple[Path, Path | None]:
    """Return the file of ``MODEL+STATISTICS`` and that of the statistics; a bare file name lies beside the model."""
    model, plus, other = path.rpartition("+")
    if not plus or Path(path).exists() or Path(model).suffix not in FORMATS:
        return Path(path), None
    statistics = Path(other)
    return Path(model), Path(model).with_name(other) if statistics.name == other else statistics


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
