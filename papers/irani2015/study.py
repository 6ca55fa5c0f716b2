"""The rerun of irani2015 as a study: failures over the phase shifts, identification, learned bias."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np

from papers.irani2015 import figures, identification_figures, learned_bias
from papers.irani2015.claims import JUDGES, circles
from papers.irani2015.crawling import N_JOINTS
from papers.irani2015.failures import FRONT, MIDDLE, REAR, Scan, drift, scan
from papers.irani2015.fit_results import claims_about_fits, fit_rows
from papers.irani2015.friction import compare_methods
from papers.irani2015.learning_results import claims_about_learning, learning_rows, locked_rows
from papers.study import Advance, Outcome, Table
from snake_gym.config import ConfigError
from snake_gym.simulation.identification.fit import Method

SHIFTS_DEG = (*np.arange(10.0, 20.0, 5.0), *np.arange(20.0, 42.5, 2.5), *np.arange(45.0, 92.5, 5.0))
QUICK_SHIFTS_DEG = (25.0, 32.5, 40.0, 60.0)
SHOWN_DEG = 32.5
"""Where most kinds of motion can be seen at once."""
LEARNING_SHIFTS_DEG = (32.5, 30.0, 35.0, 40.0, 50.0)

Rows = list[list[float | str | None]]


class Irani2015:
    """See ``papers.study.Study``."""

    name = "irani2015"
    title = "Robo-Conda 1: joint power failures, identification of friction, and a bias against drift"
    citation = (
        "R. Irani, R. Bauer, L. North, M. Nicholson, D. Nolan, B. West: Analysis of Joint Failures on the Lateral "
        "Undulation Gait of a Robotic Snake. Transactions of the CSME 39(2), 2015"
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--quick", action="store_true", help="four phase shifts, one identification: under a minute"
        )
        parser.add_argument("--shifts-deg", help="phase shifts to scan, such as 20,30,40 (10 to 90)")
        parser.add_argument("--starts", help="starting phases over half a gait period (4; quick: 2)")
        parser.add_argument("--seeds", help="noise seeds of the identification (3; quick: 1)")

    def run(self, options: argparse.Namespace, advance: Advance) -> Outcome:
        quick = bool(options.quick)
        shifts = _shifts(options.shifts_deg, quick)
        n_starts = _count(options.starts, "--starts", 2 if quick else 4)
        n_seeds = _count(options.seeds, "--seeds", 1 if quick else 3)
        result = scan(shifts, n_starts, SHOWN_DEG, _part(advance, 0.0, 0.5))
        judged = [judge(result) for judge in JUDGES]
        learning, backwards, locked = _learn(quick, n_starts, _part(advance, 0.5, 0.6))
        fits = compare_methods(_plan(quick, n_seeds), _part(advance, 0.6, 1.0))
        tables = [
            Table("failures", "Every failure at every phase shift", FAILURE_COLUMNS, failure_rows(result)),
            Table("learned_bias", "Course with and without a learned bias", *learning_rows((learning, *backwards))),
            Table("locked", "Ten-link servo robot, one joint locked aside", *locked_rows(locked)),
            Table("identification", "Coefficients found again from noisy logs", *fit_rows(fits)),
        ]
        pictures = [
            figures.claim_map(judged, result.shifts_rad), figures.all_paths(result), figures.kinds(result),
            figures.diameters(result), figures.middle_drift(result), identification_figures.learned(learning),
            identification_figures.coefficient_errors(fits),
        ]  # fmt: skip
        if any(fit.method == "avs" for fit in fits):
            pictures.append(identification_figures.search_progress(fits))
        claims = [claim.as_claim(result.shifts_rad) for claim in judged]
        claims += claims_about_learning(learning, locked) + claims_about_fits(fits)
        data = {"shifts_deg": list(shifts), "n_starts": n_starts, "n_seeds": n_seeds, "quick": quick}
        return Outcome(claims, tables, pictures, data)


def _learn(
    quick: bool, n_starts: int, advance: Advance
) -> tuple[learned_bias.Learning, list[learned_bias.Learning], list[learned_bias.LockedJoints]]:
    """Failures that move on, front failures both ways, locked joints."""
    shifts = LEARNING_SHIFTS_DEG[: 1 if quick else None]
    advance(0.0, "learned bias")
    rear = learned_bias.learn((MIDDLE, *REAR), shifts, n_starts)
    others = [learned_bias.learn(FRONT, shifts, n_starts, backwards) for backwards in (False, True)]
    locked = [learned_bias.learn_with_locked_joints(math.radians(angle)) for angle in (20.0, 40.0)[: 1 if quick else 2]]
    return rear, others, locked


def _plan(quick: bool, n_seeds: int) -> list[tuple[Method, str, int]]:
    starts = ("20 % off",) if quick else ("paper's", "20 % off")
    methods: tuple[Method, ...] = ("least_squares",) if quick else ("least_squares", "avs")
    return [(method, start, seed) for method in methods for start in starts for seed in range(n_seeds)]


FAILURE_COLUMNS = (
    "phase shift [deg]", "failed joint", "moves on [%]", "turns back [%]", "stalls [%]", "circle [m]", "speed [m/s]",
    "drift [m]", "backwards: moves on [%]", "backwards: speed [m/s]",
)  # fmt: skip


def failure_rows(result: Scan) -> Rows:
    """One row for each phase shift and joint; means and medians over the starts."""
    diameter, off = circles(result), drift(result)
    rows: Rows = []
    for i, shift in enumerate(np.degrees(result.shifts_rad).tolist()):
        for joint in range(N_JOINTS + 1):
            ahead, back = result.forwards, result.backwards
            known = off[i, joint][np.isfinite(off[i, joint])]
            shares = [float(100.0 * kind[i, joint].mean()) for kind in (ahead.goes_on, ahead.turns_back, ahead.stalls)]
            rows.append(
                [
                    shift, "none" if joint == 0 else f"J{joint}", *shares,
                    float(diameter[i, joint]) if math.isfinite(diameter[i, joint]) else None,
                    float(ahead.speed_m_s[i, joint].mean()), float(np.median(known)) if known.size else None,
                    float(100.0 * back.goes_on[i, joint].mean()), float(back.speed_m_s[i, joint].mean()),
                ]
            )  # fmt: skip
    return rows


def _part(advance: Advance, begin: float, end: float) -> Advance:
    return lambda share, what: advance(begin + share * (end - begin), what)


def _shifts(text: str | None, quick: bool) -> Sequence[float]:
    if text is None:
        return QUICK_SHIFTS_DEG if quick else tuple(float(shift) for shift in SHIFTS_DEG)
    try:
        shifts = sorted({float(part) for part in text.split(",")})
    except ValueError:
        raise ConfigError(f"--shifts-deg is {text!r}; expected degrees such as 20,30,40") from None
    for shift in shifts:
        if not 10.0 <= shift <= 90.0:
            near = min(max(shift, 10.0), 90.0)
            raise ConfigError(f"--shifts-deg has {shift:g}; expected 10 to 90 (nearest: {near:g})")
    return shifts


def _count(text: str | None, where: str, default: int) -> int:
    if text is None:
        return default
    if not text.isdigit() or not 1 <= int(text) <= 64:
        raise ConfigError(f"{where} is {text!r}; expected a number from 1 to 64")
    return int(text)


STUDY = Irani2015()
