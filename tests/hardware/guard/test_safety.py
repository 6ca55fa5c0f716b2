"""Commands are clamped or refused, sick servos stop the robot, and the stop stays."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snake_gym.hardware.bus.family import ServoError
from snake_gym.hardware.guard.checks import CommandGate, HealthMonitor, SafetyLimits, ServoHealth, StallLimits

LIMITS = SafetyLimits(max_speed_rad_s=2.0, max_acceleration_rad_s2=20.0)
DT = 0.02


def gate(limits: SafetyLimits = LIMITS) -> CommandGate:
    return CommandGate(np.full(3, -1.0), np.full(3, 1.0), limits, np.zeros(3))


def health(n: int = 3, **changes: object) -> ServoHealth:
    values: dict[str, object] = {
        "answered": np.ones(n, bool), "rate": np.zeros(n), "load": np.zeros(n), "temperature_c": np.full(n, 30.0),
        "voltage_v": np.full(n, 12.0), "current_a": np.full(n, 0.1), "error": np.zeros(n, np.uint8),
    }  # fmt: skip
    return ServoHealth(**{**values, **changes})  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.floats(-10.0, 10.0), min_size=3, max_size=3), min_size=1, max_size=40))
def test_no_command_leaves_range_speed_or_acceleration(wanted: list[list[float]]) -> None:
    one = gate()
    last, last_rate = np.zeros(3), np.zeros(3)
    for row in wanted:
        assert one.pass_on(np.array(row), DT)
        rate = (one.reference - last) / DT
        assert (np.abs(one.reference) <= 1.0).all()
        assert (np.abs(rate) <= LIMITS.max_speed_rad_s + 1e-9).all()
        inside = np.abs(one.reference) < 1.0
        assert (np.abs(rate - last_rate)[inside] <= LIMITS.max_acceleration_rad_s2 * DT + 1e-9).all()
        last, last_rate = one.reference, rate


def test_a_reference_in_reach_is_passed_on_as_it_is_and_one_beyond_arrives_gently() -> None:
    one = gate(SafetyLimits(max_speed_rad_s=5.0, max_acceleration_rad_s2=1e4))
    assert one.pass_on(np.array([0.05, -0.05, 0.0]), DT)
    np.testing.assert_allclose(one.reference, [0.05, -0.05, 0.0])
    assert not one.clamped.any()
    slow = gate()
    track = [slow.reference[0] for _ in range(60) if slow.pass_on(np.full(3, 0.7), DT)]
    assert max(track) <= 0.7 + 0.002
    assert track[-1] == pytest.approx(0.7, abs=0.01)


@pytest.mark.parametrize("bad", [[math.nan, 0.0, 0.0], [0.0, math.inf, 0.0], [0.0, 0.0]])
def test_what_is_no_number_is_refused_and_the_last_command_kept(bad: list[float]) -> None:
    one = gate()
    assert one.pass_on(np.full(3, 0.02), DT)
    before = one.reference.copy()
    assert not one.pass_on(np.array(bad), DT)
    np.testing.assert_array_equal(one.reference, before)


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("temperature_c", 80.0, "joint 2 is too hot (80 C)"),
        ("voltage_v", 4.0, "joint 2 has too low a voltage (4 V)"),
        ("voltage_v", 40.0, "joint 2 has too high a voltage (40 V)"),
        ("current_a", -9.0, "joint 2 draws too much (-9 A)"),
    ],
)
def test_a_sick_servo_stops_the_robot(name: str, value: float, what: str) -> None:
    values = getattr(health(), name).copy()
    values[1] = value
    monitor = HealthMonitor(SafetyLimits().of_model("STS3215"), 3)
    assert monitor.check(health(**{name: values}), DT)[1] == what


def test_what_is_not_set_is_that_of_the_servos() -> None:
    small, large = (SafetyLimits().of_model(name) for name in ("STS3215", "SM8524BL"))
    assert (small.min_voltage_v, small.max_voltage_v) == (9.0, 14.0)
    assert small.max_current_a == pytest.approx(1.1 * 2.7)
    assert (large.min_voltage_v, large.max_voltage_v) == (18.0, pytest.approx(25.2))
    assert SafetyLimits(min_voltage_v=7.5).of_model("STS3215").min_voltage_v == 7.5


def test_a_servo_that_says_it_cannot_work_is_a_lost_joint() -> None:
    monitor = HealthMonitor(SafetyLimits(lost_after_s=0.1), 3)
    sick = health(error=np.array([0, ServoError.OVERLOAD, 0], np.uint8))
    news = [line for _ in range(10) for line in monitor.check(sick, DT)[0]]
    assert monitor.lost.tolist() == [False, True, False]
    assert "joint 2: overload" in news
    assert "joint 2 is lost: its servo says so" in news
    assert "joint 2 answers again" in monitor.check(health(), DT)[0]
    assert not monitor.lost.any()


@pytest.mark.parametrize(("load", "torque_limit"), [(0.95, 1.0), (0.5, 0.5)])
def test_a_stall_of_the_torque_in_use_has_to_last_and_a_moving_joint_may_pull_with_all_it_has(
    load: float, torque_limit: float
) -> None:
    limits = SafetyLimits(stall=StallLimits(time_s=0.1), torque_limit=torque_limit)
    pulls = np.array([0.0, 0.0, load])
    pulling = HealthMonitor(limits, 3)
    assert all(pulling.check(health(load=pulls, rate=np.full(3, 1.0)), DT)[1] is None for _ in range(20))
    stuck = HealthMonitor(limits, 3)
    reasons = [stuck.check(health(load=pulls), DT)[1] for _ in range(10)]
    assert reasons[3] is None
    assert reasons[-1] == f"joint 3 is stalled ({100 * load:.3g} % load)"


def test_loads_at_the_turning_points_of_a_gait_are_no_stall() -> None:
    """Still and loaded for a third of each second, then moving."""
    monitor = HealthMonitor(SafetyLimits(), 1)
    for cycle in range(round(60.0 / DT)):
        turning = (cycle * DT) % 1.0 < 0.33
        rate, load = (0.0, 1.0) if turning else (1.0, 0.3)
        _, reason = monitor.check(health(load=np.full(1, load), rate=np.full(1, rate), n=1), DT)
        assert reason is None
