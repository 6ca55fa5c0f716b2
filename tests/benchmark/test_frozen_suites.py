"""A benchmark's file that is frozen says when its scenarios are others; its rows beside policies and controllers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_gym.benchmark import evaluate
from snake_gym.benchmark.runner import play
from snake_gym.benchmark.scenarios import BenchmarkConfig, make_scenarios
from snake_gym.config import ConfigError, dump_yaml, load_yaml


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    gait = {"kind": "cc", "amplitude_rad": 0.5, "frequency_rad_s": 4.0}
    dump_yaml({"controller": gait}, tmp_path / "cc.yaml")
    text = f"# what it is for\nepisodes: 3\ncontrollers: [cc={tmp_path}/cc.yaml]\n"
    text += "resamples: 200\nenv: {time_limit_s: 2.0}\n"
    (tmp_path / "suite.yaml").write_text(text)
    return tmp_path / "suite.yaml"


def run(suite: Path, *arguments: Any) -> int:
    out = suite.parent / "out"
    return evaluate.main([str(each) for each in ("--config", suite, "--no-pictures", "--out", out, *arguments)])


def test_freezing_writes_the_hash_of_the_results_and_nothing_else(suite: Path, capsys: Any) -> None:
    before = f"{suite.read_text()}policies: {{mine: runs/that/nobody/has}}\n"
    suite.write_text(before)
    assert evaluate.main(["--config", str(suite), "--freeze"]) == 0
    found = load_yaml(suite)["scenarios"]
    assert suite.read_text() == f"{before}scenarios: {found}\n"
    assert found in capsys.readouterr().out
    assert run(suite, "--classical-only") == 0
    assert json.loads((suite.parent / "out" / "results.json").read_text())["scenarios"] == found
    suite.write_text(suite.read_text().replace("time_limit_s: 2.0", "time_limit_s: 3.0"))
    assert evaluate.main(["--config", str(suite), "--freeze"]) == 0
    assert load_yaml(suite)["scenarios"] != found
    assert suite.read_text().count("scenarios:") == 1


def test_a_file_with_other_scenarios_is_an_error_and_other_options_a_note(suite: Path, capsys: Any) -> None:
    assert evaluate.main(["--config", str(suite), "--freeze"]) == 0
    capsys.readouterr()
    assert run(suite, "--set", "resamples=300", "env.reward.progress=3", "env.n_threads=1") == 0
    assert "another benchmark" not in capsys.readouterr().err
    heavy = "robot={preset: resilient_servo, link_mass_kg: 2.0}"
    for other in (["--episodes", "2"], ["--set", "env.faults.n_max=1"], ["--seed", "7"], ["--set", heavy]):
        assert run(suite, *other) == 0
        assert "another benchmark" in capsys.readouterr().err
        results = json.loads((suite.parent / "out" / "results.json").read_text())
        assert results["config"]["scenarios"] is None
        assert run(suite.parent / "out" / "config.yaml") == 0
    suite.write_text(suite.read_text().replace("time_limit_s: 2.0", "time_limit_s: 1.0"))
    for options in ((), ("--set", "resamples=300"), ("--seed", "7")):
        with pytest.raises(ConfigError, match=r"suite\.yaml stands for scenarios .* --freeze .* scenarios=null"):
            run(suite, *options)
    assert run(suite, "--set", "scenarios=null") == 0


def test_a_row_that_is_shown_the_failed_joints_plays_by_them(suite: Path, tmp_path: Path) -> None:
    dump_yaml({"controller": {"kind": "fault_aware", "amplitude_rad": 0.5}}, tmp_path / "fa.yaml")
    config = BenchmarkConfig(
        episodes=3, env={"time_limit_s": 6.0, "faults": {"n_min": 2, "n_max": 2}},
        controllers=(f"blind={tmp_path}/fa.yaml",), revealed={"told": f"{tmp_path}/fa.yaml"},
    )  # fmt: skip
    scenarios = make_scenarios(config)
    entrants = evaluate.make_entrants(config, scenarios)
    assert [entrant.kind for entrant in entrants] == ["classical", "reference"]
    found = {entrant.name: play(entrant, scenarios).columns["progress_m"] for entrant in entrants}
    assert np.abs(found["told"] - found["blind"]).max() > 1e-6, "it is told of failures before it can have seen them"
