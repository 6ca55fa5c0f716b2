"""Runs one study: its options from the command line, the run with a progress bar, pictures, and the record of it."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from papers.outcome_record import Record, is_current, load_record, make_record, save_record, settings_of
from papers.pictures import write_figures
from papers.study import Outcome, Study
from snake_gym.config import OptionParser

PROGRAM = "python -m papers"


class Rerun(NamedTuple):
    """What one run of a study gave."""

    outcome: Outcome
    record: Record


def study_parser(study: Study) -> OptionParser:
    """A parser with the options that are the study's own."""
    parser = OptionParser(prog=f"{PROGRAM} {study.name}", description=f"{study.title}. {study.citation}")
    study.add_options(parser)
    return parser


def rerun(study: Study, options: argparse.Namespace, arguments: Sequence[str]) -> Rerun:
    """Run a study with a progress bar on stderr. Raises ConfigError for options that the user has to correct.

    Args:
        study: what to run.
        options: as its parser gave them.
        arguments: what stood on the command line after its name, for the record.
    """
    started = time.perf_counter()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(study.name, total=1.0)

        def advance(share: float, doing: str) -> None:
            progress.update(task, completed=min(max(share, 0.0), 1.0), description=f"{study.name}: {doing}")

        outcome = study.run(options, advance)
    command = shlex.join([*PROGRAM.split(), study.name, *arguments])
    record = make_record(study, outcome, settings_of(options), command, time.perf_counter() - started)
    return Rerun(outcome, record)


def rerun_into(folder: Path, study: Study, arguments: Sequence[str], fresh: bool) -> tuple[Record, bool]:
    """The study's record in ``folder``, run again unless the one that is there is of the same settings and code.

    Returns the record, and whether it was there before. Figures are drawn first, the record is written last.
    """
    options = study_parser(study).parse_args(list(arguments))
    saved = None if fresh else load_record(folder)
    if saved is not None and is_current(saved, settings_of(options)):
        return saved, True
    result = rerun(study, options, arguments)
    write_figures(result.outcome.figures, folder)
    save_record(folder, result.record)
    return result.record, False
