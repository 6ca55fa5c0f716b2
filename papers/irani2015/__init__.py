"""Rerun of irani2015: joint power failures of Robo-Conda 1, friction from logs, and a bias against the drift.

``crawling`` runs and judges trials and scans them over the phase shifts, ``claims`` judges the paper's statements;
``friction`` identifies the coefficients again, ``learned_bias`` is its future work.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from papers.irani2015 import figures, learned_bias
from papers.irani2015.claims import JUDGES, Judged, failure_table
from papers.irani2015.crawling import FRONT, IMPOSED, MIDDLE, REAR, Scan, scan
from papers.irani2015.friction import (
    Fit,
    Iteration,
    claims_about_fits,
    claims_about_iterations,
    compare_methods,
    fit_table,
    iterate,
)
from papers.irani2015.performance import Performance, perform, performance_claims, prediction_table
from papers.study import Advance, Figure, Option, Study, number, stage
from snake_gym.config import ConfigError
from snake_gym.simulation.identification.fit import Method

SHIFTS_DEG = (*np.arange(10.0, 20.0, 5.0), *np.arange(20.0, 42.5, 2.5), *np.arange(45.0, 92.5, 5.0))
QUICK_SHIFTS_DEG = (25.0, 32.5, 40.0, 60.0)
SHOWN_DEG = 32.5
"""Phase shift of the pictures and of Table 2: most kinds of motion are there."""
LEARNING_SHIFTS_DEG = (32.5, 30.0, 35.0, 40.0, 50.0)


class Results(NamedTuple):
    """Results of all runs of the study."""

    settings: dict[str, Any]
    scan: Scan
    judged: list[Judged]
    imposed: Scan
    """Scan with imposed joint motion, as in the paper's simulator."""
    judged_imposed: list[Judged]
    performance: Performance
    iterations: list[Iteration]
    learning: learned_bias.Learning
    """Runs with failures after which the robot moves on."""
    front: list[learned_bias.Learning]
    """Runs with front failures, head first and backwards."""
    fits: list[Fit]


def _experiment(options: argparse.Namespace, advance: Advance) -> Results:
    quick = options.quick
    shifts = options.shifts_deg or (QUICK_SHIFTS_DEG if quick else tuple(map(float, SHIFTS_DEG)))
    n_starts, n_seeds = options.starts or (2 if quick else 4), options.seeds or (1 if quick else 3)
    result = scan(shifts, n_starts, SHOWN_DEG, stage(advance, 0.0, 0.25))
    imposed = scan(shifts, n_starts, SHOWN_DEG, stage(advance, 0.25, 0.5), IMPOSED)
    advance(0.5, "fastest and tightest gaits, predictions")
    performance = perform(result.shifts_rad, float(result.shifts_rad[result.shown]))
    advance(0.53, "learned bias")
    learning_shifts = LEARNING_SHIFTS_DEG[: 1 if quick else None]
    learning = learned_bias.learn((MIDDLE, *REAR), learning_shifts, n_starts)
    front = [learned_bias.learn(FRONT, learning_shifts, n_starts, backwards) for backwards in (False, True)]
    starts = ("20 % off",) if quick else ("paper's", "20 % off")
    methods: tuple[Method, ...] = ("least_squares",) if quick else ("least_squares", "avs")
    plan = [(method, start, seed) for method in methods for start in starts for seed in range(n_seeds)]
    fits = compare_methods(plan, stage(advance, 0.6, 1.0))
    settings = {"shifts_deg": list(shifts), "n_starts": n_starts, "n_seeds": n_seeds, "quick": quick}
    judged, judged_imposed = ([judge(one) for judge in JUDGES] for one in (result, imposed))
    return Results(settings, result, judged, imposed, judged_imposed, performance, iterate(), learning, front, fits)


def _figures(results: Results) -> list[Figure]:
    result, fits = results.scan, results.fits
    return [
        figures.claim_map(results.judged, result.shifts_rad), figures.paper_frame(results.performance),
        figures.head_rates(results.performance), figures.iterations(results.iterations),
        figures.all_paths(result), figures.kinds(result),
        figures.diameters(result), figures.middle_drift(result), figures.learned(results.learning),
        figures.coefficient_errors(fits),
    ]  # fmt: skip


def _read_shifts(text: str, flag: str) -> Sequence[float]:
    try:
        shifts = sorted({float(part) for part in text.split(",")})
    except ValueError:
        raise ConfigError(f"{flag} is {text!r}; expected degrees such as 20,30,40") from None
    for shift in shifts:
        if not 10.0 <= shift <= 90.0:
            near = min(max(shift, 10.0), 90.0)
            raise ConfigError(f"{flag} has {shift:g}; expected 10 to 90 (nearest: {near:g})")
    return shifts


_COUNT = number("a number from 1 to 64", 1, 64, whole=True)

STUDY = Study(
    name="irani2015",
    title="Robo-Conda 1: joint power failures, identification of friction, and a bias against drift",
    citation="R. Irani, R. Bauer, L. North, M. Nicholson, D. Nolan, B. West: Analysis of Joint Failures on the Lateral "
    "Undulation Gait of a Robotic Snake. Transactions of the Canadian Society for Mechanical Engineering 39(2), "
    "2015",
    quick="four phase shifts, one identification: under a minute",
    options=(
        Option("--shifts-deg", "phase shifts to scan, such as 20,30,40 (10 to 90)", _read_shifts),
        Option("--starts", "starting phases over half a gait period (4; quick: 2)", _COUNT),
        Option("--seeds", "noise seeds of the identification (3; quick: 1)", _COUNT),
    ),
    experiment=_experiment,
    claims=(
        lambda results: [
            judged.as_claim(results.scan, imposed)
            for judged, imposed in zip(results.judged, results.judged_imposed, strict=True)
        ],
        lambda results: performance_claims(results.performance),
        lambda results: learned_bias.claim_about_learning(results.learning),
        lambda results: claims_about_iterations(results.iterations),
        lambda results: claims_about_fits(results.fits),
    ),
    tables=(
        lambda results: failure_table(results.scan),
        lambda results: failure_table(results.imposed, "failures-imposed", "The same with imposed joint motion"),
        lambda results: prediction_table(results.performance),
        lambda results: learned_bias.learning_table((results.learning, *results.front)),
        lambda results: fit_table(results.fits),
    ),
    figures=(_figures,),
    data=lambda results: results.settings,
)
