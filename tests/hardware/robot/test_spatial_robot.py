"""Snake Robot III behind 28 emulated servos: the same env, gaits and bytes as any other robot's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import snake_gym  # noqa: F401  registers
from snake_gym.config import build, load_yaml
from snake_gym.emulator.emulate import mounted_at_random
from snake_gym.emulator.robot import emulate
from snake_gym.hardware.calibration.calibration import straight_chain
from snake_gym.hardware.calibration.procedures import Side
from snake_gym.hardware.commands.calibrate import calibrate
from snake_gym.hardware.robot.run_config import RunConfig
from snake_gym.robot.measurement import Measurement
from snake_gym.spatial.kinematics import base_frame
from snake_gym.spatial.spec import load_spatial_robot
from tests.hardware.rig import Movable

pytest.importorskip("mujoco")
ROOT = Path(__file__).parents[3]
ROBOT = "configs/robot/spatial/snake_robot_iii.yaml"
III = load_spatial_robot(ROBOT)
REAL = {
    "robot": ROBOT, "course": {"targets": [[50.0, 0.0]]},
    "safety": {"min_voltage_v": 20.0, "max_voltage_v": 25.2},
}  # fmt: skip


def action(mode: str, omega: float) -> dict[str, Any]:
    return {"kind": "residual", "controller": {"kind": "multimodal", "mode": mode, "frequency_rad_s": omega}}


def travel(env: Any, seconds: float) -> np.ndarray:
    """Way of the centre of mass (2,) [m] with the gait alone."""
    part = env.unwrapped.core if hasattr(env.unwrapped, "core") else env.unwrapped.loop
    env.reset(seed=0)
    begin = part.measurement.centre_xy_w[0].copy()
    for _ in range(round(seconds / III.control_dt_s)):
        *_, info = env.step(np.zeros(28, np.float32))
        assert not info.get("stop_reason")
    end = part.measurement.centre_xy_w[0].copy()
    env.close()
    return np.asarray(end - begin)


def test_a_gait_gets_as_far_through_the_bus_as_in_the_simulated_env(tmp_path: Path) -> None:
    seconds, gait = 10.0, action("SWL", 1.0)
    simulated = gym.make(
        "SnakeGym/SpatialWaypoints-v0", robot=ROBOT, action=gait, time_limit_s=30.0,
        faults={"n_max": 0}, start={"amplitude_rad": 0.0, "random": False},
        course={"kind": "list", "targets": [[50.0, 0.0]]},
    )  # fmt: skip
    connection = {"servo_model": "SM8524BL", "latch": str(tmp_path / "estop")}
    real = gym.make("SnakeGym/Real-v0", **REAL, action=gait, connection=connection, time_limit_s=30.0)
    expected, made = travel(simulated, seconds), travel(real, seconds)
    assert np.hypot(*expected) > 0.04 * seconds
    np.testing.assert_allclose(made, expected, atol=0.15 * np.hypot(*expected))


def test_the_base_frame_follows_from_direction_and_vertical() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        angles = [*rng.uniform(-1.4, 1.4, 2), rng.uniform(-np.pi, np.pi)]
        rotation = Rotation.from_euler("xyz", angles).as_matrix()
        origin = rng.normal(size=3)
        ahead = -rotation[:, 1]
        middle = origin + 0.5 * III.head_length_m * ahead
        seen = Measurement(
            np.zeros((1, 28)), np.zeros((1, 28)), middle[None, :2], np.array([np.arctan2(ahead[1], ahead[0])]),
            np.ones(1, bool), head_up_h=rotation[2][None], head_z_w=middle[None, 2],
        )  # fmt: skip
        turn, place = base_frame(III, seen)
        np.testing.assert_allclose(turn[0], rotation, atol=1e-9)
        np.testing.assert_allclose(place[0], origin, atol=1e-9)


class Onlooker:
    """A guide who looks at the true robot: at yaw joints for its side, at pitch joints for what lies behind them."""

    def __init__(self, plant: Any) -> None:
        self.plant = plant

    def say(self, line: str) -> None: ...

    def straighten(self) -> None: ...

    def come_back(self, joint: int, servo_id: int) -> None: ...

    def look(self, joint: int, servo_id: int) -> Side:
        if III.axes()[servo_id - 1] == "yaw":
            return "right" if self.plant.joint_angle()[servo_id - 1] > 0.0 else "left"
        turns = [self.plant.data.body(f"link_{n}").xquat for n in (servo_id, servo_id + 1)]
        behind, ahead = (Rotation.from_quat(turn, scalar_first=True).apply([1.0, 0.0, 0.0])[2] for turn in turns)
        return "right" if behind < ahead else "left"  # x of each link points to the tail


def test_a_robot_that_is_held_up_is_calibrated(tmp_path: Path) -> None:
    truth = mounted_at_random(straight_chain(range(1, 29), 1.2, "SM8524BL"), 4)
    config = build(RunConfig, load_yaml("configs/hardware/snake_robot_iii.yaml"), "config").connection
    servos = emulate(config, III, truth, None)
    driver = Movable(servos.host_transport(), clock=servos.clock)
    ids, guide = [1, 2, 15, 16, 27, 28], Onlooker(servos.plant)
    servos.plant.lift()
    found = calibrate(driver, ids, guide, "SM8524BL", limit_rad=1.0)  # type: ignore[arg-type]
    assert found.direction.tolist() == truth.direction[[one - 1 for one in ids]].tolist()
    steps = driver.read_block(ids, "present_position").values
    at = np.array([steps[one]["present_position"] for one in ids], dtype=float)  # type: ignore[index]
    np.testing.assert_allclose(found.angles(at), servos.plant.joint_angle()[[one - 1 for one in ids]], atol=0.01)
    servos.plant.lift(False)
    assert servos.plant.head_pose()[3] < 0.2
