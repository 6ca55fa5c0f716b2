"""Programs of the project: ``snake-gym COMMAND``, or ``python -m snake_gym COMMAND``.

    snake-gym train --config configs/train/ppo.yaml
    snake-gym evaluate --policy mine=runs/mine

A path below ``configs`` that the working directory does not have is looked up among the files shipped with the package.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch is loaded: waiting threads leave the cores to others

import argparse
import sys
from importlib import import_module

from snake_gym import __version__
from snake_gym.config import OptionParser, choose, run_program

COMMANDS = {
    "train": ("snake_gym.agents.command:main", "train a policy, or go on with a run"),
    "export": ("snake_gym.agents.export:main", "write a policy of a run as a policy file for a robot"),
    "evaluate": ("snake_gym.benchmark.evaluate:main", "compare policies and controllers; writes tables and replays"),
    "tune": ("snake_gym.benchmark.tune:main", "search the parameters of a controller for a robot"),
    "list": ("snake_gym.commands.list:main", "names of envs, robots, policies, controllers, faults and columns"),
    "describe": ("snake_gym.commands.describe:main", "spaces, columns, rewards, infos and settings of an env"),
    "play": (
        "snake_gym.commands.play:main",
        "drive a robot, simulated or on a port, or watch a controller cope",
    ),
    "export-robot": ("snake_gym.commands.export_robot:main", "write a robot as a model file: MJCF or URDF"),
    "warm": ("snake_gym.commands.warm:main", "compile the physics now, so that no later process waits for it"),
    "hardware": ("snake_gym.hardware.__main__:program", "the physical robot, and an emulated one"),
}
"""Command -> module, function and summary."""


def main(argv: list[str] | None = None) -> int:
    """Run one command. Raises ConfigError for what the user has to correct."""
    words = sys.argv[1:] if argv is None else list(argv)
    parser = OptionParser(
        prog="snake-gym", description="Snake robots.", formatter_class=argparse.RawTextHelpFormatter,
        epilog="commands:\n" + "\n".join(f"  {name:13s} {what}" for name, (_, what) in COMMANDS.items()),
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"snake-gym {__version__}")
    parser.add_argument("command", help="see below; COMMAND --help lists its options")
    if not words or words[0].startswith("-"):
        parser.parse_args(words)
    module, _, function = COMMANDS[choose(words[0], COMMANDS, "command")][0].partition(":")
    return int(getattr(import_module(module), function)(words[1:]))


def program() -> None:
    """Run the console program."""
    run_program(main)


if __name__ == "__main__":
    program()
