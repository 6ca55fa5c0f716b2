"""Batches of runs with any joints failed in any way: the robot of sibilska2022 and its course, by the shipped physics.

Every run starts from the paper's shape (eq. 33 at t = 0 with 20 degrees), whatever its own amplitude, so that a joint
that is locked from the start is locked at the same angle in all runs that are compared. The controllers are the
shipped ones, called every step through their public interface; CC with coupling 0 is SJC. The centre of mass is guided.

Effective amplitude: of each joint, the amplitude of its angle at the gait's frequency, from one Fourier coefficient
for each period of the gait; the median over the periods, since turns at the targets leak into some of them.

Joint kinds here: *locked* holds its initial angle, as in the paper; *free* has no drive, little viscous friction, and
mechanical stops at the +-40 degrees of section 4.1 (without them it folds over); *weak* has half of its control signal,
of the spring and of the damping part alike. Driven joints have no stops, as in the paper.

Closed form of the wave that runs along the body in steady state, and of the reference that gives SJC the wave of CC.

Joints are driven by their acceleration, so their motion does not depend on the body's: with
``u_i = k_p (r_i - phi_i) - k_d phi_dot_i`` (eq. 32) and ``phi_ddot_i = u_i + c u_{i-1}`` (eq. 37), the amplitudes at
the gait's frequency, ``phi_i = Im(Phi_i exp(j omega t))`` and ``r_i = Im(R_i exp(j omega t))``, follow joint by joint:

    U_i = k_p R_i - (k_p + j omega k_d) Phi_i,    -omega^2 Phi_i = U_i + c U_{i-1},    locked joints: Phi_i = 0.

A locked joint's signal U_b = k_p R_b is large, since its error is never reduced; with CC it drives the next joint.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from papers.sibilska2022.experiment import (
    COUPLING,
    LIMIT_RAD,
    RADIUS_M,
    TARGETS,
    TIME_LIMIT_S,
    Broken,
    ControllerName,
    mask_joints,
)
from papers.sibilska2022.models import Mask
from papers.study import stage
from snake_gym.controllers import make_controller
from snake_gym.controllers.serpenoid import GaitConfig, serpenoid_reference
from snake_gym.physics.faults import FAULT_CODES
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.presets import RESILIENT
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.simulated_robot import SimulatedRobot

FaultKind = Literal["locked", "free", "weak"]
Waves = NDArray[np.complex128]

_OMEGA, _N_JOINTS = GaitConfig.frequency_rad_s, RESILIENT.n_joints
_KP, _KD = (float(RESILIENT.joints(f"actuator.{gain}")[0]) for gain in ("kp", "kd"))
_LOOP = _KP - _OMEGA**2 + 1j * _OMEGA * _KD


class Trial(NamedTuple):
    """Settings of one run."""

    controller: ControllerName
    broken: Broken
    kind: FaultKind = "locked"
    amplitude_rad: float = GaitConfig.amplitude_rad
    coupled_wave: bool = False
    """True for SJC whose joints get the wave of CC (see ``extra_reference``)."""
    start_angle_rad: float = 0.0
    """Direction of the head link, counter-clockwise from the x axis; the paper's is 0."""


def reference_wave(amplitude_rad: float) -> Waves:
    """Return R_i (J,) [rad] of eq. 33."""
    return np.asarray(amplitude_rad * np.exp(1j * GaitConfig.phase_shift_rad * np.arange(_N_JOINTS)))


def joint_wave(coupling: float, broken: Broken, amplitude_rad: float) -> Waves:
    """Return Phi_i (J,) [rad] in steady state, with the joints of ``broken`` locked."""
    reference, wave = reference_wave(amplitude_rad), np.zeros(_N_JOINTS, dtype=np.complex128)
    behind = 0.0 + 0.0j  # U_{i-1}
    for index in range(_N_JOINTS):
        if index + 1 not in broken:
            wave[index] = (_KP * reference[index] + coupling * behind) / _LOOP
        behind = _KP * reference[index] - (_KP + 1j * _OMEGA * _KD) * wave[index]
    return wave


def extra_reference(trial: Trial) -> Waves:
    """Return the addition (J,) [rad] to a trial's reference: zero, or the one that gives SJC the wave of CC.

    An uncoupled joint follows its reference with Phi = k_p R / (k_p - omega^2 + j omega k_d): solved for R.
    """
    if not trial.coupled_wave:
        return np.zeros(_N_JOINTS, dtype=np.complex128)
    wanted = joint_wave(COUPLING["cc"], trial.broken, trial.amplitude_rad)
    return np.asarray(wanted * _LOOP / _KP - reference_wave(trial.amplitude_rad))


FREE_DAMPING_NMS_RAD = 0.05
"""Damping of a joint without drive [N m s/rad]; our choice, as in the preset ``resilient_servo``."""

WEAK_STRENGTH = 0.5
"""Share of the control signal that a weak joint has left."""

