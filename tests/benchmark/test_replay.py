"""Rows of an evaluation are played again and compared."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from snake_gym.benchmark import evaluate
from snake_gym.config import ConfigError, dump_yaml
from tests.agents.runs import untrained

ENV = {"time_limit_s": 4.0, "faults": {"n_max": 2}}
ACTION = {"kind": "residual", "controller": {"kind": "sjc", "amplitude_rad": 0.5, "frequency_rad_s": 4.0}}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a policy and results, ``results``; the files of the controllers are gone."""
    root = tmp_path_factory.mktemp("theirs")
    policy = untrained(root / "policy", {**ENV, "action": ACTION})
    for kind in ("sjc", "cc"):
        dump_yaml({"controller": {"kind": kind, "amplitude_rad": 0.5, "frequency_rad_s": 4.0}}, root / f"{kind}.yaml")
    controllers = f"sjc={root}/sjc.yaml,cc={root}/cc.yaml"
    evaluate.main(["--policy", f"mine={policy}", "--controllers", controllers, "--episodes", "12", "--set",
                   "resamples=200", "--no-pictures", "--out", str(root / "results")])  # fmt: skip
    for kind in ("sjc", "cc"):
        (root / f"{kind}.yaml").unlink()
    return root


@pytest.fixture
def results(theirs: Path, tmp_path: Path) -> Path:
    """A copy of the results that may be changed."""
    return Path(shutil.copytree(theirs / "results", tmp_path / "results"))


@pytest.fixture
def own(theirs: Path) -> list[str]:
    """The option that gives the policy."""
    return ["--policy", f"mine={theirs}/policy"]


def replay(results: Path, *options: str) -> int:
    return evaluate.main(["--replay", str(results), *options])


def test_rows_of_policies_and_controllers_are_equal(
    results: Path, own: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(results, "--rows", "3", *own) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "9 of 9 rows are equal"
    assert len([line for line in lines if line.startswith("mine seed 1000") and line.endswith(": equal")]) == 3


def test_a_row_that_was_changed_is_found(results: Path, own: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with (results / "episodes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["policy"] == "mine" and row["seed"] == "1000004":
            row["progress_m"] = str(float(row["progress_m"]) + 0.05)
    with (results / "episodes.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    assert replay(results, "--rows", "12", *own) == 1
    text = capsys.readouterr().out
    assert "mine seed 1000004: not equal, here in brackets: progress_m " in text
    assert "35 of 36 rows are equal" in text


def test_a_row_is_played_among_as_many_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Products with a matrix of one row are rounded otherwise; here the policy itself depends on the number of rows."""
    code = "def predict(self, obs, *a, **k): return np.full((len(obs), 9), 0.01 * len(obs)), None"
    (tmp_path / "mine.py").write_text(f"import numpy as np\nclass P:\n    {code}\ndef make(env): return P()\n")
    own = ["--policy", f"mine={tmp_path}/mine.py:make"]
    dump_yaml({"time_limit_s": 2.0}, tmp_path / "env.yaml")
    evaluate.main([*own, "--env", str(tmp_path / "env.yaml"), "--controllers", "none", "--episodes", "12", "--set",
                   "resamples=200", "--no-pictures", "--out", f"{tmp_path}/out"])  # fmt: skip
    assert replay(tmp_path / "out", "--rows", "2", *own) == 0
    assert "2 of 2 rows are equal" in capsys.readouterr().out


def test_the_policy_that_was_played_has_to_be_given(results: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"policy mine of .*results is missing: give --policy mine=PATH"):
        replay(results)
    untrained(tmp_path / "another", {**ENV, "action": ACTION}, still=True)
    with pytest.raises(ConfigError, match="another is another policy than mine of"):
        replay(results, "--policy", f"mine={tmp_path}/another")
