"""References that act late: the same motion as with commands that are really sent later, on any grid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.command_delays import VaryingDelay
from snake_gym.simulation.simulated_robot import SimulatedRobot

N = RESILIENT_SERVO.n_joints
FAST = replace(RESILIENT_SERVO, control_dt_s=0.02, sim_dt_s=0.002)


def late(spec: RobotSpec, delay_s: float) -> RobotSpec:
    return replace(spec, actuator=replace(spec.actuator, delay_s=delay_s))


def wave(time_s: float) -> np.ndarray:
    return 0.5 * np.sin(2.0 * time_s - 0.6 * np.arange(N))[None]


def crawl(spec: RobotSpec, periods: int = 0, cut: int = 0, varying_s: float | None = None) -> NDArray[Any]:
    """Link angles (N,) after 2 s of a wave, commands sent ``periods`` and ``cut`` sub-steps later, or delayed."""
    robot = SimulatedRobot(spec, 1, 1)
    if varying_s is not None:
        robot.delay_commands(0.2).delay_s[:] = varying_s
    robot.set_shape(wave(0.0), np.zeros(1), np.zeros((1, 2)))
    for k in range(round(2.0 / spec.control_dt_s)):
        if cut:
            robot.step(wave(max(0, k - 1) * spec.control_dt_s), n_substeps=cut)
        robot.step(wave(max(0, k - periods) * spec.control_dt_s), n_substeps=spec.n_substeps - cut)
    return robot.state.link_angle[0].copy()


@pytest.mark.parametrize(("delay_s", "periods", "cut"), [(0.02, 1, 0), (0.04, 2, 0), (0.1, 5, 0), (0.006, 0, 3)])
def test_a_delay_is_a_command_that_is_sent_later(delay_s: float, periods: int, cut: int) -> None:
    np.testing.assert_array_equal(crawl(late(FAST, delay_s)), crawl(FAST, periods, cut))


def test_a_delay_of_a_part_of_a_step_lies_between_those_of_whole_steps() -> None:
    fine = replace(FAST, sim_dt_s=0.0005)
    on_the_grid = np.diff(crawl(late(fine, 0.007)))
    between = np.diff(crawl(late(FAST, 0.007)))
    neighbours = [np.diff(crawl(late(FAST, delay))) for delay in (0.006, 0.008)]
    apart = np.abs(neighbours[0] - neighbours[1]).max()
    assert np.abs(between - on_the_grid).max() < 0.1 * apart
    assert apart > 1e-3


def test_a_robot_that_is_placed_anew_forgets_the_commands_on_their_way() -> None:
    spec = late(FAST, 0.05)
    robot = SimulatedRobot(spec, 2, 1)
    robot.set_shape(np.zeros((2, N)), np.zeros(2), np.zeros((2, 2)))
    for _ in range(3):
        robot.step(np.full((2, N), 0.8))
    robot.set_shape(np.zeros((1, N)), np.zeros(1), np.zeros((1, 2)), mask=np.array([False, True]))
    for _ in range(2):
        robot.step(np.zeros((2, N)))
    assert np.abs(robot.joint_angle()[0]).max() > 0.01
    np.testing.assert_allclose(robot.joint_angle()[1], 0.0, atol=1e-12)


def test_only_worlds_that_step_take_their_commands() -> None:
    spec = late(FAST, 0.05)
    both, one = SimulatedRobot(spec, 2, 1), SimulatedRobot(spec, 1, 1)
    for k in range(40):
        both.step(np.repeat(wave(0.02 * k), 2, axis=0), mask=np.array([True, k % 3 == 0]))
        if k % 3 == 0:
            one.step(wave(0.02 * k))
    np.testing.assert_array_equal(both.state.link_angle[1], one.state.link_angle[0])


@pytest.mark.parametrize("delay_s", [0.0, 0.02, 0.04, 0.1, 0.007, 0.033, 0.133])
def test_a_varying_delay_that_does_not_vary_is_the_constant_one(delay_s: float) -> None:
    """Bit for bit for whole control steps; else but for the order of the step in which the command changes."""
    fine = replace(FAST, sim_dt_s=0.001)
    constant, varying = crawl(late(fine, delay_s)), crawl(fine, varying_s=delay_s)
    if abs(delay_s / 0.02 - round(delay_s / 0.02)) < 1e-9:
        np.testing.assert_array_equal(varying, constant)
    off_by_a_ms = crawl(fine, varying_s=delay_s + 0.001)
    assert np.abs(varying - constant).max() < 0.1 * np.abs(off_by_a_ms - constant).max()


def test_no_command_overtakes_another_and_each_acts_after_its_delay() -> None:
    delay = VaryingDelay(0.05, 0.001, 20, 1, 1)
    delay.begin(np.zeros((1, 1)), slice(None))
    rng = np.random.default_rng(3)
    sent, acting = [], []
    for k in range(200):
        delay.delay_s[:] = rng.uniform(0.0, 0.05)
        sent.append(20 * k + round(1000.0 * delay.delay_s[0]))
        [(aim, _, later)] = delay.pass_on(np.array([[k + 1.0]]), np.array([0]))
        now = np.full(20, aim[0, 0])
        for step, value in zip(later.step[0], later.aim[0, :, 0], strict=True):
            if step > 0:
                now[step:] = value
        acting += now.tolist()
    due = np.maximum.accumulate(sent)
    expected = [np.searchsorted(due, step, side="right") for step in range(len(acting))]
    np.testing.assert_array_equal(acting, expected)
