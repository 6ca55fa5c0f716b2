"""Batches of runs with any joints failed in any way: the robot of sibilska2022 and its course, by the shipped physics.

Every run starts from the paper's shape (eq. 33 at t = 0 with 20 degrees), whatever its own amplitude, so that a joint
that is locked from the start is locked at the same angle in all runs that are compared. The controllers are the
shipped ones, called every step through their public interface; CC with coupling 0 is SJC. Guided is the centre of mass.

Effective amplitude: of each joint, the amplitude of its angle at the gait's frequency, from one Fourier coefficient
for each period of the gait; the median over the periods, since turns at the targets leak into some of them.

Joint kinds here: *locked* holds its initial angle, as in the paper; *free* has no drive, little viscous friction, and
mechanical stops at the +-40 degrees of section 4.1 (without them it folds over); *weak* has half of its control signal,
of the spring and of the damping part alike. Driven joints have no stops, as in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from papers.dynamics import Mask
from papers.sibilska2022.experiment import COUPLING, COURSE, TIME_LIMIT_S
from papers.sibilska2022.wave import Trial, extra_reference
from snake_gym.controllers import Controller, make_controller
from snake_gym.controllers.serpenoid import GaitConfig, serpenoid_reference
from snake_gym.physics.faults import FAULT_CODES
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.presets import RESILIENT
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.simulated_robot import SimulatedRobot

FREE_DAMPING_NMS_RAD = 0.05
"""Of a joint without drive [N m s/rad]; our choice, the paper has none: as in the preset ``resilient_servo``."""

WEAK_STRENGTH = 0.5
"""Share of the control signal that a weak joint has left."""

JOINT_LIMIT_RAD = math.radians(40.0)
"""Section 4.1: the range that the links are made for."""

ROBOT = replace(
    RESILIENT,
    joint_limit_rad=math.pi,
    free_joint_damping_nms_rad=FREE_DAMPING_NMS_RAD,
    control_dt_s=0.05,
    sim_dt_s=0.05,
)
"""The paper's control law knows no joint limit."""

ROBOT_WITH_STOPS = replace(ROBOT, integrator="implicit", sim_dt_s=0.01, joint_stop_rad=JOINT_LIMIT_RAD)
"""For runs with free joints: Runge-Kutta knows no stops."""

_SLACK_RAD = 1e-6
"""A joint at its stop is not beyond it."""

_STEPS_PER_PERIOD = round(2.0 * math.pi / GaitConfig.frequency_rad_s / ROBOT.control_dt_s)


class Trials(NamedTuple):
    """What R runs gave."""

    arrivals_s: FloatArray
    """(R, K) [s], NaN where not reached."""
    amplitude_rad: FloatArray
    """(R, J) [rad] effective amplitude of every joint, NaN where a run was over before its second period was."""
    outside: FloatArray
    """(R,) share of the time with a joint beyond +-40 degrees."""


def play(
    trials: Sequence[Trial],
    n_targets: int = len(COURSE.targets),
    time_limit_s: float = TIME_LIMIT_S,
    on_progress: Callable[[float], None] | None = None,
) -> Trials:
    """Play all runs, until each has reached its last target or the time is over.

    ``on_progress`` is called now and then with the share of targets reached.
    """
    free = np.array([trial.kind == "free" for trial in trials])
    parts = [np.flatnonzero(rows) for rows in (~free, free) if rows.any()]
    results = list[Trials]()
    done = 0.0
    for part in parts:
        size = part.size / len(trials)

        def told(share: float, before: float = done, size: float = size) -> None:
            if on_progress is not None:
                on_progress(before + size * share)

        results.append(_play([trials[row] for row in part.tolist()], n_targets, time_limit_s, told))
        done += size
    back = np.argsort(np.concatenate(parts))
    return Trials(*(np.concatenate(columns)[back] for columns in zip(*results, strict=True)))


