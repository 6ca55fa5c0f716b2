"""Plugins: a user's own modules that register tasks, columns, kinds of faults and more when they are imported.

A plugin is the path of a Python file or the name of a module. It is code, so a file of
results cannot import it. Only the user can: by ``--plugin``, in ``plugins:`` of a settings file that he gives, by
``load_plugins`` or by ``plugin=`` of an env.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shlex
import sys
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError, choose
from snake_gym.config.errors import show

RESULT = "config.yaml"
"""Name of the settings file that a run or an evaluation leaves in its folder."""
_given: dict[str, str] = {}
"""Plugins loaded so far: name of the module -> as the user gave it."""


def load_plugins(plugins: str | Iterable[str]) -> tuple[str, ...]:
    """Import each plugin once, and return them with full paths, as other processes find them.

    Raises:
        ConfigError: no such file or module exists, another module of that name is loaded, or it fails.
    """
    from snake_gym.config import convert  # needs pydantic, which `import snake_gym` does without

    names = convert(tuple[str, ...], [plugins] if isinstance(plugins, str) else plugins, "plugin")
    found = tuple(_load(name) for name in names)
    for name in names:
        _given.setdefault(module_name(name), name)
    return found


def module_name(plugin: str) -> str:
    """Return the name of a plugin's module."""
    return Path(plugin).stem if plugin.endswith(".py") else plugin


def plugin_options() -> list[str]:
    """Return the options that import the plugins of this process in another one, for people to type."""
    return [
        word for name, plugin in _given.items() if name in sys.modules for word in ("--plugin", shlex.quote(plugin))
    ]


def _load(plugin: str) -> str:
    path, name = Path(plugin), module_name(plugin)
    is_file = path.suffix == ".py"
    if is_file and not path.is_file():
        raise ConfigError(f"plugin {plugin} does not exist; expected a Python file or the name of a module")
    found = str(path.resolve()) if is_file else plugin
    folder = str(Path(found).parent if is_file else Path.cwd())
    importlib.invalidate_caches()
    if is_file:
        sys.path.insert(0, folder)
    elif folder not in sys.path:
        sys.path.append(folder)  # a module there will do, however the program was started
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise ConfigError(f"plugin {plugin!r} is no module that Python finds, and no .py file") from None
        raise describe_failure(f"plugin {plugin}", error, found) from error  # the module's own import
    except (Exception, SystemExit) as error:
        raise describe_failure(f"plugin {plugin}", error, found) from error
    finally:
        if is_file:
            sys.path.remove(folder)
    if is_file and str(Path(getattr(module, "__file__", None) or "").resolve()) != found:
        raise ConfigError(f"plugin {plugin}: another module named {name!r} is loaded; give the file another name")
    return found


def describe_failure(what: str, error: BaseException, *files: str) -> ConfigError:
    """Return an error of the user's own code in one line, for ``raise ... from error``.

    With the code's own ``files``, it names the last line in them.
    """
    if isinstance(error, ConfigError):
        return ConfigError(f"{what}: {error}")
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    where = f" in line {lines[-1]}" if lines else ""
    return ConfigError(f"{what} fails{where}: {type(error).__name__}: {error}")


def load_object(text: str, where: str) -> Any:
    """Return the object that ``FILE.py:NAME`` or ``module:NAME`` names, imported as a plugin. Raises ConfigError."""
    plugin, _, name = text.rpartition(":")
    if not plugin:
        raise ConfigError(f"{where} is {text!r}; expected module:NAME or FILE.py:NAME")
    _load(plugin)
    module = sys.modules[module_name(plugin)]
    if not hasattr(module, name):
        raise ConfigError(f"{where} is {text!r}, but {plugin} has no {name}")
    return getattr(module, name)


def absolute_name(text: str) -> str:
    """Return the name of an object of the user's own file (see ``load_object``) as it is found from every folder."""
    plugin, _, name = text.rpartition(":")
    file = getattr(sys.modules.get(module_name(plugin)), "__file__", None)
    return text if file is None or "." in module_name(plugin) else f"{Path(file).resolve()}:{name}"


def plugin_of(owner: type[Any]) -> str | None:
    """Return the file of a class as a plugin for other processes; None for a class of a script or notebook."""
    module = owner.__module__
    if module == "__main__":
        return None
    return module if "." in module else getattr(sys.modules.get(module), "__file__", None)


def check_free(what: str, known: object | None, new: object) -> None:
    """Raise ConfigError if ``known`` is registered by the name of ``what``, and is another than ``new``.

    The same name in the same module is the same: its file, or a notebook's cell, was run again.
    """
    names = [(getattr(one, "__module__", None), getattr(one, "__qualname__", id(one))) for one in (known, new)]
    if known is not None and names[0] != names[1]:
        raise ConfigError(f"the name of {what} is taken; expected another name")


def choose_registered(name: object, known: Iterable[str], where: str) -> str:
    """Return ``name`` if it is one of the ``known``, to which a user's module may add. Raises ConfigError."""
    try:
        return choose(name, known, where)
    except ConfigError as error:
        raise ConfigError(f"{error} (if a module of yours registers it, give it with --plugin FILE.py)") from None


def check_numbers(values: Any, shape: tuple[int, ...], what: str) -> NDArray[Any]:
    """Return a user's numbers as an array. Raises ConfigError unless they are finite and of ``shape``."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of several lengths
        array = np.array(None)
    if array.dtype.kind not in "biuf":
        raise ConfigError(f"{what} is {show(values)}; expected numbers of shape {shape}")
    if array.shape != shape:
        raise ConfigError(f"{what} has shape {array.shape}; expected {shape}")
    if not are_finite(array):
        place = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
        raise ConfigError(f"{what} is {array[place]}{f' at {list(place)}' if place else ''}; expected finite numbers")
    return array


def are_finite(values: NDArray[Any]) -> bool:
    """Return whether all numbers are finite, in the fastest of numpy's ways."""
    return np.count_nonzero(np.isfinite(values)) == values.size


def check_plugins(plugins: Iterable[str], where: str) -> None:
    """Raise ConfigError unless the user has already imported the plugins that a file of results names."""
    for plugin in plugins:
        if module_name(plugin) not in sys.modules:
            raise ConfigError(
                f"{where} names the plugin {plugin}, not imported unasked: give --plugin {shlex.quote(plugin)}"
            )


def add_plugin_option(parser: argparse.ArgumentParser) -> None:
    """Give a program the option ``--plugin``."""
    parser.add_argument(
        "--plugin", action="append", default=[], metavar="FILE.py",
        help="import a module of yours, which registers tasks, columns, fault kinds ... (repeatable)",
    )  # fmt: skip


def is_result(path: str | os.PathLike[str]) -> bool:
    """Return True if a settings file may come from the folder of somebody else's run or evaluation."""
    return Path(path).resolve().name == RESULT


def take_plugins(
    settings: Mapping[str, Any], path: str | os.PathLike[str], given: Iterable[str] = ()
) -> dict[str, Any]:
    """Return settings of the file ``path``, with its ``plugins`` and those ``given`` imported and listed by full path.

    The file in the folder of a run or an evaluation imports nothing: its plugins have to be imported already.
    """
    in_file = settings.get("plugins") or ()
    if not isinstance(in_file, list | tuple) or not all(isinstance(plugin, str) for plugin in in_file):
        raise ConfigError(f"plugins is {in_file!r}; expected a list of Python files or modules")
    own = load_plugins(given)
    if is_result(path):
        check_plugins(in_file, str(path))
    plugins = list(dict.fromkeys([*load_plugins(in_file), *own]))
    return {**settings, "plugins": plugins} if plugins else dict(settings)