ROBOT = replace(
    RESILIENT, joint_limit_rad=math.pi, free_joint_damping_nms_rad=FREE_DAMPING_NMS_RAD, control_dt_s=0.05,
    sim_dt_s=0.05,
)  # fmt: skip
"""Robot without joint limits, which the paper's control law does not know."""

ROBOT_WITH_STOPS = replace(ROBOT, integrator="implicit", sim_dt_s=0.01, joint_stop_rad=LIMIT_RAD)
"""Robot for runs with free joints, with an implicit integrator: Runge-Kutta has no stops."""

_STEPS_PER_PERIOD = round(2.0 * math.pi / GaitConfig.frequency_rad_s / ROBOT.control_dt_s)


class Trials(NamedTuple):
    """Results of R runs."""

    arrivals_s: FloatArray
    """(R, K) [s] arrivals, NaN where not reached."""
    amplitude_rad: FloatArray
    """(R, J) [rad] effective amplitude of every joint, NaN for runs that ended before their second period did."""


def play(
    trials: Sequence[Trial],
    n_targets: int = len(TARGETS),
    time_limit_s: float = TIME_LIMIT_S,
    on_progress: Callable[[float], None] = lambda share: None,
) -> Trials:
    """Play all runs, until each has reached its last target or the time is over.

    ``on_progress`` is called now and then with the share of targets reached.
    """
    free = np.array([trial.kind == "free" for trial in trials])
    parts = [np.flatnonzero(rows).tolist() for rows in (~free, free) if rows.any()]
    results, done = list[Trials](), 0.0
    for part in parts:
        size = len(part) / len(trials)
        some = [trials[row] for row in part]
        results.append(
            _play(some, n_targets, time_limit_s, stage(lambda share, _: on_progress(share), done, done + size))
        )
        done += size
    back = np.argsort(np.concatenate(parts))
    return Trials(*(np.concatenate(columns)[back] for columns in zip(*results, strict=True)))


def _play(trials: Sequence[Trial], n_targets: int, time_limit_s: float, on_progress: Callable[[float], None]) -> Trials:
    """Play one batch of trials with the same physics."""
    n_runs, dt, targets = len(trials), ROBOT.control_dt_s, TARGETS[:n_targets]
    robot, extra = _robot(trials), np.array(list(map(extra_reference, trials)))
    tuned = {
        "coupling": np.array([COUPLING[trial.controller] for trial in trials]),
        "amplitude_rad": np.array([trial.amplitude_rad for trial in trials]),
    }
    controller, lock_in = make_controller({"kind": "cc"}, ROBOT, tuned), _LockIn()
    state = controller.initial_state(n_runs)
    arrivals, upcoming = np.full((n_runs, n_targets), np.nan), np.zeros(n_runs, dtype=np.int64)
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
        way = target - chain.centre_xy
        hit = np.flatnonzero(going & (np.einsum("ri,ri->r", way, way) <= RADIUS_M**2))
        if hit.size:
            arrivals[hit, upcoming[hit]] = step * dt
            upcoming[hit] += 1
            going = upcoming < n_targets
            if not going.any():
                break
        if step % 500 == 0:
            on_progress(float(upcoming.sum()) / (n_runs * n_targets))
    return Trials(arrivals, lock_in.amplitude(n_runs))


def _robot(trials: Sequence[Trial]) -> SimulatedRobot:
    """Return the robot at the start of the course; all trials have free joints, or none has."""
    n_runs, failed = len(trials), mask_joints([trial.broken for trial in trials])
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
        robot.params = robot.params._replace(stop=np.where(failed, LIMIT_RAD, math.inf))
        robot.same_params = False
    return robot


class _LockIn:
    """Amplitude of every joint at the gait's frequency, period by period."""

    def __init__(self) -> None:
        self._sum: NDArray[np.complex128] | float = 0.0
        self._periods: list[FloatArray] = []

    def add(self, phi: FloatArray, step: int, going: Mask) -> None:
        """Add joint angles (R, J) [rad] after ``step``; runs that are not ``going`` (R,) no longer count."""
        self._sum = self._sum + phi * np.exp(-2j * math.pi * (step % _STEPS_PER_PERIOD) / _STEPS_PER_PERIOD)
        if step % _STEPS_PER_PERIOD == 0:
            amplitude = 2.0 / _STEPS_PER_PERIOD * np.abs(self._sum)
            self._periods.append(np.where(going[:, None], amplitude, np.nan))
            self._sum = 0.0

    def amplitude(self, n_runs: int) -> FloatArray:
        """Return (R, J) [rad], the median without the first period, which starts from rest; NaN without others."""
        result = np.full((n_runs, ROBOT.n_joints), np.nan)
        if len(self._periods) > 1:
            periods = np.array(self._periods[1:])
            counted = np.isfinite(periods[:, :, 0]).any(axis=0)
            result[counted] = np.nanmedian(periods[:, counted], axis=0)
        return result
