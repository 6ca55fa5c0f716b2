"""Claims of section 4.3 about arrivals (Fig. 14), joint angles and paths (Fig. 12, 13, 15-18), and their tables.

The paper states those about angles in words. "Close to the limits or slightly beyond" is read as a largest angle of 30
to 50 degrees, "more violations" as a larger share of the time with a joint beyond +-40 degrees.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from papers.sibilska2022.experiment import (
    BROKEN_SETS,
    PAPER_S,
    TARGETS,
    Broken,
    Case,
    ControllerName,
    ModelName,
    Point,
    Recording,
    Recordings,
)
from papers.study import Cell, Claim, Finding, Table, Verdict, claim, compare, grade
from snake_gym.robot.spec import FloatArray

Arrivals = Mapping[Case, FloatArray]
"""Case -> arrivals at the targets (K,) [s], NaN where not reached."""
Runs = Mapping[tuple[Point, ControllerName, Broken], Recording]
"""Recordings of the published simulations."""

Draws = Mapping[Case, FloatArray]
"""Case -> arrivals by the published solver (D, K) [s], one row for each first step."""

TOLERANCE = 0.03
"""Relative tolerance for published times: a near miss costs a turn, and the published solver errs by some per cent."""
ROUNDING_S = 0.5
"""Largest error of a time that the paper gives in whole seconds."""
POINTS: tuple[Point, ...] = ("centre", "head")
CONTROLLERS: tuple[ControllerName, ...] = ("sjc", "cc")
_ENDS_S: dict[Broken, dict[tuple[Point, ControllerName], float]] = {
    (): dict.fromkeys((("centre", "sjc"), ("centre", "cc"), ("head", "sjc"), ("head", "cc")), 300.0),
    (3,): dict.fromkeys((("centre", "sjc"), ("centre", "cc"), ("head", "sjc"), ("head", "cc")), 400.0),
    (3, 5, 8): {("centre", "sjc"): 800.0, ("head", "sjc"): 800.0, ("centre", "cc"): 500.0, ("head", "cc"): 500.0},
    (3, 5, 6): {("centre", "sjc"): 1600.0, ("head", "sjc"): 1100.0, ("centre", "cc"): 900.0, ("head", "cc"): 800.0},
}
"""Time [s] by which the simulations of Fig. 15-18 end."""


def joints(broken: Sequence[int], comma: str = ", ") -> str:
    """Return text such as ``3, 5, 8``, or ``none``."""
    return comma.join(map(str, broken)) or "none"


def rounded(value: float, digits: int = 1) -> float | None:
    """Return ``value`` for a table; None if it is not finite."""
    return round(float(value), digits) if np.isfinite(value) else None


# --- arrivals --------------------------------------------------------------------------------------------------------


def arrival_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return arrivals at every target, with the paper's last one and the deviation from it (rows: see ``as_rows``)."""
    rows = list(rows)
    heads = [f"{number} [s]" for number in range(1, len(rows[0]["arrivals_s"]) + 1)]
    cells = []
    for row in rows:
        last, paper = row["arrivals_s"][-1], row["paper_s"]
        off = None if last is None or paper is None else f"{100.0 * (last / paper - 1.0):+.1f}%"
        fixed = [row["point"], row["model"], row["controller"], joints(row["broken"], ",")]
        cells.append([*fixed, *row["arrivals_s"], paper, off])
    return Table(
        "arrivals",
        "Arrivals at the targets, recomputed",
        ["point", "model", "control", "broken", *heads, "paper [s]", "dev."],
        cells,
        "model: published = the equations behind the paper's times (head: N m in eq. 26); consistent = the physics of "
        "every env. For the centre they are the same. A dash: not reached, or no number in the paper.",
    )


def solver_table(draws: Draws, arrivals: Arrivals) -> Table:
    """Return the last arrival by the published solver beside the paper's and the exact one."""
    rows: list[list[Cell]] = []
    for case, times in draws.items():
        last, paper = times[:, -1], PAPER_S.get((case.point, case.controller, case.broken))
        shown = [rounded(value) for value in (np.median(last), last.min(), last.max(), arrivals[case][-1])]
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
    for (point, controller, broken), published in PAPER_S.items():
        case = Case(point, "published", controller, broken)
        if case not in exact:
            continue
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
        Case(point, "published", controller, broken): end
        for broken, named in _ENDS_S.items()
        for (point, controller), end in named.items()
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
    pairs: tuple[tuple[Point, ModelName, str], ...] = (
        ("centre", "published", ""), ("head", "published", ""), ("head", "consistent", ", consistent physics"),
    )  # fmt: skip
    for point, model, how in pairs:
        saved = {
            broken: 1.0 - last[cc] / last[sjc]
            for broken in filter(None, BROKEN_SETS)
            if {cc := Case(point, model, "cc", broken), sjc := Case(point, model, "sjc", broken)} <= last.keys()
        }
        if saved:
            text = f"With broken joints CC arrives before SJC, guided by the {point}{how}"
            numbers = "; ".join(f"{joints(broken)}: {100 * share:.0f} %" for broken, share in saved.items())
            verdict = grade(min(saved.values()) > 0, max(saved.values()) > 0)
            note = f"Time saved with joints broken {numbers}."
            yield Claim(text, "section 4.3, Fig. 14", verdict, note=note, own=model == "consistent")


