"""Strict configuration: YAML in, frozen dataclasses out, and one clear line when something is wrong.

Dataclasses hold the only defaults; a YAML file or ``--set a.b=c`` holds overrides. A command line program reads
``build(Settings, apply_overrides(load_yaml(path), assignments), where=path)`` and runs under ``run_program``.
"""

from snake_gym.config.errors import ConfigError, choose, nearest
from snake_gym.config.files import dump_yaml, find_config, load_yaml, make_folder, near_path, prepare_file, write_atomic
from snake_gym.config.overrides import apply_keywords, apply_overrides, build_over, differences, merge
from snake_gym.config.program import OptionParser, add_set_option, require, run_program
from snake_gym.config.records import digest, read_json, to_dict, to_json
from snake_gym.config.schema import build
from snake_gym.config.settings import Range, Settings, check_order

__all__ = [
    "ConfigError", "OptionParser", "Range", "Settings", "add_set_option", "apply_keywords", "apply_overrides", "build",
    "build_over", "check_order", "choose", "differences", "digest", "dump_yaml", "find_config", "load_yaml",
    "make_folder", "merge", "near_path", "nearest", "prepare_file", "read_json", "require", "run_program", "to_dict",
    "to_json", "write_atomic",
]  # fmt: skip
