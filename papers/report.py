"""Outcomes for readers: tables in the terminal, and one HTML file about all studies.

The file begins with a matrix of verdicts; then come each paper's claims, tables, figures and settings. It is
self-contained (figures as PNG data URIs, no script, no external font or style), so that it can be mailed, printed and
read on a phone. It is made from records (see ``record``), never from a run itself.
"""

from __future__ import annotations

import base64
import datetime
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from papers.record import Record, library_versions
from papers.study import Cell, Claim, Table, Verdict
from snake_gym.config import write_atomic

VERDICTS: tuple[Verdict, ...] = ("reproduced", "by construction", "partly", "not")
_STYLES: dict[Verdict, str] = {"reproduced": "green", "by construction": "cyan", "partly": "yellow", "not": "red"}


def count_verdicts(verdicts: Iterable[Verdict]) -> dict[Verdict, int]:
    """Return the number of claims with each verdict, in the order of ``VERDICTS``."""
    counted = Counter(verdicts)
    return {verdict: counted[verdict] for verdict in VERDICTS}


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
    allowed = "" if tolerance is None else f" (of {100.0 * tolerance:g} %)"
    return f"{100.0 * deviation:+.1f} %{allowed}"


def claims_table(claims: Sequence[Claim], title: str) -> Grid:
    """Return a table of every claim with its verdict and numbers."""
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
        verdict = Text(claim.verdict + (" (ours)" if claim.own else ""), style=_STYLES[claim.verdict])
        grid.add_row(verdict, text, *numbers, format_deviation(claim.deviation), Text(claim.note))
    return grid


def data_table(table: Table) -> RenderableType:
    """Return a study's table with its note below."""
    grid = _grid(table.title)
    for index, column in enumerate(table.columns):
        numeric = any(isinstance(row[index], (int, float)) for row in table.rows)
        grid.add_column(Text(column), justify="right" if numeric else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*(Text(format_number(cell)) for cell in row))
    return Group(grid, Text(table.note, style="dim")) if table.note else grid


def summary_line(claims: Sequence[Claim]) -> Text:
    """Return a line such as ``14 claims: 10 reproduced, 1 by construction, 2 partly, 1 not; and 3 of ours``."""
    published = [claim for claim in claims if not claim.own] or claims
    counts = count_verdicts(claim.verdict for claim in published)
    text = Text(f"{len(published)} claims{' of ours' if all(claim.own for claim in claims) else ''}: ")
    for index, (verdict, count) in enumerate(counts.items()):
        text.append(", " if index else "").append(f"{count} {verdict}", style=_STYLES[verdict])
    return text.append(f"; and {len(claims) - len(published)} of ours" if len(published) < len(claims) else "")


def matrix_table(verdicts: Mapping[str, Sequence[Verdict]], title: str) -> Grid:
    """Return a table of verdict counts per paper."""
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


_STYLE_SHEET = Path(__file__).parent / "report.css"
_SHAPES: dict[Verdict, str] = {
    "reproduced": '<circle cx="8" cy="8" r="7" fill="currentColor"/>'
    '<path d="M4.5 8.2l2.5 2.5 4.6-5" fill="none" stroke="#fff" stroke-width="2"/>',
    "by construction": '<rect x="1.8" y="1.8" width="12.4" height="12.4" fill="#fff" stroke="currentColor" '
    'stroke-width="1.6"/><path d="M4.5 8.2l2.5 2.5 4.6-5" fill="none" stroke="currentColor" stroke-width="1.6"/>',
    "partly": '<circle cx="8" cy="8" r="6.2" fill="#fff" stroke="currentColor" stroke-width="1.6"/>'
    '<path d="M8 1.8a6.2 6.2 0 0 0 0 12.4z" fill="currentColor"/>',
    "not": '<circle cx="8" cy="8" r="6.2" fill="#fff" stroke="currentColor" stroke-width="1.6"/>'
    '<path d="M5.4 5.4l5.2 5.2M10.6 5.4l-5.2 5.2" stroke="currentColor" stroke-width="1.8"/>',
}

_MEANING: dict[Verdict, str] = {
    "reproduced": "the rerun gives the same, within the tolerance named beside the numbers",
    "by construction": "it holds, but the rerun's own settings bring it about: no evidence for the paper",
    "partly": "the same tendency with other numbers, or only under some of the conditions",
    "not": "the rerun gives something else, or the claim cannot hold",
}


def published_verdicts(record: Record) -> list[Verdict]:
    """Return the verdicts on the claims that the record's paper makes itself, in order."""
    return [claim["verdict"] for claim in record["claims"] if not claim["own"]]


