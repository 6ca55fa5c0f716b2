"""``python -m papers``: options, records of studies and when one is used again, tables for the terminal, the report."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from rich.console import Console

from papers import __main__ as program
from papers import record as records
from papers.record import claim_of, is_current, load_record, plain, rerun_into
from papers.report import (
    VERDICTS,
    claims_table,
    count_verdicts,
    data_table,
    format_deviation,
    format_number,
    write_report,
)
from papers.study import Claim, Finding, Option, Study, Table, claim, compare, figure, grade_built, number
from snake_gym.config import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

ROOT = Path(__file__).parents[2]


def draw(canvas: Canvas, speed: float) -> None:
    axes = canvas.add_subplot()
    axes.plot([0.0, 1.0], [0.0, speed], label="line")
    axes.set(xlabel="time [s]", ylabel="way [m]")


@claim("The speed is 1 <m/s>", "eq. 1", 1.0, "m/s", 0.03)
def speed_claim(speed: float) -> Finding:
    return Finding(None, measured=speed)


class SmallStudy:
    """A study that runs in no time, with every kind of claim, a table and a figure; counts its runs."""

    def __init__(self) -> None:
        self.runs = 0
        rows = [["a", 1.5], ["b <c>", None], ["d", float("inf")]]
        self.study: Study[float] = Study(
            name="wang",
            title="A study of <nothing>",
            citation="Nobody & Co. (2022)",
            quick="less",
            options=(Option("--speed", "how fast", number("a speed from 0 to 9", 0.0, 9.0), "1.0"),),
            experiment=self.experiment,
            claims=(
                speed_claim,
                lambda speed: [
                    Claim("It turns & turns", "Fig. 2", "partly", note="three of four times"),
                    Claim("It was built to hold", "Fig. 3", grade_built(True)),
                    Claim("Nobody says this", "ours", "not", own=True),
                    compare("The angle is 2 rad", "Table 3", 2.0, float("nan"), "rad", 0.1),
                ],
            ),
            tables=(lambda speed: Table("rows", "Some rows", ["name", "way [m]"], rows, "A note."),),
            figures=(figure("line", "A line, in metres & seconds.", draw, (4.0, 2.5)),),
            data=lambda speed: {"seed": np.int64(3), "course": np.array([1.0, np.nan])},
        )

    def experiment(self, options: argparse.Namespace, advance: Any) -> float:
        self.runs += 1
        advance(0.5, "halfway")
        return float(options.speed)


# --- records ---------------------------------------------------------------------------------------------------------


def test_a_record_is_strict_json_with_everything_in_it(tmp_path: Path) -> None:
    small = SmallStudy()
    record, before = rerun_into(tmp_path, small.study, ["--quick", "--speed", "1.05"], fresh=False)
    assert not before and small.runs == 1
    text = (tmp_path / "outcome.json").read_text()
    assert json.loads(text, parse_constant=lambda name: pytest.fail(name)) == record
    assert [claim["verdict"] for claim in record["claims"]] == ["partly", "partly", "by construction", "not", "not"]
    assert record["claims"][0]["deviation"] == pytest.approx(0.05) and record["claims"][2]["measured"] is None
    assert record["settings"] == {"quick": True, "speed": "1.05"}
    assert record["data"] == {"seed": 3, "course": [1.0, None]}
    assert record["command"] == "python -m papers wang --quick --speed 1.05"
    assert record["tables"][0]["rows"] == [["a", 1.5], ["b <c>", None], ["d", None]]
    assert (tmp_path / record["figures"][0]["file"]).read_bytes().startswith(b"\x89PNG")
    assert claim_of(record["claims"][0]).deviation == pytest.approx(0.05)
    assert plain({1: Path("a"), "t": (True, None, -float("inf"))}) == {"1": "a", "t": [True, None, None]}


def test_what_is_done_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = SmallStudy()
    first, _ = rerun_into(tmp_path, small.study, [], fresh=False)
    assert rerun_into(tmp_path, small.study, [], fresh=False) == (first, True) and small.runs == 1
    assert not rerun_into(tmp_path, small.study, ["--speed", "2"], fresh=False)[1]
    record, before = rerun_into(tmp_path, small.study, ["--speed", "2"], fresh=True)
    assert not before and small.runs == 3 and is_current(record, record["settings"])
    for name, other in (("source_digest", lambda paper: "0" * 16), ("library_versions", lambda: {"numpy": "0.1"})):
        with monkeypatch.context() as patch:
            patch.setattr(records, name, other)
            assert not is_current(record, record["settings"])


@pytest.mark.parametrize("damage", ["half a file", "no figure", "another program"])
def test_what_is_damaged_is_done_again(tmp_path: Path, damage: str) -> None:
    study = SmallStudy().study
    rerun_into(tmp_path, study, [], fresh=False)
    file = tmp_path / "outcome.json"
    if damage == "half a file":
        file.write_text(file.read_text()[:200])
    elif damage == "no figure":
        (tmp_path / "line.png").unlink()
    else:
        file.write_text('{"paper": "small"}')
    assert load_record(tmp_path) is None
    assert not rerun_into(tmp_path, study, [], fresh=False)[1] and load_record(tmp_path) is not None


def test_an_interrupted_run_leaves_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(records, "save_record", stop)
    with pytest.raises(KeyboardInterrupt):
        rerun_into(tmp_path, SmallStudy().study, [], fresh=False)
    assert load_record(tmp_path) is None and (tmp_path / "line.png").exists()


def test_the_digest_is_of_the_code_behind_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the sources, edited file by file."""
    matters = {
        "papers/report": False, "papers/wang/runs": False, "snake_gym/render/plots": False,
        "papers/drives": True, "papers/study": True, "papers/liu2024/__init__": True, "snake_gym/physics/chain": True,
    }  # fmt: skip
    for name in matters:
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a = 1\n")
    monkeypatch.setattr(records, "_LIBRARY", tmp_path / "snake_gym")
    monkeypatch.setattr(records, "_PAPERS", tmp_path / "papers")
    for name, is_part in matters.items():
        before = records.source_digest.__wrapped__("liu2024")
        (tmp_path / f"{name}.py").write_text("a = 2\n")
        assert (records.source_digest.__wrapped__("liu2024") != before) == is_part, name


