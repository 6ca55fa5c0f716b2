"""Rerun of irani2015: joint power failures of Robo-Conda 1, and its friction from logs.

``crawling`` runs and judges trials and scans them over the phase shifts, ``claims`` judges the paper's statements;
``performance`` has the fastest and tightest motion, ``friction`` identifies the coefficients again.
"""

from __future__ import annotations

import numpy as np

from papers.irani2015.claims import JUDGES, failure_table
from papers.irani2015.crawling import IMPOSED, scan
from papers.irani2015.figures import FIGURES, Results
from papers.irani2015.friction import claims_about_fits, claims_about_iterations, fit_table, iterate, search
from papers.irani2015.performance import CLAIMS, perform
from papers.study import Advance, Study, stage

SHIFTS_DEG = (*np.arange(10.0, 20.0, 5.0), *np.arange(20.0, 42.5, 2.5), *np.arange(45.0, 92.5, 5.0))
QUICK_SHIFTS_DEG = (25.0, 32.5, 40.0, 60.0)
SHOWN_DEG = 32.5
"""Phase shift of the pictures: most kinds of motion are there."""
N_SEEDS = 3


def _experiment(quick: bool, advance: Advance) -> Results:
    shifts, n_starts = (QUICK_SHIFTS_DEG, 2) if quick else (tuple(map(float, SHIFTS_DEG)), 4)
    result = scan(shifts, n_starts, stage(advance, 0.0, 0.25))
    imposed = scan(shifts, n_starts, stage(advance, 0.25, 0.5), IMPOSED)
    advance(0.5, "fastest and tightest gaits, heads at the finish line")
    performance = perform(result.shifts_rad, float(np.radians(SHOWN_DEG)))
    iterations, fits = iterate(), [] if quick else search(N_SEEDS, stage(advance, 0.55, 1.0))
    judged, judged_imposed = ([judge(one) for judge in JUDGES] for one in (result, imposed))
    return Results(result, judged, imposed, judged_imposed, performance, iterations, fits)


STUDY = Study(
    name="irani2015",
    title="Robo-Conda 1: joint power failures, and identification of friction",
    citation="R. Irani, R. Bauer, L. North, M. Nicholson, D. Nolan, B. West: Analysis of Joint Failures on the Lateral "
    "Undulation Gait of a Robotic Snake. Transactions of the Canadian Society for Mechanical Engineering 39(2), "
    "2015",
    experiment=_experiment,
    claims=(
        lambda results: [
            judged.as_claim(results.scan, imposed)
            for judged, imposed in zip(results.judged, results.judged_imposed, strict=True)
        ],
        *(lambda results, judge=judge: judge(results.performance) for judge in CLAIMS),
        lambda results: claims_about_iterations(results.iterations),
        lambda results: claims_about_fits(results.fits),
    ),
    tables=(
        lambda results: failure_table(results.scan),
        lambda results: failure_table(results.imposed, "failures-imposed", "The same with imposed joint motion"),
        lambda results: fit_table(results.fits),
    ),
    figures=FIGURES,
    data=lambda results: {"shifts_deg": np.degrees(results.scan.shifts_rad), "n_starts": results.scan.starts_rad.size},
)
