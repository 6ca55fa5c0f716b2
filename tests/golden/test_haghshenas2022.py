"""The published numbers of haghshenas2022 by the code that users run; both paths are slow.

Tolerances are relative; bounds (least, most, corner) are one-sided.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from papers.haghshenas2022 import GAIT_RAD_S, LENGTH_TOLERANCE, STUDY
from papers.haghshenas2022.runs import (
    CONTROLLER,
    PUBLISHED,
    SHARP,
    examine,
    follow,
    gait_speed,
    length_range_mm,
)
from papers.record import draw_png

with (Path(__file__).parent / "haghshenas2022.csv").open(newline="") as _file:
    GOLDEN = {row["quantity"]: row for row in csv.DictReader(_file)}


def golden(quantity: str) -> float:
    row = GOLDEN[quantity]
    assert row["source"] and row["unit"]
    return float(row["value"])


def close(quantity: str, measured: float) -> None:
    assert measured == pytest.approx(golden(quantity), rel=float(GOLDEN[quantity]["tolerance"])), quantity


def silent(share: float) -> None:
    assert 0.0 <= share <= 1.0


def test_muscle_forces_have_the_rank_of_the_joints() -> None:
    inverse = examine(20, 1)
    close("rank", inverse.rank)
    assert inverse.centre_share < 1e-12, "internal forces do not move the centre of mass"
    assert (inverse.missed > 0.05).all()
    assert inverse.kinetic_share == pytest.approx(1.0 / 6.0)


def test_friction_does_not_carry_the_published_gait_at_the_published_speed() -> None:
    assert 0.1 < gait_speed(GAIT_RAD_S, 6) < 0.7 * golden("mean_circle")


@pytest.mark.slow
def test_the_whole_circle() -> None:
    run = follow("circle", "tangent", 100.0, CONTROLLER, silent)
    speed = run.speed[run.settled]
    close("mean_circle", float(speed.mean()))
    assert speed.min() >= golden("least_circle") and speed.max() <= golden("most_circle")
    close("rise_circle", run.rise_s)
    assert run.deviation_m < 0.25 * 0.6
    short, long = length_range_mm(run)
    close("length_circle", float(short[0, 1]))
    np.testing.assert_allclose(short, PUBLISHED["circle"].shortest_mm, rtol=LENGTH_TOLERANCE)
    np.testing.assert_allclose(long, PUBLISHED["circle"].longest_mm, rtol=LENGTH_TOLERANCE)


@pytest.mark.slow
def test_the_whole_square() -> None:
    for ahead, controller in (("path", CONTROLLER), ("tangent", SHARP)):
        run = follow("square", ahead, 140.0, controller, silent)  # type: ignore[arg-type]
        close("mean_square", float(run.speed[run.settled].mean()))
        assert run.deviation_m <= golden("corner_square")
        assert run.muscle_force_n.min() > 0.0, "muscles only pull"


@pytest.mark.slow
def test_a_quick_run_draws_and_tables_everything() -> None:
    outcome = STUDY.run(True, lambda share, doing: silent(share))
    assert len(outcome.claims) == 16 and [len(table.rows) for table in outcome.tables] == [5, 20]
    for figure in outcome.figures:
        assert draw_png(figure).startswith(b"\x89PNG")
