"""Published numbers of irani2015, and those of its rerun, by the code that users run."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from papers.irani2015 import STUDY
from papers.irani2015.crawling import AMPLITUDE_RAD, FINISH_M, FREQUENCY_RAD_S, Motion, Trial, crawl, judge
from papers.irani2015.friction import TABLE_1, coefficients, record
from snake_gym.robot.presets import ROBO_CONDA
from snake_gym.simulation.identification import identify

with (Path(__file__).parent / "irani2015.csv").open(newline="") as file:
    GOLDEN = {row["quantity"]: row for row in csv.DictReader(file)}

SHIFT = math.radians(32.5)
STARTS = (0.0, 0.5 * math.pi)


def golden(quantity: str) -> object:
    row = GOLDEN[quantity]
    assert row["unit"] and row["source"].startswith("irani2015")
    return pytest.approx(float(row["value"]), rel=float(row["tolerance"]))


def motion(*trials: Trial) -> Motion:
    return judge(crawl(trials, 15), np.array([trial.backwards for trial in trials]))


def test_the_robot_and_its_gait_are_the_paper_s() -> None:
    assert ROBO_CONDA.link_mass_kg == golden("module_mass")
    assert ROBO_CONDA.link_inertia_kgm2 == golden("module_inertia")
    assert ROBO_CONDA.length_m == golden("length")
    assert math.degrees(AMPLITUDE_RAD) == golden("amplitude")
    assert math.degrees(FREQUENCY_RAD_S) == golden("frequency")
    assert golden("finish") == FINISH_M


def test_front_failures_circle_and_rear_ones_go_on() -> None:
    failures = motion(*(Trial(joint, SHIFT, start) for joint in (2, 3, 0, 7, 10, 13) for start in STARTS))
    assert failures.turns_back[:4].all()
    assert failures.goes_on[4:].all()
    for place, quantity in ((0, "j2_circle"), (1, "j2_circle"), (2, "j3_circle"), (3, "j3_circle")):
        assert failures.diameter_m[place] == golden(quantity)
    np.testing.assert_allclose(failures.speed_m_s[4:6], float(GOLDEN["speed"]["value"]), rtol=0.01)
    off = np.abs(failures.finish_y_m.reshape(6, 2) - failures.finish_y_m.reshape(6, 2)[2])
    assert off[3].max() == golden("j7_drift")
    assert off[4:].max() < 0.5 * off[3].max()


def test_front_failures_go_on_backwards() -> None:
    backwards = motion(*(Trial(joint, SHIFT, 0.0, 0.0, True) for joint in (2, 3, 4, 5, 6)))
    assert backwards.goes_on.all()
    assert np.abs(backwards.turned_rad).max() < math.radians(60.0)
    assert np.isfinite(backwards.finish_y_m).all()


def test_three_degrees_of_bias_are_too_much() -> None:
    biased = motion(*(Trial(7, SHIFT, 0.0, math.radians(bias)) for bias in (-3.0, 3.0, -1.0)))
    for side in (0, 1):
        assert biased.diameter_m[side] == golden("j7_circle_bias")
        assert math.isnan(biased.finish_y_m[side])
    assert abs(biased.finish_y_m[2]) < 1.0, "one degree brings it to the line"


@pytest.mark.slow
def test_least_squares_finds_table_1_again() -> None:
    found = identify(record(seed=5, seconds=3.0), ROBO_CONDA, coefficients())
    for name in TABLE_1:
        assert found.values[name] == golden(name), name


@pytest.mark.slow
def test_the_study_holds_what_it_claims() -> None:
    outcome = STUDY.run(True, lambda share, doing: None)
    verdicts = {claim.source + claim.text[:20]: claim.verdict for claim in outcome.claims}
    assert list(verdicts.values()).count("partly") >= 6, "what holds at some phase shifts"
    circle = next(claim for claim in outcome.claims if claim.published == 0.56)
    assert circle.verdict == "not"
    assert all(len(row) == len(table.columns) for table in outcome.tables for row in table.rows)
