"""Claims of the paper about joint failures, judged at every phase shift of a scan.

A claim *holds* at a phase shift, holds *partly*, or does not; each ``judge_...`` function below defines these grades.
The paper names a range of phase shifts and not its own, so no shift is picked: a claim is reproduced if it holds at
every shift of the range that moves the healthy robot, partly if at some of them. Verdicts are those with servos; the
note says where a claim holds, with servos and with imposed joint motion. The paper's numbers: a J2 circle of 0.56 m, J7
ending 1 to 2 m to one side where the healthy robot ended 0.25 to 1 m to the other after 3.18 m.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from papers.irani2015.crawling import BIASES_RAD, FRONT, MIDDLE, REAR, Scan, best_bias, drift, three_degrees
from papers.study import Cell, Claim, Table, grade
from snake_gym.robot.spec import FloatArray

NO, PARTLY, YES = 0, 1, 2
J2_DIAMETER_M = 0.56
DIAMETER_TOLERANCE = 0.2
J7_DRIFT_M = (1.25, 3.0)
"""Smallest and largest drift [m]: from +0.25 .. +1 m (no failure) to -1 .. -2 m."""
SLIGHT = 0.5
"""Largest slight drift behind joint 7, as a share of joint 7's."""

Grades = NDArray[np.int64]


class Judged(NamedTuple):
    """Claim judged over the scan."""

    text: str
    source: str
    grades: Grades
    """(P,) NO, PARTLY or YES at each phase shift of the scan."""
    note: str
    published: float | None = None
    measured: float | None = None
    unit: str = ""

    def as_claim(self, scan: Scan, imposed: Judged | None = None) -> Claim:
        """Return the claim over all shifts that move the healthy robot; ``imposed``: with imposed joint motion."""
        grades = self.grades[scan.forwards.goes_on[:, 0].all(axis=1)]
        where = f"{self._range(scan)} {self.note}"
        if imposed is not None:
            where += f" Joint motion imposed: {imposed._range(scan)}"
        tolerance = None if self.published is None else DIAMETER_TOLERANCE
        verdict = grade(grades.size and (grades == YES).all(), (grades > NO).any())
        return Claim(self.text, self.source, verdict, self.published, self.measured, self.unit, tolerance, where)

    def _range(self, scan: Scan) -> str:
        degrees = np.degrees(scan.shifts_rad)
        held, partly = (ranges(degrees[self.grades == value]) for value in (YES, PARTLY))
        return f"Holds at phase shifts of {held}; partly at {partly}."


def ranges(degrees: FloatArray) -> str:
    """Return the phase shifts as text."""
    return ", ".join(f"{d:g}" for d in degrees) + " deg" if degrees.size else "none"


def share(which: NDArray[np.bool_], joints: tuple[int, ...]) -> FloatArray:
    """Return the share of the starts (P, joints) for which ``which`` (P, 14, S) holds."""
    return which[:, list(joints)].mean(axis=2)


def circles(scan: Scan) -> FloatArray:
    """Return the median diameter (P, 14) [m] of each failure's circles; NaN if fewer than half of the starts circle."""
    motion = scan.forwards
    diameter = np.where(motion.turns_back, motion.diameter_m, np.nan)
    result = np.full(diameter.shape[:2], np.nan)
    for index in np.ndindex(*result.shape):
        if motion.turns_back[index].mean() >= 0.5:
            result[index] = np.nanmedian(diameter[index])
    return result


def judge_circles(scan: Scan) -> Judged:
    """Grade YES if each of J2-J6 turns back from at least half of the starts; PARTLY if at least two of them do."""
    number = (share(scan.forwards.turns_back, FRONT) >= 0.5).sum(axis=1)
    grades = np.where(number == len(FRONT), YES, np.where(number >= 2, PARTLY, NO))
    most = int(number.max())
    at = ranges(np.degrees(scan.shifts_rad[number == most]))
    note = f"At most {most} of the 5 failures circle, at {at}."
    return Judged("Failures of J2 to J6 turn the robot in circles", "section 4", grades, note)