def _play(trials: Sequence[Trial], n_targets: int, time_limit_s: float, on_progress: Callable[[float], None]) -> Trials:
    """One batch of the same physics."""
    n_runs, dt, targets = len(trials), ROBOT.control_dt_s, COURSE.targets[:n_targets]
    robot, controller, extra = _robot(trials), _controller(trials), np.array(list(map(extra_reference, trials)))
    state, lock_in = controller.initial_state(n_runs), _LockIn()
    arrivals, upcoming = np.full((n_runs, n_targets), np.nan), np.zeros(n_runs, dtype=np.int64)
    steps_outside, steps = np.zeros(n_runs), np.zeros(n_runs)
    going = np.ones(n_runs, dtype=bool)
    for step in range(1, round(time_limit_s / dt) + 1):
        chain, target = robot.state, targets[np.minimum(upcoming, n_targets - 1)]
        head = chain.link_angle[:, -1]
        seen = Measurement(robot.joint_angle(), robot.joint_rate(), chain.head_xy, head, going, chain.centre_xy)
        swing = np.exp(1j * controller.phase(state))[:, None]
        reference = controller.command(seen, Goal(target, going), state, dt)
        robot.step(np.ascontiguousarray(reference + (extra * swing).imag), mask=going)
        phi = robot.joint_angle()
        lock_in.add(phi, step, going)
        steps += going
        steps_outside += going & (np.abs(phi).max(axis=1) > JOINT_LIMIT_RAD + _SLACK_RAD)
        way = target - chain.centre_xy
        hit = np.flatnonzero(going & (np.einsum("ri,ri->r", way, way) <= COURSE.radius_m**2))
        if hit.size:
            arrivals[hit, upcoming[hit]] = step * dt
            upcoming[hit] += 1
            going = upcoming < n_targets
            if not going.any():
                break
        if step % 500 == 0:
            on_progress(float(upcoming.sum()) / (n_runs * n_targets))
    return Trials(arrivals, lock_in.amplitude(n_runs), steps_outside / steps)


def failed_joints(trials: Sequence[Trial]) -> Mask:
    """(R, J) which joints have failed."""
    failed = np.zeros((len(trials), ROBOT.n_joints), dtype=bool)
    for row, trial in zip(failed, trials, strict=True):
        row[[joint - 1 for joint in trial.broken]] = True
    return failed


def _robot(trials: Sequence[Trial]) -> SimulatedRobot:
    """At the start of the course; all trials have free joints, or none has."""
    n_runs, failed = len(trials), failed_joints(trials)
    stops = any(trial.kind == "free" for trial in trials)
    robot = SimulatedRobot(ROBOT_WITH_STOPS if stops else ROBOT, n_runs, n_threads=1)
    gait = GaitConfig()
    phi = serpenoid_reference(np.zeros(n_runs), gait.amplitude_rad, gait.phase_shift_rad, ROBOT.n_joints)
    angle = np.array([trial.start_angle_rad for trial in trials])
    robot.set_shape(phi, angle, np.zeros((n_runs, 2)), point="centre")
    kinds = np.array([FAULT_CODES[trial.kind] for trial in trials])
    robot.faults.kind[:] = np.where(failed, kinds[:, None], FAULT_CODES["healthy"])
    robot.faults.strength[:] = WEAK_STRENGTH
    if stops:
        robot.params = robot.params._replace(stop=np.where(failed, JOINT_LIMIT_RAD, math.inf))
        robot.same_params = False
    return robot


def _controller(trials: Sequence[Trial]) -> Controller:
    tuned = {
        "coupling": np.array([COUPLING[trial.controller] for trial in trials]),
        "amplitude_rad": np.array([trial.amplitude_rad for trial in trials]),
    }
    return make_controller({"kind": "cc"}, ROBOT, tuned)


class _LockIn:
    """Amplitude of every joint at the gait's frequency, period by period."""

    def __init__(self) -> None:
        self._sum: NDArray[np.complex128] | float = 0.0
        self._periods: list[FloatArray] = []

    def add(self, phi: FloatArray, step: int, going: Mask) -> None:
        """Joint angles (R, J) [rad] after ``step``; runs that are not ``going`` (R,) count no more."""
        self._sum = self._sum + phi * np.exp(-2j * math.pi * (step % _STEPS_PER_PERIOD) / _STEPS_PER_PERIOD)
        if step % _STEPS_PER_PERIOD == 0:
            amplitude = 2.0 / _STEPS_PER_PERIOD * np.abs(self._sum)
            self._periods.append(np.where(going[:, None], amplitude, np.nan))
            self._sum = 0.0

    def amplitude(self, n_runs: int) -> FloatArray:
        """(R, J) [rad], the median without the first period, which starts from rest; NaN where there is no other."""
        result = np.full((n_runs, ROBOT.n_joints), np.nan)
        if len(self._periods) > 1:
            periods = np.array(self._periods[1:])
            counted = np.isfinite(periods[:, :, 0]).any(axis=0)
            result[counted] = np.nanmedian(periods[:, counted], axis=0)
        return result