def mark(verdict: Verdict) -> str:
    """Return the sign of a verdict, distinct by shape as well as by colour."""
    return (
        f'<svg class="mark {verdict}" viewBox="0 0 16 16" width="16" height="16" role="img" aria-label="{verdict}">'
        f"<title>{verdict}</title>{_SHAPES[verdict]}</svg>"
    )


def write_report(
    path: Path, folder: Path, records: Sequence[Record], failed: Mapping[str, str], command: str, date: str = ""
) -> None:
    """Write the report. ``folder``/NAME/ holds the figures of study NAME; ``failed`` maps a study to its error."""
    date = date or datetime.date.today().isoformat()
    parts = [_front_page(records, failed, command, date)]
    parts += [_study_section(record, folder / record["paper"]) for record in records]
    page = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Published experiments, rerun</title>\n<style>\n{_STYLE_SHEET.read_text()}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )
    write_atomic(path, page)


def _front_page(records: Sequence[Record], failed: Mapping[str, str], command: str, date: str) -> str:
    legend = "".join(
        f'<tr><td class="verdict {verdict}">{mark(verdict)} {verdict}</td><td>{meaning}</td></tr>'
        for verdict, meaning in _MEANING.items()
    )
    lost = "".join(
        f'<p class="failed"><b>{escape(name)}</b> did not finish: {escape(why)}</p>' for name, why in failed.items()
    )
    used = ", ".join(f"{name} {version}" for name, version in library_versions().items())
    quick = any(record["settings"].get("quick") for record in records)
    warning = "<p><b>Quick runs:</b> with less data than the full ones, so verdicts can differ.</p>" if quick else ""
    return (
        "<header><h1>Published experiments, rerun</h1>"
        f'<p class="muted">{escape(date)} · {escape(used)}</p>'
        "<p>Robots, controllers and experiments of these papers, rebuilt in snake_gym and run again. Each verdict is "
        "computed from the numbers of the rerun.</p>"
        f"{warning}<pre><code>{escape(command)}</code></pre></header>"
        f"<h3>Claims and verdicts</h3>{_matrix(records)}{lost}"
        f'<table class="small legend">{legend}</table>'
        f"{_exceptions(records)}"
    )


def _matrix(records: Sequence[Record]) -> str:
    heads = "".join(f'<th class="number">{mark(verdict)} {verdict}</th>' for verdict in VERDICTS)
    rows, everything = [], list[Verdict]()
    for record in records:
        paper, verdicts = record["paper"], published_verdicts(record)
        everything += verdicts
        marks = [
            "".join(
                f'<a href="#{paper}-{number}" title="{number}: {escape(claim["text"])}">{mark(claim["verdict"])}</a>'
                for number, claim in enumerate(record["claims"], 1)
                if claim["own"] == own
            )
            for own in (False, True)
        ]
        rows.append(
            f'<tr><td><a href="#{paper}"><b>{escape(paper)}</b></a><br><span class="small muted">'
            f"{escape(record['title'])}</span></td><td>{marks[0]}</td><td>{marks[1]}</td>{_counts(verdicts)}</tr>"
        )
    return (
        '<div class="wide"><table class="matrix"><thead><tr><th>paper</th><th>its claims, in order</th>'
        f"<th>and ours</th>{heads}</tr></thead><tbody>{''.join(rows)}</tbody>"
        f"<tfoot><tr><td>all</td><td>{len(everything)} claims of papers</td><td></td>"
        f"{_counts(everything)}</tr></tfoot></table></div>"
    )


def _counts(verdicts: Sequence[Verdict]) -> str:
    return "".join(
        f'<td class="number count {verdict}">{count}</td>' for verdict, count in count_verdicts(verdicts).items()
    )


def _exceptions(records: Sequence[Record]) -> str:
    rows = [
        f'<tr><td class="verdict {claim["verdict"]}">{mark(claim["verdict"])}</td>'
        f'<td class="which"><a href="#{record["paper"]}-{number}">'
        f"{escape(record['paper'])}, {number}</a></td><td>{escape(claim['text'])}{_in_short(claim)}</td></tr>"
        for record in records
        for number, claim in enumerate(record["claims"], 1)
        if claim["verdict"] != "reproduced" and not claim["own"]
    ]
    if not rows:
        return ""
    return f'<h3>What did not come out as published</h3><table class="small">{"".join(rows)}</table>'


