"""Command ``list``: names of everything that can be chosen, with a line on each.

snake-gym list                        all of it
snake-gym list controllers
snake-gym list faults --plugin my_fault.py
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

from snake_gym.commands.env_options import command_parser
from snake_gym.config import choose, find_config, run_program
from snake_gym.controllers import CONTROLLERS
from snake_gym.interface.observations import COLUMNS
from snake_gym.interface.policy_file import shipped_policies
from snake_gym.plugins import add_plugin_option, load_plugins
from snake_gym.registry import REAL, TASKS, find_task
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.presets import PRESETS
from snake_gym.simulation.fault_kinds import FAULT_KINDS, kinds_of

ROBOTS = Path("configs", "robot")
"""Folder of the shipped robots that are no presets."""


def main(argv: list[str] | None = None) -> int:
    """Print the lists. Raises ConfigError for what the user has to correct."""
    parser = command_parser("list", __doc__)
    parser.add_argument("what", nargs="?", help=f"one of {', '.join(LISTS)}; all without")
    add_plugin_option(parser)
    args = parser.parse_args(argv)
    chosen = list(LISTS) if args.what is None else [choose(args.what, LISTS, "what to list")]
    load_plugins(args.plugin)
    for name in chosen:
        entries = LISTS[name]()
        width = max(map(len, entries), default=0)
        print(f"{name}:", *(f"  {entry:{width}}  {shorten(note)}" for entry, note in entries.items()), sep="\n")
    return 0


def shorten(text: str) -> str:
    """Return the first sentence of a text's first paragraph, of at most 100 letters."""
    paragraph = " ".join(text.strip().partition("\n\n")[0].replace("``", "").split())
    first = re.split(r"(?<=[a-z\])])\. ", paragraph)[0]
    return textwrap.shorten(first.rstrip("."), 100, placeholder=" ...")


def list_envs() -> dict[str, str]:
    """Return the envs."""
    notes = {env_id: find_task(env_id).__doc__ or "" for env_id in TASKS}
    return {**notes, REAL: "The physical robot (snake-gym hardware)"}


def list_robots() -> dict[str, str]:
    """Return the presets, and the robots of the shipped files."""
    files = sorted(find_config(ROBOTS).glob("*.yaml"))
    presets = {name: spec.source for name, spec in PRESETS.items()}
    return presets | {str(ROBOTS / path.name): load_robot(path).source for path in files}


def list_policies() -> dict[str, str]:
    """Return the shipped policies, with what their cards say below front matter and title."""
    cards = {name: (folder / "README.md").read_text("utf-8") for name, folder in shipped_policies().items()}
    return {name: card.split("\n\n")[2] for name, card in cards.items()}


LISTS: Mapping[str, Callable[[], dict[str, str]]] = {
    "envs": list_envs,
    "robots": list_robots,
    "policies": list_policies,
    "controllers": lambda: {name: kind.__doc__ or "" for name, kind in CONTROLLERS.items()},
    "faults": lambda: {name: FAULT_KINDS[name].note for name in kinds_of("joint")},
    "columns": lambda: {name: f"[{column.unit}] {column.meaning}" for name, column in COLUMNS.items()},
}
"""Names of the lists, and what makes each."""

if __name__ == "__main__":
    run_program(main)
