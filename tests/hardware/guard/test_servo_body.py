"""The servo chain under the control loop, byte for byte on the emulated bus: up, running, hurt, and off."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from snake_gym.config import build, load_yaml
from snake_gym.emulator.bus import HostEnd
from snake_gym.hardware.bus.bus import WATCHDOG_S
from snake_gym.hardware.bus.family import ServoFamily
from snake_gym.hardware.bus.servo_bus import ServoBus
from snake_gym.hardware.guard.body import BringUpError
from snake_gym.hardware.guard.checks import SafetyLimits
from snake_gym.hardware.guard.emergency_stop import find_locks
from snake_gym.hardware.guard.servo_body import ServoBody
from snake_gym.hardware.robot.run_config import RunConfig
from tests.hardware.rig import QUICK, Rig

both = pytest.mark.usefixtures("family")


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """A chain of four that is up."""
    made = Rig(tmp_path)
    made.body.start()
    return made


@both
def test_it_comes_up_where_it_is_and_follows_references(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    sample = rig.body.start()
    np.testing.assert_allclose(sample.joint_angle, [0.0, 0.1, 0.2, 0.3], atol=1e-3)
    assert rig.torque_on() == [True] * 4 and find_locks(rig.stop.latch) == [], "memory has no port to lock"
    assert [servo.memory.value("torque_limit") for servo in rig.servos] == [1.0] * 4
    wanted = np.array([0.3, -0.2, 0.1, 0.0])
    rig.run(1.0, wanted)
    sample = rig.body.sample()
    np.testing.assert_allclose(sample.joint_angle, wanted, atol=2e-3)
    np.testing.assert_allclose(sample.reference, wanted, atol=1e-9)
    assert rig.clock.now() - sample.stamp_s < 0.021
    rig.body.close()
    assert rig.torque_on() == [False] * 4


def test_an_encoder_that_wraps_within_the_range_keeps_the_robot_down_unless_it_counts_turns(tmp_path: Path) -> None:
    rig = Rig(tmp_path, zero_steps=5, direction=-1)
    with pytest.raises(BringUpError, match=r"joint 1 \(servo 1\): its range passes the encoder's zero"):
        rig.body.start()
    assert rig.torque_on() == [False] * 4
    for servo in rig.servos:
        servo.memory.set("max_angle_limit", 0)
    sample = rig.body.start()
    np.testing.assert_allclose(sample.joint_angle, [0.0, 0.1, 0.2, 0.3], atol=1e-3)
    rig.run(1.0, np.full(4, -0.3))
    np.testing.assert_allclose(rig.plant.joint_angle(), -0.3, atol=2e-3)


@both
def test_a_dead_servo_is_a_lost_joint_and_the_others_go_on(rig: Rig) -> None:
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
    assert any(re.fullmatch(r"joints 2 were silent for 1\.\d+ s and follow again", line) for line in rig.body.news())
    np.testing.assert_allclose(rig.plant.joint_angle(), wanted, atol=2e-3)


@both
def test_the_emergency_stop_switches_torque_off_and_holds_until_cleared(rig: Rig) -> None:
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


STOPS: dict[str, tuple[Callable[[Rig], object], str]] = {
    "too many are lost": (
        lambda rig: [setattr(rig.servos[k], "dead", True) for k in (0, 2, 3)],
        "joints 1, 3, 4 are lost",
    ),
    "hot": (lambda rig: setattr(rig.servos[2], "temperature_c", 68.0), "joint 3 is too hot"),
    "runs away": (lambda rig: rig.plant._angle.__setitem__(1, 2.0), "joint 2 is at"),
    "stalled": (lambda rig: rig.bus.jam(2), "joint 2 is stalled"),
}


@both
@pytest.mark.parametrize("trouble", STOPS)
def test_what_stops_the_robot_is_latched_and_takes_the_torque_of_those_that_hear(tmp_path: Path, trouble: str) -> None:
    """With the limits of the shipped settings."""
    config = build(RunConfig, load_yaml("configs/hardware/sts3215.yaml"), "config")
    rig = Rig(tmp_path, limits=config.safety)
    rig.body.start()
    make, reason = STOPS[trouble]
    make(rig)
    if trouble == "runs away":
        rig.plant.lag_s = 1e3
    rig.run(3.0, np.full(4, 0.9))
    assert rig.body.stop_reason is not None and rig.body.stop_reason.startswith(reason)
    assert rig.stop.tripped
    assert rig.torque_on() == [servo.dead for servo in rig.servos]
    said = any("use the hardware stop" in line for line in rig.body.news())
    assert said == any(servo.dead for servo in rig.servos)


@both
def test_a_cable_that_is_pulled_and_put_back(rig: Rig) -> None:
    rig.run(0.3, np.zeros(4))
    rig.bus.unplugged = True
    rig.run(1.0, np.full(4, 0.5))
    assert rig.body.stop_reason is None and "the port is gone" in rig.body.news()
    rig.bus.unplugged = False
    rig.run(2.0, np.full(4, 0.4))
    np.testing.assert_allclose(rig.body.sample().joint_angle, 0.4, atol=2e-3)
    assert any(line.startswith("the port is back after") for line in rig.body.news())
    rig.bus.unplugged = True
    rig.run(4.0, np.full(4, 0.5))
    assert rig.body.stop_reason == "the port has been gone for 3 s"
    assert rig.torque_on() == [True] * 4, "nobody can reach them"
    assert rig.body.torque_off_pending
    rig.bus.unplugged = False
    rig.run(0.5, np.full(4, 0.5))
    assert rig.torque_on() == [False] * 4 and not rig.body.torque_off_pending
    assert "torque is off in all servos now" in rig.body.news()


@both
def test_a_servo_that_starts_anew_in_mid_run_follows_from_where_it_is_with_the_torque_of_the_run(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path, limits=SafetyLimits(ramp_time_s=0.05, torque_limit=0.3, max_speed_rad_s=1.0))
    rig.body.start()
    rig.run(0.5, np.zeros(4))
    servo = rig.servos[1]
    servo.supply_v = 1.0
    rig.run(0.6, np.zeros(4))
    rig.plant._angle[1] = -1.0  # somebody moves the limp joint
    servo.supply_v = 12.0
    rig.run(0.5, np.zeros(4))
    torque, angles = set(), [float(rig.plant.joint_angle()[1])]
    for _ in range(100):
        rig.run(0.02, np.zeros(4), period_s=0.02)
        angles.append(float(rig.plant.joint_angle()[1]))
        if rig.torque_on()[1]:
            torque.add(round(servo.memory.value("torque_limit"), 2))
    assert torque == {0.3}
    assert np.abs(np.diff(angles)).max() < 0.03, "1 rad/s and 20 ms a look"
    assert angles[-1] == pytest.approx(0.0, abs=0.01)
    assert rig.body.stop_reason is None


def test_a_servo_that_was_missing_at_the_start_is_checked_and_follows_when_it_comes(
    tmp_path: Path, family: ServoFamily
) -> None:
    rig = Rig(tmp_path, limits=SafetyLimits(ramp_time_s=0.05, torque_limit=0.3, max_speed_rad_s=1.0))
    rig.servos[3].dead = True
    assert rig.body.start().lost.tolist() == [False] * 3 + [True]
    rig.run(0.1, np.zeros(4))
    assert rig.body.sample().lost[3]
    rig.run(1.0, np.full(4, -0.5))
    rig.servos[3].memory.set("mode", 1)
    rig.servos[3].dead = False
    rig.run(0.5, np.full(4, -0.5))
    assert not rig.torque_on()[3]
    said = f"is in mode 1; expected {family.position_mode}, position: it stays limp"
    assert sum(said in line for line in rig.body.news()) == 1
    rig.servos[3].memory.set("mode", family.position_mode)
    rig.run(0.2, np.full(4, -0.5))
    assert 0.0 < rig.plant.joint_angle()[3] < 0.3, "no jump from 0.3 to -0.5"
    rig.run(1.5, np.full(4, -0.5))
    assert rig.plant.joint_angle()[3] == pytest.approx(-0.5, abs=0.01)
    assert rig.servos[3].memory.value("torque_limit") == pytest.approx(0.3, abs=1e-3)


TROUBLE: dict[str, tuple[Callable[[Rig], object], str]] = {
    "mode": (lambda rig: rig.servos[2].memory.set("mode", 1), r"3 \(servo 3\) is in mode 1; expected \d, position"),
    "limits": (
        lambda rig: rig.servos[2].memory.set("max_angle_limit", 2100),
        r"joint 3 \(servo 3\) has angle limits 0 to 2100; expected at least 1266 to 2830",
    ),
    "hot": (lambda rig: setattr(rig.servos[2], "temperature_c", 90.0), "too hot|says heat"),
    "out of range": (
        lambda rig: rig.plant._angle.__setitem__(2, 2.5),
        r"joint 3 \(servo 3\): it is at .* outside its range -1.2 to 1.2 by more than 0.2: bend",
    ),
    "servo missing": (
        lambda rig: setattr(rig.servos[2], "dead", True), r"joint 3 \(servo 3\) does not answer\nat most 0 joints"
    ),
    "stop tripped": (lambda rig: rig.stop.trip("test"), "emergency stop is tripped: test"),
    "latch not writable": (lambda rig: setattr(rig.stop, "latch", Path("/none/estop")), "cannot be written"),
}  # fmt: skip


@both
@pytest.mark.parametrize("trouble", TROUBLE)
def test_torque_that_was_on_goes_off_where_the_way_up_fails(tmp_path: Path, trouble: str) -> None:
    rig = Rig(tmp_path, limits=SafetyLimits(ramp_time_s=0.05, max_lost_joints=0))
    for servo in rig.servos:  # a process that died has left them so
        servo.memory.set("torque_enable", 1)
    make, message = TROUBLE[trouble]
    assert rig.torque_on() == [True] * 4
    make(rig)
    with pytest.raises(BringUpError, match=message):
        rig.body.start()
    assert rig.torque_on() == [False, False, trouble == "servo missing", False]
    assert not any("torque" in line for line in rig.body.news()), "a servo that never answered is not waited for"


@both
def test_a_broken_encoder_is_a_lost_joint_that_gets_no_goals_and_whose_angle_is_not_believed(rig: Rig) -> None:
    rig.run(0.3, np.full(4, 0.2))
    rig.servos[1].encoder_broken = True
    rig.run(0.1, np.full(4, 0.25))
    goal = rig.servos[1].memory.get("goal_position")
    rig.run(0.6, np.full(4, 0.5))
    sample = rig.body.sample()
    assert sample.lost.tolist() == [False, True, False, False]
    assert sample.joint_angle[1] == pytest.approx(0.2, abs=0.01)
    assert rig.servos[1].memory.get("goal_position") == goal
    assert any("joint 2: encoder" in line for line in rig.body.news())


@both
def test_a_gait_that_swings_about_a_jammed_joint_s_angle_does_not_hide_the_stall(tmp_path: Path) -> None:
    """The load is at its limit but for the moments in which the reference passes the joint; others swing along."""
    rig = Rig(tmp_path)
    rig.body.start()
    rig.run(1.0, np.zeros(4))
    for beat in range(100):
        if beat == 27:  # about the middle of its swing
            rig.bus.jam(2)
        rig.run(0.1, np.full(4, 0.7 * np.sin(2.4 * 0.1 * beat)), 0.02)
        if rig.body.stop_reason is not None:
            break
    assert beat > 35
    assert rig.body.stop_reason is not None and rig.body.stop_reason.startswith("joint 2 is stalled")


def test_memory_that_was_left_open_is_closed_on_the_way_up(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.servos[1].memory.set("lock", 0)
    rig.servos[2].dead = True
    rig.body.start()
    assert [servo.memory.get("lock") for servo in rig.servos] == [1] * 4
    assert any("memory of servos 2 was open" in line for line in rig.body.news())


@both
@pytest.mark.parametrize("how", ["a reason", "Ctrl-C", "the emergency stop"])
def test_the_way_up_can_be_interrupted_at_any_moment(tmp_path: Path, how: str) -> None:
    for after in range(0, 60, 6):
        rig = Rig(tmp_path, limits=SafetyLimits(ramp_time_s=1.0))
        rig.stop.clear()
        questions, asked_s = 0, math.inf

        def enough(rig: Rig = rig, limit: int = after) -> None:
            nonlocal questions, asked_s
            questions += 1
            if questions > limit:
                asked_s = min(asked_s, rig.clock.now())
                if how != "the emergency stop":
                    raise KeyboardInterrupt if how == "Ctrl-C" else BringUpError("not now")
                rig.stop.trip("the key")

        with pytest.raises((BringUpError, KeyboardInterrupt), match=r"^$|not now|the key"):
            rig.body.start(enough)
        assert rig.torque_on() == [False] * 4, after
        assert rig.clock.now() - asked_s < 0.1


class SlowHost(HostEnd):
    """A host that another program keeps from its turn whenever it looks at the port."""

    pause_s = 0.0

    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        self._clock.sleep(self.pause_s)
        return super().read(max_bytes, timeout_s)


@both
@pytest.mark.parametrize("who", ["computer", "servos"])
def test_a_computer_that_is_late_is_named_and_servos_behind_a_cut_cable_are_blamed_themselves(
    tmp_path: Path, who: str
) -> None:
    rig = Rig(tmp_path)
    host = SlowHost(rig.bus)
    rig.body = ServoBody(
        ServoBus(host, clock=rig.clock, family=rig.driver.family), rig.calibration, QUICK, stop=rig.stop
    )
    rig.body.start()
    if who == "computer":
        host.pause_s = 0.05
    else:
        rig.bus.faults.late = 0.3
        for servo in rig.servos[:3]:
            servo.dead = True
    rig.run(2.0, np.full(4, 0.2))
    assert rig.body.stop_reason is not None and "are lost; at most 2 may be" in rig.body.stop_reason
    assert ("this computer was late by" in rig.body.stop_reason) == (who == "computer")


def test_x_servos_brake_where_nobody_speaks_to_them_and_follow_when_somebody_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.hardware.rig.MODEL", "XL430-W250")
    rig = Rig(tmp_path, limits=SafetyLimits(ramp_time_s=1.0, max_speed_rad_s=1.0))
    rig.body.start()
    rig.run(1.0, np.full(4, 0.5))
    assert rig.torque_on() == [True] * 4 and {one.memory.value("bus_watchdog") for one in rig.servos} == {WATCHDOG_S}
    for servo in rig.servos:  # a long way to go, as after a command that was wrong
        servo.write(108, bytes(4) + (20).to_bytes(4, "little") + (3500).to_bytes(4, "little"))
    rig.wait(WATCHDOG_S + 0.02)
    held = rig.plant.joint_angle().copy()
    rig.wait(2.0)
    assert all(one.memory.get("bus_watchdog") == -1 and one.torque_on for one in rig.servos)
    np.testing.assert_allclose(rig.plant.joint_angle(), held, atol=0.02)
    rig.body = second = ServoBody(rig.driver, rig.calibration, QUICK, stop=rig.stop)  # whoever comes next
    second.start()
    assert any("servos 1, 2, 3, 4 had stopped by themselves" in line for line in second.news())
    rig.wait(0.6)  # the computer sleeps
    rig.run(1.0, np.full(4, 0.3))
    np.testing.assert_allclose(rig.plant.joint_angle(), 0.3, atol=5e-3)
    assert any(line == "joints 1, 2, 3, 4 follow again" for line in second.news())
    rig.servos[1]._latched = 0x20
    with pytest.raises(BringUpError, match=r"joint 2 \(servo 2\) says overload, and stays limp until its supply"):
        ServoBody(rig.driver, rig.calibration, QUICK, stop=rig.stop).start()
    assert not any(rig.torque_on())
