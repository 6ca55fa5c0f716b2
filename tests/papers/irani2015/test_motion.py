"""Judging paths with a known shape."""

from __future__ import annotations

import math

import numpy as np
import pytest

from papers.irani2015.crawling import FINISH_M, PERIOD_S, SAMPLES_PER_PERIOD, Paths
from papers.irani2015.motion import judge
from snake_gym.robot.spec import FloatArray

N_PERIODS = 12


def paths(*centres: FloatArray) -> Paths:
    """Head and centre of mass on the same paths (S + 1, 2)."""
    xy = np.stack(centres, axis=1)
    zero = np.zeros(xy.shape[:2])
    return Paths(xy, xy, zero, zero)


def line(speed_m_s: float, angle: float) -> FloatArray:
    way = speed_m_s * PERIOD_S / SAMPLES_PER_PERIOD * np.arange(N_PERIODS * SAMPLES_PER_PERIOD + 1)
    return way[:, None] * np.array([math.cos(angle), math.sin(angle)])


def circle(diameter_m: float, turns: float) -> FloatArray:
    angle = np.linspace(0.0, 2.0 * math.pi * turns, N_PERIODS * SAMPLES_PER_PERIOD + 1)
    return 0.5 * diameter_m * np.stack([np.sin(angle), 1.0 - np.cos(angle)], axis=1)


def test_a_line_goes_on_and_ends_beside_the_finish_by_its_slope() -> None:
    motion = judge(paths(line(0.3, 0.2)))
    assert motion.goes_on.all() and not motion.turns_back.any()
    assert motion.speed_m_s[0] == pytest.approx(0.3)
    assert motion.course_rad[0] == pytest.approx(0.2)
    assert motion.finish_y_m[0] == pytest.approx(FINISH_M * math.tan(0.2))
    assert motion.turned_rad[0] == pytest.approx(0.0, abs=1e-9)


def test_a_circle_turns_back_and_has_its_diameter() -> None:
    motion = judge(paths(circle(2.0, 1.5), circle(2.0, -1.5)))
    assert motion.turns_back.all()
    np.testing.assert_allclose(motion.diameter_m, 2.0, rtol=0.03)
    assert motion.turn_rate_rad[0] == pytest.approx(2.0 * math.pi * 1.5 / N_PERIODS)
    assert motion.turn_rate_rad[1] < 0.0
    assert np.isnan(motion.finish_y_m).all()


def test_backwards_counts_along_minus_x() -> None:
    motion = judge(paths(line(0.3, math.pi + 0.1)), np.array([True]))
    assert motion.course_rad[0] == pytest.approx(0.1)
    assert motion.finish_y_m[0] == pytest.approx(FINISH_M * math.tan(0.1))


def test_a_robot_on_the_spot_stalls_whatever_it_turns() -> None:
    motion = judge(paths(circle(0.1, 3.0), line(0.01, 0.0)))
    assert motion.stalls.all() and not motion.turns_back.any() and not motion.goes_on.any()
