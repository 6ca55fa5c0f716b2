"""The ROS 2 examples without ROS: the node on a stub of the few calls that it makes, and what drivers are told."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock
from xml.etree import ElementTree

import numpy as np
import pytest

from snake_gym.hardware.calibration.calibration import Calibration, JointCalibration
from snake_gym.robot.catalogue import load_any_robot
from snake_gym.simulation.servo_plant import RobotPlant

ROBOT = str(Path(__file__).parents[2] / "configs/robot/sts3215_chain.yaml")
COUNTS = {
    "feetech": lambda q, p: q / (2.0 * np.pi / 4096) + int(p["offset"]),
    "sts": lambda q, p: int(p["position_center_steps"]) - q / (2.0 * np.pi / 4096),
    "dynamixel": lambda q, p: (q - float(p["[unit info]"].split(",")[-1])) / float(p["[unit info]"].split(",")[1]),
}
"""Servo counts of a position [rad], from the parameters of a joint, as the drivers' sources have it."""


class Node:
    """Stub of a node: nothing is heard or sent, and no timer fires."""

    on_activate = on_deactivate = destroy_timer = lambda *_: None

    def __init__(self, name: str) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return MagicMock()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the calibration of a chain that has mirrored servos; the examples can be imported."""
    kinds = MagicMock(Float64MultiArray=SimpleNamespace, LifecycleNode=Node)
    for name in ("rclpy", "geometry_msgs", "sensor_msgs", "std_msgs", "trajectory_msgs"):
        for part in ("", ".lifecycle", ".signals", ".utilities", ".msg"):
            monkeypatch.setitem(sys.modules, name + part, kinds)
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    joints = [JointCalibration(k + 11, -1 if k % 3 else 1, 2000 + 9 * k, -1.0, 1.1, {}) for k in range(9)]
    Calibration(tuple(joints), "STS3215", 4096).save(tmp_path / "snake.json")
    return tmp_path


@pytest.mark.parametrize("driver", COUNTS)
def test_each_driver_is_told_the_calibration(driver: str, folder: Path) -> None:
    words = [ROBOT, "--driver", driver, "--calibration", str(folder / "snake.json"), "--out", str(folder)]
    import_module("ros2_description").main(words)
    signs = import_module("ros2_policy_node").read_axes(folder / "snake.urdf", 9)
    system = ElementTree.parse(folder / "snake.urdf").find("ros2_control")
    assert system is not None
    holders = system.findall("gpio") or system.findall("joint")
    for k, (name, sign) in enumerate(signs.items()):
        params = {one.get("name", ""): str(one.text) for one in holders[k].iter("param")}
        assert {params.get("id"), params.get("ID"), params.get("motor_id")} == {None, str(k + 11)}
        counts = COUNTS[driver](sign * 0.5, params)
        assert counts == pytest.approx(2000 + 9 * k + (-1 if k % 3 else 1) * 0.5 / (2.0 * np.pi / 4096)), name


def test_the_node_crawls_and_lets_go(folder: Path) -> None:
    ros = import_module("ros2_policy_node")
    import_module("ros2_description").main([ROBOT, "--driver", "sts", "--out", str(folder)])
    words = ["sts3215_chain_locked_joints", "--urdf", str(folder / "snake.urdf"), "--targets", "9,0"]
    node: Any = ros.make_node(ros.parse([*words, "--output", "position"]))
    robot: Any = load_any_robot(ROBOT)
    plant, one, now = RobotPlant(robot), np.ones(9), [100.0]
    node.now_s, sent = lambda: now[0], list[Any]()
    node.out = SimpleNamespace(msg_type=SimpleNamespace, publish=lambda message: sent.append(message.data))
    node.on_activate(None)
    for _ in range(60):
        names = [f"joint_{k + 1}" for k in range(9)][::-1]
        angle, rate = (values[::-1].tolist() for values in (plant.joint_angle(), plant.joint_rate()))
        node.take_joints(SimpleNamespace(name=names, position=angle, velocity=rate))
        x, y, turn = plant.head_pose()
        at = SimpleNamespace(position=SimpleNamespace(x=x, y=y), orientation=SimpleNamespace(x=0, y=0))
        at.orientation.z, at.orientation.w = np.sin(0.5 * turn), np.cos(0.5 * turn)
        node.take_pose(SimpleNamespace(pose=at))
        node.tick()
        plant.advance(0.1, np.array(sent[-1]), one > 0.0, one, 100.0 * one)
        now[0] += 0.1
    assert len(sent) == 60 and x > 2.0
    node.on_deactivate(None)
    np.testing.assert_allclose(sent[-1], angle[::-1])
    now[0] += 1.0
    node.hold()
    node.tick()
    assert len(sent) == 61, "nothing is sent without joint states"
