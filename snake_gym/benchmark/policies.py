"""Learned policies by name: the paths that a text stands for, and the policy at each.

``FILE.py:NAME`` and ``module:NAME`` are code that the user names on the command line. ``policy.onnx`` executes nothing.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from snake_gym.benchmark.own_policy import OwnPolicy
from snake_gym.config import ConfigError, load_yaml, require
from snake_gym.config.errors import show
from snake_gym.interface.policy_file import RUN_POLICIES, FilePolicy, find_policy_file
from snake_gym.interface.policy_file import load_policy as load_policy_file
from snake_gym.plugins import RESULT, check_plugins, load_object

TrainedPolicy = FilePolicy | OwnPolicy
_ONNX = "snake_gym.agents.onnx_model"
"""Module of the policies in ONNX files, loaded when one plays."""


def named_policies(given: Sequence[str]) -> dict[str, str]:
    """Return paths by name for texts ``NAME=PATH``, or a path alone, which is named after its last part.

    Raises ConfigError for an empty part, or a repeated name.
    """
    policies: dict[str, str] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals:
            name, path = Path(text).stem, text
        if not name or not path:
            raise ConfigError(f"--policy is {text!r}; expected NAME=PATH")
        if name in policies:
            raise ConfigError(f"--policy: two policies are called {name!r}; give one of them another name, NAME=PATH")
        policies[name] = path
    return policies


def training_paths(name: str, given: str | Sequence[str]) -> tuple[str, ...]:
    """Return the paths of a policy's trainings: of a list, a glob, a folder of runs of ``train``, or one path.

    Runs of a glob or a folder are in the order of the numbers in their names. Raises ConfigError for none, and for a
    repeated one.
    """
    if not isinstance(given, str):
        paths = [path for each in given for path in training_paths(name, each)]
    elif glob.has_magic(given) and not Path(given).exists():
        paths = sorted(glob.glob(given), key=_numbers_in)
    elif Path(given).is_dir() and find_policy_file(given) is None:
        runs = {str(path.parents[1]) for kind in RUN_POLICIES[:2] for path in Path(given).glob(f"*/{kind}")}
        paths = sorted(runs, key=_numbers_in) or [given]
    else:
        paths = [given]
    if not paths:
        raise ConfigError(f"policy {name}={given} fits no path; expected one, or a glob of runs, as runs/ppo/seed_*")
    if len(set(paths)) < len(paths):
        raise ConfigError(f"policy {name} is {', '.join(paths)}; expected each training once")
    return tuple(paths)


def training_names(paths: Sequence[str]) -> list[str]:
    """Return short names: the last parts of the paths, or all of them if some are alike."""
    names = [Path(path).name for path in paths]
    return names if len(set(names)) == len(names) else list(paths)


def _numbers_in(path: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", path)]


def is_code(path: str) -> bool:
    """Return True if ``path`` names an object of the user's own, ``FILE.py:NAME`` or ``module:NAME``, which is code."""
    return ":" in path and not Path(path).exists()


def load_policy(name: str, path: str) -> TrainedPolicy:
    """Return the policy ``name`` of a policy file, of the user's own code, or of an ONNX model.

    Raises ConfigError for what is missing or wrong, and for a run that was trained with plugins which are not imported.
    """
    what, file = f"policy {name}={path}", Path(path)
    if is_code(path):
        made = load_object(path, f"policy {name}")
        if not callable(made):
            raise ConfigError(f"{what} is {show(made)}; expected a class or a function")
        return OwnPolicy(what, made)
    if file.suffix == ".onnx":
        require("an ONNX policy", "onnx", "onnxruntime", "torch")
        return OwnPolicy(what, import_module(_ONNX).OnnxPolicy, file)
    contract = find_policy_file(path)
    folders = () if contract is None else contract.parents[:4]
    settings = next((folder / RESULT for folder in folders if (folder / RESULT).is_file()), None)
    if settings is not None:
        check_plugins(load_yaml(settings).get("plugins") or (), str(settings))
    return load_policy_file(path)
