"""``python -m snake_gym.papers``: rerun the published experiment of a paper and table it against the paper.

    python -m snake_gym.papers sibilska2022                      # its 16 simulations, and the head runs with
                                                                 # consistent physics
    python -m snake_gym.papers sibilska2022 --broken 2,7 --controller cc --point centre --json -

Without ``--broken`` the fault sets are the paper's; every other option left out means all of its values.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import NoReturn, cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from snake_gym.config import ConfigError, choose, run_cli, write_atomic
from snake_gym.config.errors import show
from snake_gym.controllers.serpenoid import GaitConfig
from snake_gym.papers import sibilska2022
from snake_gym.papers.dynamics import Point
from snake_gym.papers.table import arrival_table
from snake_gym.robot.presets import RESILIENT
from snake_gym.robot.spec import FloatArray

PROGRAM = "python -m snake_gym.papers"
PAPERS = ("sibilska2022",)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message} (see {PROGRAM} --help)")


def main(argv: list[str] | None = None) -> int:
    """Rerun one paper. Raises ConfigError for what the user has to correct."""
    arguments = _parse(argv)
    choose(arguments.paper, PAPERS, "paper")
    point, model, controller = (
        None if value is None else choose(value, choices, where)
        for value, choices, where in (
            (arguments.point, ("centre", "head"), "--point"),
            (arguments.model, ("published", "consistent"), "--model"),
            (arguments.controller, tuple(sibilska2022.COUPLING), "--controller"),
        )
    )
    cases = sibilska2022.select_cases(
        cast("Point | None", point),
        cast("sibilska2022.ModelName | None", model),
        cast("sibilska2022.ControllerName | None", controller),
        None if arguments.broken is None else _broken(arguments.broken),
    )
    amplitude = GaitConfig.amplitude_rad
    if arguments.amplitude_deg is not None:
        amplitude = math.radians(_number(arguments.amplitude_deg, "--amplitude-deg", "degrees from 0 to 90", 0.0, 90.0))
    if arguments.json is not None and Path(arguments.json).is_dir():
        raise ConfigError(f"--json is {show(arguments.json)}, a folder; expected a file, or - for stdout")
    limit = _number(arguments.time_limit_s, "--time-limit-s", "seconds from 1 to 1e5", 1.0, 1e5)
    arrivals = _simulate(cases, amplitude, limit)
    rows = sibilska2022.as_rows(cases, arrivals, paper_applies=amplitude == GaitConfig.amplitude_rad)
    text = json.dumps(rows, indent=1) + "\n"
    if arguments.json == "-":
        sys.stdout.write(text)
        return 0
    terminal = Console()
    if not terminal.is_terminal:
        terminal.width = 120
    terminal.print(arrival_table(rows))
    if arguments.json is not None:
        write_atomic(arguments.json, text)
        print(f"wrote {arguments.json}")
    return 0


def _simulate(cases: list[sibilska2022.Case], amplitude_rad: float, time_limit_s: float) -> FloatArray:
    """Arrival times, with a progress bar on stderr."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("targets reached", total=len(cases) * len(sibilska2022.COURSE.targets))

        def report(reached: int, time_s: float) -> None:
            progress.update(task, advance=reached, description=f"targets reached by {time_s:.0f} s")

        return sibilska2022.simulate(cases, amplitude_rad, time_limit_s=time_limit_s, on_progress=report)


def _broken(text: str) -> sibilska2022.Broken:
    """Joint numbers from ``2,7``; ``none`` is no joint."""
    if text.strip().lower() in ("none", ""):
        return ()
    n = RESILIENT.n_joints
    joints = []
    for part in text.split(","):
        try:
            joint = int(part)
        except ValueError:
            raise ConfigError(f"--broken is {show(text)}; expected joint numbers such as 3,5,8, or none") from None
        if not 1 <= joint <= n:
            nearest = min(max(joint, 1), n)
            raise ConfigError(f"--broken names joint {joint}; expected joints from 1 to {n} (nearest: {nearest})")
        if joint in joints:
            raise ConfigError(f"--broken names joint {joint} twice; expected each joint once")
        joints.append(joint)
    return tuple(joints)


def _number(text: str, where: str, expected: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        raise ConfigError(f"{where} is {show(text)}; expected {expected}")
    return value


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = _Parser(prog=PROGRAM, description="Rerun the published experiment of a paper.")
    parser.add_argument("paper", help=", ".join(PAPERS))
    parser.add_argument("--point", help="centre or head: what is guided to the targets")
    parser.add_argument("--model", help="published or consistent (they differ for the head only)")
    parser.add_argument("--controller", help="sjc or cc")
    parser.add_argument("--broken", help="joints that get no control signal: 2,7 (1 is the tail's), or none")
    parser.add_argument("--amplitude-deg", help="amplitude of the gait (20)")
    parser.add_argument("--time-limit-s", default=str(sibilska2022.TIME_LIMIT_S), help="give up after (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the rows as JSON; - is stdout, without the table")
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_cli(main)