# --- what readers see ------------------------------------------------------------------------------------------------


class Elements(HTMLParser):
    """Every element is closed, ids are unique, links within the page lead somewhere, nothing is loaded."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, found in (("id", self.ids), ("href", self.links), ("src", self.sources)):
            found += [value or "" for key, value in attrs if key == name]
        if tag not in ("meta", "img", "br", "path", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            assert self.open.pop() == tag


def test_the_report_stands_alone_and_says_everything(tmp_path: Path) -> None:
    record, _ = rerun_into(tmp_path / "wang", SmallStudy().study, ["--quick"], fresh=False)
    failed = {"other": "ValueError: <x>"}
    write_report(tmp_path / "report.html", tmp_path, [record], failed, "python -m this", "2022-01-02")
    page = (tmp_path / "report.html").read_text()
    elements = Elements(page)
    assert len(set(elements.ids)) == len(elements.ids)
    assert all(link.removeprefix("#") in elements.ids for link in elements.links)
    assert len(elements.sources) == 1 and elements.sources[0].startswith("data:image/png;base64,iVBOR")
    assert not re.search(r"<script|<link|@import|url\(|https?://", page) and "@media print" in page
    assert "A study of &lt;nothing&gt;" in page and "Nobody &amp; Co. (2022)" in page
    for text in ("The speed is 1 &lt;m/s&gt;", "[Table 3]", "three of four times", "A note.", "b &lt;c&gt;", "1.5"):
        assert text in page
    assert "other</b> did not finish: ValueError: &lt;x&gt;" in page and "Quick runs" in page
    assert page.index("What did not come out as published") < page.index('<section id="wang">')
    row = page[page.index("<tfoot>") : page.index("</tfoot>")]
    assert re.findall(r'count [\w ]+">(\S+?)<', row) == ["1", "1", "1", "1"], "claims of ours are not counted"


def test_numbers_and_tables_for_readers() -> None:
    shown = [format_number(value) for value in (261.0, 1506.03, 0.05, 0.27514, -3.14159, 0.0, 7, 1e-7, None, "cc")]
    assert shown == ["261.0", "1506", "0.05", "0.2751", "-3.142", "0", "7", "1.000e-07", "-", "cc"]
    assert format_number(float("nan")) == "-" and format_number(123456.0) == "123456"
    assert format_deviation(0.0156, 0.03) == "+1.6 % (of 3 %)" and format_deviation(None) == ""
    assert count_verdicts(["not", "not", "reproduced"]) == dict(zip(VERDICTS, (1, 0, 0, 2), strict=True))
    outcome = SmallStudy().study.run(argparse.Namespace(speed="1.2"), lambda share, doing: None)
    console = Console(width=140)
    with console.capture() as capture:
        console.print(claims_table(outcome.claims, "small"), *map(data_table, outcome.tables))
    for part in ("partly", "The speed is 1 <m/s>", "1.2 m/s", "+20.0 %", "three of four times", "way [m]", "A note."):
        assert part in capture.get()


def test_all_goes_on_after_a_failure_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = SmallStudy()

    def load(name: str) -> Study[float]:
        if name == "liu2024":
            raise RuntimeError("no such physics")
        return small.study

    monkeypatch.setattr(program, "load_study", load)
    arguments = ["all", "--quick", "--out", str(tmp_path), "--only"]
    assert program.main([*arguments, "wang,liu2024"]) == 1
    told = capsys.readouterr()
    assert "RuntimeError: no such physics" in told.out and "no such physics" in told.err
    assert "4 claims: 1 reproduced, 1 by construction, 1 partly, 1 not; and 1 of ours" in told.out
    assert "no such physics" in (tmp_path / "report.html").read_text()
    assert program.main([*arguments, "wang"]) == 0
    assert small.runs == 1 and "done before" in capsys.readouterr().out
    again = (tmp_path / "report.html").read_text()
    assert "no such physics" not in again
    assert f"papers all --quick --only wang --out {tmp_path}</code>" in again


# --- options ---------------------------------------------------------------------------------------------------------

ONE_RUN = ["sibilska2022", "--point", "centre", "--model", "published", "--controller", "sjc", "--broken"]


def test_single_runs_as_json_and_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main([*ONE_RUN, "none", "--time-limit-s", "42", "--json", "-"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert list(row) == ["point", "model", "controller", "broken", "arrivals_s", "paper_s"]
    assert row["arrivals_s"][0] == pytest.approx(39.9, rel=0.005) and row["arrivals_s"][1:] == [None] * 4
    assert (row["point"], row["model"], row["controller"], row["broken"]) == ("centre", "published", "sjc", [])
    assert row["paper_s"] == 257.0
    file = tmp_path / "rows.json"
    assert program.main([*ONE_RUN, "2,7", "--time-limit-s", "1", "--json", str(file)]) == 0
    (row,) = json.loads(file.read_text())
    assert row["broken"] == [2, 7] and row["paper_s"] is None
    assert "2,7" in capsys.readouterr().out
    # another amplitude is not the paper's
    assert program.main([*ONE_RUN, "3", "--time-limit-s", "1", "--amplitude-deg", "35", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["paper_s"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sibilska2022", "--broken", "12"], r"^--broken names joint 12; expected joints from 1 to 9 \(nearest: 9\)$"),
        (["sibilska2022", "--broken", "3,3"], "twice"),
        (["sibilska2022", "--broken", "a"], "expected joint numbers such as 3,5,8, or none"),
        (["sibilska2023"], "did you mean 'sibilska2022'"),
        (["sibilska2022", "--model", "true"], "--model is .*; expected one of published, consistent"),
        (["sibilska2022", "--amplitude-deg", "nan"], "expected degrees from 0 to 90"),
        (["sibilska2022", "--time-limit-s", "soon"], "expected seconds from 1 to 1e5"),
        (["sibilska2022", "--json", "."], "a folder"),
        (["sibilska2022", "--plot", "/proc/no"], "/proc/no cannot be written to"),
        (["all", "--quick", "--out", "/proc/no"], "/proc/no cannot be written to"),
        (["sibilska2022", "--breaks", "3"], "unrecognized arguments"),
        (["sibilska2022", "--plot", __file__], "expected a folder"),
        (["--json", "-"], "required: paper"),
        (["all", "--only", "liu2023"], "--only is 'liu2023'"),
        (["all", "--resume", "--fresh"], "not allowed with"),
        (["irani2015", "--shifts-deg", "5,30"], "--shifts-deg has 5; expected 10 to 90"),
        (["irani2015", "--shifts-deg", "wide"], "--shifts-deg is 'wide'; expected degrees"),
        (["irani2015", "--starts", "0"], "--starts is '0'; expected a number from 1 to 64"),
        (["wang", "--boards", "1.5"], "--boards is '1.5'; expected a whole number from 1 to 1000"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        program.main(arguments)
    assert "\n" not in str(caught.value)


def test_exit_code_of_a_mistake() -> None:
    command = [sys.executable, "-m", "papers", "sibilska2022", "--broken", "12"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == "error: --broken names joint 12; expected joints from 1 to 9 (nearest: 9)\n"
