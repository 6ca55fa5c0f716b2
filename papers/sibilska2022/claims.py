"""Claims of section 4.3 about arrivals (Fig. 14), joint angles and paths (Fig. 12, 13, 15-18), and their tables.

The paper states those about angles in words. "Close to the limits or slightly beyond" is read as a largest angle of 30
to 50 degrees, "more violations" as a larger share of the time with a joint beyond +-40 degrees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from papers.sibilska2022.experiment import (
    BROKEN_SETS,
    TARGETS,
    Broken,
    Case,
    ControllerName,
    Point,
    Recording,
    Recordings,
    paper_time,
)
from papers.study import Cell, Claim, Finding, Table, Verdict, claim, compare, grade
from snake_gym.robot.spec import FloatArray

Arrivals = Mapping[Case, FloatArray]
"""Case -> arrivals at the targets (K,) [s], NaN where not reached."""
Run = tuple[Point, ControllerName, Broken]
Runs = Mapping[Run, Recording]
"""Recordings of the published simulations."""

Draws = Mapping[Case, FloatArray]
"""Case -> arrivals by the published solver (D, K) [s], one row for each first step."""

TOLERANCE = 0.03
"""Relative tolerance for published times: a near miss costs a turn, and the published solver errs by some per cent."""
ROUNDING_S = 0.5
"""Largest error of a time that the paper gives in whole seconds."""
POINTS: tuple[Point, ...] = ("centre", "head")
CONTROLLERS: tuple[ControllerName, ...] = ("sjc", "cc")
_ENDS_S: dict[Broken, tuple[float, float, float, float]] = {
    (): (300.0, 300.0, 300.0, 300.0),
    (3,): (400.0, 400.0, 400.0, 400.0),
    (3, 5, 8): (800.0, 500.0, 800.0, 500.0),
    (3, 5, 6): (1600.0, 900.0, 1100.0, 800.0),
}
"""Time [s] by which the simulations of Fig. 15-18 end: centre SJC, centre CC, head SJC, head CC."""


def joints(broken: Sequence[int], comma: str = ", ") -> str:
    """Return text such as ``3, 5, 8``, or ``none``."""
    return comma.join(map(str, broken)) or "none"


# --- arrivals --------------------------------------------------------------------------------------------------------


def arrival_table(arrivals: Arrivals) -> Table:
    """Return arrivals at every target, with the paper's last one and the deviation from it."""
    heads = [f"{number} [s]" for number in range(1, len(TARGETS) + 1)]
    cells: list[list[Cell]] = []
    for case, times in arrivals.items():
        paper = paper_time(case)
        off = None if np.isnan(times[-1]) or paper is None else f"{100.0 * (times[-1] / paper - 1.0):+.1f}%"
        fixed = [case.point, case.model, case.controller, joints(case.broken, ",")]
        cells.append([*fixed, *map(float, times), paper, off])
    return Table(
        "arrivals",
        "Arrivals at the targets, recomputed",
        ["point", "model", "control", "broken", *heads, "paper [s]", "dev."],
        cells,
        "model: published = the equations behind the paper's times (head: N m in eq. 26); consistent = the physics of "
        "every env. For the centre they are the same. A dash: not reached, or no number in the paper.",
    )


def solver_table(draws: Draws, arrivals: Arrivals) -> Table:
    """Return the last arrival by the published solver, the paper and the exact solution."""
    rows: list[list[Cell]] = []
    for case, times in draws.items():
        last, paper = times[:, -1], paper_time(case)
        shown = [float(value) for value in (np.median(last), last.min(), last.max(), arrivals[case][-1])]
        rows.append([case.point, case.controller, joints(case.broken, ","), paper, *shown])
    return Table(
        "solver",
        "Arrival at the last target by the published solver",
        ["point", "control", "broken", "paper [s]", "median [s]", "first [s]", "last [s]", "exact [s]"],
        rows,
        f"{max(map(len, draws.values()), default=0)} runs each, which differ in the solver's first step alone; exact: "
        "Runge-Kutta in small steps.",
    )


