"""Settings of the robot that are refused before anything moves: one line that names them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from snake_gym.config import ConfigError, build
from snake_gym.hardware.robot.real_env import RealSnakeEnv
from snake_gym.hardware.robot.run_config import RunConfig, open_loop, plan_run

POLICY = "agents/pretrained/resilient_servo_locked_joints"
SPATIAL = {"robot": "configs/robot/spatial/snake_robot_iii.yaml", "connection": {"servo_model": "SM8524BL"}}
RECKONED = {"servo_model": "SM8524BL", "pose": {"kind": "dead_reckoning"}}
MULTIMODAL = {"kind": "residual", "controller": {"kind": "multimodal", "mode": "SWL"}}


def task(name: str, **more: Any) -> dict[str, Any]:
    return {"task": {"id": f"SnakeGym/{name}-v0", **more}}


@pytest.mark.parametrize(
    ("settings", "fragment"),
    [
        ({"connection": {"port": "/dev/none"}}, "calibration is missing"),
        ({"connection": {"pose": {"kind": "april_tags"}}}, "camera is missing; expected a YAML file"),
        ({"connection": {"period_s": 0.3}}, "period_s is 0.3; expected <= 0.2, the control period"),
        ({"policy": POLICY, "course": {"tracked_point": "head"}}, "expected 'centre', as the policy"),
        ({"policy": POLICY, "action": {"kind": "joint_reference"}}, "action is set, and so is policy"),
        ({"observation": {"privileged": ["true_velocity"]}}, "privileged is [true_velocity]; expected none"),
        (task("PathFollow", faults={}), "task.faults is set, which a real robot's task does not have"),
        (task("PathFollow", reward={"energy": -1.0}), "task.reward.energy is -1; expected 0"),
        (task("ObstacleField"), "task.field.kind is 'pegboard'; expected 'list'"),
        (task("Escape"), "expected 'list': a real robot's map is given"),
        (SPATIAL | task("Terrain"), "expected one kind: the ground"),
        (SPATIAL | {"action": {"kind": "residual", "controller": {"kind": "cc"}}}, "which is for planar robots"),
        (SPATIAL | {"action": MULTIMODAL, "connection": RECKONED}, "planar robots; expected udp_json or april_tags"),
    ],
)
def test_settings_of_the_env(tmp_path: Path, settings: dict[str, Any], fragment: str) -> None:
    connection = {"latch": str(tmp_path / "estop"), **settings.get("connection", {})}
    with pytest.raises(ConfigError, match=re.escape(fragment)) as caught:
        RealSnakeEnv(**{**settings, "connection": connection})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "fragment"),
    [
        ({"policy": "ccc"}, "did you mean 'cc'?"),
        ({"policy": "resilient_servo_loked_joints"}, "did you mean 'resilient_servo_locked_joints'?"),
        ({"policy": "cc", "controller": {"kind": "cpg"}}, "controller.kind is 'cpg'; expected 'cc'"),
        ({"controller": {"tuned": "cc"}, "robot": "resilient"}, "--robot resilient"),
    ],
)
def test_settings_of_a_run(settings: dict[str, Any], fragment: str) -> None:
    config = build(RunConfig, settings, "settings")
    with pytest.raises(ConfigError, match=re.escape(fragment)):
        open_loop(plan_run(config).contract, config)
