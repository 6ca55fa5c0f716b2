"""Claims about joint angles and trajectories (section 4.3, Fig. 12, 13, 15-18), judged on the published simulations.

The paper states them in words. "Close to the limits or slightly beyond" is read as a largest angle of 30 to 50
degrees, "more violations" as a larger share of the time with a joint beyond +-40 degrees.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from papers.dynamics import Point
from papers.sibilska2022.arrivals import joints
from papers.sibilska2022.experiment import BROKEN_SETS, COURSE, Broken, ControllerName
from papers.sibilska2022.recording import Recording, Recordings
from papers.study import Claim, Table, Verdict

_ENDS_S: dict[Broken, dict[tuple[Point, ControllerName], float]] = {
    (): dict.fromkeys((("centre", "sjc"), ("centre", "cc"), ("head", "sjc"), ("head", "cc")), 300.0),
    (3,): dict.fromkeys((("centre", "sjc"), ("centre", "cc"), ("head", "sjc"), ("head", "cc")), 400.0),
    (3, 5, 8): {("centre", "sjc"): 800.0, ("head", "sjc"): 800.0, ("centre", "cc"): 500.0, ("head", "cc"): 500.0},
    (3, 5, 6): {("centre", "sjc"): 1600.0, ("head", "sjc"): 1100.0, ("centre", "cc"): 900.0, ("head", "cc"): 800.0},
}
"""[s] by which the simulations of Fig. 15-18 end."""

_POINTS: tuple[Point, ...] = ("centre", "head")
_CONTROLLERS: tuple[ControllerName, ...] = ("sjc", "cc")

Runs = Mapping[tuple[Point, ControllerName, Broken], Recording]


def limits_table(recordings: Recordings) -> Table:
    """Time beyond the limits, per run and joint."""
    rows: list[list[float | str | None]] = []
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
    """Claims of section 4.3 about joint angles and paths, as far as the recorded runs bear on them."""
    runs: Runs = {
        (case.point, case.controller, case.broken): run for case, run in recordings.items() if case.model == "published"
    }
    if not {("centre", "sjc", ()), ("head", "cc", (3, 5, 6))} <= runs.keys():
        return []  # a quick run
    claims = [_ends(runs), _close_to_the_limits(runs), _centre_turns_sharper(runs), _mostly_centre_cc(runs)]
    claims += [_larger_angles_with_coupling(runs), _one_joint_fewer_violations(runs), _three_joints_more(runs)]
    return [*claims, _head_and_coupling_best(runs), _cross_track(runs)]


def _judge(good: Sequence[bool]) -> Verdict:
    return "reproduced" if all(good) else "partly" if 2 * sum(good) >= len(good) else "not"


def _percent(runs: Runs, point: Point, controller: ControllerName, broken: Broken) -> float:
    return 100.0 * runs[point, controller, broken].outside


def _degrees(runs: Runs, point: Point, controller: ControllerName, broken: Broken) -> float:
    return math.degrees(runs[point, controller, broken].peak_rad)


def _ends(runs: Runs) -> Claim:
    late = [
        f"{point}-{controller.upper()} with {joints(broken)} broken {runs[point, controller, broken].duration_s:.0f} s "
        f"against {end:.0f} s"
        for broken, ends in _ENDS_S.items()
        for (point, controller), end in ends.items()
        if runs[point, controller, broken].duration_s > end
    ]
    verdict: Verdict = "reproduced" if not late else "partly" if len(late) <= 4 else "not"
    text = "All sixteen simulations end before the times that the paper names for its figures"
    note = f"{16 - len(late)} of 16 do." + (f" Later: {'; '.join(late)}." if late else "")
    return Claim(text, "section 4.3, Fig. 15-18", verdict, note=note)


def _close_to_the_limits(runs: Runs) -> Claim:
    peaks = [_degrees(runs, *key) for key in runs if len(key[2]) <= 1]
    good = [30.0 <= peak <= 50.0 for peak in peaks]
    text = "Without fault or with one, all eight runs stay close to +-40 degrees or exceed them slightly"
    note = f"Largest angles {min(peaks):.1f} to {max(peaks):.1f} degrees; {sum(good)} of {len(good)} within 30 to 50."
    return Claim(text, "section 4.3, Fig. 15-16", _judge(good), note=note)


def _centre_turns_sharper(runs: Runs) -> Claim:
    good, numbers = [], []
    for broken in BROKEN_SETS:
        for controller in _CONTROLLERS:
            centre, head = (_degrees(runs, point, controller, broken) for point in _POINTS)
            good.append(centre > head)
            numbers.append(f"{joints(broken, ',')} {controller.upper()} {centre:.0f}/{head:.0f}")
    text = "Guided by the centre the joints reach larger angles than guided by the head"
    note = f"Largest angle, centre/head [deg]: {'; '.join(numbers)}."
    return Claim(text, "section 4.3, Fig. 15-18", _judge(good), note=note)


def _mostly_centre_cc(runs: Runs) -> Claim:
    good, numbers = [], []
    for broken in ((), (3,)):
        shares = {key[:2]: _percent(runs, *key) for key in runs if key[2] == broken}
        good.append(max(shares, key=lambda which: shares[which]) == ("centre", "cc"))
        listed = ", ".join(
            f"{point}-{controller.upper()} {share:.1f} %" for (point, controller), share in shares.items()
        )
        numbers.append(f"{joints(broken)}: {listed}")
    text = "Without fault or with one, it is CC guided by the centre that violates the limits most"
    return Claim(text, "section 4.3, Fig. 15-16", _judge(good), note=f"Share of the time beyond, {'; '.join(numbers)}.")


def _larger_angles_with_coupling(runs: Runs) -> Claim:
    peaks = [[_degrees(runs, point, name, (3,)) for name in _CONTROLLERS] for point in _POINTS]
    text = "With one broken joint CC reaches larger angles than SJC, with either guided point"
    note = "; ".join(f"{point}: SJC {p[0]:.1f}, CC {p[1]:.1f} deg" for point, p in zip(_POINTS, peaks, strict=True))
    return Claim(text, "section 4.3, Fig. 16", _judge([sjc < cc for sjc, cc in peaks]), note=note)


def _one_joint_fewer_violations(runs: Runs) -> Claim:
    shares = [[_percent(runs, point, name, (3,)) for name in _CONTROLLERS] for point in _POINTS]
    text = "With one broken joint CC violates the limits slightly less than SJC"
    note = "Share of the time beyond: " + "; ".join(
        f"{point}: SJC {p[0]:.1f} %, CC {p[1]:.1f} %" for point, p in zip(_POINTS, shares, strict=True)
    )
    return Claim(text, "section 4.3, Fig. 16", _judge([cc < sjc for sjc, cc in shares]), note=note)


def _three_joints_more(runs: Runs) -> Claim:
    good, numbers = [], []
    for broken in ((3, 5, 8), (3, 5, 6)):
        for point in _POINTS:
            sjc, cc = (_percent(runs, point, name, broken) for name in _CONTROLLERS)
            good.append(cc > sjc)
            numbers.append(f"{joints(broken, ',')} {point}: SJC {sjc:.1f} %, CC {cc:.1f} %")
    text = "With three broken joints CC violates the limits more than SJC"
    return Claim(text, "section 4.3, Fig. 17-18", _judge(good), note=f"Share of the time: {'; '.join(numbers)}.")


def _head_and_coupling_best(runs: Runs) -> Claim:
    good, numbers = [], []
    for broken in filter(None, BROKEN_SETS):
        times = {key[:2]: run.duration_s for key, run in runs.items() if key[2] == broken}
        shares = {key[:2]: run.outside for key, run in runs.items() if key[2] == broken}
        this: tuple[Point, ControllerName] = ("head", "cc")
        good += [times[this] <= 1.03 * min(times.values()), shares[this] <= min(shares.values())]
        rank = [1 + sum(other < mine[this] for other in mine.values()) for mine in (times, shares)]
        numbers.append(f"{joints(broken)}: place {rank[0]} in time, {rank[1]} in share of time beyond")
    text = "With broken joints CC guided by the head is best both in time and in violations (published head model)"
    return Claim(text, "section 4.3", _judge(good), note=f"Of four: {'; '.join(numbers)}.")


def _cross_track(runs: Runs) -> Claim:
    """Largest distance from the straight line between the first two targets, on the way from one to the other."""
    good, numbers = [], []
    for broken in BROKEN_SETS:
        sjc, cc = (_deviation_m(runs["centre", name, broken]) for name in _CONTROLLERS)
        good.append(cc > sjc)
        numbers.append(f"{joints(broken, ',')}: SJC {sjc:.2f} m, CC {cc:.2f} m")
    text = "Guided by the centre, CC strays further than SJC from the line between the first two targets"
    return Claim(text, "section 4.3, Fig. 12", _judge(good), note=f"Largest deviation: {'; '.join(numbers)}.")


def _deviation_m(run: Recording) -> float:
    first, second = COURSE.targets[:2]
    along = (second - first) / np.linalg.norm(second - first)
    place = run.tracked_xy - first
    reached = [int(np.argmin(np.linalg.norm(run.tracked_xy - target, axis=1))) for target in (first, second)]
    leg = place[reached[0] : reached[1] + 1]
    return float(np.abs(leg[:, 0] * along[1] - leg[:, 1] * along[0]).max())
