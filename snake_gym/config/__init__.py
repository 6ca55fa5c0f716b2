"""Strict configuration: YAML in, frozen dataclasses out, and one clear line when something is wrong.

Classes of settings hold the only defaults; a YAML file or ``--set a.b=c`` holds overrides. A command line program reads
``build(Settings, apply_overrides(load_yaml(path), assignments), where=path)`` and runs under ``run_program``.

``settings``, which needs pydantic, is loaded at its first use: ``import snake_gym`` and ``estop`` do without.
"""

from typing import TYPE_CHECKING, Any

from snake_gym.config.errors import ConfigError, choose, nearest
from snake_gym.config.files import dump_yaml, find_config, load_yaml, make_folder, near_path, prepare_file, write_atomic
from snake_gym.config.overrides import apply_overrides, differences, merge
from snake_gym.config.program import OptionParser, add_set_option, require, run_program
from snake_gym.config.records import digest, read_json, to_dict, to_json

if TYPE_CHECKING:
    from snake_gym.config.settings import Settings, apply_keywords, build, build_over, check_order, convert

__all__ = [
    "ConfigError", "OptionParser", "Settings", "add_set_option", "apply_keywords", "apply_overrides", "build",
    "build_over", "check_order", "choose", "convert", "differences", "digest", "dump_yaml", "find_config", "load_yaml",
    "make_folder", "merge", "near_path", "nearest", "prepare_file", "read_json", "require", "run_program", "to_dict",
    "to_json", "write_atomic",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from snake_gym.config import settings

    return getattr(settings, name)