def _in_short(claim: Mapping[str, Any]) -> str:
    if claim["published"] is None or claim["measured"] is None:
        return ""
    published, measured = (_with_unit(claim[name], claim["unit"]) for name in ("published", "measured"))
    return f' <span class="muted">(published {published}, rerun {measured})</span>'


def _study_section(record: Record, folder: Path) -> str:
    paper, counts = record["paper"], count_verdicts(published_verdicts(record))
    summary = " &nbsp; ".join(
        f'<span class="verdict {verdict}">{mark(verdict)} {count} {verdict}</span>' for verdict, count in counts.items()
    )
    claims = "".join(_claim_row(paper, number, claim) for number, claim in enumerate(record["claims"], 1))
    figures = "".join(_figure(folder, index, figure) for index, figure in enumerate(record["figures"], 1))
    return (
        f'<section id="{paper}"><h2>{escape(record["title"])}</h2>'
        f'<p class="muted">{escape(record["citation"])}</p><p>{summary}</p>'
        '<h3>Claims</h3><table class="claims"><thead><tr><th></th><th>verdict</th><th>claim, in our words</th>'
        "<th>numbers</th></tr></thead>"
        f"<tbody>{claims}</tbody></table>"
        f"{''.join(map(_table, record['tables']))}"
        f"{'<h3>Figures</h3>' if figures else ''}{figures}{_facts(record)}</section>"
    )


def _claim_row(paper: str, number: int, claim: Mapping[str, Any]) -> str:
    verdict, unit = claim["verdict"], claim["unit"]
    note = f'<div class="note">{escape(claim["note"])}</div>' if claim["note"] else ""
    numbers = (
        ("published", "" if claim["published"] is None else _with_unit(claim["published"], unit)),
        ("rerun", "" if claim["measured"] is None else _with_unit(claim["measured"], unit)),
        ("off by", escape(format_deviation(claim["deviation"], claim["tolerance"]))),
    )
    lines = "".join(f"<div><span>{label}</span><b>{text}</b></div>" for label, text in numbers if text)
    wide, numbers_cell = ' colspan="2"', f'<td class="numbers">{lines}</td>' if lines else ""
    return (
        f'<tr id="{paper}-{number}"><td class="index">{number}</td>'
        f'<td class="verdict {verdict}">{mark(verdict)} {verdict}{"<br>(ours)" if claim["own"] else ""}</td>'
        f"<td{'' if lines else wide}>{escape(claim['text'])} "
        f'<span class="source">[{escape(claim["source"])}]</span>{note}</td>{numbers_cell}</tr>'
    )


def _table(table: Mapping[str, Any]) -> str:
    numeric = [
        any(isinstance(row[index], (int, float)) for row in table["rows"]) for index in range(len(table["columns"]))
    ]
    kinds = [' class="number"' if number else "" for number in numeric]
    head = "".join(f"<th{kind}>{escape(column)}</th>" for kind, column in zip(kinds, table["columns"], strict=True))
    rows = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{escape(format_number(cell))}</td>" for kind, cell in zip(kinds, row, strict=True))
        + "</tr>"
        for row in table["rows"]
    )
    note = f'<p class="note">{escape(table["note"])}</p>' if table["note"] else ""
    return (
        f'<h3>{escape(table["title"])}</h3><div class="wide"><table class="data"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{note}"
    )


def _figure(folder: Path, index: int, figure: Mapping[str, str]) -> str:
    image = base64.b64encode((folder / figure["file"]).read_bytes()).decode()
    caption = escape(figure["caption"])
    return (
        f'<figure><img src="data:image/png;base64,{image}" alt="{escape(figure["caption"])}">'
        f"<figcaption><b>Figure {index}.</b> {caption}</figcaption></figure>"
    )


def _facts(record: Record) -> str:
    given = {name: value for name, value in record["settings"].items() if value not in (None, False)}
    facts = {
        "command": f"<code>{escape(record['command'])}</code>",
        "settings": escape(", ".join(f"{name}: {value}" for name, value in given.items())) or "as shipped",
        "versions": escape(", ".join(f"{name} {version}" for name, version in record["versions"].items())),
        "source": f"<code>{escape(record['source'])}</code> (digest of the code behind the numbers)",
        "finished": f"{escape(record['finished'])}, after {record['wall_s']:.0f} s",
        "more": f"what the paper leaves out and our choices: <code>docs/papers/{escape(record['paper'])}.md</code>",
    }
    rows = "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in facts.items())
    return f'<h3>How to get this again</h3><table class="small facts">{rows}</table>'


def _with_unit(value: float, unit: str) -> str:
    return escape(f"{format_number(value)} {unit}".strip())
