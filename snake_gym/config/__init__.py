"""Strict configuration: YAML in, frozen dataclasses out, and one clear line when something is wrong.

Dataclasses hold the only defaults; a YAML file or ``--set a.b=c`` holds overrides. A command line program reads
``build(Settings, apply_overrides(load_yaml(path), assignments), where=path)`` and runs under ``run_cli``.
"""

from snake_gym.config.cli import run_cli
from snake_gym.config.errors import ConfigError, choose, nearest
from snake_gym.config.files import dump_yaml, load_yaml, make_folder, near_path, prepare_file, write_atomic
from snake_gym.config.overrides import apply_keywords, apply_overrides, merge
from snake_gym.config.plain import to_dict
from snake_gym.config.schema import build

__all__ = [
    "ConfigError",
    "apply_keywords",
    "apply_overrides",
    "build",
    "choose",
    "dump_yaml",
    "load_yaml",
    "make_folder",
    "merge",
    "near_path",
    "nearest",
    "prepare_file",
    "run_cli",
    "to_dict",
    "write_atomic",
]
