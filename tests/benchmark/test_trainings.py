"""Several trainings of one recipe: found, played, one row, and checked by somebody else."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from snake_gym.benchmark import evaluate
from snake_gym.benchmark.policies import training_names, training_paths
from snake_gym.config import load_yaml
from tests.agents.runs import untrained

SHORT = {"time_limit_s": 2.0, "action": {"kind": "residual"}}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of three runs of one recipe."""
    root = tmp_path_factory.mktemp("runs")
    for seed in (2, 10, 1):
        untrained(root / f"ppo_seed{seed}", SHORT, still=seed == 10, seed=seed)
    return root


def test_a_glob_and_a_folder_stand_for_the_runs_in_the_order_of_their_numbers(runs: Path) -> None:
    expected = tuple(str(runs / f"ppo_seed{seed}") for seed in (1, 2, 10))
    assert training_paths("ppo", str(runs / "ppo_seed*")) == expected
    assert training_paths("ppo", str(runs)) == expected
    assert training_paths("ppo", expected[:2]) == expected[:2]
    assert training_paths("ppo", expected[0]) == expected[:1]
    assert training_paths("ppo", "model.zip+stats.pkl") == ("model.zip+stats.pkl",)
    checkpoints = runs / "ppo_seed1" / "checkpoints"
    (checkpoints / "step_1" / "policy").mkdir(parents=True)
    (checkpoints / "step_1" / "policy" / "policy.json").touch()
    assert training_paths("ppo", str(checkpoints)) == (str(checkpoints),)  # refused as no policy: no trainings
    assert training_names(expected) == ["ppo_seed1", "ppo_seed2", "ppo_seed10"]
    assert training_names(["a/best", "b/best"]) == ["a/best", "b/best"]


def test_a_recipe_from_the_command_line_to_the_check(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    evaluate.main(["--policy", f"ppo={runs}/ppo_seed*", "--controllers", "cc", "--episodes", "4", "--set",
                   "resamples=200", "references=[ppo]", "--no-pictures",
                   "--out", str(out)])  # fmt: skip
    told = capsys.readouterr().out
    assert "ppo (3 seeds)" in told and "ppo_seed10" in told
    summary = json.loads((out / "results.json").read_text())
    policy = summary["policies"]["ppo"]
    assert policy["training_names"] == ["ppo_seed1", "ppo_seed2", "ppo_seed10"]
    assert len(policy["seed_means"]) == len(policy["policy"]) == 3
    assert set(policy["against"]) == {"cc"} and set(summary["policies"]["cc"]["against"]) == {"ppo"}
    assert load_yaml(out / "config.yaml")["policies"]["ppo"] == [str(runs / f"ppo_seed{i}") for i in (1, 2, 10)]
    rows = list(csv.DictReader((out / "episodes.csv").read_text().splitlines()))
    assert len(rows) == (3 + 1) * 4
    of_one = [float(row["progress_m"]) for row in rows if row["policy"] == "ppo" and row["training"] == "1"]
    assert policy["seed_means"][1] == pytest.approx(np.mean(of_one))
    assert evaluate.main(["--replay", str(out), "--rows", "3", "--policy", f"ppo={runs}"]) == 0
    assert "12 of 12 rows are equal" in capsys.readouterr().out
