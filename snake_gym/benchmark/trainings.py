"""Trainings of one recipe: the paths that a list, a glob or a folder of runs stands for."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from pathlib import Path

from snake_gym.benchmark.own_policy import is_foreign
from snake_gym.config import ConfigError
from snake_gym.interface.policy_file import RUN_POLICIES, find_policy_file

_MAGIC = re.compile(r"[*?\[]")


def training_paths(name: str, given: str | Sequence[str]) -> tuple[str, ...]:
    """Return the paths of the policies that ``given`` stands for, in the order of the numbers in their names.

    It is one path, a list, a glob, or a folder that holds runs of ``train`` and is no policy itself. Any other path is
    returned as it is. Raises ConfigError for a glob that fits nothing, and for a path that stands there twice.
    """
    if given == "":
        raise ConfigError(f"policies.{name} is ''; expected a path")
    if not isinstance(given, str):
        paths = [path for each in given for path in training_paths(name, each)]
        if not paths:
            raise ConfigError(f"policies.{name} is an empty list; expected at least one path")
    elif _MAGIC.search(given) and not Path(given).exists():
        paths = sorted(glob.glob(given), key=_in_order)
        if not paths:
            raise ConfigError(f"policy {name}={given} fits no path; expected a glob of runs, such as runs/ppo/seed_*")
    elif is_foreign(given) or not Path(given).is_dir() or find_policy_file(given) is not None:
        paths = [given]
    else:
        runs = {str(path.parents[1]) for kind in RUN_POLICIES[:2] for path in Path(given).glob(f"*/{kind}")}
        paths = sorted(runs, key=_in_order) or [given]
    for path in paths:
        if paths.count(path) > 1:
            raise ConfigError(f"policy {name} has {path} {paths.count(path)} times; expected each training once")
    return tuple(paths)


def training_names(paths: Sequence[str]) -> list[str]:
    """Return short names: the last parts of the paths, or all of them if some are alike."""
    names = [Path(path).name for path in paths]
    return names if len(set(names)) == len(names) else list(paths)


def _in_order(path: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", path)]
