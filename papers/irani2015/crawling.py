"""Trials of Robo-Conda 1 with joint power failures, side by side, their motions, and the scan over phase shifts.

Gait: eq. 3 and 7 of irani2015, amplitude 38 deg, frequency 140 deg/s; the phase shift between neighbours is given only
as "10 to 90 deg", the phase at the start not at all. Joints are numbered as in the paper, from 1 at the head: its joint
j is our joint 14 - j. With amplitude and stops both at 38 deg, a bias is clipped on its side.

A trial moves on, turns back in a circle, or stalls, and ends at a distance from the line. All this is judged from the
centre of mass once per gait period, which removes the undulation. The scan plays every single failure at every
phase shift from several starts, also driven backwards, and bias on joint 7.

Frame: at the start the head is at the origin and the mean of the link angles is zero, so the body points along x. (The
axes of the paper's Fig. 5 are not known.) A gait with positive frequency and phase shift moves head first.

Mirrored trials: eq. 3-5 have no preferred side, so a start half a period later gives the mirror image, and starts over
half a period are all there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from papers.drives import measure
from papers.study import Advance
from snake_gym.controllers import Controller, ControllerState, make_controller
from snake_gym.controllers.serpenoid import serpenoid_reference
from snake_gym.physics.faults import FREE
from snake_gym.robot.measurement import Goal
from snake_gym.robot.presets import ROBO_CONDA
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot

AMPLITUDE_RAD = math.radians(38.0)
FREQUENCY_RAD_S = math.radians(140.0)
PERIOD_S = 2.0 * math.pi / FREQUENCY_RAD_S
N_JOINTS = 13
COMMANDS_PER_PERIOD = 128
"""Number of commands per gait period: about 50 Hz, the rate of hobby servos."""
SAMPLES_PER_PERIOD = 32
FINISH_M = 3.18
"""Distance of the line that the head has to cross [m] (section 4)."""

_CONTROL_DT_S = PERIOD_S / COMMANDS_PER_PERIOD
SPEC = replace(
    ROBO_CONDA,
    control_dt_s=_CONTROL_DT_S,
    sim_dt_s=_CONTROL_DT_S / math.ceil(_CONTROL_DT_S / ROBO_CONDA.step_s - 0.1),
)
"""Preset with a control period that divides the gait's, and with its own step as nearly as that allows."""

IMPOSED = replace(
    SPEC,
    actuator=replace(
        SPEC.actuator, kp=200.0, kd=2.0, torque_limit_nm=math.inf, speed_limit_rad_s=math.inf, supply_resistance_ohm=0.0
    ),
)
"""Robot: its working joints follow their commands whatever torque that takes, 10 ms late: the kinematic actuators of
the paper's simulator (section 3, Fig. 4). A failed joint is free between its stops, as ever."""


class Trial(NamedTuple):
    """Settings of one run."""

    joint: int
    """Number of the joint without power, from 1 at the head; 0: none."""
    shift_rad: float
    """Phase shift between neighbouring joints."""
    start_rad: float = 0.0
    """Phase of the tail joint's wave at the start."""
    bias_rad: float = 0.0
    """B of eq. 7, on all joints; positive turns the head clockwise."""
    backwards: bool = False
    """True if driven tail first: the wave runs from tail to head."""
    amplitude_rad: float = AMPLITUDE_RAD
    frequency_rad_s: float = FREQUENCY_RAD_S


class Paths(NamedTuple):
    """Paths of R trials: S + 1 samples, ``SAMPLES_PER_PERIOD`` in each gait period."""

    head_xy: FloatArray
    """(S + 1, R, 2) [m] head."""
    centre_xy: FloatArray
    """(S + 1, R, 2) [m] centre of mass."""
    head_angle: FloatArray
    """(S + 1, R) [rad] direction of the head link, counter-clockwise."""


def our_joint(joint: int) -> int:
    """Return the number from 1 at the tail of the paper's ``joint``."""
    return N_JOINTS + 1 - joint


