"""What wang claims, by the code that users run: some boards in seconds, the whole study marked slow.

The paper has no numbers. Values are what its equations or the bars ask for; tolerances are absolute, in the value's
unit, and one-sided where the value is a bound (crossed at least, energy at most).
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from papers.study import Claim, Outcome
from papers.wang import STUDY
from papers.wang.runs import (
    CONTROLLER,
    EQ32,
    LINK_M,
    SETTLED_S,
    STRONG,
    cross_boards,
    follow_trajectory,
    free_course,
    free_link_impulse,
    joint_error_deg,
    linearization_error,
    pegboard_courses,
)

with (Path(__file__).parent / "wang.csv").open(newline="") as _file:
    GOLDEN = {row["quantity"]: row for row in csv.DictReader(_file)}


def within(quantity: str, measured: float) -> None:
    row = GOLDEN[quantity]
    assert row["source"] and row["unit"]
    assert abs(measured - float(row["value"])) <= float(row["tolerance"]), f"{quantity}: {measured} {row['unit']}"


def silent(share: float) -> None:
    assert 0.0 <= share <= 1.0


def test_dense_boards_are_crossed_without_penetration_or_energy() -> None:
    boards = cross_boards(12, 1.2, True, 1000, silent)
    within("crossed", 100.0 * float(boards.crossed.mean()))
    within("penetration", 100.0 * float(boards.penetration_m.max()) / LINK_M)
    within("energy_gain", max(0.0, float(boards.energy_gain_j.max())))
    assert boards.most_contacts.max() >= 1.0 and boards.peak_force_n.max() > 1.0, "pegs are touched"


def test_boards_without_a_guaranteed_way_are_not_all_crossed() -> None:
    """At half the gaps of the densest guaranteed boards the robot gets through to the goal; at a quarter it sticks."""
    crossed = [cross_boards(6, gap, False, 1000, silent).crossed.mean() for gap in (0.6, 0.3)]
    assert crossed[0] >= 0.8 and crossed[1] < 0.5


def test_joints_accelerate_as_asked() -> None:
    within("linearization", linearization_error(8, 0))


def test_a_free_link_s_impulse_is_too_small_for_a_chain() -> None:
    impulse = free_link_impulse(200, 0)
    assert (impulse > -1e-9).all(), "a chain is never lighter than its link"
    assert np.median(impulse) > 0.3


def test_targets_are_reached_on_free_ground_and_among_pegs() -> None:
    within("targets_free", 100.0 * free_course(silent, 2).complete)
    within("targets_pegs", 100.0 * pegboard_courses(4, 1.0, 0, silent).complete)


@pytest.mark.slow
def test_a_trajectory_is_followed_with_feedforward_only() -> None:
    with_it = follow_trajectory(CONTROLLER, 25.0, silent)
    within("trajectory", float(np.abs(with_it.cross_track_m[with_it.time_s > SETTLED_S]).max()))
    without = follow_trajectory(EQ32, 25.0, silent, STRONG)
    within("lag_eq32", joint_error_deg(without))
    assert joint_error_deg(with_it) < 1.0


@pytest.mark.slow
def test_the_whole_study() -> None:
    outcome = run_study(False)
    verdicts = {claim.text: claim.verdict for claim in outcome.claims}
    assert {verdict: text[:14] for text, verdict in verdicts.items() if verdict != "reproduced"} == {
        "not": "The impulse of", "by construction": "With the torqu", "partly": "The robot goes"
    }  # fmt: skip
    guaranteed, unknown = (claim for claim in outcome.claims if "dense pegboard" in claim.text)
    within("crossed", measured(guaranteed))
    assert guaranteed.verdict == "reproduced" and unknown.verdict == "partly"


def measured(claim: Claim) -> float:
    assert claim.measured is not None
    return claim.measured


def run_study(quick: bool) -> Outcome:
    return STUDY.run(quick, lambda share, doing: silent(share))
