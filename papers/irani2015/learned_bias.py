"""Future work of the paper: a bias that is found while the robot moves (``snake_gym.controllers.adaptive_bias``).

Robo-Conda 1 with each failure that lets it move on, and with J2 to J6 failed both ways; and the viscous ten-link robot
with servos and one joint locked aside, which turns every gait into a circle. Before: the same gait without bias.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from papers.irani2015.crawling import Motion, Paths, Trial, crawl, judge
from papers.study import Cell, Claim, Table, grade
from snake_gym.controllers import make_controller
from snake_gym.controllers.serpenoid import serpenoid_reference
from snake_gym.physics.faults import LOCKED
from snake_gym.robot.measurement import Goal, mean_angle
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.sensors import SensorConfig, measure
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.simulation.streams import RandomStreams

KIND = "adaptive_bias"
N_PERIODS = 36
"""Number of gait periods: 93 s of Robo-Conda's gait."""
LOCKED_PERIODS = 120
SETTLED_RAD = math.radians(0.3)


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


class LockedJoints(NamedTuple):
    """Results of one joint of the ten-link robot locked aside, (J,) each, joints from 1 at the tail."""

    angle_rad: float
    turned_before_rad: FloatArray
    """Change of heading over the second half of the run, without bias; headings are means over a gait period."""
    turned_after_rad: FloatArray
    bias_rad: FloatArray
    """Bias at the end [rad]."""
    settled: FloatArray
    """Number of gait periods after which the bias stays within ``SETTLED_RAD`` of that."""
    speed_before_m_s: FloatArray
    """Speed from period to period, over the second half."""
    speed_after_m_s: FloatArray


def learn_with_locked_joints(angle_rad: float) -> LockedJoints:
    """Lock each of the nine joints in turn at ``angle_rad``, gait of 30 deg, 1.5 rad/s and 40 deg."""
    plain, learned = (_crawl_locked(kind, angle_rad) for kind in ("serpenoid", KIND))
    bias = learned[1]
    away = np.abs(bias - bias[-1]) > SETTLED_RAD
    settled = np.where(away.any(axis=0), LOCKED_PERIODS - np.argmax(away[::-1], axis=0), 0).astype(np.float64)
    return LockedJoints(angle_rad, plain[0], learned[0], bias[-1], settled, plain[2], learned[2])


def _crawl_locked(kind: str, angle_rad: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return angle turned, bias at the end of each period (n_periods, J), and speed."""
    spec, n_periods = RESILIENT_SERVO, LOCKED_PERIODS
    gait = {"amplitude_rad": math.radians(30.0), "frequency_rad_s": 1.5, "phase_shift_rad": math.radians(40.0)}
    n = spec.n_joints
    controller = make_controller({"kind": kind, **gait}, spec)
    state = controller.initial_state(n)
    robot = SimulatedRobot(spec, n)
    shape = serpenoid_reference(np.zeros(n), gait["amplitude_rad"], gait["phase_shift_rad"], n)
    np.fill_diagonal(shape, angle_rad)
    robot.set_shape(shape, np.zeros(n), np.zeros((n, 2)))
    np.fill_diagonal(robot.faults.kind, LOCKED)
    streams, aimless = RandomStreams("locked", n), Goal(np.zeros((n, 2)), np.zeros(n, dtype=bool))
    per_period = round(2.0 * math.pi / gait["frequency_rad_s"] / spec.control_dt_s)
    heading, centre = np.empty((n_periods * per_period, n)), np.empty((n_periods * per_period, n, 2))
    bias = np.zeros((n_periods * per_period, n))
    for k in range(n_periods * per_period):
        sample = measure(robot, SensorConfig(), streams)
        heading[k], centre[k] = mean_angle(sample), robot.state.centre_xy
        robot.step(controller.command(sample, aimless, state, spec.control_dt_s))
        bias[k] = state.get("bias_rad", 0.0)
    mean = heading.reshape(n_periods, per_period, n).mean(axis=1)
    steps = np.hypot(*np.diff(centre[::per_period], axis=0).transpose(2, 0, 1))
    speed = steps[n_periods // 2 :].mean(axis=0) / (per_period * spec.control_dt_s)
    return mean[-1] - mean[n_periods // 2], bias[per_period - 1 :: per_period], speed


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


def locked_table(runs: Sequence[LockedJoints]) -> Table:
    """Return a table with one row for each joint and angle."""
    columns = [
        "locked joint (1 is the tail's)", "at [deg]", "turned before [deg]", "turned after [deg]", "bias [deg]",
        "settled after [periods]", "speed before [m/s]", "after [m/s]",
    ]  # fmt: skip
    rows: list[list[Cell]] = []
    for run in runs:
        for k in range(run.bias_rad.size):
            angles = [_degrees(x) for x in (run.turned_before_rad[k], run.turned_after_rad[k], run.bias_rad[k])]
            speeds = [float(run.speed_before_m_s[k]), float(run.speed_after_m_s[k])]
            rows.append([float(k + 1), _degrees(run.angle_rad), *angles, float(run.settled[k]), *speeds])
    return Table("locked", "Ten-link servo robot, one joint locked aside", columns, rows)


def claims_about_learning(rear: Learning, locked: Sequence[LockedJoints]) -> list[Claim]:
    """Return claims on the future work of the paper: an updated bias keeps the robot on its course."""
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
    claims = [Claim(text, "section 5 (future work)", verdict, note=note, own=True)]
    turned = np.abs(np.concatenate([run.turned_before_rad for run in locked]))
    left = np.abs(np.concatenate([run.turned_after_rad for run in locked]))
    verdict = grade((left <= STRAIGHT_RAD).all(), left.max() < 0.1 * turned.max())
    note = (
        f"Turned over the second half of the run without bias {_degrees(turned.min()):.0f} to "
        f"{_degrees(turned.max()):.0f} deg, with it at most {_degrees(left.max()):.1f} deg."
    )
    text = "The same controller straightens another robot with any one joint locked aside (not in the paper)"
    return [*claims, Claim(text, "section 5 (future work)", verdict, note=note, own=True)]


def _degrees(angle: float | FloatArray) -> float:
    return float(np.degrees(angle))


def _percent(off: FloatArray) -> float:
    return float(100.0 * (off <= STRAIGHT_RAD).mean())
