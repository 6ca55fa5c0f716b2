"""Settings of one task are never taken for those of another."""

from __future__ import annotations

from pathlib import Path

import pytest

from snake_gym.config import ConfigError
from snake_gym.tasks.task_settings import laid_over

WAYPOINTS, FIELD = "SnakeGym/Waypoints-v0", "SnakeGym/ObstacleField-v0"


def test_a_file_is_found_beside_the_package_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = laid_over(WAYPOINTS, "configs/env/locked_joints.yaml", {"faults": {"n_max": 1}})
    assert (shipped["faults"]["n_max"], shipped["faults"]["kinds"], shipped["time_limit_s"]) == (1, ["locked"], 60)
    with pytest.raises(ConfigError, match=r"^configs/env/obstacle_field\.yaml.*field is not a setting"):
        laid_over(WAYPOINTS, "configs/env/obstacle_field.yaml", {})
