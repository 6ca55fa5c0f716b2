"""Comparison of SJC and CC on the paper's course with every single and every double failure, locked, free and weak.

The paper breaks joint 3, or 3, 5, 8, or 3, 5, 6, always locked. Here are all 9 single and all 36 double failures, each
from three start directions of the head link around the paper's (near misses change arrivals; medians are shown).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from papers.sibilska2022.claims import CONTROLLERS, TOLERANCE, joints, rounded
from papers.sibilska2022.experiment import TARGETS, TIME_LIMIT_S, Broken, ControllerName
from papers.sibilska2022.trials import FREE_DAMPING_NMS_RAD, ROBOT, WEAK_STRENGTH, FaultKind, Trial, play
from papers.study import Cell, Claim, Table, grade
from snake_gym.robot.spec import FloatArray

KINDS: tuple[FaultKind, ...] = ("locked", "free", "weak")
START_ANGLES_RAD = (math.radians(-10.0), 0.0, math.radians(10.0))
SINGLES: tuple[Broken, ...] = tuple((joint,) for joint in range(1, ROBOT.n_joints + 1))
DOUBLES: tuple[Broken, ...] = tuple(combinations(range(1, ROBOT.n_joints + 1), 2))


class Survey(NamedTuple):
    """Results for K kinds, S sets of failed joints and both controllers."""

    kinds: Sequence[FaultKind]
    sets: Sequence[Broken]
    arrival_s: FloatArray
    """(K, S, 2) [s] arrival at the last target for SJC and CC: median over the starts, inf if it was not reached."""
    n_targets: int
    time_limit_s: float

    def chosen(self, kind: FaultKind, n_failed: int) -> FloatArray:
        """Return arrivals (M, 2) of the sets with this many failed joints."""
        rows = [index for index, broken in enumerate(self.sets) if len(broken) == n_failed]
        return self.arrival_s[list(self.kinds).index(kind)][rows]

    def grid(self, kind: FaultKind, controller: ControllerName) -> FloatArray:
        """Return arrivals (J, J) [s]: pairs of failed joints, single failures on the diagonal; NaN if not simulated."""
        grid = np.full((ROBOT.n_joints, ROBOT.n_joints), np.nan)
        times = self.arrival_s[list(self.kinds).index(kind), :, CONTROLLERS.index(controller)]
        for broken, time in zip(self.sets, times, strict=True):
            if broken:
                grid[broken[-1] - 1, broken[0] - 1] = grid[broken[0] - 1, broken[-1] - 1] = time
        return grid


def survey_failures(
    kinds: Sequence[FaultKind] = KINDS,
    sets: Sequence[Broken] = ((), *SINGLES, *DOUBLES),
    start_angles_rad: Sequence[float] = START_ANGLES_RAD,
    n_targets: int = len(TARGETS),
    time_limit_s: float = TIME_LIMIT_S,
    on_progress: Callable[[float], None] = lambda share: None,
) -> Survey:
    """Play every kind of failure of every set with both controllers, all in one batch."""
    trials = [
        Trial(controller, broken, kind, start_angle_rad=angle)
        for kind in kinds
        for broken in sets
        for controller in CONTROLLERS
        for angle in start_angles_rad
    ]
    shape = (len(kinds), len(sets), len(CONTROLLERS), len(start_angles_rad))
    last = play(trials, n_targets, time_limit_s, on_progress).arrivals_s[:, -1]
    arrival = np.median(np.where(np.isfinite(last), last, np.inf).reshape(shape), axis=3)
    return Survey(kinds, sets, arrival, n_targets, time_limit_s)


def failures_table(survey: Survey) -> Table:
    """Return a summary: frequency and size of CC's lead, by kind and number of failed joints."""
    rows: list[list[Cell]] = []
    for kind in survey.kinds:
        for n_failed in (1, 2):
            times = survey.chosen(kind, n_failed)
            if not times.size:
                continue
            reached = np.isfinite(times).sum(axis=0)
            both = np.isfinite(times).all(axis=1)
            ratio = float(np.median(times[both, 1] / times[both, 0])) if both.any() else math.nan
            rows.append([
                kind, n_failed, len(times), int((times[:, 1] < times[:, 0]).sum()), int(reached[0]), int(reached[1]),
                *(rounded(float(np.median(times[:, index]))) for index in (0, 1)), rounded(ratio, 3),
            ])  # fmt: skip
    heads = ["joints", "failed", "sets", "CC faster", "SJC arrives", "CC arrives", "SJC median [s]", "CC median [s]"]
    return Table(
        "failures",
        "Every single and double failure",
        [*heads, "CC / SJC, median"],
        rows,
        f"Median over the sets of the arrival at target {survey.n_targets}; a set without arrival within "
        f"{survey.time_limit_s:.0f} s counts as later than any other (a dash: the median set does not arrive). Free: "
        f"{FREE_DAMPING_NMS_RAD:g} N m s/rad of viscous friction, stops at +-40 degrees; weak: "
        f"{100 * WEAK_STRENGTH:.0f} % of the signal.",
    )


