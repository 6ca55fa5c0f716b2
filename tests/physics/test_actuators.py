"""Servos with dead band, backlash, torque-speed line and a sagging supply, against closed forms and balances."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from snake_gym.physics.faults import LOCKED
from snake_gym.robot.presets import RESILIENT, RESILIENT_SERVO
from snake_gym.robot.spec import ActuatorSpec, FrictionSpec, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.physics.test_faults import TWO_LINKS

INERTIA = 0.02
"""[kg m^2] of the light link of ``arm`` about its joint."""


class Crawl(NamedTuple):
    """What a wave made of ``resilient_servo``."""

    lowest_supply: float
    centre_xy: np.ndarray
    work_j: float


def straight(spec: RobotSpec) -> SimulatedRobot:
    robot = SimulatedRobot(spec, 1, 1)
    robot.set_shape(np.zeros((1, spec.n_joints)), np.zeros(1), np.zeros((1, 2)))
    return robot


def arm(dt: float = 0.001, turning: float = 0.0, stop: float = math.inf, **actuator: Any) -> SimulatedRobot:
    """A heavy link and a light one that turns about their joint; no friction but ``turning``."""
    settings = {"kind": "position", "kp": 20.0, "kd": 1.0, **actuator}
    return straight(
        dataclasses.replace(
            TWO_LINKS, friction=FrictionSpec(0.0, 0.0, turning), actuator=ActuatorSpec(**settings), joint_stop_rad=stop,
            control_dt_s=dt, sim_dt_s=dt,
        )
    )  # fmt: skip


def crawl(spec: RobotSpec, steps: int, bend: float = 0.6, swing: float = 0.6, advance: float = 0.4) -> Crawl:
    """A wave of ``swing`` [rad] that goes on by ``advance`` [rad] in each control step, from one of ``bend``."""
    robot, wave = SimulatedRobot(spec, 1, 1), 0.5236 * np.arange(9)
    robot.set_shape(bend * np.sin(wave)[None], np.zeros(1), np.zeros((1, 2)))
    supply = []
    for k in range(steps):
        robot.step(swing * np.sin(wave - advance * k)[None])
        supply.append(float(robot.state.supply[0]))
    return Crawl(min(supply), robot.state.centre_xy[0].copy(), float(robot.state.work_j[0]))


def turn(robot: SimulatedRobot, rate: float) -> None:
    """Set the light link turning with ``rate`` [rad/s] of the joint."""
    robot.state.link_rate[0] = [0.0, -rate]
    # The light link's centre moves with its half length about the joint; the centre of mass by a millionth of that.
    robot.state.centre_vel[0] = [0.0, -rate * 0.1 / (1e6 + 1.0)]


def test_a_dead_band_leaves_small_errors_alone_and_large_ones_end_at_its_edge() -> None:
    robot = arm(dead_band_rad=0.05, kd=2.0)
    reference = np.full((1, 1), 0.04)
    robot.step(reference, n_substeps=500)
    assert robot.joint_angle()[0, 0] == 0.0 and robot.state.joint_torque[0, 0] == 0.0
    robot.step(np.full((1, 1), 0.3), n_substeps=3000)
    assert robot.joint_angle()[0, 0] == pytest.approx(0.25, abs=1e-6)
    # Within the band the loop still brakes: rate' = -kd / I rate.
    turn(robot, 0.2)
    before = robot.joint_rate()[0, 0]
    robot.step(robot.joint_angle().copy(), n_substeps=20)
    assert robot.joint_rate()[0, 0] / before == pytest.approx(math.exp(-2.0 / INERTIA * 0.02), rel=0.02)


def test_backlash_leaves_a_joint_where_the_flank_left_it_from_either_side() -> None:
    """Slow motion to and fro: the joint trails the motor by half the backlash, a hysteresis of its full width."""
    robot = arm(backlash_rad=0.1, kd=4.0, kp=80.0, dt=0.002, turning=0.5)
    found = []
    for target in (0.4, 0.2, 0.4):
        robot.step(np.full((1, 1), target), n_substeps=4000)
        found.append(robot.joint_angle()[0, 0])
    np.testing.assert_allclose(found, [0.35, 0.25, 0.35], atol=2e-3)


def test_a_motor_runs_up_along_its_torque_speed_line() -> None:
    """I w' = T (1 - w / w0): w = w0 (1 - exp(-t T / (I w0)))."""
    limit, no_load = 0.1, 5.0
    robot = arm(kp=1e4, kd=1.0, torque_limit_nm=limit, no_load_speed_rad_s=no_load)
    for k in range(1, 9):
        robot.step(np.full((1, 1), 1e3), n_substeps=100)
        rate = robot.joint_rate()[0, 0]
        assert rate == pytest.approx(no_load * (1.0 - math.exp(-0.1 * k * limit / INERTIA / no_load)), rel=2e-3)
        assert robot.state.joint_torque[0, 0] == pytest.approx(limit * (1.0 - rate / no_load), rel=2e-3)


