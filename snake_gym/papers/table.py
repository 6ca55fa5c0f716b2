"""A reproduced experiment as a table for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table


def arrival_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Times of arrival, recomputed, with the paper's last one and the deviation from it (rows: see sibilska2022)."""
    rows = list(rows)
    title = "sibilska2022: arrivals at the targets 1-5, recomputed [s]"
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("point", "model", "control", "broken"):
        table.add_column(name, no_wrap=True)
    n_targets = len(rows[0]["arrivals_s"])
    for number in range(1, n_targets + 1):
        table.add_column(str(number), justify="right", no_wrap=True)
    table.add_column("paper", justify="right", no_wrap=True)
    table.add_column("dev.", justify="right", no_wrap=True)
    previous = None
    for row in rows:
        group = (row["point"], row["model"])
        if previous not in (None, group):
            table.add_section()
        previous = group
        table.add_row(
            *(row["point"], row["model"], row["controller"]),
            ",".join(map(str, row["broken"])) or "none",
            *map(_seconds, row["arrivals_s"]),
            "-" if row["paper_s"] is None else f"{row['paper_s']:.0f}",
            _deviation(row["arrivals_s"][-1], row["paper_s"]),
        )
    return table


def _seconds(time: float | None) -> str:
    return "-" if time is None else f"{time:.0f}"


def _deviation(time: float | None, paper: float | None) -> str:
    return "-" if time is None or paper is None else f"{100.0 * (time / paper - 1.0):+.1f}%"
