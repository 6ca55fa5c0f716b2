"""Run of a study: its options, progress, pictures, and the record that ``--json`` writes and reports are made from.

A record is a JSON object: paper, title, citation, command, settings, versions, source (digest of the code that the
numbers depend on), wall_s, finished, claims, tables, figures (name, caption, file) and data. Numbers that are not
finite are null.
"""

from __future__ import annotations

import argparse
import datetime
import io
import math
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

import snake_gym
from papers.study import Claim, Figure, Outcome, Study
from snake_gym.config import ConfigError, OptionParser, digest, read_json, require, to_dict, to_json, write_atomic
from snake_gym.config.errors import show
from snake_gym.config.records import digest_sources, versions
from snake_gym.render.palette import GRID, INK

Record = dict[str, Any]

PROGRAM = "python -m papers"
OUTPUT_OPTIONS = ("json", "plot", "out", "resume", "fresh", "only", "paper")
"""Options that control where results go, and do not change them."""

_FILE = "outcome.json"
_LIBRARY, _PAPERS = Path(snake_gym.__file__).parent, Path(__file__).parent
_SHARED = ("study.py", "drives.py")
"""Modules of this package, besides a study's own, that its numbers depend on."""


# --- runs ------------------------------------------------------------------------------------------------------------


def study_parser(study: Study[Any]) -> OptionParser:
    """Return a parser with the options that are the study's own."""
    parser = OptionParser(prog=f"{PROGRAM} {study.name}", description=f"{study.title}. {study.citation}")
    study.add_options(parser)
    return parser


def rerun(study: Study[Any], options: argparse.Namespace, arguments: Sequence[str]) -> tuple[Outcome, Record]:
    """Run a study with a progress bar on stderr. Raises ConfigError for options that the user has to correct.

    Args:
        study: study to run.
        options: options from its parser.
        arguments: command line after its name, for the record.
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
    return outcome, make_record(study, outcome, settings_of(options), command, time.perf_counter() - started)


def rerun_into(folder: Path, study: Study[Any], arguments: Sequence[str], fresh: bool) -> tuple[Record, bool]:
    """Return the study's record in ``folder``, after a new run unless the existing one has the same settings and code.

    Returns the record, and True if it existed before. Figures are drawn first, the record is written last.
    """
    options = study_parser(study).parse_args(list(arguments))
    saved = None if fresh else load_record(folder)
    if saved is not None and is_current(saved, settings_of(options)):
        return saved, True
    outcome, record = rerun(study, options, arguments)
    write_figures(outcome.figures, folder)
    save_record(folder, record)
    return record, False


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options that the numbers depend on, JSON-able."""
    return {name: plain(value) for name, value in sorted(vars(options).items()) if name not in OUTPUT_OPTIONS}


# --- records ---------------------------------------------------------------------------------------------------------


def make_record(
    study: Study[Any], outcome: Outcome, settings: Mapping[str, Any], command: str, wall_s: float
) -> Record:
    """Return the record of one run of a study: its results, and all data needed to repeat it."""
    return {
        "paper": study.name,
        "title": study.title,
        "citation": study.citation,
        "command": command,
        "settings": dict(settings),
        "versions": library_versions(),
        "source": source_digest(study.name),
        "wall_s": round(wall_s, 3),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "claims": [{**plain(asdict(claim)), "deviation": plain(claim.deviation)} for claim in outcome.claims],
        "tables": [plain(asdict(table)) for table in outcome.tables],
        "figures": [
            {"name": figure.name, "caption": figure.caption, "file": f"{figure.name}.png"} for figure in outcome.figures
        ],
        "data": plain(outcome.data),
    }


def claim_of(row: Mapping[str, Any]) -> Claim:
    """Return the claim that a record's row was made from."""
    return Claim(**{name: row[name] for name in Claim.__dataclass_fields__})


def save_record(folder: Path, record: Record) -> None:
    """Write the record into the study's folder, last of all its files: an existing record is complete."""
    write_atomic(folder / _FILE, to_json(record))


def load_record(folder: Path) -> Record | None:
    """Return the record of a study's folder, or None without a complete one, figures included."""
    try:
        record = read_json((folder / _FILE).read_bytes(), _FILE)
    except (OSError, ConfigError):
        return None
    wanted = {"paper", "claims", "tables", "figures", "settings", "source", "data"}
    if not isinstance(record, dict) or not wanted <= record.keys():
        return None
    return record if all((folder / figure["file"]).is_file() for figure in record["figures"]) else None


def is_current(record: Record, settings: Mapping[str, Any]) -> bool:
    """Return True if a run with these settings, this code and these libraries would give this record again."""
    return bool(
        record["settings"] == dict(settings)
        and record["source"] == source_digest(record["paper"])
        and record.get("versions") == library_versions()
    )


@cache
def source_digest(paper: str) -> str:
    """Return a digest of the modules that a study's numbers depend on.

    It leaves out the other studies and modules that draw, print, compare or drive hardware.
    """
    library = digest_sources(_LIBRARY, ("benchmark", "render", "hardware"))
    shared = [(_PAPERS / name).read_bytes() for name in _SHARED]
    return digest(library, digest_sources(_PAPERS / paper), *shared)[:16]


@cache
def library_versions() -> dict[str, str]:
    """Return versions of the libraries that the numbers depend on."""
    return {"snake_gym": snake_gym.__version__, **versions(("numpy", "scipy", "numba", "matplotlib"))}


def plain(value: object) -> Any:
    """Return ``value`` in the types of JSON; NumPy arrays as lists, numbers that are not finite as None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    value = to_dict(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# --- pictures --------------------------------------------------------------------------------------------------------

_DPI = 144
_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.0,
    "font.size": 10.0,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def require_folder(folder: str, option: str) -> Path:
    """Return ``folder`` as a path for pictures. Raises ConfigError if it is a file or matplotlib is missing."""
    require("a plot", "matplotlib")
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{option} is {show(folder)}, a file; expected a folder")
    return path


def draw_png(figure: Figure) -> bytes:
    """Return the figure as a PNG file, in the style of all figures; pyplot's state is left alone."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with rc_context(_STYLE):
        canvas = Canvas(figsize=figure.size_inch, layout="constrained")
        FigureCanvasAgg(canvas)
        figure.draw(canvas)
        buffer = io.BytesIO()
        canvas.savefig(buffer, dpi=_DPI, format="png")
    return buffer.getvalue()


def write_figures(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """Draw every figure into ``folder`` as NAME.png, and return the files."""
    paths = [folder / f"{figure.name}.png" for figure in figures]
    for figure, path in zip(figures, paths, strict=True):
        write_atomic(path, draw_png(figure))
    return paths
