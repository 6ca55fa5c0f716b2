"""The terminal's tables and the HTML report, from one small study."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from papers import __main__ as program
from papers.report import write_report
from papers.rerun import rerun_into
from papers.table import claims_table, count_verdicts, data_table, format_deviation, format_number
from tests.papers.outcomes import SmallStudy


class Elements(HTMLParser):
    """Every element is closed, ids are unique, links within the page lead somewhere, nothing is loaded."""

    VOID = ("meta", "img", "br", "path", "circle")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids += [values["id"] or ""] if "id" in values else []
        self.links += [values["href"] or ""] if "href" in values else []
        self.sources += [values["src"] or ""] if "src" in values else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("papers")
    record, _ = rerun_into(folder / "small", SmallStudy(), ["--quick"], fresh=False)
    write_report(folder / "report.html", folder, [record], {"other": "ValueError: <x>"}, "python -m this", "2022-01-02")
    return (folder / "report.html").read_text()


def test_the_report_stands_alone(page: str) -> None:
    elements = Elements(page)
    assert len(set(elements.ids)) == len(elements.ids)
    assert all(link.removeprefix("#") in elements.ids for link in elements.links)
    assert len(elements.sources) == 1 and elements.sources[0].startswith("data:image/png;base64,iVBOR")
    assert not re.search(r"<script|<link|@import|url\(|https?://", page)


def test_the_report_says_everything(page: str) -> None:
    assert "A study of &lt;nothing&gt;" in page and "Nobody &amp; Co. (2022)" in page
    for text in ("The speed is 1 &lt;m/s&gt;", "[Table 3]", "three of four times", "A note.", "b &lt;c&gt;", "1.5"):
        assert text in page
    assert "other</b> did not finish: ValueError: &lt;x&gt;" in page and "Quick runs" in page
    assert page.index("What did not come out as published") < page.index('<section id="small">')
    row = page[page.index("<tfoot>") : page.index("</tfoot>")]
    assert re.findall(r'count \w+">(\S+?)<', row) == ["1", "1", "1"]


def test_numbers_for_readers() -> None:
    shown = [format_number(value) for value in (261.0, 1506.03, 0.05, 0.27514, -3.14159, 0.0, 7, 1e-7, None, "cc")]
    assert shown == ["261.0", "1506", "0.05", "0.2751", "-3.142", "0", "7", "1.000e-07", "-", "cc"]
    assert format_number(float("nan")) == "-" and format_number(123456.0) == "123456"
    assert format_deviation(0.0156, 0.03) == "+1.6 % (of 3 %)" and format_deviation(None) == ""
    assert count_verdicts(["not", "not", "reproduced"]) == {"reproduced": 1, "partly": 0, "not": 2}


def test_tables_for_the_terminal() -> None:
    import argparse

    outcome = SmallStudy().run(argparse.Namespace(speed=1.2), lambda share, doing: None)
    console = Console(width=140, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(claims_table(outcome.claims, "small"), *map(data_table, outcome.tables))
    text = console.export_text()
    for part in ("partly", "The speed is 1 <m/s>", "1.2 m/s", "+20.0 %", "three of four times", "way [m]", "A note."):
        assert part in text
    console.file.close()


def test_all_goes_on_after_a_failure_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = SmallStudy()

    def load(name: str) -> SmallStudy:
        if name == "broken":
            raise RuntimeError("no such physics")
        return study

    monkeypatch.setattr(program, "available", lambda: ["broken", "small"])
    monkeypatch.setattr(program, "load_study", load)
    arguments = ["all", "--quick", "--out", str(tmp_path)]
    assert program.main(arguments) == 1
    told = capsys.readouterr()
    assert "RuntimeError: no such physics" in told.out and "no such physics" in told.err
    assert "3 claims: 1 reproduced, 1 partly, 1 not" in told.out
    assert "no such physics" in (tmp_path / "report.html").read_text()
    assert program.main([*arguments, "--only", "small"]) == 0
    assert study.runs == 1 and "done before" in capsys.readouterr().out
    again = (tmp_path / "report.html").read_text()
    assert "no such physics" not in again
    assert f"papers all --quick --only small --out {tmp_path}</code>" in again
