"""The tuned gait below a residual: found by the robot, written out, and noted where it is not at home."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from snake_gym.agents import command
from snake_gym.agents.config import read_settings

from snake_gym.config import load_yaml
from snake_gym.controllers import resolve_controller
from snake_gym.interface.policy_file import load_policy
from snake_gym.robot.catalogue import load_robot
from tests.agents.runs import PPO

ROOT = Path(__file__).parents[2]
HOME = "configs/env/locked_joints.yaml"


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    settings = {
        "env_file": HOME, "env": {"action": {"kind": "residual", "controller": {"tuned": "cc"}}, "n_threads": 1},
        "algorithm": PPO, "n_envs": 16, "total_steps": 128, "eval": {"every_steps": None, "episodes": 4},
    }  # fmt: skip
    path.write_text(yaml.safe_dump(settings))
    return path


def test_the_settings_are_written_out(config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    changes = ["--set", "env.time_limit_s=4", "--set", "env.robot={preset: resilient_servo, link_mass_kg: 1.5}"]
    assert command.main(["--config", str(config_file), "--run-dir", str(run), "--quiet", *changes]) == 0
    expected = load_yaml(ROOT / "configs/controllers/resilient_servo/cc.yaml")["controller"]
    assert load_yaml(run / "config.yaml")["env"]["action"]["controller"] == expected
    assert load_policy(run).env_config["action"]["controller"] == expected
    told = [
        "env.action.controller: plays on a changed resilient_servo: link_mass_kg 1.5 for 1",
        "env.action.controller: tuned in other scenarios: time_limit_s 4 for 60",
    ]
    assert json.loads((run / "run.json").read_text())["launches"][0]["notes"] == told
    text = capsys.readouterr().err
    assert all(f"note: {note}" in text for note in told)


@pytest.mark.parametrize("file", sorted((ROOT / "configs/train").glob("*.yaml")), ids=lambda file: file.stem)
def test_shipped_trainings_take_the_gait_of_their_robot_and_task(file: Path) -> None:
    config, notes = read_settings(file)
    base = load_yaml(file)["env"]["action"].get("controller")
    if base is None:
        pytest.skip("its policy commands the joints itself")
    tuned = base.get("file") or f"configs/controllers/{load_robot(config.env['robot']).name}/{base['tuned']}.yaml"
    expected = resolve_controller(load_yaml(ROOT / tuned)["controller"])
    assert config.env["action"]["controller"].items() >= expected.items()
    # The gait of sts3215 was tuned in a world that varies less than that of its training.
    # Gaits do not see the further target of lookahead.
    told = ["env.action.controller: tuned in other scenarios"] if file.stem in ("sts3215", "lookahead") else []
    assert [": ".join(note.split(": ")[:2]) for note in notes] == told
