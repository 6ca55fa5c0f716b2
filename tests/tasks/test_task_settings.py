"""Settings of one task are never taken for those of another."""

from __future__ import annotations

from pathlib import Path

import pytest

from snake_gym.config import ConfigError, apply_overrides, build
from snake_gym.envs import WaypointsConfig
from snake_gym.tasks.task_settings import changed_assignments, laid_over, scenario_settings

WAYPOINTS, FIELD = "SnakeGym/Waypoints-v0", "SnakeGym/ObstacleField-v0"


def test_a_file_is_found_beside_the_package_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = laid_over(WAYPOINTS, "configs/env/locked_joints.yaml", {"faults": {"n_max": 1}})
    assert (shipped["faults"]["n_max"], shipped["faults"]["kinds"], shipped["time_limit_s"]) == (1, ["locked"], 60)
    with pytest.raises(ConfigError, match=r"^configs/env/obstacle_field\.yaml.*field is not a setting"):
        laid_over(WAYPOINTS, "configs/env/obstacle_field.yaml", {})


def test_changed_settings_as_assignments_make_the_same_scenarios() -> None:
    config = build(WaypointsConfig, {
        "time_limit_s": 30,
        "faults": {"joints": [2, 4], "kinds": ["locked", "free"], "duration_s": 5, "onset_max_s": 1.5},
        "course": {"kind": "list", "targets": [[1, 0], [2, 1.5]]}, "sensors": {"encoder_faults": {"n_max": 1}},
    })  # fmt: skip
    read = apply_overrides({}, changed_assignments(config))["env"]
    assert scenario_settings(build(WaypointsConfig, read)) == scenario_settings(config)
    assert changed_assignments(WaypointsConfig()) == []
