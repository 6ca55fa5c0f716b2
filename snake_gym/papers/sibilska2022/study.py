"""The study of sibilska2022: the published simulations against the paper's numbers and claims."""

from __future__ import annotations

import argparse

from snake_gym.controllers.serpenoid import GaitConfig
from snake_gym.papers.sibilska2022 import options as study_options
from snake_gym.papers.sibilska2022.arrivals import Arrivals, arrival_claims, arrival_table
from snake_gym.papers.sibilska2022.experiment import COURSE, DT_S, Case, as_rows, select_cases, simulate
from snake_gym.papers.study import Advance, Outcome
from snake_gym.robot.spec import FloatArray


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
        cases = request.cases or select_cases("centre" if request.quick else None)
        times = _simulate(cases, request, advance)
        paper_applies = request.amplitude_rad == GaitConfig.amplitude_rad
        rows = as_rows(cases, times, paper_applies)
        if request.cases is not None:
            return Outcome((), (arrival_table(rows),), single_runs=rows)
        arrivals: Arrivals = dict(zip(cases, times, strict=True))
        return Outcome(arrival_claims(arrivals), (arrival_table(rows),), data={"runs": rows, "step_s": DT_S})


def _simulate(cases: list[Case], request: study_options.Request, advance: Advance) -> FloatArray:
    """Arrival times, with progress."""
    reached, total = 0, len(cases) * len(COURSE.targets)

    def report(more: int, time_s: float) -> None:
        nonlocal reached
        reached += more
        advance(reached / total, f"{reached} of {total} targets reached by {time_s:.0f} s")

    return simulate(cases, request.amplitude_rad, time_limit_s=request.time_limit_s, on_progress=report)


STUDY = ResilientControl()
