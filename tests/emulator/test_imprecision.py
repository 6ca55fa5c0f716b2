"""Servos that act late, noise on what they and the pose source tell: on the wire."""

from __future__ import annotations

import time

import numpy as np
import pytest

from snake_gym.emulator.bus import EmulatedBus, FirstOrderPlant
from snake_gym.emulator.pose import EmulatedPose
from snake_gym.emulator.servo import EmulatedServo, Imprecision
from snake_gym.hardware.robot.connection import EmulatedConfig
from tests.hardware.raw_driver import RawDriver
from tests.hardware.rig import serve

GOAL, POSITION = 42, 56


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
