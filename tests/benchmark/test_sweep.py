"""Sweeps: every combination once, each with its own settings, side by side in one table."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import evaluate
from snake_gym.benchmark.scenarios import BenchmarkConfig
from snake_gym.benchmark.sweep import combinations, sweep_csv, sweep_rows
from snake_gym.config import ConfigError, build, dump_yaml, load_yaml

ROOT = Path(__file__).parents[2]
SWEEP = {
    "difficulty": {"keys": ["env.field.difficulty"], "values": [0.0, 1.0]},
    "locked joints": {"keys": ["env.faults.n_min", "env.faults.n_max"], "values": [0, 2]},
}


def config(**changes: Any) -> BenchmarkConfig:
    settings = {"env_id": "SnakeGym/ObstacleField-v0", "env": {"time_limit_s": 4.0}, "sweep": SWEEP, **changes}
    return build(BenchmarkConfig, settings)


def test_every_combination_is_made_once_and_the_rest_is_kept() -> None:
    made = combinations(config())
    assert [tuple(one.values.values()) for one in made] == [(0.0, 0), (0.0, 2), (1.0, 0), (1.0, 2)]
    assert len({one.folder for one in made}) == 4
    for one in made:
        env = one.config.env
        assert env["field"]["difficulty"] == one.values["difficulty"]
        assert env["faults"]["n_min"] == env["faults"]["n_max"] == one.values["locked joints"]
        assert env["time_limit_s"] == 4.0 and not one.config.sweep


def test_rows_and_text_say_the_same() -> None:
    made = combinations(config())[:2]
    summaries = [
        {"policies": {"cc": {"success": share, "success_ci95": [share - 0.1, share + 0.1], "mean": 2.0, "ci95": None}}}
        for share in (0.5, 0.25)
    ]
    rows = sweep_rows(made, summaries)
    assert [(row["locked joints"], row["policy"], row["success"]) for row in rows] == [(0, "cc", 0.5), (2, "cc", 0.25)]
    lines = list(csv.DictReader(sweep_csv(rows).splitlines()))
    assert [float(line["success_ci95_low"]) for line in lines] == pytest.approx([0.4, 0.15])


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match="sweep is empty; expected at least one axis"):
        combinations(config(sweep={}))
    with pytest.raises(ConfigError, match="expected at least one of each"):
        config(sweep={"x": {"keys": [], "values": [1]}})
    with pytest.raises(ConfigError, match="difficulti is not a setting; did you mean 'difficulty'"):
        evaluate.main(["--sweep", "--set", "sweep={x: {keys: [env.field.difficulti], values: [0]}}", *FIELD])
    with pytest.raises(ConfigError, match="epizodes is not a setting; did you mean 'episodes'"):
        combinations(config(sweep={"x": {"keys": ["epizodes"], "values": [1]}}))


FIELD = ["--config", str(ROOT / "configs/benchmark/obstacle_field.yaml")]


def test_a_sweep_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump_yaml({"controller": {"kind": "cc", "amplitude_rad": 0.5, "frequency_rad_s": 4.0}}, tmp_path / "cc.yaml")
    settings = load_yaml(Path(FIELD[1])) | {"controllers": [f"cc={tmp_path}/cc.yaml"], "episodes": 4, "resamples": 200}
    settings["env"] = {"time_limit_s": 2.0}
    settings["scenarios"] = None  # shorter ones than those it is frozen to
    settings["sweep"]["difficulty"]["values"] = [0.0]
    dump_yaml(settings, tmp_path / "field.yaml")
    arguments = ["--config", str(tmp_path / "field.yaml"), "--sweep", "--no-pictures", "--out", str(tmp_path / "out")]
    assert evaluate.main(arguments) == 0
    written = json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert [row["locked joints"] for row in written["rows"]] == [0, 2]
    for row in written["rows"]:
        folder = tmp_path / "out" / f"difficulty={row['difficulty']:g},locked_joints={row['locked joints']}"
        alone = json.loads((folder / "results.json").read_text())
        assert alone["policies"]["cc"]["success"] == row["success"]
        assert set(alone["policies"]["cc"]["by_faults"]) == {str(row["locked joints"])}
    assert "locked joints" in capsys.readouterr().out
