"""Records of studies: what is saved, and when a saved one is used again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from papers import outcome_record, rerun
from papers.outcome_record import claim_of, is_current, load_record, plain
from papers.rerun import rerun_into
from tests.papers.outcomes import SmallStudy


def test_a_record_is_strict_json_with_everything_in_it(tmp_path: Path) -> None:
    study = SmallStudy()
    record, before = rerun_into(tmp_path, study, ["--quick", "--speed", "1.05"], fresh=False)
    assert not before and study.runs == 1
    text = (tmp_path / "outcome.json").read_text()
    assert json.loads(text, parse_constant=lambda name: pytest.fail(name)) == record
    assert [claim["verdict"] for claim in record["claims"]] == ["partly", "partly", "not"]
    assert record["claims"][0]["deviation"] == pytest.approx(0.05) and record["claims"][2]["measured"] is None
    assert record["settings"] == {"quick": True, "speed": 1.05} and record["data"] == {"seed": 3, "course": [1.0, None]}
    assert record["command"] == "python -m papers small --quick --speed 1.05"
    assert record["tables"][0]["rows"] == [["a", 1.5], ["b <c>", None], ["d", None]]
    assert (tmp_path / record["figures"][0]["file"]).read_bytes().startswith(b"\x89PNG")
    assert claim_of(record["claims"][0]).deviation == pytest.approx(0.05)


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    study = SmallStudy()
    first, _ = rerun_into(tmp_path, study, [], fresh=False)
    again, before = rerun_into(tmp_path, study, [], fresh=False)
    assert before and again == first and study.runs == 1
    assert not rerun_into(tmp_path, study, ["--speed", "2"], fresh=False)[1]
    assert not rerun_into(tmp_path, study, ["--speed", "2"], fresh=True)[1]
    assert study.runs == 3


@pytest.mark.parametrize("damage", ["half a file", "no figure", "another program"])
def test_what_is_damaged_is_done_again(tmp_path: Path, damage: str) -> None:
    study = SmallStudy()
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


def test_other_code_or_libraries_make_a_record_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record, _ = rerun_into(tmp_path, SmallStudy(), [], fresh=False)
    assert is_current(record, record["settings"])
    with monkeypatch.context() as patch:
        patch.setattr(outcome_record, "source_digest", lambda paper: "0" * 16)
        assert not is_current(record, record["settings"])
    with monkeypatch.context() as patch:
        patch.setattr(outcome_record, "versions", lambda: {"numpy": "0.1"})
        assert not is_current(record, record["settings"])


def test_an_interrupted_run_leaves_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(rerun, "save_record", stop)
    with pytest.raises(KeyboardInterrupt):
        rerun_into(tmp_path, SmallStudy(), [], fresh=False)
    assert load_record(tmp_path) is None and (tmp_path / "line.png").exists()


def test_plain_types() -> None:
    assert plain({1: {2.0, 1.0}, "p": Path("a"), "t": (True, None, -float("inf"))}) == {
        "1": [1.0, 2.0],
        "p": "a",
        "t": [True, None, None],
    }


def test_the_digest_is_of_the_code_behind_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the sources, edited file by file."""
    for name in (
        "snake_gym/__init__",
        "snake_gym/physics/chain",
        "papers/dynamics",
        "papers/report",
        "papers/liu2024/study",
        "papers/wang",
    ):
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a = 1\n")
    monkeypatch.setattr(outcome_record.snake_gym, "__file__", str(tmp_path / "snake_gym" / "__init__.py"))
    monkeypatch.setattr(outcome_record.papers, "__file__", str(tmp_path / "papers" / "__init__.py"))
    digest = outcome_record.source_digest.__wrapped__
    before = digest("liu2024")
    for name, matters in (("papers/report", False), ("papers/wang", False), ("papers/liu2024/study", True)):
        (tmp_path / f"{name}.py").write_text("a = 2\n")
        assert (digest("liu2024") != before) == matters, name
    now = digest("liu2024")
    (tmp_path / "snake_gym/physics/chain.py").write_text("a = 2\n")
    assert digest("liu2024") != now