def arrival_claims(arrivals: Arrivals, draws: Draws | None = None) -> list[Claim]:
    """Return claims about times of arrival, as far as the simulated cases allow.

    Those about the published simulations are judged by the published solver where there are ``draws``, by the median of
    its runs.
    """
    exact = {case: float(times[-1]) for case, times in arrivals.items()}
    last = exact | {case: float(np.median(times[:, -1])) for case, times in (draws or {}).items()}
    claims = [*_published_times(exact, draws or {}), _all_reached(arrivals), *_ends(last)]
    return [*claims, *_coupled_is_faster(last), *_head_with_coupling_is_best(last, exact)]


def _published_times(exact: Mapping[Case, float], draws: Draws) -> Iterator[Claim]:
    for case in exact:
        published = paper_time(case)
        if published is None:
            continue
        point, _, controller, broken = case
        times = draws[case][:, -1] if case in draws else np.array([exact[case]])
        middle, low, high = (float(value) for value in (np.median(times), times.min(), times.max()))
        which = f"joint{'s' if len(broken) > 1 else ''} {joints(broken)} broken" if broken else "no fault"
        text = f"{controller.upper()} guided by the {point}, {which}: arrival at the fifth target"
        note = "The published head model (N m in eq. 26). " if point == "head" else ""
        if case in draws:
            note += f"Published solver: median of {len(times)} runs, {low:.0f} to {high:.0f} s. "
        note += f"Exact solution: {exact[case]:.0f} s ({100 * (exact[case] / published - 1.0):+.1f} %)."
        judged = compare(text, "section 4.3, Fig. 14", published, middle, "s", TOLERANCE, note)
        among = low - ROUNDING_S <= published <= high + ROUNDING_S
        yield replace(judged, verdict="reproduced") if among else judged


@claim("All targets are reached in every published simulation, with up to three joints broken",
       "section 4.3, Fig. 12-13")  # fmt: skip
def _all_reached(arrivals: Arrivals) -> Finding:
    reached = [not np.isnan(times[-1]) for case, times in arrivals.items() if case.model == "published"]
    return Finding(grade(all(reached), any(reached)), f"{sum(reached)} of {len(reached)} runs reach them all.")


def _ends(last: Mapping[Case, float]) -> Iterator[Claim]:
    ends = {
        Case(point, "published", controller, broken): named[2 * POINTS.index(point) + CONTROLLERS.index(controller)]
        for broken, named in _ENDS_S.items()
        for point in POINTS
        for controller in CONTROLLERS
    }
    if not ends.keys() <= last.keys():
        return
    late = [
        f"{case.point}-{case.controller.upper()} with {joints(case.broken)} broken {last[case]:.0f} s for {end:.0f} s"
        for case, end in ends.items()
        if not last[case] <= end
    ]
    note = f"{16 - len(late)} of 16 do." + (f" Later: {'; '.join(late)}." if late else "")
    text = "All sixteen simulations end before the times that the paper names for its figures"
    yield Claim(text, "section 4.3, Fig. 15-18", grade(not late, len(late) <= 4), note=note)


def _coupled_is_faster(last: Mapping[Case, float]) -> Iterator[Claim]:
    for point in POINTS:
        saved = {
            broken: 1.0 - last[cc] / last[sjc]
            for broken in filter(None, BROKEN_SETS)
            if {cc := Case(point, "published", "cc", broken), sjc := cc._replace(controller="sjc")} <= last.keys()
        }
        if saved:
            text = f"With broken joints CC arrives before SJC, guided by the {point}"
            numbers = "; ".join(f"{joints(broken)}: {100 * share:.0f} %" for broken, share in saved.items())
            verdict = grade(min(saved.values()) > 0, max(saved.values()) > 0)
            note = f"Time saved with joints broken {numbers}."
            yield Claim(text, "section 4.3, Fig. 14", verdict, note=note)


