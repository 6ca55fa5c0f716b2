"""Verdicts over a phase scan, from scans made by hand."""

from __future__ import annotations

import argparse
import math

import numpy as np
import pytest

from papers.irani2015 import STUDY
from papers.irani2015.claims import (
    NO,
    PARTLY,
    YES,
    judge_backwards,
    judge_bias,
    judge_circles,
    judge_forward,
    judge_middle_drift,
    judge_rear_drift,
    judge_second_joint,
    judge_widening,
)
from papers.irani2015.crawling import Paths
from papers.irani2015.failures import BIAS_RAD, BIASES_RAD, Scan
from papers.irani2015.motion import Motion
from snake_gym.config import ConfigError

CIRCLING = {2: 0.56, 3: 0.7, 4: 0.9, 5: 1.2, 6: 1.6}
"""Failed joint -> diameter [m]: the paper's story."""


def straight(shape: tuple[int, ...]) -> Motion:
    """Everything goes on at 0.3 m/s along x."""
    zero = np.zeros(shape)
    return Motion(zero + 0.3, zero.copy(), zero.copy(), zero + math.inf, zero.copy(), zero + 0.5)


def paper_s_scan(circling: dict[int, float]) -> Scan:
    """Two phase shifts, one start: in the first ``circling`` circle and J7 drifts, in the second nothing happens."""
    forwards, biased = straight((2, 14, 1)), straight((2, len(BIASES_RAD), 1))
    for joint, diameter in circling.items():
        forwards.turned_rad[0, joint] = 2.0 * math.pi
        forwards.diameter_m[0, joint] = diameter
        forwards.finish_y_m[0, joint] = math.nan
    forwards.finish_y_m[0, 7] = -1.5
    biased.finish_y_m[:] = -1.4
    biased.finish_y_m[0, BIASES_RAD.index(BIAS_RAD)] = 0.1
    empty = np.zeros((1, 14))
    nowhere = Paths(np.zeros((1, 14, 2)), np.zeros((1, 14, 2)), empty, empty)
    return Scan(np.radians([30.0, 60.0]), np.zeros(1), forwards, straight((2, 14, 1)), biased, nowhere, 0)


def test_the_paper_s_story_is_reproduced_where_it_happens() -> None:
    scan = paper_s_scan(CIRCLING)
    for judge in (judge_circles, judge_second_joint, judge_widening, judge_middle_drift, judge_bias, judge_backwards):
        judged = judge(scan)
        assert judged.grades.tolist() == [YES, NO], judged.short
        claim = judged.as_claim(scan.shifts_rad)
        assert claim.verdict == "reproduced" and "Holds at phase shifts of 30 deg" in claim.note
    assert judge_forward(scan).grades.tolist() == [YES, YES]
    assert judge_rear_drift(scan).grades[0] == YES
    assert judge_second_joint(scan).as_claim(scan.shifts_rad).measured == 0.56


def test_less_than_the_story_is_partly_or_not() -> None:
    two = paper_s_scan({2: 3.0, 3: 0.8})
    assert judge_circles(two).grades[0] == PARTLY
    assert judge_widening(two).grades[0] == NO
    assert judge_second_joint(two).grades[0] == NO
    assert judge_second_joint(two).as_claim(two.shifts_rad).verdict == "not"
    assert judge_circles(paper_s_scan({2: 0.56})).grades[0] == NO


def test_another_bias_than_three_degrees_is_partly() -> None:
    scan = paper_s_scan(CIRCLING)
    scan.biased.finish_y_m[0] = math.nan
    assert judge_bias(scan).grades.tolist() == [NO, NO]
    scan.biased.finish_y_m[0, BIASES_RAD.index(math.radians(1.0))] = 0.2
    assert judge_bias(scan).grades.tolist() == [PARTLY, NO]


def test_backwards_counts_only_where_it_helps() -> None:
    scan = paper_s_scan(CIRCLING)
    scan.backwards.speed_m_s[0, 3] = 0.0
    assert judge_backwards(scan).grades.tolist() == [PARTLY, NO]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shifts-deg", "5,30"], "--shifts-deg has 5; expected 10 to 90"),
        (["--shifts-deg", "wide"], "--shifts-deg is 'wide'; expected degrees"),
        (["--starts", "0"], "--starts is '0'; expected a number from 1 to 64"),
        (["--seeds", "many"], "--seeds is 'many'"),
    ],
)
def test_bad_options_are_one_clear_line(arguments: list[str], message: str) -> None:
    parser = argparse.ArgumentParser()
    STUDY.add_options(parser)
    with pytest.raises(ConfigError, match=message):
        STUDY.run(parser.parse_args(arguments), lambda share, doing: None)