def _head_with_coupling_is_best(published: Mapping[Case, float], exact: Mapping[Case, float]) -> Iterator[Claim]:
    """Yield the claim that CC guided by the head is fastest with broken joints, by the paper's physics and by ours."""
    models: tuple[tuple[ModelName, Mapping[Case, float], str, str], ...] = (
        ("published", published, "published head model", ""),
        ("consistent", exact, "consistent physics", " The published advantage comes from N m in place of m in eq. 26."),
    )
    for model, last, how, why in models:
        ahead, numbers = list[bool](), []
        for broken in filter(None, BROKEN_SETS):
            head, centre = Case("head", model, "cc", broken), Case("centre", "published", "cc", broken)
            rivals = [head._replace(controller="sjc"), centre, centre._replace(controller="sjc")]
            if {head, *rivals} <= last.keys():
                ahead.append(last[head] <= (1.0 + TOLERANCE) * min(last[rival] for rival in rivals))
                numbers.append(f"{joints(broken)}: {last[head]:.0f} s, guided by the centre {last[centre]:.0f} s")
        if ahead:
            text = f"With broken joints CC guided by the head is the fastest of all, or as fast ({how})"
            note = f"CC with {'; '.join(numbers)}.{why}"
            yield Claim(text, "section 4.3, Fig. 14", grade(all(ahead), any(ahead)), note=note,
                        own=model == "consistent")  # fmt: skip


# --- joint limits and paths ------------------------------------------------------------------------------------------


def limits_table(recordings: Recordings) -> Table:
    """Return a table of the time beyond the limits, per run and joint."""
    rows: list[list[Cell]] = []
    for case, run in recordings.items():
        worst = int(np.argmax(run.joint_outside_s)) + 1 if run.outside_s > 0.0 else None
        rows.append([
            case.point, case.model, case.controller, joints(case.broken, ","), round(math.degrees(run.peak_rad), 1),
            round(float(run.outside_s), 1), round(100.0 * float(run.outside), 2), worst,
        ])  # fmt: skip
    return Table(
        "joint-limits",
        "Joints beyond +-40 degrees",
        ["point", "model", "control", "broken", "largest angle [deg]", "time beyond [s]", "of the run [%]", "joint"],
        rows,
        "Time with at least one joint beyond +-40 degrees, and the joint that is there longest (1 is the tail's).",
    )


def limit_claims(recordings: Recordings) -> list[Claim]:
    """Return claims about joint angles and paths, as far as the recorded runs allow."""
    runs: Runs = {
        (case.point, case.controller, case.broken): run for case, run in recordings.items() if case.model == "published"
    }
    if not {("centre", "sjc", ()), ("head", "cc", (3, 5, 6))} <= runs.keys():
        return []  # a quick run
    judges = (
        _close_to_the_limits, _centre_turns_sharper, _mostly_centre_cc, _larger_angles_with_coupling,
        _one_joint_fewer_violations, _three_joints_more, _head_and_coupling_best, _cross_track,
    )  # fmt: skip
    return [judge(runs) for judge in judges]


def _judge(good: Sequence[bool]) -> Verdict:
    return grade(all(good), 2 * sum(good) >= len(good))


def _percent(runs: Runs, point: Point, controller: ControllerName, broken: Broken) -> float:
    return 100.0 * runs[point, controller, broken].outside


def _degrees(runs: Runs, point: Point, controller: ControllerName, broken: Broken) -> float:
    return math.degrees(runs[point, controller, broken].peak_rad)


@claim("Without fault or with one, all eight runs stay close to +-40 degrees or exceed them slightly",
       "section 4.3, Fig. 15-16")  # fmt: skip