def _head_with_coupling_is_best(last: Mapping[Case, float], exact: Mapping[Case, float]) -> Iterator[Claim]:
    ahead, numbers = list[bool](), []
    for broken in filter(None, BROKEN_SETS):
        head, centre = Case("head", "published", "cc", broken), Case("centre", "published", "cc", broken)
        rivals = [head._replace(controller="sjc"), centre, centre._replace(controller="sjc")]
        if {head, *rivals} <= last.keys():
            ahead.append(last[head] <= (1.0 + TOLERANCE) * min(last[rival] for rival in rivals))
            consistent = exact.get(head._replace(model="consistent"), math.nan)
            times = (
                f"{last[head]:.0f} s, guided by the centre {last[centre]:.0f} s, by the head with consistent physics"
            )
            numbers.append(f"{joints(broken)}: {times} {consistent:.0f} s")
    if ahead:
        text = "With broken joints CC guided by the head is the fastest of all, or as fast (published head model)"
        note = f"CC with {'; '.join(numbers)}. The published advantage comes from N m in place of m in eq. 26."
        yield Claim(text, "section 4.3, Fig. 14", grade(all(ahead), any(ahead)), note=note)


# --- joint limits and paths ------------------------------------------------------------------------------------------


def limits_table(recordings: Recordings) -> Table:
    """Return a table of the time beyond the limits, per run and joint."""
    rows: list[list[Cell]] = []
    for case, run in recordings.items():
        rows.append([
            case.point, case.model, case.controller, joints(case.broken, ","), round(math.degrees(run.peak_rad), 1),
            round(float(run.outside_s), 1), round(100.0 * float(run.outside), 2),
        ])  # fmt: skip
    return Table(
        "joint-limits",
        "Joints beyond +-40 degrees",
        ["point", "model", "control", "broken", "largest angle [deg]", "time beyond [s]", "of the run [%]"],
        rows,
        "Time with at least one joint beyond +-40 degrees.",
    )


class _Order(NamedTuple):
    """Claim that a quantity is smaller in one run than in another, for every pair of runs."""

    text: str
    source: str
    quantity: str
    measure: Callable[[Recording], float]
    pairs: Sequence[tuple[Run, Run]]

    def judge(self, runs: Runs) -> Claim:
        values = [[self.measure(runs[run]) for run in pair] for pair in self.pairs]
        numbers = "; ".join(
            f"{_label(pair[0])} {low:.2f}, {_label(pair[1])} {high:.2f}"
            for pair, (low, high) in zip(self.pairs, values, strict=True)
        )
        verdict = _judge([low < high for low, high in values])
        return Claim(self.text, self.source, verdict, note=f"{self.quantity}: {numbers}.")


def _peak_deg(run: Recording) -> float:
    return math.degrees(run.peak_rad)


def _percent_beyond(run: Recording) -> float:
    return 100.0 * run.outside


def _deviation_m(run: Recording) -> float:
    """Return the largest distance from the straight line between the first two targets, on the way between them."""
    first, second = TARGETS[:2]
    along = (second - first) / np.linalg.norm(second - first)
    place = run.tracked_xy - first
    reached = [int(np.argmin(np.linalg.norm(run.tracked_xy - target, axis=1))) for target in (first, second)]
    leg = place[reached[0] : reached[1] + 1]
    return float(np.abs(leg[:, 0] * along[1] - leg[:, 1] * along[0]).max())


def _sjc_cc(points: Sequence[Point], sets: Sequence[Broken]) -> list[tuple[Run, Run]]:
    return [((point, "sjc", broken), (point, "cc", broken)) for broken in sets for point in points]


