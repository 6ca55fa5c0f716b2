"""``python -m papers``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from papers.__main__ import main
from papers.sibilska2022 import BROKEN_SETS, PAPER_S, Case, as_rows, paper_time, select_cases
from papers.sibilska2022.arrivals import arrival_table
from snake_gym.config import ConfigError

ROOT = Path(__file__).parents[2]
KEYS = ["point", "model", "controller", "broken", "arrivals_s", "paper_s"]
ONE_RUN = ["sibilska2022", "--point", "centre", "--model", "published", "--controller", "sjc", "--broken"]


def test_json_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ONE_RUN, "none", "--time-limit-s", "42", "--json", "-"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert list(row) == KEYS
    assert row["arrivals_s"][0] == pytest.approx(39.9, rel=0.005) and row["arrivals_s"][1:] == [None] * 4
    assert (row["point"], row["model"], row["controller"], row["broken"]) == ("centre", "published", "sjc", [])
    assert row["paper_s"] == 257.0


def test_a_file_and_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows.json"
    assert main([*ONE_RUN, "2,7", "--time-limit-s", "1", "--json", str(file)]) == 0
    (row,) = json.loads(file.read_text())
    assert row["broken"] == [2, 7] and row["paper_s"] is None
    assert "2,7" in capsys.readouterr().out


def test_another_amplitude_is_not_the_papers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ONE_RUN, "3", "--time-limit-s", "1", "--amplitude-deg", "35", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["paper_s"] is None


def test_all_runs_are_the_published_sixteen_and_the_consistent_head_runs() -> None:
    cases = select_cases()
    assert len(set(cases)) == len(cases) == 24
    assert sum(case.model == "published" for case in cases) == 16
    assert {case.point for case in cases if case.model == "consistent"} == {"head"}
    assert {case.broken for case in cases} == set(BROKEN_SETS)


def test_selection() -> None:
    assert select_cases("centre", "consistent", "cc", (2, 7)) == [Case("centre", "consistent", "cc", (2, 7))]
    assert len(select_cases(broken=(2, 7))) == 6
    assert len(select_cases(point="head", model="consistent")) == 8
    assert len(select_cases(model="consistent")) == 16


def test_the_paper_says_nothing_of_consistent_head_runs() -> None:
    assert paper_time(Case("head", "consistent", "sjc", ())) is None
    assert paper_time(Case("head", "published", "sjc", ())) == 297.0
    assert paper_time(Case("centre", "consistent", "cc", (8, 5, 3))) == 476.0
    assert len({paper_time(case) for case in select_cases() if paper_time(case)}) == len(set(PAPER_S.values()))


def test_table_shows_the_deviation() -> None:
    case = Case("centre", "published", "sjc", ())
    rows = as_rows([case, case], np.array([[40.0, 99.0, 128.0, 202.0, 282.7], [41.0, *[np.nan] * 4]]))
    table = arrival_table(rows)
    assert list(table.columns[-3:]) == ["5 [s]", "paper [s]", "dev."]
    assert list(table.rows[0][-3:]) == [282.7, 257.0, "+10.0%"]
    assert list(table.rows[1][-3:]) == [None, 257.0, None]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sibilska2022", "--broken", "12"], r"^--broken names joint 12; expected joints from 1 to 9 \(nearest: 9\)$"),
        (["sibilska2022", "--broken", "0,3"], "nearest: 1"),
        (["sibilska2022", "--broken", "3,3"], "twice"),
        (["sibilska2022", "--broken", "a"], "expected joint numbers such as 3,5,8, or none"),
        (["sibilska2023"], "did you mean 'sibilska2022'"),
        (["sibilska2022", "--controller", "ccc"], "did you mean 'cc'"),
        (["sibilska2022", "--point", "center"], "did you mean 'centre'"),
        (["sibilska2022", "--model", "true"], "expected one of published, consistent"),
        (["sibilska2022", "--amplitude-deg", "nan"], "expected degrees from 0 to 90"),
        (["sibilska2022", "--time-limit-s", "soon"], "expected seconds from 1 to 1e5"),
        (["sibilska2022", "--json", "."], "a folder"),
        (["sibilska2022", "--json", "/proc/no/x.json"], "/proc/no cannot be written to"),
        (["sibilska2022", "--plot", "/proc/no"], "/proc/no cannot be written to"),
        (["all", "--quick", "--out", "/proc/no"], "/proc/no cannot be written to"),
        (["sibilska2022", "--breaks", "3"], "unrecognized arguments"),
        (["sibilska2022", "--plot", __file__], "expected a folder"),
        ([], "required: paper"),
        (["--json", "-"], "required: paper"),
        (["all", "--only", "liu2023"], "--only is 'liu2023'"),
        (["all", "--resume", "--fresh"], "not allowed with"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        main(arguments)
    assert "\n" not in str(caught.value)


def test_exit_code_of_a_mistake() -> None:
    command = [sys.executable, "-m", "papers", "sibilska2022", "--broken", "12"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == "error: --broken names joint 12; expected joints from 1 to 9 (nearest: 9)\n"
