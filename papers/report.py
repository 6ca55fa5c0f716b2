"""Reruns for readers, in Markdown: a page for each study, and the matrix of all verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from papers.record import Record
from papers.study import VERDICTS, Cell


def page(record: Record) -> str:
    """Return the page of one study: verdicts, claims, tables, figures, and how to get it again."""
    claims = []
    for claim in record["claims"]:
        shown = (
            "" if claim[name] is None else f"{format_number(claim[name])} {claim['unit']}".strip()
            for name in ("published", "measured")
        )
        off = format_deviation(claim["deviation"], claim["tolerance"])
        claims.append([claim["verdict"], f"{claim['text']} [{claim['source']}]", *shown, off, claim["note"]])
    parts = [
        f"# {record['paper']}: {record['title']}",
        record["citation"],
        f"{summary(record)}{' Quick runs can give other verdicts than full ones.' * record['quick']}",
        grid(["verdict", "claim, in our words", "published", "rerun", "deviation", "numbers behind it"], claims),
    ]
    for table in record["tables"]:
        parts += [f"## {table['title']}", grid(table["columns"], table["rows"]), table["note"]]
    parts += [f"![{figure['name']}]({figure['file']})\n\n{figure['caption']}" for figure in record["figures"]]
    used = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    parts.append(f"`{record['command']}` ({used}), {record['finished']}, after {record['wall_s']:.0f} s")
    return "\n\n".join(filter(None, parts)) + "\n"


def matrix(records: Sequence[Record], failed: dict[str, str]) -> str:
    """Return the page of all studies: how many claims have which verdict; ``failed``: study -> reason."""
    counts = {record["paper"]: count_verdicts(record) for record in records}
    sums = [sum(column) for column in zip(*counts.values(), strict=True)]
    rows: list[list[Cell]] = [[f"[{name}]({name}/report.md)", sum(count), *count] for name, count in counts.items()]
    table = grid(["paper", "claims", *VERDICTS], [*rows, ["all", sum(sums), *(sums or [0] * len(VERDICTS))]])
    lost = [f"{name} failed: {reason}" for name, reason in failed.items()]
    return "\n\n".join(["# Verdicts on claims of the papers", table, *lost]) + "\n"


def count_verdicts(record: Record) -> list[int]:
    """Return the number of claims with each verdict, in the order of ``VERDICTS``."""
    return [sum(claim["verdict"] == verdict for claim in record["claims"]) for verdict in VERDICTS]


def summary(record: Record) -> str:
    """Return a line such as ``14 claims: 10 reproduced, 1 by construction, 2 partly, 1 not.``"""
    counts = zip(count_verdicts(record), VERDICTS, strict=True)
    return f"{len(record['claims'])} claims: {', '.join(f'{count} {verdict}' for count, verdict in counts)}."


def grid(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return a table in Markdown."""
    lines = [columns, ["---"] * len(columns), *([format_number(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def format_number(value: Cell) -> str:
    """Return a cell's text: integers and text unchanged, other numbers with four significant digits, None as a dash."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    if isinstance(value, (str, int)) or value == 0.0:
        return str(value) if isinstance(value, (str, int)) else "0"
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.3e}"
    decimals = 3 - math.floor(math.log10(abs(value)))
    return f"{value:.0f}" if decimals <= 0 else repr(round(float(value), decimals))


def format_deviation(deviation: float | None, tolerance: float | None = None) -> str:
    """Return text such as ``+1.6 % (of 3 %)``; empty without a deviation."""
    if deviation is None:
        return ""
    return f"{100.0 * deviation:+.1f} %{'' if tolerance is None else f' (of {100.0 * tolerance:g} %)'}"