def crawl(trials: Sequence[Trial], n_periods: int, spec: RobotSpec = SPEC) -> Paths:
    """Run every trial for ``n_periods`` of the usual gait, ``PERIOD_S``; ``IMPOSED`` robots follow exactly."""
    n_trials = len(trials)
    shift, start, bias, joint, backwards, amplitude, frequency = (np.array(column) for column in zip(*(
        (t.shift_rad, t.start_rad, t.bias_rad, t.joint, t.backwards, t.amplitude_rad, t.frequency_rad_s) for t in trials
    ), strict=True))  # fmt: skip
    gait = {"kind": "serpenoid", "amplitude_rad": AMPLITUDE_RAD, "frequency_rad_s": FREQUENCY_RAD_S}
    frequency = np.where(backwards, -frequency, frequency)
    control = make_controller(gait, spec, {
        "phase_shift_rad": shift, "frequency_rad_s": frequency, "amplitude_rad": amplitude, "offset_rad": bias,
    })  # fmt: skip
    state = control.initial_state(n_trials)
    state["phase"][:] = np.mod(start, 2.0 * math.pi)
    robot = SimulatedRobot(spec, n_trials)
    shape = serpenoid_reference(start, amplitude, shift, N_JOINTS, bias)
    shape = np.clip(shape, -spec.joint_limit_rad, spec.joint_limit_rad)
    robot.set_shape(shape, np.zeros(n_trials), np.zeros((n_trials, 2)))
    robot.set_shape(shape, -robot.state.link_angle.mean(axis=1), np.zeros((n_trials, 2)))
    for world in np.flatnonzero(joint):
        robot.faults.kind[world, our_joint(int(joint[world])) - 1] = FREE
    return _record(robot, control, state, n_periods)


def _record(robot: SimulatedRobot, control: Controller, state: ControllerState, n_periods: int) -> Paths:
    n = robot.n_worlds
    shape = (n_periods * SAMPLES_PER_PERIOD + 1, n)
    paths = Paths(np.empty((*shape, 2)), np.empty((*shape, 2)), np.empty(shape))
    aimless = Goal(np.zeros((n, 2)), np.zeros(n, dtype=bool))
    every = COMMANDS_PER_PERIOD // SAMPLES_PER_PERIOD
    for k in range(n_periods * COMMANDS_PER_PERIOD + 1):
        sample = measure(robot)
        if k % every == 0:
            row = k // every
            paths.head_xy[row], paths.centre_xy[row] = sample.head_xy_w, robot.state.centre_xy
            paths.head_angle[row] = robot.state.link_angle[:, -1]
        if k < n_periods * COMMANDS_PER_PERIOD:
            robot.step(control.command(sample, aimless, state, robot.spec.control_dt_s))
    return paths


TURNS_BACK_RAD = math.pi
"""Smallest change of course within the run that counts as the paper's "turning back on itself"."""
STALLS_M_S = 0.05
"""Speed below which the robot does not move forward: an eighth of the fastest gait."""


class Motion(NamedTuple):
    """Motions of R trials; (R,) each."""

    speed_m_s: FloatArray
    """Mean speed along the path over the second half of the run."""
    turned_rad: FloatArray
    """Largest change of course from that of the first period."""
    diameter_m: FloatArray
    """Diameter of the circle with that speed and the rate at which the course turns in the second half."""
    finish_y_m: FloatArray
    """Height y of the head where it first crosses the finish line, against its start; NaN: it never does."""

    @property
    def stalls(self) -> NDArray[np.bool_]:
        return self.speed_m_s < STALLS_M_S

    @property
    def turns_back(self) -> NDArray[np.bool_]:
        return ~self.stalls & (self.turned_rad >= TURNS_BACK_RAD)

    @property
    def goes_on(self) -> NDArray[np.bool_]:
        return ~self.stalls & ~self.turns_back


def judge(paths: Paths, backwards: FloatArray | None = None) -> Motion:
    """Return the motion of every path of at least four periods.

    ``backwards`` (R,) marks trials driven tail first: their course and finish count along -x.
    """
    sense = np.ones(paths.head_angle.shape[1]) if backwards is None else np.where(backwards, -1.0, 1.0)
    centre = paths.centre_xy[::SAMPLES_PER_PERIOD]
    moved = np.diff(centre, axis=0)
    course = np.unwrap(np.arctan2(moved[..., 1], moved[..., 0]), axis=0)
    length = np.hypot(moved[..., 0], moved[..., 1])
    half = len(length) // 2
    turn = (course[-1] - course[half]) / (len(length) - 1 - half)
    mean = length[half:].mean(axis=0)
    with np.errstate(divide="ignore"):
        diameter = 2.0 * mean / np.abs(turn)
    return Motion(
        speed_m_s=mean / PERIOD_S,
        turned_rad=np.abs(course - course[0]).max(axis=0),
        diameter_m=diameter,
        finish_y_m=_finish(paths.head_xy, sense),
    )


