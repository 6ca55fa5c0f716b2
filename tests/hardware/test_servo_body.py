"""The servo chain under the control loop, byte for byte on the emulated bus: up, running, hurt, and off."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from snake_gym.hardware.body import BringUpError
from snake_gym.hardware.safety import SafetyLimits
from snake_gym.hardware.servo_emulator import WireFaults
from tests.hardware.rig import QUICK, Rig


def test_it_comes_up_where_it_is_and_follows_references(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    sample = rig.body.start()
    np.testing.assert_allclose(sample.joint_angle, [0.0, 0.1, 0.2, 0.3], atol=1e-3)
    assert rig.torque_on() == [True] * 4
    assert [servo.memory.get("torque_limit") for servo in rig.servos] == [1000] * 4
    wanted = np.array([0.3, -0.2, 0.1, 0.0])
    rig.run(1.0, wanted)
    sample = rig.body.sample()
    np.testing.assert_allclose(sample.joint_angle, wanted, atol=2e-3)
    np.testing.assert_allclose(sample.reference, wanted, atol=1e-9)
    assert rig.clock.now() - sample.stamp_s < 0.021
    rig.body.close()
    assert rig.torque_on() == [False] * 4


@pytest.mark.parametrize(("zero", "direction"), [(4090, 1), (5, -1)])
def test_an_encoder_that_wraps_within_the_range_is_read_right(tmp_path: Path, zero: int, direction: int) -> None:
    rig = Rig(tmp_path, zero_steps=zero, direction=direction)
    sample = rig.body.start()
    np.testing.assert_allclose(sample.joint_angle, [0.0, 0.1, 0.2, 0.3], atol=1e-3)


def test_references_are_gated_on_the_way_to_the_servos(tmp_path: Path) -> None:
    rig = Rig(tmp_path, limits=SafetyLimits(ramp_time_s=0.05, max_speed_rad_s=1.0))
    rig.body.start()
    before = rig.body.sample().reference
    rig.run(0.1, np.full(4, 5.0))
    sample = rig.body.sample()
    assert (np.abs(sample.reference - before) <= 6 * 0.02 * 1.0 + 1e-9).all()  # six cycles
    assert sample.clamped.all()
    rig.run(3.0, np.full(4, 5.0))
    np.testing.assert_allclose(rig.body.sample().reference, 1.2)
    rig.run(0.1, np.array([math.nan, 0.0, 0.0, 0.0]))
    np.testing.assert_allclose(rig.body.sample().reference, 1.2)
    assert "a reference that is no number was refused" in rig.body.news()


def test_a_dead_servo_is_a_lost_joint_and_the_others_go_on(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.body.start()
    rig.servos[1].dead = True
    wanted = np.array([0.3, 0.0, 0.1, 0.0])
    rig.run(1.0, wanted)
    sample = rig.body.sample()
    assert sample.lost.tolist() == [False, True, False, False]
    np.testing.assert_allclose(sample.joint_angle[[0, 2, 3]], wanted[[0, 2, 3]], atol=2e-3)
    assert rig.body.stop_reason is None
    assert any("joint 2 is lost" in line for line in rig.body.news())
    rig.servos[1].dead = False
    rig.run(1.0, wanted)
    assert not rig.body.sample().lost.any()


def test_too_many_dead_servos_stop_the_robot_and_torque_goes_off_in_the_others(tmp_path: Path) -> None:
    rig = Rig(tmp_path, limits=SafetyLimits(ramp_time_s=0.05, max_lost_joints=1))
    rig.body.start()
    rig.servos[0].dead = rig.servos[3].dead = True
    rig.run(1.0, np.zeros(4))
    assert rig.body.stop_reason is not None
    assert "joints 1, 4 are lost" in rig.body.stop_reason
    assert rig.torque_on()[1:3] == [False, False]
    assert any("use the hardware stop" in line for line in rig.body.news())


def test_the_emergency_stop_switches_torque_off_and_holds_until_cleared(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.body.start()
    rig.stop.trip("the key")
    rig.run(0.1, np.full(4, 0.5))
    assert rig.torque_on() == [False] * 4
    rig.run(0.5, np.full(4, 0.5))
    assert rig.torque_on() == [False] * 4, "a goal would have switched the torque on again"
    with pytest.raises(BringUpError, match="emergency stop is tripped: the key"):
        rig.body.start()
    rig.stop.clear()
    rig.body.start()
    assert rig.torque_on() == [True] * 4


def test_without_commands_torque_goes_off(tmp_path: Path) -> None:
    rig = Rig(tmp_path, limits=SafetyLimits(ramp_time_s=0.05, command_timeout_s=0.3))
    rig.body.start()
    rig.run(0.5, np.zeros(4))
    assert rig.body.stop_reason is None
    rig.body.run_until(rig.clock.now() + 0.5)
    assert rig.body.stop_reason == "no command for 0.3 s"
    assert rig.torque_on() == [False] * 4
    assert not rig.stop.tripped


def test_a_hot_servo_trips_the_latch(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.body.start()
    rig.servos[2].temperature_c = 68.0
    rig.run(0.3, np.zeros(4))
    assert rig.body.stop_reason is not None
    assert rig.body.stop_reason.startswith("joint 3 is too hot")
    assert rig.stop.tripped


def test_a_blocked_joint_is_a_stall(tmp_path: Path) -> None:
    rig = Rig(tmp_path, limits=SafetyLimits(ramp_time_s=0.05, stall_time_s=0.4, stall_load=0.7))
    rig.body.start()
    rig.plant.blocked[1] = True
    rig.run(1.0, np.full(4, 0.9))
    assert rig.body.stop_reason is not None
    assert rig.body.stop_reason.startswith("joint 2 is stalled")


def test_a_cable_that_is_pulled_and_put_back(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.body.start()
    rig.run(0.3, np.zeros(4))
    rig.bus.unplugged = True
    rig.run(1.0, np.full(4, 0.5))
    assert rig.body.port_gone
    assert rig.body.stop_reason is None
    rig.bus.unplugged = False
    rig.run(2.0, np.full(4, 0.4))
    assert not rig.body.port_gone
    np.testing.assert_allclose(rig.body.sample().joint_angle, 0.4, atol=2e-3)
    news = rig.body.news()
    assert "the port is gone" in news
    assert any(line.startswith("the port is back after") for line in news)
    rig.bus.unplugged = True
    rig.run(4.0, np.full(4, 0.5))
    assert rig.body.stop_reason == "the port has been gone for 3 s"


def test_one_per_cent_of_lost_and_of_spoiled_packets_hurts_nobody(tmp_path: Path) -> None:
    rig = Rig(tmp_path, faults=WireFaults(lost=0.01, corrupted=0.01, seed=3))
    rig.body.start()
    for k in range(100):
        rig.run(0.1, np.full(4, 0.3 * math.sin(0.3 * k)))
    assert rig.body.stop_reason is None
    assert not rig.body.sample().lost.any()
    np.testing.assert_allclose(rig.body.sample().joint_angle, 0.3 * math.sin(0.3 * 99), atol=0.02)
    assert rig.bus.faults.counts["lost"] + rig.bus.faults.counts["corrupted"] > 10


def test_a_wrong_model_or_missing_servos_keep_the_robot_down(tmp_path: Path) -> None:
    rig = Rig(tmp_path, limits=SafetyLimits(ramp_time_s=0.05, max_lost_joints=0))
    rig.servos[2].dead = True
    with pytest.raises(BringUpError, match=r"joints 3 \(servo 3\) do not answer; at most 0"):
        rig.body.start()
    assert rig.torque_on()[:2] == [False, False]
    other = Rig(tmp_path, limits=QUICK)
    other.servos[0].memory.set("model", 2825)
    with pytest.raises(BringUpError, match=r"joint 1 \(servo 1\) says it is model 2825; expected 777"):
        other.body.start()
