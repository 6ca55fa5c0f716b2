"""Run of a study with a progress bar, its record, and its pictures.

A record is a JSON object: paper, title, citation, command, quick, versions, wall_s, finished, claims, tables, figures
(name, caption, file) and data. Numbers that are not finite are null.
"""

from __future__ import annotations

import datetime
import io
import math
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

import snake_gym
from papers.study import Figure, Outcome, Study
from snake_gym.config import to_dict, to_json, write_atomic
from snake_gym.config.records import versions
from snake_gym.render.palette import GRID, INK

Record = dict[str, Any]

PROGRAM = "python -m papers"
_DPI = 144
_STYLE: dict[Any, Any] = {
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("axes.spines.right", "axes.spines.top", "legend.frameon"), False),
    **dict.fromkeys(("axes.titlesize", "font.size"), 10.0),
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.titlelocation": "left",
    "legend.fontsize": 9.0,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
}


def rerun(study: Study[Any], quick: bool, folder: Path) -> Record:
    """Run a study, write its pictures and ``outcome.json`` into ``folder``, and return the record."""
    started, console = time.perf_counter(), Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(study.name, total=1.0)

        def advance(share: float, doing: str) -> None:
            progress.update(task, completed=min(max(share, 0.0), 1.0), description=f"{study.name}: {doing}")

        outcome = study.run(quick, advance)
    record = make_record(study, outcome, quick, time.perf_counter() - started)
    for figure in outcome.figures:
        write_atomic(folder / f"{figure.name}.png", draw_png(figure))
    write_atomic(folder / "outcome.json", to_json(record))
    return record


def make_record(study: Study[Any], outcome: Outcome, quick: bool, wall_s: float) -> Record:
    """Return the record of one run of a study: its results, and all data needed to repeat it."""
    return {
        "paper": study.name,
        "title": study.title,
        "citation": study.citation,
        "command": f"{PROGRAM} {study.name}{' --quick' * quick}",
        "quick": quick,
        "versions": {"snake_gym": snake_gym.__version__, **versions(("numpy", "scipy", "numba", "matplotlib"))},
        "wall_s": round(wall_s, 3),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "claims": [{**plain(asdict(claim)), "deviation": plain(claim.deviation)} for claim in outcome.claims],
        "tables": [plain(asdict(table)) for table in outcome.tables],
        "figures": [
            {"name": figure.name, "caption": figure.caption, "file": f"{figure.name}.png"} for figure in outcome.figures
        ],
        "data": plain(outcome.data),
    }


def plain(value: object) -> Any:
    """Return ``value`` in the types of JSON; NumPy arrays as lists, numbers that are not finite as None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    value = to_dict(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