_ORDERS = (
    _Order("Guided by the centre the joints reach larger angles than guided by the head", "section 4.3, Fig. 15-18",
           "Largest angle [deg]", _peak_deg,
           [(("head", name, broken), ("centre", name, broken)) for broken in BROKEN_SETS for name in CONTROLLERS]),
    _Order("With one broken joint CC reaches larger angles than SJC, with either guided point", "section 4.3, Fig. 16",
           "Largest angle [deg]", _peak_deg, _sjc_cc(POINTS, [(3,)])),
    _Order("With one broken joint CC violates the limits slightly less than SJC", "section 4.3, Fig. 16",
           "Share of the time beyond [%]", _percent_beyond, [(cc, sjc) for sjc, cc in _sjc_cc(POINTS, [(3,)])]),
    _Order("With three broken joints CC violates the limits more than SJC", "section 4.3, Fig. 17-18",
           "Share of the time beyond [%]", _percent_beyond, _sjc_cc(POINTS, BROKEN_SETS[2:])),
    _Order("Guided by the centre, CC strays further than SJC from the line between the first two targets",
           "section 4.3, Fig. 12", "Largest deviation [m]", _deviation_m, _sjc_cc(["centre"], BROKEN_SETS)),
)  # fmt: skip


def limit_claims(recordings: Recordings) -> list[Claim]:
    """Return claims about joint angles and paths, as far as the recorded runs allow."""
    runs: Runs = {
        (case.point, case.controller, case.broken): run for case, run in recordings.items() if case.model == "published"
    }
    if not {("centre", "sjc", ()), ("head", "cc", (3, 5, 6))} <= runs.keys():
        return []  # a quick run
    others = (_close_to_the_limits, _mostly_centre_cc, _head_and_coupling_best)
    return [*(judge(runs) for judge in others), *(order.judge(runs) for order in _ORDERS)]


def _judge(good: Sequence[bool]) -> Verdict:
    return grade(all(good), 2 * sum(good) >= len(good))


def _label(run: Run) -> str:
    point, controller, broken = run
    return f"{point}-{controller.upper()} ({joints(broken)})"


@claim("Without fault or with one, all eight runs stay close to +-40 degrees or exceed them slightly",
       "section 4.3, Fig. 15-16")  # fmt: skip
def _close_to_the_limits(runs: Runs) -> Finding:
    peaks = [_peak_deg(run) for key, run in runs.items() if len(key[2]) <= 1]
    good = [30.0 <= peak <= 50.0 for peak in peaks]
    note = f"Largest angles {min(peaks):.1f} to {max(peaks):.1f} degrees; {sum(good)} of {len(good)} within 30 to 50."
    return Finding(_judge(good), note)


@claim("Without fault or with one, it is CC guided by the centre that violates the limits most",
       "section 4.3, Fig. 15-16")  # fmt: skip
def _mostly_centre_cc(runs: Runs) -> Finding:
    shares = [{key: run.outside for key, run in runs.items() if key[2] == broken} for broken in ((), (3,))]
    good = [max(some, key=lambda key: some[key])[:2] == ("centre", "cc") for some in shares]
    listed = "; ".join(f"{_label(key)} {100 * value:.1f} %" for some in shares for key, value in some.items())
    return Finding(_judge(good), f"Share of the time beyond: {listed}.")


@claim("With broken joints CC guided by the head is best both in time and in violations (published head model)",
       "section 4.3")  # fmt: skip
def _head_and_coupling_best(runs: Runs) -> Finding:
    good, numbers = [], []
    for broken in filter(None, BROKEN_SETS):
        times = {key[:2]: run.duration_s for key, run in runs.items() if key[2] == broken}
        shares = {key[:2]: run.outside for key, run in runs.items() if key[2] == broken}
        this: tuple[Point, ControllerName] = ("head", "cc")
        good += [times[this] <= 1.03 * min(times.values()), shares[this] <= min(shares.values())]
        rank = [1 + sum(other < mine[this] for other in mine.values()) for mine in (times, shares)]
        numbers.append(f"{joints(broken)}: place {rank[0]} in time, {rank[1]} in share of time beyond")
    return Finding(_judge(good), f"Of four: {'; '.join(numbers)}.")
