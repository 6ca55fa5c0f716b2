"""An evaluation of several trainings, controllers and a row that is shown the faults, and rows of it played again."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from snake_gym.benchmark import evaluate
from snake_gym.config import ConfigError, dump_yaml, load_yaml
from tests.agents.runs import untrained

SJC = {"kind": "sjc", "amplitude_rad": 0.5, "frequency_rad_s": 4.0}
ENV = {"time_limit_s": 4.0, "faults": {"n_max": 2}, "action": {"kind": "residual", "controller": SJC}}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three trainings and their ``results``; the file of the controller is gone."""
    root = tmp_path_factory.mktemp("theirs")
    for seed in (1, 2, 10):
        untrained(root / f"ppo_seed{seed}", ENV, still=seed == 10, seed=seed)
    file = root / "sjc.yaml"
    dump_yaml({"controller": SJC}, file)
    words = ["--policy", f"ppo={root}/ppo_seed*", "--controllers", f"sjc={file}", "--episodes", "6", "--no-pictures"]
    settings = ["resamples=200", "references=[ppo]", f"revealed={{told: {file}}}"]
    assert evaluate.main([*words, "--set", *settings, "--out", str(root / "results")]) == 0
    file.unlink()
    return root


def replay(results: Path, *options: str) -> int:
    return evaluate.main(["--replay", str(results), *options])


def test_trainings_of_one_recipe_are_one_row(theirs: Path) -> None:
    summary = json.loads((theirs / "results" / "results.json").read_text())
    ppo = summary["policies"]["ppo"]
    assert ppo["training_names"] == ["ppo_seed1", "ppo_seed2", "ppo_seed10"]
    assert len(ppo["seed_means"]) == len(ppo["policy"]) == 3
    assert set(ppo["against"]) == {"sjc"} and set(summary["policies"]["sjc"]["against"]) == {"ppo"}
    paths = [str(theirs / f"ppo_seed{i}") for i in (1, 2, 10)]
    assert load_yaml(theirs / "results" / "config.yaml")["policies"]["ppo"] == paths
    rows = list(csv.DictReader((theirs / "results" / "episodes.csv").read_text().splitlines()))
    of_one = [float(row["progress_m"]) for row in rows if row["policy"] == "ppo" and row["training"] == "1"]
    assert len(of_one) == 6 and ppo["seed_means"][1] == pytest.approx(np.mean(of_one))


def test_rows_of_policies_controllers_and_shown_faults_are_equal_and_a_changed_one_is_found(
    theirs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = Path(shutil.copytree(theirs / "results", tmp_path / "results"))
    own = ["--policy", f"ppo={theirs}"]
    assert replay(results, "--rows", "2", *own) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "10 of 10 rows are equal"
    assert len([line for line in lines if line.startswith("ppo seed 1000") and line.endswith(": equal")]) == 6
    head, *rows = (results / "episodes.csv").read_text().splitlines()
    at = head.split(",").index("progress_m")
    cells = rows[4].split(",")
    cells[at] = str(float(cells[at]) + 0.05)
    (results / "episodes.csv").write_text("\n".join([head, *rows[:4], ",".join(cells), *rows[5:]]) + "\n")
    assert replay(results, "--rows", "6", *own) == 1
    text = capsys.readouterr().out
    assert "ppo seed 1000004: not equal, here in brackets: progress_m " in text
    assert "29 of 30 rows are equal" in text


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


def test_the_policy_that_was_played_has_to_be_given(theirs: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"policy ppo of .*results is missing: give --policy ppo=PATH"):
        replay(theirs / "results")
    with pytest.raises(ConfigError, match=r"another policy than ppo of .*, by its digest"):
        replay(theirs / "results", "--policy", f"ppo={untrained(tmp_path / 'another', ENV, seed=5)}")
