"""Servos that act late, noise on what they and the pose source tell, and another robot behind them: on the wire."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pytest

from snake_gym.emulator.bus import EmulatedBus, FirstOrderPlant
from snake_gym.emulator.pose import EmulatedPose
from snake_gym.emulator.servo import EmulatedServo, Imprecision
from snake_gym.hardware.robot.connection import EmulatedConfig
from snake_gym.plugins import load_object
from snake_gym.robot.catalogue import load_robot
from tests.hardware.raw_driver import RawDriver
from tests.hardware.rig import serve

GOAL, POSITION = 42, 56
CHAIN = str(Path(__file__).parents[2] / "configs/robot/sts3215_chain.yaml")


def test_a_late_servo_moves_so_much_later_and_only_then() -> None:
    servos = [EmulatedServo(1), EmulatedServo(2)]
    servos[1].imprecision = Imprecision(delay_s=0.3)
    with serve(servos) as port, RawDriver(port.port) as raw:
        moved_s = {}
        for one in (1, 2):
            raw.write(one, GOAL, 2048, 2)
            raw.until(lambda one=one: raw.read(one, POSITION, 2), lambda at: at == 2048)
            time.sleep(0.4)
            raw.write(one, GOAL, 2300, 2)
            sent_s = time.monotonic()
            raw.until(lambda one=one: raw.read(one, POSITION, 2), lambda at: at > 2060)
            moved_s[one] = time.monotonic() - sent_s
            assert raw.until(lambda one=one: raw.read(one, POSITION, 2), lambda at: at == 2300) == 2300
    assert moved_s[2] >= 0.25, "it cannot have moved before"
    assert moved_s[1] < moved_s[2], "the other one does at once"


def test_a_late_pose_is_where_the_robot_was() -> None:
    class Runaway(FirstOrderPlant):
        def head_pose(self) -> tuple[float, float, float]:
            return 2.0 * now, -now, 3.0 + now

    now, bus = 0.0, EmulatedBus([EmulatedServo(1)], Runaway(1))
    pose = EmulatedPose(bus, EmulatedConfig(pose_delay_s=0.25))
    for now in 0.1 * np.arange(11):
        seen = pose.read(now)
    assert seen.stamp_s == pytest.approx(0.75)
    np.testing.assert_allclose([*seen.xy_w, seen.angle], [1.5, -0.75, 3.75], atol=1e-9)
    noisy = EmulatedPose(EmulatedBus([EmulatedServo(1)]), EmulatedConfig(position_noise_m=0.01, heading_noise_rad=0.1))
    told = np.array([[*one.xy_w, one.angle] for one in (noisy.read(0.0) for _ in range(2000))])
    np.testing.assert_allclose(told.std(axis=0), [0.01, 0.01, 0.1], rtol=0.1)


@pytest.mark.slow  # a part of ``benchmarks/sim_to_real.py``
def test_a_robot_in_mujoco_crawls_behind_the_same_bytes() -> None:
    """Its own friction and servos: wheels roll ahead and hold aside, and a limp joint stays limp."""
    pytest.importorskip("mujoco")
    spec = load_robot(CHAIN)
    plant = load_object("benchmarks.mujoco_servos:MujocoRobot", "plant")(spec, None, 0.5, (1.0, 2.0))
    assert plant.head_pose() == pytest.approx((1.0, 2.0, 0.5), abs=1e-3)
    on, full, fast = np.ones(9, bool), np.ones(9), np.full(9, 4.7)
    for k in range(2000):
        plant.advance(0.002, 0.5 * np.sin(0.6 * np.arange(9) + 0.01 * k), on, full, fast)
    x, y, _ = plant.head_pose()
    assert math.hypot(x - 1.0, y - 2.0) > 1.0
    assert abs(plant.data.qpos[2] - 0.02) < 0.002, "it stays on its wheels"
    plant.bend(np.full(9, 0.3))
    np.testing.assert_allclose(plant.joint_angle(), 0.3)
    np.testing.assert_allclose(plant.head_pose()[:2], (x, y), atol=1e-6)
    for _ in range(200):
        plant.advance(0.002, np.zeros(9), ~on, full, fast)
    assert np.abs(plant.joint_angle() - 0.3).max() < 0.02 and not plant.load().any()
    plant.jam(4)
    for _ in range(500):
        plant.advance(0.002, np.zeros(9), on, full, fast)
    angles = plant.joint_angle()
    assert angles[4] == pytest.approx(0.3, abs=0.02) and np.abs(np.delete(angles, 4)).max() < 0.05
    assert abs(plant.load()[4]) > 0.5
