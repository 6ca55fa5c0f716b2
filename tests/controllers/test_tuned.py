"""Tuned gaits are found by the robot's name, and say which robot they were tuned on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from snake_gym.config import load_yaml, to_dict
from snake_gym.controllers import resolve_controller, tuning_of
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.presets import PRESETS

ROOT = Path(__file__).parents[2]
ROBOTS = {**PRESETS, "sts3215_chain": load_robot(str(ROOT / "configs" / "robot" / "sts3215_chain.yaml"))}
SHIPPED = [path for name in ROBOTS for path in sorted((ROOT / "configs" / "controllers" / name).glob("*.yaml"))]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_tuned_gait_is_found_by_the_robot_and_the_kind_and_records_its_robot(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    spec = ROBOTS[path.parent.name]
    settings = resolve_controller({"tuned": path.stem}, spec=spec)
    assert settings == resolve_controller(load_yaml(path)["controller"])
    assert "tuned" not in settings and "file" not in settings
    recorded = load_yaml(path)["tuning"]
    assert recorded["robot"] == to_dict(spec), "retune, or the gaits play on another robot than they were tuned on"
    assert recorded["env_id"] == f"SnakeGym/{'PathFollow' if path.stem == 'speed' else 'Waypoints'}-v0"
    tuning = tuning_of({"tuned": path.stem}, spec)
    assert tuning is not None and tuning.robot_note(spec) is None
    changed = replace(spec, free_joint_damping_nms_rad=0.3)
    note = f"plays on a changed {spec.name}: free_joint_damping_nms_rad 0.3 for {spec.free_joint_damping_nms_rad:g}"
    assert tuning.robot_note(changed) == note
