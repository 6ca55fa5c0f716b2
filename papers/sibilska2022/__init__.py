"""Rerun of sibilska2022: resilient control of a snake robot with broken joints, single-joint (SJC) or coupled (CC).

The 16 published simulations, by the exact and by the published solver, and the head runs with consistent physics
(``experiment``), judged by ``claims``. A quick run has two fault sets guided by the centre, and two draws of the
published solver in place of eight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from papers.sibilska2022 import claims, experiment
from papers.sibilska2022.claims import Arrivals, Draws, joints
from papers.sibilska2022.experiment import Recorder, Recordings, simulate, simulate_as_published
from papers.sibilska2022.figures import draw_figures
from papers.study import Advance, Study


class Results(NamedTuple):
    """Results of all simulations of the study."""

    arrivals: Arrivals
    draws: Draws
    recordings: Recordings


def _experiment(quick: bool, advance: Advance) -> Results:
    few = experiment.BROKEN_SETS[:2]
    cases = [c for c in experiment.CASES if not quick or (c.point == "centre" and c.broken in few)]
    steps, reached = experiment.FIRST_STEPS_S[: 2 if quick else None], 0

    def report(more: int, time_s: float) -> None:
        nonlocal reached
        reached += more
        total = len(cases) * len(experiment.TARGETS)
        advance(0.5 * reached / total, f"{reached} of {total} targets reached by {time_s:.0f} s")

    recorder = Recorder(len(cases))
    arrivals = dict(zip(cases, simulate(cases, on_progress=report, recorder=recorder), strict=True))
    published, draws = [case for case in cases if case.model == "published"], {}
    for index, case in enumerate(published):
        which = f"{case.point} {case.controller} {joints(case.broken, ',')}"
        advance(0.5 + 0.5 * index / len(published), f"published solver, {which}")
        draws[case] = np.array([simulate_as_published(case, step) for step in steps])
    return Results(arrivals, draws, recorder.recordings(cases))


def _data(results: Results) -> dict[str, object]:
    exact = [{**case._asdict(), "arrivals_s": times} for case, times in results.arrivals.items()]
    solver = [
        {**case._asdict(), "first_step_s": step, "arrivals_s": row}
        for case, times in results.draws.items()
        for row, step in zip(times, experiment.FIRST_STEPS_S, strict=False)
    ]
    return {"runs": exact, "published_solver": solver, "step_s": experiment.DT_S, "program": experiment.PROGRAM}


STUDY = Study(
    name="sibilska2022",
    title="Resilient control of a snake robot: single-joint against coupled control with broken joints",
    citation="A. Sibilska-Mroziewicz, J. Możaryn, A. Hameed, M. Molina Fernández, A. Ordys: Framework for "
    "simulation-based control design evaluation for a snake robot as an example of a multibody robotic system. "
    "Multibody System Dynamics, 2022. doi:10.1007/s11044-022-09830-3",
    experiment=_experiment,
    claims=(
        lambda results: claims.arrival_claims(results.arrivals, results.draws),
        lambda results: claims.limit_claims(results.recordings),
    ),
    tables=(
        lambda results: claims.arrival_table(results.arrivals),
        lambda results: claims.solver_table(results.draws, results.arrivals),
        lambda results: claims.limits_table(results.recordings),
    ),
    figures=(lambda results: draw_figures(results.arrivals, results.draws, results.recordings),),
    data=_data,
)
