"""irani2015: paths with a known shape are judged, and verdicts over a phase scan, from scans made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from papers.irani2015.crawling import (
    AMPLITUDE_RAD,
    FINISH_M,
    IMPOSED,
    PERIOD_S,
    SAMPLES_PER_PERIOD,
    Paths,
    Trial,
    crawl,
    judge,
)
from papers.irani2015.friction import N_ITERATIONS, claims_about_iterations, iterate
from papers.irani2015.performance import FAST, end_points, no_slip_speed
from snake_gym.robot.spec import FloatArray

N_PERIODS = 12


def paths(*centres: FloatArray) -> Paths:
    """Head and centre of mass on the same paths (S + 1, 2)."""
    xy = np.stack(centres, axis=1)
    return Paths(xy, xy, np.zeros(xy.shape[:2]))


def line(speed_m_s: float, angle: float) -> FloatArray:
    way = speed_m_s * PERIOD_S / SAMPLES_PER_PERIOD * np.arange(N_PERIODS * SAMPLES_PER_PERIOD + 1)
    return way[:, None] * np.array([math.cos(angle), math.sin(angle)])


def circle(diameter_m: float, turns: float) -> FloatArray:
    angle = np.linspace(0.0, 2.0 * math.pi * turns, N_PERIODS * SAMPLES_PER_PERIOD + 1)
    return 0.5 * diameter_m * np.stack([np.sin(angle), 1.0 - np.cos(angle)], axis=1)


def test_paths_of_known_shape_are_judged() -> None:
    ahead, back = judge(paths(line(0.3, 0.2))), judge(paths(line(0.3, math.pi + 0.1)), np.array([True]))
    assert ahead.goes_on.all() and not ahead.turns_back.any()
    assert ahead.speed_m_s[0] == pytest.approx(0.3) and ahead.turned_rad[0] == pytest.approx(0.0, abs=1e-9)
    assert ahead.finish_y_m[0] == pytest.approx(FINISH_M * math.tan(0.2))
    assert back.finish_y_m[0] == pytest.approx(FINISH_M * math.tan(0.1)), "backwards counts along -x"
    round_and_round = judge(paths(circle(2.0, 1.5), circle(2.0, -1.5)))
    assert round_and_round.turns_back.all() and np.isnan(round_and_round.finish_y_m).all()
    np.testing.assert_allclose(round_and_round.diameter_m, 2.0, rtol=0.03)
    on_the_spot = judge(paths(circle(0.1, 3.0), line(0.01, 0.0)))
    assert on_the_spot.stalls.all() and not on_the_spot.turns_back.any() and not on_the_spot.goes_on.any()


# --- imposed joint motion, the search --------------------------------------------------------------------------------


def test_with_imposed_joint_motion_a_free_second_joint_does_not_circle() -> None:
    """The speed of the healthy robot is that of an independent model with exact joint motion: 0.347 m/s."""
    shift = math.radians(32.5)
    motion = judge(crawl([Trial(joint, shift, start) for joint in (0, 2) for start in (0.0, 1.6)], 12, spec=IMPOSED))
    assert motion.speed_m_s[:2] == pytest.approx(0.347, rel=0.03)
    assert motion.goes_on.all()


def test_heads_end_where_they_cross_the_line() -> None:
    x = np.linspace(0.0, 6.4, 65)
    there, short = np.stack([x, 0.5 * x], axis=1), np.stack([0.4 * x, -x], axis=1)
    assert end_points(paths(there, short)) == pytest.approx(np.array([[3.2, 1.6], [2.56, -6.4]]))


def test_servo_speed_and_no_slip_alone_give_the_fastest_gait() -> None:
    shift, rate = math.radians(32.5), float(FAST.joints("actuator.speed_limit_rad_s")[0])
    motion = judge(crawl([Trial(0, shift, frequency_rad_s=rate / AMPLITUDE_RAD)], 8, spec=FAST))
    assert motion.speed_m_s[0] == pytest.approx(no_slip_speed(shift), rel=0.05)


def test_iterations_never_get_worse_and_hold_by_construction() -> None:
    steps = iterate(seconds=2.0)
    best = [float(step.error.min()) for step in steps]
    assert len(steps) == N_ITERATIONS and best == sorted(best, reverse=True) and best[-1] < best[0]
    (claim,) = claims_about_iterations(steps)
    assert claim.verdict == "by construction" and claim.measured == pytest.approx(100.0 * best[-1])
