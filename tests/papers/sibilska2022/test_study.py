"""What the study makes of its runs: verdicts from made-up numbers, limits from made-up angles, and a quick run."""

from __future__ import annotations

import argparse
import math

import numpy as np
import pytest

from papers.pictures import draw_png
from papers.sibilska2022 import BROKEN_SETS, PAPER_S, STUDY, Case, failure_figures, figures
from papers.sibilska2022.amplitude import Comparison, amplitude_claims, amplitude_table
from papers.sibilska2022.arrivals import arrival_claims
from papers.sibilska2022.experiment import simulate
from papers.sibilska2022.failures import (
    DOUBLES,
    SINGLES,
    Survey,
    failures_claims,
    failures_table,
    worst_table,
)
from papers.sibilska2022.limits import limit_claims, limits_table
from papers.sibilska2022.recording import LIMIT_RAD, Recorder, Recording
from papers.study import Claim


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    STUDY.add_options(parser)
    return parser.parse_args(list(words))


def published_arrivals(factor: float = 1.0) -> dict[Case, np.ndarray]:
    """Last arrivals as published, times a factor; earlier ones in equal steps; where there is none, 300 s."""
    cases = [Case(p, "published", c, b) for b in BROKEN_SETS for p in ("centre", "head") for c in ("sjc", "cc")]
    return {
        case: factor * PAPER_S.get((case.point, case.controller, case.broken), 300.0) * np.arange(1, 6) / 5.0
        for case in cases
    }


def find(claims: list[Claim], part: str) -> Claim:
    (claim,) = [claim for claim in claims if part in claim.text]
    return claim


def recording(duration_s: float, peak_deg: float, outside_s: float) -> Recording:
    time = np.linspace(0.0, duration_s, 50)
    angle = math.radians(peak_deg) * np.sin(time)[:, None] * np.ones(9)
    path = np.stack([np.linspace(0.0, 8.0, 50), np.sin(time)], axis=1)
    return Recording(time, angle, path, duration_s, outside_s, np.full(9, outside_s), math.radians(peak_deg))


def test_arrivals_as_published_are_reproduced_and_others_not() -> None:
    same = arrival_claims(published_arrivals())
    assert len(same) >= 16 and {claim.verdict for claim in same} == {"reproduced"}
    late = arrival_claims(published_arrivals(1.05))
    assert {claim.verdict for claim in late if claim.published} == {"partly"}
    never = published_arrivals()
    never[Case("head", "published", "cc", (3, 5, 6))][-1] = np.nan
    claims = arrival_claims(never)
    assert find(claims, "All targets are reached").verdict == "partly"
    assert find(claims, "CC guided by the head, joints 3, 5, 6").verdict == "not"


def test_limits_are_counted_step_by_step() -> None:
    recorder = Recorder(2, 9, dt_s=0.5)
    angles = np.zeros((2, 9))
    for step in range(30):
        angles[0, 3] = LIMIT_RAD + (0.01 if step % 3 == 0 else -0.01)
        under_way = np.array([0, 1]) if step < 10 else np.array([0])
        recorder(0.5 * (step + 1), under_way, angles[under_way], np.full((under_way.size, 2), float(step)))
    cases = [Case("centre", "published", "sjc", ()), Case("centre", "published", "cc", ())]
    first, second = recorder.recordings(cases).values()
    assert first.duration_s == 15.0 and first.outside_s == 5.0 and first.outside == pytest.approx(1 / 3)
    assert first.joint_outside_s.tolist() == [0, 0, 0, 5.0, 0, 0, 0, 0, 0]
    assert first.peak_rad == pytest.approx(LIMIT_RAD + 0.01)
    assert second.duration_s == 5.0 and second.outside_s == 0.0 and len(second.time_s) == 1
    assert first.time_s.tolist() == [0.5, 6.5, 12.5] and first.tracked_xy[:, 0].tolist() == [0.0, 12.0, 24.0]


def test_the_recorder_sees_the_runs_as_they_are_numbered() -> None:
    """Head runs of the published model are simulated last, whatever their place in the list."""
    cases = [Case("head", "published", "sjc", (3,)), Case("centre", "published", "sjc", ())]
    recorder = Recorder(2, 9)
    arrivals = simulate(cases, n_targets=1, time_limit_s=60.0, on_step=recorder)
    head, centre = recorder.recordings(cases).values()
    assert head.duration_s == pytest.approx(arrivals[0, 0]) and centre.duration_s == pytest.approx(arrivals[1, 0])
    assert np.ptp(head.joint_angle[:, 2]) < 1e-9 < np.ptp(centre.joint_angle[:, 2])  # joint 3 is broken


