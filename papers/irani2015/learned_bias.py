"""Future work of the paper: a bias that is found while the robot moves (``snake_gym.controllers.adaptive_bias``).

Robo-Conda 1 with each failure that lets it move on, and with J2 to J6 failed both ways. Before: the same gait without
bias.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from papers.irani2015.crawling import Motion, Paths, Trial, crawl, judge
from papers.study import Cell, Claim, Table, grade
from snake_gym.robot.spec import FloatArray

KIND = "adaptive_bias"
N_PERIODS = 36
"""Number of gait periods: 93 s of Robo-Conda's gait."""


class Learning(NamedTuple):
    """Failed joints with and without a learned bias; fields of the motions are (P, joints, S)."""

    shifts_rad: FloatArray
    joints: tuple[int, ...]
    backwards: bool
    before: Motion
    after: Motion
    bias_rad: FloatArray
    """(P, joints, S) bias at the end."""
    paths: tuple[Paths, Paths]
    """Paths without and with the bias, at the first phase shift, trials (joints, S) flat."""


def learn(
    joints: Sequence[int],
    shifts_deg: Sequence[float],
    n_starts: int,
    backwards: bool = False,
    n_periods: int = N_PERIODS,
) -> Learning:
    """Run each failure at each phase shift from each start, without and with the learned bias."""
    shifts = np.radians(np.array(shifts_deg, dtype=np.float64))
    starts = (math.pi / n_starts * np.arange(n_starts)).tolist()
    trials = [Trial(j, d, s, 0.0, backwards) for d in shifts.tolist() for j in joints for s in starts]
    sense = np.full(len(trials), backwards)
    shape = (shifts.size, len(joints), n_starts)
    runs = crawl(trials, n_periods), crawl(trials, n_periods, {"kind": KIND})
    before, after = (Motion(*(field.reshape(shape) for field in judge(paths, sense))) for paths in runs)
    n = len(joints) * n_starts
    first = Paths(*(x[:, :n] for x in runs[0])), Paths(*(x[:, :n] for x in runs[1]))
    return Learning(shifts, tuple(joints), backwards, before, after, runs[1].bias[-1].reshape(shape), first)


STRAIGHT_RAD = math.radians(5.0)
"""Largest course error that counts as none: 9 cm for each metre."""


def learning_table(learnings: Sequence[Learning]) -> Table:
    """Return a table with one row for each failure, over all phase shifts and starts."""
    columns = [
        "failed joint", "driven", "course before, median [deg]", "after, median [deg]", "after, worst [deg]",
        "within 5 deg before [%]", "after [%]", "speed before [m/s]", "after [m/s]", "bias, largest [deg]",
    ]  # fmt: skip
    rows: list[list[Cell]] = []
    for learning in learnings:
        before, after = (np.abs(motion.course_rad) for motion in (learning.before, learning.after))
        for place, joint in enumerate(learning.joints):
            off = [before[:, place], after[:, place], learning.bias_rad[:, place]]
            speeds = [float(m.speed_m_s[:, place].mean()) for m in (learning.before, learning.after)]
            rows.append(
                [
                    f"J{joint}", "backwards" if learning.backwards else "head first", _degrees(np.median(off[0])),
                    _degrees(np.median(off[1])), _degrees(off[1].max()), _percent(off[0]), _percent(off[1]), *speeds,
                    _degrees(np.abs(off[2]).max()),
                ]
            )  # fmt: skip
    return Table("learned_bias", "Course with and without a learned bias", columns, rows)


def claim_about_learning(rear: Learning) -> Claim:
    """Return the claim on the future work of the paper: an updated bias keeps the robot on its course."""
    before, after = (np.abs(motion.course_rad) for motion in (rear.before, rear.after))
    kept, kept_before = (after <= STRAIGHT_RAD).mean(), (before <= STRAIGHT_RAD).mean()
    note = (
        f"Within 5 deg of the first direction over the last third: {100 * kept_before:.0f} % of the runs without, "
        f"{100 * kept:.0f} % with the learned bias; median {_degrees(np.median(before)):.1f} and "
        f"{_degrees(np.median(after)):.1f} deg, J7 alone {_degrees(np.median(before[:, 0])):.1f} and "
        f"{_degrees(np.median(after[:, 0])):.1f} deg."
    )
    text = "A bias updated while moving keeps the robot on course with J7 to J13 failed"
    verdict = grade(kept >= 0.95, kept > kept_before)
    return Claim(text, "section 5 (future work)", verdict, note=note, own=True)


def _degrees(angle: float | FloatArray) -> float:
    return float(np.degrees(angle))


def _percent(off: FloatArray) -> float:
    return float(100.0 * (off <= STRAIGHT_RAD).mean())