def test_a_motor_brakes_with_its_full_torque_and_beyond_its_no_load_speed_by_the_line() -> None:
    robot = arm(kp=1e4, kd=1.0, torque_limit_nm=0.1, no_load_speed_rad_s=5.0)
    turn(robot, -3.0)
    robot.step(np.full((1, 1), 1e3), n_substeps=10)
    assert robot.state.joint_torque[0, 0] == pytest.approx(0.1, rel=1e-4)
    turn(robot, 6.0)
    robot.step(np.full((1, 1), 1e3), n_substeps=1)
    assert robot.state.joint_torque[0, 0] == pytest.approx(0.1 * (1.0 - 6.0 / 5.0), rel=0.02)


def test_the_supply_sags_under_load_and_takes_torque_and_speed_with_it() -> None:
    # Stalled at a stop: I = v T / k_t, so v = V / (V + R T / k_t) at once.
    supply = {"supply_voltage_v": 10.0, "supply_resistance_ohm": 0.5, "torque_constant_nm_a": 0.5}
    robot = arm(kp=1e4, torque_limit_nm=2.0, stop=0.2, **supply)
    robot.step(np.full((1, 1), 1.0), n_substeps=400)
    expected = 1.0 / (1.0 + 0.5 / 10.0 * 2.0 / 0.5)
    assert robot.state.supply[0] == pytest.approx(expected, rel=1e-9)
    assert robot.joint_angle()[0, 0] == pytest.approx(0.2, abs=1e-9)
    # A locked joint stalls as well, for the supply as for what the motor has to bear.
    locked = arm(kp=1e4, torque_limit_nm=2.0, **supply)
    locked.faults.kind[:] = LOCKED
    locked.note_torques()
    locked.step(np.full((1, 1), 1.0), n_substeps=400)
    locked.step(np.full((1, 1), 1.0))
    assert locked.state.supply[0] == pytest.approx(expected, rel=1e-9)
    assert locked.servos.torque_square[0, 0] == pytest.approx((2.0 * expected) ** 2, rel=1e-9)
    # A load below the limit draws the current of its torque: v = 1 - R T / (k_t V), here with 0.5 N m.
    held = arm(kp=20.0, torque_limit_nm=2.0, stop=0.2, **supply)
    held.step(np.full((1, 1), 0.2 + 0.5 / 20.0), n_substeps=3000)
    assert held.state.supply[0] == pytest.approx(1.0 - 0.5 / 10.0 * 0.5 / 0.5, rel=1e-6)
    # The speed limit falls with the voltage.
    fast = arm(speed_limit_rad_s=2.0, kp=60.0, kd=10.0, torque_limit_nm=50.0, supply_resistance_ohm=1.0)
    fast.step(np.full((1, 1), 1.2), n_substeps=1)
    assert fast.state.supply[0] < 0.8 and fast.joint_rate()[0, 0] < 2.0
    fast.step(np.full((1, 1), 1.2), n_substeps=300)
    assert fast.state.supply[0] == pytest.approx(1.0, abs=0.01)


def test_a_supply_that_keeps_above_85_percent_takes_no_finer_steps() -> None:
    actuator = dataclasses.replace(RESILIENT_SERVO.actuator, supply_resistance_ohm=0.3)
    runs = [crawl(dataclasses.replace(RESILIENT_SERVO, sim_dt_s=dt, actuator=actuator), 100) for dt in (0.01, 0.001)]
    assert all(0.85 < run.lowest_supply < 0.96 for run in runs)
    ways = [float(np.hypot(*run.centre_xy)) for run in runs]
    assert ways[0] == pytest.approx(ways[1], rel=2e-3)


def test_joints_driven_by_acceleration_stay_within_their_stops_and_come_back_from_beyond() -> None:
    stop = math.radians(40.0)
    spec = dataclasses.replace(RESILIENT, sim_dt_s=0.01, control_dt_s=0.1, joint_stop_rad=stop, joint_limit_rad=2.0)
    robot = SimulatedRobot(spec, 2, 1)
    beyond = np.zeros((2, 9))
    beyond[1, 4] = 1.2
    robot.set_shape(beyond, np.zeros(2), np.zeros((2, 2)))
    lag = 0.5 * np.arange(9)
    widest, outside = 0.0, [1.2]
    for k in range(400):
        robot.step(np.tile(1.4 * np.sin(0.04 * k + lag), (2, 1)))
        widest = max(widest, float(np.abs(robot.joint_angle()[0]).max()))
        outside.append(float(np.abs(robot.joint_angle()[1, 4])))
    assert stop - 1e-3 < widest <= stop * (1.0 + 1e-9)
    assert max(np.diff(outside)[: np.argmin(np.array(outside) > stop)], default=0.0) <= 1e-12
    assert outside[-1] <= stop * (1.0 + 1e-9)