def _finish(head: FloatArray, sense: FloatArray) -> FloatArray:
    """Return y at the first crossing of the finish line, interpolated linearly between samples."""
    x = sense * (head[..., 0] - head[0, :, 0])
    y = sense * (head[..., 1] - head[0, :, 1])
    across = (x[:-1] < FINISH_M) & (x[1:] >= FINISH_M)
    first, rows = across.argmax(axis=0), np.arange(x.shape[1])
    before, after = x[first, rows], x[first + 1, rows]
    share = (FINISH_M - before) / np.where(after > before, after - before, 1.0)
    crossing = y[first, rows] + share * (y[first + 1, rows] - y[first, rows])
    return np.where(across.any(axis=0), crossing, np.nan)


FRONT = (2, 3, 4, 5, 6)
"""Failures that make the paper's robot circle."""
MIDDLE = 7
REAR = tuple(range(8, N_JOINTS + 1))
N_PERIODS = 15
"""Number of gait periods: 39 s, at the fastest gait 14 m, four times the paper's test track."""
BIAS_RAD = math.radians(3.0)
"""Bias on all joints in section 4."""
BIASES_RAD = tuple(math.radians(b) for b in (-4.5, -3.0, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0, 4.5))


class Scan(NamedTuple):
    """Results on a grid of P phase shifts and S starts."""

    shifts_rad: FloatArray
    """(P,) [rad] phase shifts."""
    starts_rad: FloatArray
    """(S,) [rad] phases at the start."""
    forwards: Motion
    """Motions with fields (P, 14, S): failed joint 0 (none) to 13."""
    backwards: Motion
    """Motions with fields (P, 14, S), driven tail first."""
    biased: Motion
    """Motions with fields (P, len(BIASES_RAD), S): joint 7 failed."""


def scan(shifts_deg: Sequence[float], n_starts: int, advance: Advance, spec: RobotSpec = SPEC) -> Scan:
    """Run all trials with the robot ``spec``, one phase shift after the other."""
    shifts = np.radians(np.array(shifts_deg, dtype=np.float64))
    starts: FloatArray = math.pi / n_starts * np.arange(n_starts, dtype=np.float64)
    parts: list[tuple[Motion, Motion, Motion]] = []
    for index, shift in enumerate(shifts.tolist()):
        advance(index / len(shifts), f"single failures at a phase shift of {math.degrees(shift):g} deg")
        ahead = [Trial(j, shift, s) for j in range(N_JOINTS + 1) for s in starts.tolist()]
        back = [trial._replace(backwards=True) for trial in ahead]
        bias = [Trial(MIDDLE, shift, s, b) for b in BIASES_RAD for s in starts.tolist()]
        n = len(ahead)
        trials = ahead + back + bias
        motion = judge(crawl(trials, N_PERIODS, spec=spec), np.array([t.backwards for t in trials]))
        pieces = (slice(0, n), slice(n, 2 * n), slice(2 * n, None))
        parts.append(tuple(Motion(*(x[piece].reshape(-1, n_starts) for x in motion)) for piece in pieces))  # type: ignore[arg-type]
    ahead_all, back_all, bias_all = (_stack([part[k] for part in parts]) for k in range(3))
    return Scan(shifts, starts, ahead_all, back_all, bias_all)


def _stack(motions: Sequence[Motion]) -> Motion:
    return Motion(*(np.stack(field) for field in zip(*motions, strict=True)))


def drift(scan: Scan) -> FloatArray:
    """Return |y at the finish - y without failure, same start| (P, 14, S) [m]; NaN: one of them never gets there."""
    return np.abs(scan.forwards.finish_y_m - scan.forwards.finish_y_m[:, :1])


def best_bias(scan: Scan) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the BIASES_RAD index of the bias ending nearest to the line, and its |y| (P, S) [m]; -1: none arrives."""
    off = np.abs(scan.biased.finish_y_m)
    least, best = np.fmin.reduce(off, axis=1), np.argmin(np.where(np.isnan(off), np.inf, off), axis=1)
    return np.where(np.isnan(least), -1, best), least


def three_degrees(scan: Scan) -> FloatArray:
    """Return |finish y| (P, S) [m] with joint 7 failed and 3 deg of bias to the better side; NaN: neither arrives."""
    sides = [BIASES_RAD.index(-BIAS_RAD), BIASES_RAD.index(BIAS_RAD)]
    return np.asarray(np.fmin.reduce(np.abs(scan.biased.finish_y_m[:, sides]), axis=1))
