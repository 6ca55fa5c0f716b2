"""Driven gaits: changes without jumps, bounded rates, steering to the side asked for, and worlds that do not mix."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from snake_gym.controllers import make_controller
from snake_gym.controllers.driving import FASTEST_RAD_S, DrivenGaits
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.presets import RESILIENT_SERVO as SPEC

GAITS = ("cc", "sjc", "cpg", "fault_aware")
DT_S = 0.01
"""Fine steps, to see jumps."""


def driven(*names: str) -> DrivenGaits:
    return DrivenGaits({name: make_controller({"tuned": name}, SPEC) for name in names}, SPEC)


class Robots:
    """W robots whose joints are where they are told to be one step later."""

    def __init__(self, gaits: DrivenGaits, n_worlds: int = 1) -> None:
        self.gaits, self.state = gaits, gaits.initial_state(n_worlds)
        self.angle = np.tile(np.linspace(-0.4, 0.3, SPEC.n_joints), (n_worlds, 1))
        self.rate = np.zeros_like(self.angle)

    def run(self, seconds: float) -> np.ndarray:
        """References (T, W, J) after the shape at the beginning."""
        n, path = len(self.angle), [self.angle.copy()]
        goal = Goal(np.full((n, 2), np.nan), np.zeros(n, bool))  # not looked at
        for _ in range(round(seconds / DT_S)):
            zero = np.zeros((n, 2))
            measured = Measurement(self.angle, self.rate, zero, np.zeros(n), np.ones(n, bool), zero)
            reference = self.gaits.command(measured, goal, self.state, DT_S)
            self.gaits.command_given(reference, self.state)
            self.rate, self.angle = (reference - self.angle) / DT_S, reference
            path.append(reference)
        return np.array(path)


def test_every_change_of_gait_is_continuous_and_no_faster_than_gaits_and_fade() -> None:
    robots = Robots(driven(*GAITS), 12)
    pairs = np.array(list(itertools.permutations(range(len(GAITS)), 2)))
    robots.state["asked_gait"][:] = pairs[:, 0]
    robots.run(2.5)
    np.testing.assert_array_equal(robots.state["gait"], pairs[:, 0])
    steady = robots.run(4.0)
    robots.state["asked_gait"][:] = pairs[:, 1]
    change = robots.run(1.0)
    after = robots.run(4.0)
    np.testing.assert_array_equal(robots.state["gait"], pairs[:, 1])
    rates = [np.abs(np.diff(path, axis=0)).max(axis=(0, 2)) / DT_S for path in (steady, change, after)]
    apart = np.abs(np.concatenate([steady, after])).max(axis=(0, 2)) * 2.0
    assert (rates[1] < np.maximum(rates[0], rates[2]) + 1.875 * apart).all()
    bends = [np.abs(np.diff(path, 2, axis=0)).max() / DT_S**2 for path in (steady, change, after)]
    assert bends[1] < max(bends[0], bends[2]) + 40.0, bends  # a jump of 0.01 rad would add 100 rad/s2
    assert np.ptp(after, axis=0).max(axis=1).min() > 0.3  # all of them move


def test_the_first_gait_comes_in_from_the_shape_at_the_start_once_a_pace_is_asked_for() -> None:
    robots = Robots(driven("sjc", "cc"))
    robots.state["asked_pace"][:], robots.state["asked_gait"][:] = 0.0, 1
    assert np.ptp(robots.run(1.0), axis=0).max() == 0.0
    robots.state["asked_pace"][:] = 1.0
    path = robots.run(1.0)[:, 0]
    assert np.abs(path[1] - path[0]).max() < 1e-3
    assert (np.abs(np.diff(path, axis=0)) <= FASTEST_RAD_S * DT_S + 1e-12).all() and robots.state["gait"][0] == 1


def test_no_reference_is_faster_than_a_slow_servo() -> None:
    slow = replace(SPEC, actuator=replace(SPEC.actuator, speed_limit_rad_s=0.5))
    gaits = {name: make_controller({"kind": name}, slow) for name in ("cc", "sjc")}
    robots = Robots(DrivenGaits(gaits, slow))
    robots.state["asked_gait"][:] = 1
    path = robots.run(3.0)
    assert np.abs(np.diff(path, axis=0)).max() / DT_S == pytest.approx(0.5)


@pytest.mark.parametrize("name", GAITS)
def test_steering_bends_to_the_side_asked_for_and_pace_0_stands(name: str) -> None:
    robots = Robots(driven(name), 3)
    robots.state["asked_steering"][:] = [1.0, 0.0, -1.0]
    robots.run(2.0)
    left, straight, right = robots.run(12.0).mean(axis=(0, 2))
    assert left < straight - 0.02 and right > straight + 0.02, "positive joint angles bend the robot to its right"
    robots.state["asked_pace"][:] = 0.0
    robots.run(3.0)
    assert np.ptp(robots.run(1.0), axis=0).max() < 0.01


def test_a_change_during_a_change_waits_for_its_end_and_worlds_do_not_mix() -> None:
    together, alone = Robots(driven(*GAITS[:3]), 2), Robots(driven(*GAITS[:3]))
    together.angle[1] += 0.1
    for robots in (together, alone):
        robots.run(1.5)
        robots.state["asked_gait"][0] = 1
        robots.run(0.5)
        robots.state["asked_gait"][0] = 2
        robots.run(0.3)
        assert robots.state["gait"][0] == 1
        robots.run(1.5)
        assert robots.state["gait"][0] == 2
    np.testing.assert_array_equal(together.angle[0], alone.angle[0])
    assert together.state["gait"][1] == 0
