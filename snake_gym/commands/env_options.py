"""Options that name an environment and its settings: ``ENV --env FILE --set faults.n_max=2 --plugin FILE.py``."""

from __future__ import annotations

import argparse

from snake_gym.config import ConfigError, OptionParser, add_set_option, apply_overrides
from snake_gym.envs.observation_columns import check_columns
from snake_gym.plugins import add_plugin_option, choose_registered, load_plugins
from snake_gym.registry import REAL, TASKS
from snake_gym.tasks.task import EnvConfig
from snake_gym.tasks.task_settings import build_env, laid_over


def command_parser(name: str, doc: str | None) -> OptionParser:
    """Return the parser of a command, described by its module's docstring ``doc``."""
    return OptionParser(prog=f"snake-gym {name}", description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


def env_parser(name: str, doc: str | None) -> OptionParser:
    """Return the parser of a command with the options that ``read_env`` reads."""
    parser = command_parser(name, doc)
    parser.add_argument("id", metavar="ENV", help="name of an env, as SnakeGym/Waypoints-v0, or Waypoints for short")
    parser.add_argument("--env", metavar="FILE", help="settings of the env (configs/env/*.yaml)")
    add_set_option(parser)
    add_plugin_option(parser)
    return parser


def read_env(args: argparse.Namespace) -> tuple[str, EnvConfig]:
    """Return name and settings of the env that the options describe; import the plugins. Raises ConfigError."""
    load_plugins(args.plugin)
    env_id = full_id(args.id)
    assignments = [text.removeprefix("env.") for text in args.set]
    config = build_env(env_id, apply_overrides(laid_over(env_id, args.env, {}), assignments))
    config.n_steps(config.load_robot())
    check_columns(config)
    return env_id, config


def full_id(name: str) -> str:
    """Return the registered name that ``name`` is, or the one of which it is the middle part. Raises ConfigError."""
    short = {env_id.rpartition("/")[2].rpartition("-v")[0]: env_id for env_id in TASKS}
    if name.lower() in (REAL.lower(), "real"):
        raise ConfigError(f"{REAL} is the physical robot; see snake-gym hardware --help")
    return short.get(name) or choose_registered(name, TASKS if "/" in name else short, "ENV")
