"""The study of sibilska2022: the published simulations against its claims, and what it does not ask.

Parts: the 16 published simulations and the head runs with consistent physics (``experiment``), their joints and paths
(``recording``, ``limits``); CC against SJC at equal amplitude (``amplitude``); every single and double failure, locked,
free and weak (``failures``). A quick run has two fault sets guided by the centre, no weak joints, and beyond the paper
fewer targets and start directions.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from papers.sibilska2022 import failure_figures, figures
from papers.sibilska2022 import options as study_options
from papers.sibilska2022.amplitude import (
    START_ANGLES_RAD,
    Comparison,
    amplitude_claims,
    amplitude_table,
    compare_at_equal_amplitude,
)
from papers.sibilska2022.arrivals import Arrivals, arrival_claims, arrival_table
from papers.sibilska2022.experiment import (
    BROKEN_SETS,
    COURSE,
    DT_S,
    Case,
    as_rows,
    select_cases,
    simulate,
)
from papers.sibilska2022.failures import (
    DOUBLES,
    SINGLES,
    Survey,
    failures_claims,
    failures_table,
    survey_failures,
    worst_table,
)
from papers.sibilska2022.limits import limit_claims, limits_table
from papers.sibilska2022.recording import Recorder
from papers.study import Advance, Outcome
from papers.waypoint_runs import OnStep
from snake_gym.controllers.serpenoid import GaitConfig
from snake_gym.robot.presets import RESILIENT
from snake_gym.robot.spec import FloatArray

_QUICK_SETS = BROKEN_SETS[:2]
_QUICK_FAILED = ((), *SINGLES, *DOUBLES)
_QUICK_TARGETS = 1


class ResilientControl:
    """See ``study.Study``."""

    name = "sibilska2022"
    title = "Resilient control of a snake robot: single-joint against coupled control with broken joints"
    citation = "Sibilska-Mroziewicz et al., resilient control of a snake robot (2022)"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """See ``study.Study``."""
        study_options.add_options(parser)

    def run(self, options: argparse.Namespace, advance: Advance) -> Outcome:
        """See ``study.Study``."""
        request = study_options.read(options)
        if request.cases is not None:
            times = _simulate(request.cases, request, None, advance, 1.0)
            rows = as_rows(request.cases, times, request.amplitude_rad == GaitConfig.amplitude_rad)
            return Outcome((), (arrival_table(rows),), single_runs=rows)
        cases = select_cases()
        if request.quick:
            cases = [case for case in select_cases("centre") if case.broken in _QUICK_SETS]
        recorder = Recorder(len(cases), RESILIENT.n_joints)
        times = _simulate(cases, request, recorder, advance, 0.5)
        arrivals: Arrivals = dict(zip(cases, times, strict=True))
        recordings = recorder.recordings(cases)
        comparison, survey = _beyond_the_paper(request.quick, advance)
        rows = as_rows(cases, times)
        claims = arrival_claims(arrivals)
        if np.isfinite(times).all():  # else they are about runs that were cut off
            claims += limit_claims(recordings)
        claims += [*amplitude_claims(comparison), *failures_claims(survey)]
        tables = [arrival_table(rows), limits_table(recordings), amplitude_table(comparison)]
        tables += [failures_table(survey), worst_table(survey)]
        drawn = [*figures.figures(arrivals, recordings), *failure_figures.figures(comparison, survey)]
        return Outcome(claims, tables, drawn, {"runs": rows, "step_s": DT_S, "failures": _as_data(survey)})


def _simulate(
    cases: list[Case], request: study_options.Request, listen: OnStep | None, advance: Advance, share: float
) -> FloatArray:
    """Arrival times, with progress up to ``share``."""
    reached, total = 0, len(cases) * len(COURSE.targets)

    def report(more: int, time_s: float) -> None:
        nonlocal reached
        reached += more
        advance(share * reached / total, f"{reached} of {total} targets reached by {time_s:.0f} s")

    return simulate(cases, request.amplitude_rad, time_limit_s=request.time_limit_s, on_progress=report, on_step=listen)


def _beyond_the_paper(quick: bool, advance: Advance) -> tuple[Comparison, Survey]:
    def between(first: float, last: float, doing: str) -> Callable[[float], None]:
        return lambda share: advance(first + (last - first) * share, doing)

    equal = between(0.5, 0.75, "CC against SJC at equal amplitude")
    failing = between(0.75, 1.0, "every single and double failure")
    if not quick:
        return compare_at_equal_amplitude(BROKEN_SETS, on_progress=equal), survey_failures(on_progress=failing)
    starts = START_ANGLES_RAD[3:6]
    return (
        compare_at_equal_amplitude(_QUICK_SETS, starts, _QUICK_TARGETS, on_progress=equal),
        survey_failures(("locked", "free"), _QUICK_FAILED, (0.0,), _QUICK_TARGETS, 600.0, on_progress=failing),
    )


def _as_data(survey: Survey) -> list[dict[str, object]]:
    """One row for each kind and set, for JSON."""
    return [
        {"kind": kind, "failed": list(broken), "sjc_s": times[0], "cc_s": times[1]}
        for index, kind in enumerate(survey.kinds)
        for broken, times in zip(survey.sets, survey.arrival_s[index].tolist(), strict=True)
    ]


STUDY = ResilientControl()
