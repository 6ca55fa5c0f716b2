"""A user's own modules: files that register tasks, columns, kinds of faults and more when they are imported.

A plugin is the path of a Python file or the name of a module. It is code: nothing is imported because a file of
results says so, only what the user names: by ``--plugin``, in ``plugins:`` of a settings file that he gives, by
``load_plugins`` or by ``plugin=`` of an env.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from snake_gym.config import ConfigError


def load_plugins(plugins: str | Iterable[str]) -> tuple[str, ...]:
    """Import each plugin once; returns them with their paths in full, as other processes find them.

    Raises:
        ConfigError: there is no such file or module, or another module of that name is loaded.
    """
    names = [plugins] if isinstance(plugins, str) else list(plugins)
    return tuple(_load(name) for name in names)


def _load(plugin: str) -> str:
    path = Path(plugin)
    if path.suffix != ".py":
        try:
            importlib.import_module(plugin)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{plugin}.".startswith(f"{error.name}."):
                raise  # the module's own import
            raise ConfigError(f"plugin {plugin!r} is no module that Python finds, and no .py file") from None
        return plugin
    name, found = path.stem, str(path.resolve())
    if not path.is_file():
        raise ConfigError(f"plugin {plugin} does not exist; expected a Python file or the name of a module")
    if name in sys.modules:
        if str(Path(getattr(sys.modules[name], "__file__", None) or "").resolve()) != found:
            raise ConfigError(f"plugin {plugin}: another module named {name!r} is loaded; give the file another name")
    else:
        spec = importlib.util.spec_from_file_location(name, found)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return found


def load_object(text: str, where: str) -> Any:
    """What ``FILE.py:NAME`` or ``module:NAME`` names, imported as a plugin. Raises ConfigError if it is not there."""
    plugin, _, name = text.rpartition(":")
    _load(plugin)
    module = sys.modules[Path(plugin).stem if plugin.endswith(".py") else plugin]
    if not hasattr(module, name):
        raise ConfigError(f"{where} is {text!r}, but {plugin} has no {name}")
    return getattr(module, name)


def plugin_of(owner: type[Any]) -> str | None:
    """The file that a class comes from, as a plugin for other processes; None for one of a script or notebook."""
    module = owner.__module__
    if module == "__main__":
        return None
    return module if "." in module else getattr(sys.modules.get(module), "__file__", None)


def is_again(known: object, new: object) -> bool:
    """Whether ``new`` has the name and module of ``known``: its file, or a notebook's cell, was run again."""
    names = [(getattr(one, "__module__", None), getattr(one, "__qualname__", id(one))) for one in (known, new)]
    return names[0] == names[1]


def check_plugins(plugins: Iterable[str], where: str) -> None:
    """Raise ConfigError unless the plugins that a file of results names are imported already, by the user's wish."""
    for plugin in plugins:
        name = Path(plugin).stem if plugin.endswith(".py") else plugin
        if name not in sys.modules:
            raise ConfigError(f"{where} names the plugin {plugin}, not imported unasked: give --plugin {plugin}")


def add_plugin_option(parser: argparse.ArgumentParser) -> None:
    """Give a program the option ``--plugin``."""
    parser.add_argument(
        "--plugin", action="append", default=[], metavar="FILE.py",
        help="import a module of yours, which registers tasks, columns, fault kinds ... (repeatable)",
    )  # fmt: skip


def take_plugins(settings: Mapping[str, Any], given: Iterable[str] = ()) -> dict[str, Any]:
    """Settings of a file that the user gives, with its ``plugins`` and those ``given`` imported and noted in full."""
    in_file = settings.get("plugins") or ()
    if isinstance(in_file, str) or not all(isinstance(plugin, str) for plugin in in_file):
        raise ConfigError(f"plugins is {in_file!r}; expected a list of Python files or modules")
    plugins = list(dict.fromkeys(load_plugins([*in_file, *given])))
    return {**settings, "plugins": plugins} if plugins else dict(settings)
