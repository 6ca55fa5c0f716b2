"""``python -m papers``: options, the record and the page of a study, and all studies one after the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from papers.record import Record, plain, rerun
from papers.study import Claim, Finding, Study, Table, claim, compare, figure, grade_built

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


def draw(canvas: Canvas, speed: float) -> None:
    axes = canvas.add_subplot()
    axes.plot([0.0, 1.0], [0.0, speed], label="line")
    axes.set(xlabel="time [s]", ylabel="way [m]")


@claim("The speed is 1 m/s", "eq. 1", 1.0, "m/s", 0.03)
def speed_claim(speed: float) -> Finding:
    return Finding(None, measured=speed)


def run_small(quick: bool, advance: Any) -> float:
    advance(0.5, "halfway")
    return 1.05 if quick else 1.2


SMALL: Study[float] = Study(
    name="wang",
    title="A study of nothing",
    citation="Nobody & Co. (2022)",
    experiment=run_small,
    claims=(
        speed_claim,
        lambda speed: [
            Claim("It turns | turns", "Fig. 2", "partly", note="three of four times"),
            Claim("It was built to hold", "Fig. 3", grade_built(True)),
            compare("The angle is 2 rad", "Table 3", 2.0, float("nan"), "rad", 0.1),
        ],
    ),
    tables=(
        lambda speed: Table("rows", "Some rows", ["name", "way [m]"], [["a", 1.5], ["b", float("inf")]], "A note."),
    ),
    figures=(figure("line", "A line, in metres & seconds.", draw, (4.0, 2.5)),),
    data=lambda speed: {"seed": np.int64(3), "course": np.array([1.0, np.nan])},
)


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return rerun(SMALL, True, tmp_path)


def test_a_record_is_strict_json_with_everything_in_it(record: Record, tmp_path: Path) -> None:
    text = (tmp_path / "outcome.json").read_text()
    assert json.loads(text, parse_constant=lambda name: pytest.fail(name)) == record
    assert [claim["verdict"] for claim in record["claims"]] == ["partly", "partly", "by construction", "not"]
    assert record["claims"][0]["deviation"] == pytest.approx(0.05) and record["claims"][3]["measured"] is None
    assert record["data"] == {"seed": 3, "course": [1.0, None]}
    assert record["command"] == "python -m papers wang --quick"
    assert record["tables"][0]["rows"] == [["a", 1.5], ["b", None]]
    assert (tmp_path / record["figures"][0]["file"]).read_bytes().startswith(b"\x89PNG")
    assert plain({1: Path("a"), "t": (True, None, -float("inf"))}) == {"1": "a", "t": [True, None, None]}