def judge_widening(scan: Scan) -> Judged:
    """Grade YES if at least three of J2-J6 circle, each wider than the one before it; PARTLY if two do."""
    diameter = circles(scan)[:, list(FRONT)]
    grades, notes = [], []
    for row, shift in zip(diameter, np.degrees(scan.shifts_rad).tolist(), strict=True):
        found = row[np.isfinite(row)]
        wider = found.size >= 2 and bool((np.diff(found) > 0.0).all())
        grades.append((YES if found.size >= 3 else PARTLY) if wider else NO)
        if found.size >= 2:
            sizes = ", ".join(f"J{j} {d:.2f}" for j, d in zip(FRONT, row.tolist(), strict=True) if math.isfinite(d))
            notes.append(f"{shift:g} deg: {sizes} m")
    text = "The circles widen from J2 towards the middle"
    return Judged(text, "section 4", np.array(grades), "; ".join(notes) + ".")


def judge_second_joint(scan: Scan) -> Judged:
    """Grade YES if the J2 circle is within 20 % of the paper's 0.56 m; PARTLY if within 60 %."""
    diameter = circles(scan)[:, 2]
    off = np.abs(diameter / J2_DIAMETER_M - 1.0)
    grades = np.where(off <= DIAMETER_TOLERANCE, YES, np.where(off <= 3.0 * DIAMETER_TOLERANCE, PARTLY, NO))
    if np.isfinite(off).any():
        measured = float(diameter[np.nanargmin(off)])
        note = f"J2 circles of {np.nanmin(diameter):.2f} to {np.nanmax(diameter):.2f} m; the nearest counts."
    else:
        measured, note = math.nan, "No circles."
    text = "The robot circles on 0.56 m with J2 failed"
    return Judged(text, "section 4, Fig. 10", grades, note, J2_DIAMETER_M, measured, "m")


def judge_forward(scan: Scan) -> Judged:
    """Grade YES if J7 to J13 go on from all starts; PARTLY if from at least nine tenths of them."""
    on = share(scan.forwards.goes_on, (MIDDLE, *REAR))
    grades = np.where((on == 1.0).all(axis=1), YES, np.where(on.mean(axis=1) >= 0.9, PARTLY, NO))
    note = f"Over all shifts and starts {100 * on.mean():.0f} % go on."
    return Judged("Failures of J7 to J13 let the robot move on", "section 4", grades, note)


def judge_middle_drift(scan: Scan) -> Judged:
    """Grade YES if J7's drift is in the paper's range for some start; PARTLY if at least half of its lower end."""
    off = drift(scan)[:, MIDDLE]
    low, high = J7_DRIFT_M
    inside = ((off >= low) & (off <= high)).any(axis=1)
    grades = np.where(inside, YES, np.where((off >= 0.5 * low).any(axis=1), PARTLY, NO))
    worst = np.max(np.where(np.isfinite(off), off, 0.0), axis=1)
    shown = ", ".join(
        f"{d:g}: {w:.2f}" for d, w in zip(np.degrees(scan.shifts_rad).tolist(), worst.tolist(), strict=True)
    )
    note = f"Largest change of y after 3.18 m by shift [deg: m]: {shown} (paper 1.25 to 3)."
    return Judged("With J7 failed the robot drifts 1 to 2 m to a side", "Fig. 11", grades, note)


def judge_rear_drift(scan: Scan) -> Judged:
    """Grade YES if the median drift of J8-J13 is at most half of J7's; PARTLY if less than J7's."""
    off = drift(scan)
    rear, middle = _median(off[:, list(REAR)]), _median(off[:, [MIDDLE]])
    ratio = rear / np.where(middle > 0.0, middle, np.nan)
    grades = np.where(ratio <= SLIGHT, YES, np.where(ratio < 1.0, PARTLY, NO))
    note = f"Median drift of J8-J13 over J7's: {np.nanmin(ratio):.2f} to {np.nanmax(ratio):.2f}."
    return Judged("Failures behind J7 drift only slightly", "section 4", grades, note)


