"""What the learned bias gave: rows and claims."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from papers.irani2015.learned_bias import Learning, LockedJoints
from papers.study import Claim, Verdict
from snake_gym.robot.spec import FloatArray

STRAIGHT_RAD = math.radians(5.0)
"""Course off the first direction that counts as none: 9 cm for each metre."""

Rows = list[list[float | str | None]]


def learning_rows(learnings: Sequence[Learning]) -> tuple[list[str], Rows]:
    """Columns and rows: each failure, over all phase shifts and starts."""
    columns = [
        "failed joint", "driven", "course before, median [deg]", "after, median [deg]", "after, worst [deg]",
        "within 5 deg before [%]", "after [%]", "speed before [m/s]", "after [m/s]", "bias, largest [deg]",
    ]  # fmt: skip
    rows: Rows = []
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
    return columns, rows


def locked_rows(runs: Sequence[LockedJoints]) -> tuple[list[str], Rows]:
    """Columns and rows, one for each joint and angle."""
    columns = [
        "locked joint (1 is the tail's)", "at [deg]", "turned before [deg]", "turned after [deg]", "bias [deg]",
        "settled after [periods]",
        "speed before [m/s]", "after [m/s]",
    ]  # fmt: skip
    rows: Rows = []
    for run in runs:
        for k in range(run.bias_rad.size):
            angles = [_degrees(x) for x in (run.turned_before_rad[k], run.turned_after_rad[k], run.bias_rad[k])]
            speeds = [float(run.speed_before_m_s[k]), float(run.speed_after_m_s[k])]
            rows.append([float(k + 1), _degrees(run.angle_rad), *angles, float(run.settled[k]), *speeds])
    return columns, rows


def claims_about_learning(rear: Learning, locked: Sequence[LockedJoints]) -> list[Claim]:
    """The future work of the paper: does an updated bias keep the robot on its course?"""
    before, after = (np.abs(motion.course_rad) for motion in (rear.before, rear.after))
    kept, kept_before = (after <= STRAIGHT_RAD).mean(), (before <= STRAIGHT_RAD).mean()
    verdict: Verdict = "reproduced" if kept >= 0.95 else "partly" if kept > kept_before else "not"
    note = (
        f"Within 5 deg of the first direction over the last third: {100 * kept_before:.0f} % of the runs without, "
        f"{100 * kept:.0f} % with the learned bias; median {_degrees(np.median(before)):.1f} and "
        f"{_degrees(np.median(after)):.1f} deg, J7 alone {_degrees(np.median(before[:, 0])):.1f} and "
        f"{_degrees(np.median(after[:, 0])):.1f} deg."
    )
    text = "A bias updated while moving keeps the robot on course with J7 to J13 failed"
    claims = [Claim(text, "section 5 (future work)", verdict, note=note)]
    turned = np.abs(np.concatenate([run.turned_before_rad for run in locked]))
    left = np.abs(np.concatenate([run.turned_after_rad for run in locked]))
    verdict = "reproduced" if (left <= STRAIGHT_RAD).all() else "partly" if left.max() < 0.1 * turned.max() else "not"
    note = (
        f"Turned over the second half of the run without bias {_degrees(turned.min()):.0f} to "
        f"{_degrees(turned.max()):.0f} deg, with it at most {_degrees(left.max()):.1f} deg."
    )
    text = "The same controller straightens another robot with any one joint locked aside (not in the paper)"
    return [*claims, Claim(text, "section 5 (future work)", verdict, note=note)]


def _degrees(angle: float | FloatArray) -> float:
    return float(np.degrees(angle))


def _percent(off: FloatArray) -> float:
    return float(100.0 * (off <= STRAIGHT_RAD).mean())
