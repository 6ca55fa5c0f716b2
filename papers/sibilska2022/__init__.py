"""Rerun of sibilska2022: resilient control of a snake robot with broken joints, single-joint (SJC) or coupled (CC).

Parts: the 16 published simulations and the head runs with consistent physics (``experiment``), judged by ``claims``; CC
against SJC at equal amplitude (``amplitude``); every single and double failure, locked, free and weak (``failures``). A
quick run has two fault sets guided by the centre, no weak joints, and beyond the paper fewer targets and start
directions.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from papers.sibilska2022 import figures
from papers.sibilska2022.amplitude import (
    START_ANGLES_RAD,
    Comparison,
    amplitude_claims,
    amplitude_table,
    compare_at_equal_amplitude,
)
from papers.sibilska2022.claims import (
    Arrivals,
    Draws,
    arrival_claims,
    arrival_table,
    joints,
    limit_claims,
    limits_table,
    solver_table,
)
from papers.sibilska2022.experiment import (
    BROKEN_SETS,
    COUPLING,
    DT_S,
    FIRST_STEPS_S,
    PROGRAM,
    TARGETS,
    TIME_LIMIT_S,
    Broken,
    Case,
    Recorder,
    Recordings,
    as_rows,
    select_cases,
    simulate,
    simulate_as_published,
)
from papers.sibilska2022.failures import (
    DOUBLES,
    SINGLES,
    Survey,
    as_data,
    failures_claims,
    failures_table,
    survey_failures,
    worst_table,
)
from papers.study import Advance, Claim, Option, Outcome, Study, number, one_of, stage
from snake_gym.config import ConfigError
from snake_gym.config.errors import show
from snake_gym.controllers.serpenoid import GaitConfig
from snake_gym.robot.presets import RESILIENT

_QUICK_SETS = BROKEN_SETS[:2]
_QUICK_FAILED = ((), *SINGLES, *DOUBLES)
_QUICK_TARGETS = 1


class Results(NamedTuple):
    """Results of all simulations of the study."""

    arrivals: Arrivals
    draws: Draws
    recordings: Recordings
    comparison: Comparison
    survey: Survey

    @property
    def rows(self) -> list[dict[str, object]]:
        """Arrivals as JSON rows."""
        return as_rows(list(self.arrivals), np.array(list(self.arrivals.values())))

    @property
    def solver_rows(self) -> list[dict[str, object]]:
        """Arrivals by the published solver as JSON rows, with ``first_step_s``."""
        return [
            {**row, "first_step_s": step}
            for case, times in self.draws.items()
            for row, step in zip(as_rows([case] * len(times), times), FIRST_STEPS_S, strict=False)
        ]


def _experiment(options: argparse.Namespace, advance: Advance) -> Results | Outcome:
    single = (options.point, options.model, options.controller, options.broken, options.amplitude_deg)
    asked_for_single_runs = any(value is not None for value in (*single, options.solver))
    cases = select_cases(*single[:4])
    if options.quick and not asked_for_single_runs:
        cases = [case for case in select_cases("centre") if case.broken in _QUICK_SETS]
    amplitude = GaitConfig.amplitude_rad
    if options.amplitude_deg is not None:
        amplitude = math.radians(options.amplitude_deg)
    reached, total = 0, len(cases) * len(TARGETS)

    def report(more: int, time_s: float) -> None:
        nonlocal reached
        reached += more
        share = reached / total if asked_for_single_runs else 0.3 * reached / total
        advance(share, f"{reached} of {total} targets reached by {time_s:.0f} s")

    if options.solver == "published":
        drawn = _draw(cases, FIRST_STEPS_S[:1], amplitude, options.time_limit_s, advance)
        times = np.array([arrivals[0] for arrivals in drawn.values()])
        rows = as_rows(cases, times, amplitude == GaitConfig.amplitude_rad)
        return Outcome((), (arrival_table(rows),), single_runs=rows)
    recorder = Recorder(len(cases))
    times = simulate(cases, amplitude, time_limit_s=options.time_limit_s, on_progress=report, recorder=recorder)
    if asked_for_single_runs:
        rows = as_rows(cases, times, amplitude == GaitConfig.amplitude_rad)
        return Outcome((), (arrival_table(rows),), single_runs=rows)
    arrivals: dict[Case, np.ndarray] = dict(zip(cases, times, strict=True))
    published = [case for case in cases if case.model == "published"]
    steps = FIRST_STEPS_S[: 2 if options.quick else None]
    draws = _draw(published, steps, amplitude, options.time_limit_s, stage(advance, 0.3, 0.6))
    return Results(arrivals, draws, recorder.recordings(cases), *_beyond_the_paper(options.quick, advance))


def _draw(
    cases: Sequence[Case], first_steps_s: Sequence[float], amplitude_rad: float, time_limit_s: float, advance: Advance
) -> Draws:
    """Return arrivals by the published solver, one row for each first step."""
    draws = {}
    for index, case in enumerate(cases):
        advance(index / len(cases), f"published solver, {case.point} {case.controller} {joints(case.broken, ',')}")
        draws[case] = np.array([
            simulate_as_published(case, amplitude_rad, step, time_limit_s=time_limit_s) for step in first_steps_s
        ])  # fmt: skip
    return draws


def _beyond_the_paper(quick: bool, advance: Advance) -> tuple[Comparison, Survey]:
    equal = stage(advance, 0.6, 0.8, "CC against SJC at equal amplitude")
    failing = stage(advance, 0.8, 1.0, "every single and double failure")
    if not quick:
        return compare_at_equal_amplitude(BROKEN_SETS, on_progress=equal), survey_failures(on_progress=failing)
    starts = START_ANGLES_RAD[3:6]
    return (
        compare_at_equal_amplitude(_QUICK_SETS, starts, _QUICK_TARGETS, on_progress=equal),
        survey_failures(("locked", "free"), _QUICK_FAILED, (0.0,), _QUICK_TARGETS, 600.0, on_progress=failing),
    )


def _limit_claims(results: Results) -> list[Claim]:
    complete = all(np.isfinite(times).all() for times in results.arrivals.values())
    return limit_claims(results.recordings) if complete else []  # else they are about runs that were cut off


def _read_joints(text: str, flag: str) -> Broken:
    """Return joint numbers from text such as ``2,7``; ``none`` gives no joint."""
    if text.strip().lower() in ("none", ""):
        return ()
    n = RESILIENT.n_joints
    joints = []
    for part in text.split(","):
        try:
            joint = int(part)
        except ValueError:
            raise ConfigError(f"{flag} is {show(text)}; expected joint numbers such as 3,5,8, or none") from None
        if not 1 <= joint <= n:
            nearest = min(max(joint, 1), n)
            raise ConfigError(f"{flag} names joint {joint}; expected joints from 1 to {n} (nearest: {nearest})")
        if joint in joints:
            raise ConfigError(f"{flag} names joint {joint} twice; expected each joint once")
        joints.append(joint)
    return tuple(joints)


_SINGLE = ("single runs", "with any of these, only the runs that they select, and no study")

STUDY = Study(
    name="sibilska2022",
    title="Resilient control of a snake robot: single-joint against coupled control with broken joints",
    citation="A. Sibilska-Mroziewicz, J. Możaryn, A. Hameed, M. Molina Fernández, A. Ordys: Framework for "
    "simulation-based control design evaluation for a snake robot as an example of a multibody robotic system. "
    "Multibody System Dynamics, 2022. doi:10.1007/s11044-022-09830-3",
    quick="some of the runs, in seconds",
    options=(
        Option("--time-limit-s", "give up after (%(default)s)", number("seconds from 1 to 1e5", 1.0, 1e5),
               str(TIME_LIMIT_S)),
        Option("--point", "centre or head: what is guided to the targets", one_of("centre", "head"), group=_SINGLE),
        Option("--model", "published or consistent (they differ for the head only)",
               one_of("published", "consistent"), group=_SINGLE),
        Option("--solver", "exact (Runge-Kutta in small steps) or published (as the authors' program integrates)",
               one_of("exact", "published"), group=_SINGLE),
        Option("--controller", "sjc or cc", one_of(*COUPLING), group=_SINGLE),
        Option("--broken", "joints that get no control signal: 2,7 (1 is the tail's), or none", _read_joints,
               group=_SINGLE),
        Option("--amplitude-deg", "amplitude of the gait (20)", number("degrees from 0 to 90", 0.0, 90.0),
               group=_SINGLE),
    ),
    experiment=_experiment,
    claims=(
        lambda results: arrival_claims(results.arrivals, results.draws),
        _limit_claims,
        lambda results: amplitude_claims(results.comparison),
        lambda results: failures_claims(results.survey),
    ),
    tables=(
        lambda results: arrival_table(results.rows),
        lambda results: solver_table(results.draws, results.arrivals),
        lambda results: limits_table(results.recordings),
        lambda results: amplitude_table(results.comparison),
        lambda results: failures_table(results.survey),
        lambda results: worst_table(results.survey),
    ),
    figures=(
        lambda results: figures.draw_published(results.arrivals, results.draws, results.recordings),
        lambda results: figures.draw_beyond(results.comparison, results.survey),
    ),
    data=lambda results: {
        "runs": results.rows, "published_solver": results.solver_rows, "step_s": DT_S, "program": PROGRAM,
        "failures": as_data(results.survey),
    },
)  # fmt: skip