def judge_bias(scan: Scan) -> Judged:
    """Grade shifts at which J7 drifts as in the paper or more than half of that. YES: 3 deg to the better side remove
    over half of |y| from the median start; PARTLY: some other scanned bias does."""
    plain = np.abs(scan.forwards.finish_y_m[:, MIDDLE])
    drifting = judge_middle_drift(scan).grades > NO
    left = _median(three_degrees(scan)) / _median(plain)
    which, off = best_bias(scan)
    best_left = _median(off) / _median(plain)
    grades = np.where(drifting & (left < 0.5), YES, np.where(drifting & (best_left < 0.5), PARTLY, NO))
    sizes = np.abs(np.degrees(np.array(BIASES_RAD)))[which[which >= 0]]
    arrives = np.isfinite(three_degrees(scan)).mean()
    note = (
        f"With 3 deg {100 * arrives:.0f} % of the runs cross the line at all (the others are turned away); the best of "
        f"the scanned biases is {np.median(sizes):g} deg in the median ({sizes.min():g} to {sizes.max():g})."
    )
    text = "A constant bias of 3 deg on all joints takes away most of J7's drift"
    return Judged(text, "eq. 7, Fig. 13", grades, note)


def judge_backwards(scan: Scan) -> Judged:
    """Grade shifts at which not all front failures go on head first. YES: driven backwards J2-J6 go on from all starts,
    and turn or stall less than head first; PARTLY: from more starts than head first."""
    ahead = share(scan.forwards.goes_on, FRONT).mean(axis=1)
    back = share(scan.backwards.goes_on, FRONT).mean(axis=1)
    grades = np.where((back == 1.0) & (ahead < 1.0), YES, np.where(back > ahead, PARTLY, NO))
    hurt = ahead < 1.0
    note = (
        f"Where some front failure turns back or stalls head first, {100 * ahead[hurt].mean():.0f} % of the runs go on "
        f"head first and {100 * back[hurt].mean():.0f} % backwards."
        if hurt.any()
        else "No front failure stops the robot."
    )
    text = "A failure near the head, driven backwards, acts like one near the tail"
    return Judged(text, "section 5 (suggested, not tested)", grades, note)


def judge_front_worse(scan: Scan) -> Judged:
    """Grade YES if J2-J6 go on from fewer starts than J8-J13 and those go on from all; PARTLY if from fewer."""
    front, rear = (share(scan.forwards.goes_on, joints).mean(axis=1) for joints in (FRONT, REAR))
    grades = np.where((front < rear) & (rear == 1.0), YES, np.where(front < rear, PARTLY, NO))
    note = f"Runs that go on over all shifts: J2-J6 {100 * front.mean():.0f} %, J8-J13 {100 * rear.mean():.0f} %."
    return Judged("Failures in the front half are the critical ones", "section 4", grades, note)


JUDGES: tuple[Callable[[Scan], Judged], ...] = (
    judge_front_worse, judge_circles, judge_second_joint, judge_widening, judge_forward, judge_middle_drift,
    judge_rear_drift, judge_bias, judge_backwards,
)  # fmt: skip


def _median(values: FloatArray) -> FloatArray:
    """Return the median over all but the first axis; NaN without known values."""
    flat = values.reshape(values.shape[0], -1)
    return np.array([np.median(row[np.isfinite(row)]) if np.isfinite(row).any() else math.nan for row in flat])


def failure_table(result: Scan, name: str = "failures", title: str = "Every failure at every phase shift") -> Table:
    """Return a table with one row for each phase shift and joint; means and medians over the starts."""
    diameter, off, ahead, back = circles(result), drift(result), result.forwards, result.backwards
    rows: list[list[Cell]] = []
    for (i, j), circle in np.ndenumerate(diameter):
        known = off[i, j][np.isfinite(off[i, j])]
        shares = [float(100.0 * kind[i, j].mean()) for kind in (ahead.goes_on, ahead.turns_back, ahead.stalls)]
        rows.append([
            float(np.degrees(result.shifts_rad[i])), f"J{j}" if j else "none", *shares, float(circle),
            float(ahead.speed_m_s[i, j].mean()), float(np.median(known)) if known.size else None,
            float(100.0 * back.goes_on[i, j].mean()), float(back.speed_m_s[i, j].mean()),
        ])  # fmt: skip
    columns = (
        "phase shift [deg]", "failed joint", "moves on [%]", "turns back [%]", "stalls [%]", "circle [m]",
        "speed [m/s]", "drift [m]", "backwards: moves on [%]", "backwards: speed [m/s]",
    )  # fmt: skip
    return Table(name, title, columns, rows)