def _close_to_the_limits(runs: Runs) -> Finding:
    peaks = [_degrees(runs, *key) for key in runs if len(key[2]) <= 1]
    good = [30.0 <= peak <= 50.0 for peak in peaks]
    note = f"Largest angles {min(peaks):.1f} to {max(peaks):.1f} degrees; {sum(good)} of {len(good)} within 30 to 50."
    return Finding(_judge(good), note)


@claim("Guided by the centre the joints reach larger angles than guided by the head", "section 4.3, Fig. 15-18")
def _centre_turns_sharper(runs: Runs) -> Finding:
    good, numbers = [], []
    for broken in BROKEN_SETS:
        for controller in CONTROLLERS:
            centre, head = (_degrees(runs, point, controller, broken) for point in POINTS)
            good.append(centre > head)
            numbers.append(f"{joints(broken, ',')} {controller.upper()} {centre:.0f}/{head:.0f}")
    return Finding(_judge(good), f"Largest angle, centre/head [deg]: {'; '.join(numbers)}.")


@claim("Without fault or with one, it is CC guided by the centre that violates the limits most",
       "section 4.3, Fig. 15-16")  # fmt: skip
def _mostly_centre_cc(runs: Runs) -> Finding:
    good, numbers = [], []
    for broken in ((), (3,)):
        shares = {key[:2]: _percent(runs, *key) for key in runs if key[2] == broken}
        good.append(max(shares, key=lambda which: shares[which]) == ("centre", "cc"))
        listed = ", ".join(f"{point}-{name.upper()} {share:.1f} %" for (point, name), share in shares.items())
        numbers.append(f"{joints(broken)}: {listed}")
    return Finding(_judge(good), f"Share of the time beyond, {'; '.join(numbers)}.")


@claim("With one broken joint CC reaches larger angles than SJC, with either guided point", "section 4.3, Fig. 16")
def _larger_angles_with_coupling(runs: Runs) -> Finding:
    peaks = {point: [_degrees(runs, point, name, (3,)) for name in CONTROLLERS] for point in POINTS}
    note = "; ".join(f"{point}: SJC {sjc:.1f}, CC {cc:.1f} deg" for point, (sjc, cc) in peaks.items())
    return Finding(_judge([sjc < cc for sjc, cc in peaks.values()]), note)


@claim("With one broken joint CC violates the limits slightly less than SJC", "section 4.3, Fig. 16")
def _one_joint_fewer_violations(runs: Runs) -> Finding:
    shares = {point: [_percent(runs, point, name, (3,)) for name in CONTROLLERS] for point in POINTS}
    numbers = "; ".join(f"{point}: SJC {sjc:.1f} %, CC {cc:.1f} %" for point, (sjc, cc) in shares.items())
    return Finding(_judge([cc < sjc for sjc, cc in shares.values()]), f"Share of the time beyond: {numbers}")


@claim("With three broken joints CC violates the limits more than SJC", "section 4.3, Fig. 17-18")
def _three_joints_more(runs: Runs) -> Finding:
    good, numbers = [], []
    for broken in ((3, 5, 8), (3, 5, 6)):
        for point in POINTS:
            sjc, cc = (_percent(runs, point, name, broken) for name in CONTROLLERS)
            good.append(cc > sjc)
            numbers.append(f"{joints(broken, ',')} {point}: SJC {sjc:.1f} %, CC {cc:.1f} %")
    return Finding(_judge(good), f"Share of the time: {'; '.join(numbers)}.")


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


@claim("Guided by the centre, CC strays further than SJC from the line between the first two targets",
       "section 4.3, Fig. 12")  # fmt: skip
def _cross_track(runs: Runs) -> Finding:
    good, numbers = [], []
    for broken in BROKEN_SETS:
        sjc, cc = (_deviation_m(runs["centre", name, broken]) for name in CONTROLLERS)
        good.append(cc > sjc)
        numbers.append(f"{joints(broken, ',')}: SJC {sjc:.2f} m, CC {cc:.2f} m")
    return Finding(_judge(good), f"Largest deviation: {'; '.join(numbers)}.")


def _deviation_m(run: Recording) -> float:
    """Return the largest distance from the straight line between the first two targets, on the way between them."""
    first, second = TARGETS[:2]
    along = (second - first) / np.linalg.norm(second - first)
    place = run.tracked_xy - first
    reached = [int(np.argmin(np.linalg.norm(run.tracked_xy - target, axis=1))) for target in (first, second)]
    leg = place[reached[0] : reached[1] + 1]
    return float(np.abs(leg[:, 0] * along[1] - leg[:, 1] * along[0]).max())
