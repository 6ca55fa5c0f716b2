"""Joint stops with stiff, saturated servos: energy, work, and what happens where the laws do not settle."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

from snake_gym.physics import chain, contact, lanes
from snake_gym.robot.presets import ROBO_CONDA
from snake_gym.simulation.simulated_robot import SimulatedRobot

FloatArray = NDArray[np.float64]
eliminate_links, substitute_back, hold_links = (
    njit(kernel.py_func) for kernel in (chain.eliminate_links, chain.substitute_back, contact.hold_links)
)
LIMIT = 1.19
"""[N m]"""
WORLDS = 16


def thrasher(kp: float, kd: float, dt: float, speed: float = math.inf) -> SimulatedRobot:
    """Robots of random shapes with stops at 38 degrees."""
    actuator = replace(ROBO_CONDA.actuator, kp=kp, kd=kd, torque_limit_nm=LIMIT, speed_limit_rad_s=speed)
    spec = replace(ROBO_CONDA, actuator=actuator, sim_dt_s=dt)
    robot = SimulatedRobot(spec, WORLDS, 1)
    shape = np.random.default_rng(1).uniform(-0.5, 0.5, (WORLDS, spec.n_joints))
    robot.set_shape(shape, np.zeros(WORLDS), np.zeros((WORLDS, 2)))
    return robot


def references(robot: SimulatedRobot, n: int, seed: int = 2) -> FloatArray:
    """Random ones up to the stops (n, W, J) [rad]."""
    stop = float(robot.spec.joints("joint_stop_rad")[0])
    return np.random.default_rng(seed).uniform(-stop, stop, (n, WORLDS, robot.spec.n_joints))


@pytest.mark.parametrize(
    ("kp", "kd", "dt", "speed", "fastest", "most_j"),
    [
        (100.0, 5.0, 0.01, math.inf, 25.0, 230.0),
        (200.0, 20.0, 0.01, 2.44, 5.0, 100.0),
        (500.0, 0.5, 0.001, math.inf, 60.0, 900.0),
    ],
)
def test_ten_seconds_at_the_stops_cost_what_finer_steps_say(
    kp: float, kd: float, dt: float, speed: float, fastest: float, most_j: float
) -> None:
    """Control steps of many sub-steps, with their smooth pasts: rates and work as those of ten times finer steps."""
    robot = thrasher(kp, kd, dt, speed)
    highest = 0.0
    for reference in references(robot, 100):
        robot.step(reference)
        highest = max(highest, float(np.abs(robot.joint_rate()).max()))
    assert highest < fastest
    assert robot.state.work_j.max() < most_j
    assert robot.state.stood_still.max() == 0.0


@pytest.mark.parametrize("flag", [lanes.LAWS_CHANGE, lanes.STOPS_CHANGE, lanes.CONTACTS_CHANGE])
def test_a_world_whose_laws_do_not_settle_stands_still(flag: int) -> None:
    """Lane 3 of a block in motion is not settled: it stays where it is, the others go on."""
    n, lane = 3, 3
    s = np.random.default_rng(1).uniform(0.1, 1.0, (lanes.scratch_rows(n), 8))
    s[: lanes.RECORD] = 0.0
    world = (n + 1) * lanes.RECORD

    def of(record: int, field: int) -> FloatArray:
        return s[record * lanes.RECORD + field]

    for i in range(1, n + 1):
        for field, value in (
            (lanes.RIGID, 0.0),
            (lanes.AT_STOP, 0.0),
            (lanes.A_T, 1.0),
            (lanes.A_N, 2.0),
            (lanes.A_R, 3.0),
        ):
            of(i, field)[:] = value
        of(i, lanes.AT_STOP)[lane], of(i, lanes.RIGID)[lane] = 2.0, float(i < n)
    for field in (lanes.K, lanes.T0, lanes.RIGID, lanes.AT_STOP):
        of(n, field)[:] = 0.0
    for field in (lanes.LAWS_CHANGE, lanes.STOPS_CHANGE, lanes.CONTACTS_CHANGE, lanes.JAMMED):
        of(n + 1, field)[:] = 0.0
    of(n + 1, lanes.TOTAL)[:] = 3.0
    s[world + flag, lane] = 1.0
    hold_links(s, n)
    np.testing.assert_array_equal(of(n + 1, lanes.JAMMED), np.arange(8) == lane)
    eliminate_links(s, 1, n, False, False)
    substitute_back(s, n)
    for i in range(1, n + 1):
        rates = np.abs(of(i, lanes.SOL_W))
        assert rates[lane] < 1e-6 and np.delete(rates, lane).min() > 1e-3
        base, theta = of(i, lanes.BASE), of(i, lanes.THETA)
        assert base[lane] == theta[lane] and base[0] != theta[0]
        assert of(i, lanes.AT_STOP)[lane] == 0.0
    assert [of(n + 1, field)[lane] for field in (lanes.ALPHA, lanes.BETA, lanes.AGE)] == [1.0, 0.0, -2.0]
