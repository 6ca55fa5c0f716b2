"""The outcome of a study for the terminal: claims with their verdicts and numbers, then its tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from papers.study import Claim, Table, Verdict

VERDICTS: tuple[Verdict, ...] = ("reproduced", "partly", "not")
_STYLES: dict[Verdict, str] = {"reproduced": "green", "partly": "yellow", "not": "red"}

Cell = float | str | None


def count_verdicts(verdicts: Iterable[Verdict]) -> dict[Verdict, int]:
    """How many claims have each verdict, in the order of ``VERDICTS``."""
    counted = Counter(verdicts)
    return {verdict: counted[verdict] for verdict in VERDICTS}


def format_number(value: Cell, digits: int = 4) -> str:
    """A cell: integers and text as they are, other numbers with ``digits`` significant digits, nothing as a dash."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    if isinstance(value, (str, int)) or value == 0.0:
        return str(value) if isinstance(value, (str, int)) else "0"
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{digits - 1}e}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:.0f}" if decimals <= 0 else repr(round(float(value), decimals))


def format_deviation(deviation: float | None, tolerance: float | None = None) -> str:
    """``+1.6 % (of 3 %)``; empty where there is none."""
    if deviation is None:
        return ""
    allowed = "" if tolerance is None else f" (of {100.0 * tolerance:g} %)"
    return f"{100.0 * deviation:+.1f} %{allowed}"


def claims_table(claims: Sequence[Claim], title: str) -> Grid:
    """Every claim with its verdict and numbers."""
    grid = _grid(title)
    grid.add_column("verdict", no_wrap=True)
    grid.add_column("claim", ratio=3, overflow="fold")
    for head in ("published", "measured", "deviation"):
        grid.add_column(head, justify="right", no_wrap=True)
    grid.add_column("note", ratio=2, overflow="fold")
    for claim in claims:
        unit = f" {claim.unit}" if claim.unit else ""
        numbers = (("" if n is None else format_number(n) + unit) for n in (claim.published, claim.measured))
        text = Text.assemble(claim.text, " ", (f"[{claim.source}]", "dim"))
        verdict = Text(claim.verdict, style=_STYLES[claim.verdict])
        grid.add_row(verdict, text, *numbers, format_deviation(claim.deviation), Text(claim.note))
    return grid


def data_table(table: Table) -> RenderableType:
    """A study's table with its note below."""
    grid = _grid(table.title)
    for index, column in enumerate(table.columns):
        numeric = any(isinstance(row[index], (int, float)) for row in table.rows)
        grid.add_column(Text(column), justify="right" if numeric else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*(Text(format_number(cell)) for cell in row))
    return Group(grid, Text(table.note, style="dim")) if table.note else grid


def summary_line(claims: Sequence[Claim]) -> Text:
    """``14 claims: 11 reproduced, 2 partly, 1 not``."""
    counts = count_verdicts(claim.verdict for claim in claims)
    text = Text(f"{len(claims)} claims: ")
    for index, (verdict, count) in enumerate(counts.items()):
        text.append(", " if index else "").append(f"{count} {verdict}", style=_STYLES[verdict])
    return text


def matrix_table(verdicts: Mapping[str, Sequence[Verdict]], title: str) -> Grid:
    """Verdict counts per paper."""
    grid = _grid(title)
    grid.add_column("paper")
    for verdict in VERDICTS:
        grid.add_column(verdict, justify="right", style=_STYLES[verdict])
    for paper, found in verdicts.items():
        grid.add_row(paper, *(str(count) for count in count_verdicts(found).values()))
    return grid


def _grid(title: str) -> Grid:
    return Grid(
        box=SIMPLE_HEAD, title=Text(title), title_justify="left", title_style="bold", header_style="bold",
        pad_edge=False, padding=(0, 1, 0, 0),
    )  # fmt: skip