def test_claims_about_limits_can_turn_out_either_way() -> None:
    def runs(centre_deg: float, head_deg: float, cc_factor: float) -> dict[Case, Recording]:
        return {
            Case(point, "published", controller, broken): recording(
                (cc_factor if controller == "cc" else 1.0) * 290.0,
                {"centre": centre_deg, "head": head_deg}[point],
                10.0
                * (2.0 if (controller == "cc") == (len(broken) > 1) else 1.0)
                * (2.0 if point == "centre" else 1.0),
            )
            for broken in BROKEN_SETS
            for point in ("centre", "head")
            for controller in ("sjc", "cc")
        }

    good = limit_claims(runs(45.0, 38.0, 1.0))
    assert find(good, "All sixteen").verdict == find(good, "larger angles than guided").verdict == "reproduced"
    assert find(good, "stay close").verdict == find(good, "slightly less").verdict == "reproduced"
    assert find(good, "With three broken").verdict == "reproduced"
    bad = limit_claims(runs(60.0, 70.0, 9.0))
    for part in ("All sixteen", "stay close", "larger angles than guided"):
        assert find(bad, part).verdict == "not"
    assert limit_claims({}) == [] and len(limits_table(runs(45.0, 38.0, 1.0)).rows) == 16


def comparison(sjc: float, raised: float, wave: float, cc: float, lowered: float) -> Comparison:
    arrival = np.array([[sjc, raised, wave, cc, lowered]])[:, :, None] * np.array([0.9, 1.0, 1.2])
    return Comparison([(3,)], np.full((1, 5), 0.3), np.full((1, 5), 0.2), arrival, 5)


def test_what_is_left_at_equal_amplitude() -> None:
    half = comparison(400.0, 350.0, 310.0, 300.0, 350.0)
    assert half.left(1)[0] == pytest.approx(0.5) and half.left(2)[0] == pytest.approx(0.1)
    assert half.left_when_reduced()[0] == pytest.approx(0.5)
    assert amplitude_claims(half)[0].verdict == "partly"
    assert amplitude_claims(comparison(400.0, 390.0, 390.0, 300.0, 310.0))[0].verdict == "reproduced"
    assert amplitude_claims(comparison(400.0, 310.0, 300.0, 300.0, 390.0))[0].verdict == "not"
    assert amplitude_claims(comparison(300.0, 310.0, 300.0, 400.0, 390.0)) == []  # no advantage to explain
    assert amplitude_table(half).rows[0][:2] == ["3", "SJC"] and len(amplitude_table(half).rows) == 5


def survey(ratio: float, lost: bool = False) -> Survey:
    sets = ((), *SINGLES, *DOUBLES)
    sjc = 300.0 + 10.0 * np.arange(len(sets))
    times = np.stack([sjc, ratio * sjc], axis=1)[None]
    if lost:
        times[0, 5:] = np.inf
    return Survey(("locked",), sets, times, np.zeros_like(times), 5, 3000.0)


def test_a_survey_of_failures() -> None:
    assert [failures_claims(survey(ratio))[0].verdict for ratio in (0.9, 1.02, 1.1)] == [
        "reproduced",
        "reproduced",
        "not",
    ]
    claim = failures_claims(survey(0.9, lost=True))[0]
    assert claim.verdict == "partly" and "SJC does not arrive in 41, CC in 41 of all" in claim.note
    single, double = failures_table(survey(0.9)).rows
    assert single[:4] == ["locked", 1, 9, 9] and double[:4] == ["locked", 2, 36, 36] and double[-1] == 0.9
    rows = worst_table(survey(0.9)).rows
    assert len(rows) == 10 + 5 and rows[10][1] == "8,9" and rows[10][2] == 750.0
    grid = survey(0.9).grid("locked", "cc")
    assert grid[0, 0] == pytest.approx(0.9 * 310.0) and grid[8, 7] == grid[7, 8] == pytest.approx(0.9 * 750.0)


def test_figures_can_be_drawn_from_anything_that_a_run_may_give() -> None:
    arrivals = published_arrivals()
    recordings = {case: recording(300.0, 45.0, 10.0) for case in arrivals if case.broken in ((), (3,))}
    drawn = [
        *figures.figures(arrivals, recordings),
        *failure_figures.figures(comparison(400.0, 350.0, 310.0, 300.0, 350.0), survey(0.9, lost=True)),
    ]
    assert [figure.name for figure in drawn] == [
        *("arrivals", "paths-centre", "paths-head", "joint-angles-none", "joint-angles-3"),
        *("equal-amplitude", "pairs-locked"),
    ]
    for figure in (drawn[0], drawn[-1]):
        assert draw_png(figure).startswith(b"\x89PNG")
    assert all(figure.caption.endswith(".") for figure in drawn)


@pytest.mark.slow
def test_a_quick_run() -> None:
    shares: list[float] = []
    outcome = STUDY.run(options("--quick"), lambda share, doing: shares.append(share))
    assert shares == sorted(shares) and 0.9 < shares[-1] <= 1.0
    assert find(list(outcome.claims), "SJC guided by the centre, joint 3").verdict == "reproduced"
    assert {table.name for table in outcome.tables} >= {"arrivals", "joint-limits", "equal-amplitude", "failures"}
    assert len(outcome.figures) >= 6 and outcome.single_runs is None