def worst_table(survey: Survey) -> Table:
    """Return arrivals of every single failure, and of the pairs that cost most, by kind."""
    rows: list[list[Cell]] = []
    for index, kind in enumerate(survey.kinds):
        times = survey.arrival_s[index]
        singles = [row for row, broken in enumerate(survey.sets) if len(broken) <= 1]
        doubles = [row for row, broken in enumerate(survey.sets) if len(broken) == 2]
        doubles.sort(key=lambda row: (-times[row].min(), -times[row].max()))
        for row in [*singles, *doubles[:5]]:
            sjc, cc = times[row]
            ratio = rounded(cc / sjc, 3) if np.isfinite(cc) and np.isfinite(sjc) else None
            rows.append([kind, joints(survey.sets[row], ","), rounded(sjc), rounded(cc), ratio])
    heads = ["kind", "failed", "SJC [s]", "CC [s]", "CC / SJC"]
    note = "All single failures, and the five pairs of each kind that take the better of the two controllers longest."
    return Table("failed-joints", "Which joint fails matters more than which controller", heads, rows, note)


def failures_claims(survey: Survey) -> list[Claim]:
    """Return claims on section 5, which expects CC to be faster with any failed joints; within 3 % counts as a tie."""
    claims = []
    whole = {"locked": "are locked, as in the paper", "free": "turn freely", "weak": "have half their signal left"}
    for kind in survey.kinds:
        times = np.concatenate([survey.chosen(kind, n_failed) for n_failed in (1, 2)])
        decided = times[np.isfinite(times).any(axis=1)]
        behind = int((decided[:, 1] > (1.0 + TOLERANCE) * decided[:, 0]).sum())
        share = 1.0 - behind / max(len(decided), 1)
        enough = 2 * len(decided) >= len(times)
        parts = [
            f"{int((some[:, 1] < some[:, 0]).sum())} of {len(some)} {name} failures"
            for n_failed, name in ((1, "single"), (2, "double"))
            if len(some := survey.chosen(kind, n_failed))
        ]
        lost = np.isinf(times).sum(axis=0).tolist()
        missed = f" SJC does not arrive in {lost[0]}, CC in {lost[1]} of all." if any(lost) else ""
        note = f"CC is faster in {' and '.join(parts)}, and behind by more than 3 % in {behind}.{missed}"
        text = f"CC does not arrive after SJC, whichever joints fail, where they {whole[kind]}"
        claims.append(Claim(text, "section 5, extended", grade(share >= 0.95 and enough, share >= 0.5), note=note,
                            own=True))  # fmt: skip
    return claims


def as_data(survey: Survey) -> list[dict[str, object]]:
    """Return one row for each kind and set, for JSON."""
    return [
        {"kind": kind, "failed": list(broken), "sjc_s": times[0], "cc_s": times[1]}
        for index, kind in enumerate(survey.kinds)
        for broken, times in zip(survey.sets, survey.arrival_s[index].tolist(), strict=True)
    ]
