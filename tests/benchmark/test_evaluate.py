"""``evaluate.py`` from the command line to the files it leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from snake_gym.benchmark import evaluate
from snake_gym.config import dump_yaml

ROOT = Path(__file__).parents[2]


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """A small benchmark of two classical controllers."""
    for kind in ("sjc", "cc"):
        gait = {"kind": kind, "amplitude_rad": 0.5, "frequency_rad_s": 4.0}
        dump_yaml({"controller": gait}, tmp_path / f"{kind}.yaml")
    config = {
        "episodes": 12,
        "controllers": [f"sjc={tmp_path}/sjc.yaml", f"cc={tmp_path}/cc.yaml"],
        "resamples": 200,
        "env": {"time_limit_s": 4.0, "faults": {"n_max": 2}},
    }
    dump_yaml(config, tmp_path / "small.yaml")
    return tmp_path / "small.yaml"


def run(*arguments: Any) -> int:
    return evaluate.main([str(argument) for argument in arguments])


def test_a_comparison_leaves_its_files(settings: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "results"
    assert run("--config", settings, "--out", out) == 0
    files = {path.name for path in out.iterdir()}
    assert files == {
        "config.yaml", "episodes.csv", "paired_scenarios.png",
        "progress_by_faults.png", "progress_over_time.png", "replay.gif", "replay.html", "results.json",
    }  # fmt: skip
    results = json.loads((out / "results.json").read_text())
    assert set(results["policies"]) == {"sjc", "cc"}
    assert results["notes"] == []
    assert results["config"]["env"]["time_limit_s"] == 4.0
    assert results["policies"]["cc"]["controller"]["amplitude_rad"] == 0.5
    assert "numpy" in results["versions"]
    head, *rows = ((out / "episodes.csv").read_text()).splitlines()
    assert len(rows) == 24
    at = head.split(",").index("progress_m")
    table = {(row.split(",")[0], round(float(row.split(",")[at]) * 1000)) for row in rows}
    page = (out / "replay.html").read_text()
    data = json.loads(page.split('<script type="application/json" id="data">')[1].split("</script>")[0])
    shown = {(policy["name"], policy["progress_mm"][-1]) for scene in data["scenes"] for policy in scene["policies"]}
    assert len(data["scenes"]) == 3 and shown <= table
    assert (out / "replay.gif").stat().st_size < 2_000_000
