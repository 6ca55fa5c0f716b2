"""Simulations of sibilska2022 (resilient control of a snake robot, SJC and CC) and the paper's numbers.

Experiment (section 4): ten links from rest to five targets in turn, guided by the centre of mass or by the head, with
single-joint control (SJC) or coupled control (CC), and no joint, joint 3, joints 3, 5, 8 or joints 3, 5, 6 broken: 16
runs. The result is the time of arrival at every target (Fig. 14).

Models. ``consistent``: the equations of every env, with the guidance computed at the tracked point. ``published``: the
model behind the paper's numbers. For the centre the two are the same; for the head, see ``models``.

Solvers. ``simulate`` solves the equations: classical Runge-Kutta with the control law evaluated at every stage (a
continuous controller), while the goal is that of the step's start; after each step a robot within reach of its target
gets the next one. Arrival times are therefore multiples of the step. Robots that have reached the last target leave the
batch. ``simulate_as_published`` integrates as the authors' program does, with its errors.

Parameters and targets stand in that program (``PROGRAM``); Tables 1-3 are empty in the text at hand. Errors of the text
are listed in docs/papers/sibilska2022.md: the
control signal u is a joint acceleration, not a torque; a broken joint has u = 0 from the start and so stays locked at
its initial angle; the bearing is quadrant-aware and has the opposite sign.
Frame: world x-y, angles counter-clockwise, ``phi_i = theta_i - theta_{i+1}``; the paper's figures plot -y.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import BDF

from papers.sibilska2022.models import CentreModel, Mask, PublishedHeadModel
from snake_gym.controllers.guidance import SteeringConfig, bearing, steering_offset, wrap_angle
from snake_gym.controllers.serpenoid import GaitConfig, serpenoid_reference
from snake_gym.robot.measurement import centre_offset
from snake_gym.robot.presets import RESILIENT
from snake_gym.robot.spec import FloatArray, RobotSpec

Point = Literal["centre", "head"]
ControllerName = Literal["sjc", "cc"]
ModelName = Literal["published", "consistent"]
Broken = tuple[int, ...]

TARGETS: FloatArray = np.array([[1.0, 1.0], [3.0, 1.0], [4.0, 0.0], [6.0, -1.0], [8.0, -1.0]])
"""(K, 2) [m] targets of Table 2 (values of ``PROGRAM``), in order."""
RADIUS_M = 0.05
"""Distance at which a target is reached."""
COUPLING: dict[ControllerName, float] = {"sjc": 0.0, "cc": 0.5}
"""Coupling c of eq. 37."""
BROKEN_SETS: tuple[Broken, ...] = ((), (3,), (3, 5, 8), (3, 5, 6))
"""Joints that fail in section 4.2."""
PROGRAM = "https://github.com/asibilska/Snake-Robot-Locomotion-MATLAB-, start.mlx of version 21.11.1"
"""Program that the authors have published."""
RELATIVE_TOLERANCE, ABSOLUTE_TOLERANCE = 1e-3, 1e-6
"""Defaults of MATLAB's ode15s, which ``PROGRAM`` leaves as they are."""
FIRST_STEPS_S = tuple(0.01 * 0.5**k for k in range(8))
"""First steps [s] of the published solver, one for each draw. The largest is the program's interval of output, to which
ode15s limits its first step; the smaller ones give other errors of the same size."""
DT_S = 0.025
"""Runge-Kutta step [s] (the paper's is not fixed). Arrivals depend on hits and near misses of targets, and so on the
step: one run (head, published, SJC, none) changes by 4 % from 0.05 to 0.025 s, the others by 1.3 % at most."""
TIME_LIMIT_S = 3000.0
"""Time limit [s], beyond the slowest run of all, 1955 s."""
LIMIT_RAD = math.radians(40.0)
"""Range that the links are made for (section 4.1); no simulation enforces it."""

_PAPER_S = {
    ("centre", "sjc"): (257.0, 358.0, 760.0, 1545.0),
    ("centre", "cc"): (None, 320.0, 476.0, 853.0),
    ("head", "sjc"): (297.0, 395.0, 767.0, 1069.0),
    ("head", "cc"): (None, 320.0, 414.0, 772.0),
}
PAPER_S: dict[tuple[str, str, Broken], float] = {
    (*method, broken): time
    for method, times in _PAPER_S.items()
    for broken, time in zip(BROKEN_SETS, times, strict=True)
    if time is not None
}
"""Arrival at the fifth target [s] that section 4.3 states, or gives as a difference between two controllers."""

OnProgress = Callable[[int, float], None]
"""Function that is called now and then with (targets reached since the last call, simulated time [s])."""
_STEPS_PER_REPORT = 200
_STEPS_PER_SAMPLE = 12


# --- cases -----------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """Settings of one simulation."""

    point: Point
    model: ModelName
    controller: ControllerName
    broken: Broken


_MODELS: tuple[tuple[Point, ModelName], ...] = (("centre", "published"), ("head", "published"), ("head", "consistent"))
CASES = tuple(
    Case(point, model, controller, broken)
    for point, model in _MODELS
    for broken in BROKEN_SETS
    for controller in COUPLING
)
"""All cases: the 16 published ones, and the head with consistent physics. For the centre both models are the same."""


def paper_time(case: Case) -> float | None:
    """Return arrival at the last target according to the paper [s]; None if it gives none."""
    return PAPER_S.get((case.point, case.controller, case.broken)) if case.model == "published" else None


def mask_joints(sets: Sequence[Broken]) -> Mask:
    """Return (R, J) True at the joints of each of R sets, which count from 1."""
    mask = np.zeros((len(sets), RESILIENT.n_joints), dtype=bool)
    for row, broken in zip(mask, sets, strict=True):
        row[[joint - 1 for joint in broken]] = True
    return mask


# --- simulation ------------------------------------------------------------------------------------------------------


class ControlLaw:
    """Control law of eq. 32-37 for R robots: the gait, the steering and the joint loop.

    Args:
        spec: robot; k_p and k_d are its actuator's.
        gait, steering: parameters.
        coupling: (R,) c of eq. 37: 0 is SJC, 0.5 is CC.
    """

    def __init__(self, spec: RobotSpec, gait: GaitConfig, steering: SteeringConfig, coupling: FloatArray) -> None:
        self._gait, self._steering, self._coupling = gait, steering, coupling
        self._n_joints = spec.n_joints
        self._kp, self._kd = spec.joints("actuator.kp"), spec.joints("actuator.kd")

    def select(self, keep: Mask) -> ControlLaw:
        """Return the law of the runs in ``keep`` (R,)."""
        kept = copy(self)
        kept._coupling = self._coupling[keep]
        return kept

    def command(self, time_s: float, theta: FloatArray, theta_dot: FloatArray, way: FloatArray) -> FloatArray:
        """Return joint accelerations u (R, J) [rad/s^2].

        Args:
            theta, theta_dot: (R, N) [rad], [rad/s].
            way: (R, 2) [m] from the tracked point to the target, world frame.
        """
        gait, steering, active = self._gait, self._steering, np.ones(len(theta), dtype=bool)
        error = wrap_angle(theta.sum(axis=1) / theta.shape[1] - bearing(way))
        offset = steering_offset(error, active, steering.heading_gain, steering.offset_limit_rad)
        phase = np.array([gait.frequency_rad_s * time_s])
        reference = serpenoid_reference(phase, gait.amplitude_rad, gait.phase_shift_rad, self._n_joints, offset)
        phi, phi_dot = theta[:, :-1] - theta[:, 1:], theta_dot[:, :-1] - theta_dot[:, 1:]
        u = self._kp * (reference - phi) - self._kd * phi_dot
        return np.concatenate([u[:, :1], u[:, 1:] + self._coupling[:, None] * u[:, :-1]], axis=1)  # eq. 37


def simulate(
    cases: Sequence[Case],
    amplitude_rad: float = GaitConfig.amplitude_rad,
    n_targets: int = len(TARGETS),
    time_limit_s: float = TIME_LIMIT_S,
    on_progress: OnProgress | None = None,
    recorder: Recorder | None = None,
) -> FloatArray:
    """Return arrival times (cases, n_targets) [s], NaN where a target is not reached within ``time_limit_s``.

    Args:
        cases: at least one case to simulate, side by side.
        amplitude_rad: alpha of the gait; the paper has 20 degrees.
        n_targets: stop after this many targets.
        on_progress: see ``OnProgress``.
        recorder: receives joint angles and tracked points.
    """
    gait, arrivals = replace(GaitConfig(), amplitude_rad=amplitude_rad), np.full((len(cases), n_targets), np.nan)
    in_head_model = np.array([case.point == "head" and case.model == "published" for case in cases], dtype=bool)
    for kind, chosen in ((CentreModel, ~in_head_model), (PublishedHeadModel, in_head_model)):
        rows = np.flatnonzero(chosen)
        if not rows.size:
            continue
        some = [cases[row] for row in rows.tolist()]
        model: CentreModel | PublishedHeadModel = kind(RESILIENT, mask_joints([case.broken for case in some]))
        law = ControlLaw(RESILIENT, gait, SteeringConfig(), np.array([COUPLING[case.controller] for case in some]))
        runs = _Runs(model, law, gait, np.array([case.point == "head" for case in some]), TARGETS[:n_targets])
        reached = 0
        for step in range(1, round(time_limit_s / DT_S) + 1):
            runs.advance((step - 1) * DT_S)
            if recorder is not None:
                recorder.listen(step, rows[runs.run], runs.joint_angle(), runs.tracked_xy(), runs.head_angle())
            hit = runs.arrive()
            arrivals[rows[hit.run], hit.target] = step * DT_S
            reached += hit.run.size
            if on_progress is not None and (step % _STEPS_PER_REPORT == 1 or not runs.run.size):
                on_progress(reached, step * DT_S)
                reached = 0
            if not runs.run.size:
                break
    return arrivals


def simulate_as_published(
    case: Case,
    first_step_s: float = FIRST_STEPS_S[0],
    n_targets: int = len(TARGETS),
    time_limit_s: float = TIME_LIMIT_S,
) -> FloatArray:
    """Return arrival times (n_targets,) [s] of one case as the authors' program computes them, NaN where not reached.

    The program integrates joint angles, head angle and position with ode15s at its default tolerances; here scipy's BDF
    does, which has the same formulas and other error norms. A target counts as reached at the first *evaluation* of the
    right-hand side within its radius, be it of a step that is refused later or of a finite difference.
    """
    gait, n, reached = GaitConfig(), RESILIENT.n_links, list[float]()
    published_head = case.point == "head" and case.model == "published"
    kind = PublishedHeadModel if published_head else CentreModel
    law = ControlLaw(RESILIENT, gait, SteeringConfig(), np.array([COUPLING[case.controller]]))
    model: CentreModel | PublishedHeadModel = kind(RESILIENT, mask_joints([case.broken]))
    runs = _Runs(model, law, gait, np.array([case.point == "head"]), TARGETS[:n_targets])
    # Link angles are sums of joint angles and the head's angle, from the head backwards
    angles = np.eye(n + 2)
    angles[:n, :n] = np.triu(np.ones((n, n)))

    def slope(time_s: float, flat: FloatArray) -> FloatArray:
        y = flat.reshape(2, 1, n + 2) @ angles.T
        if len(reached) < n_targets and runs.within_reach(y[0]).all():
            reached.append(time_s)
            runs.aim_at(min(len(reached), n_targets - 1))
        rate = runs.slope(time_s, y)
        rate[:, :, : n - 1] -= rate[:, :, 1:n].copy()
        return rate.ravel()

    start = runs.state.copy()
    start[:, :, : n - 1] -= start[:, :, 1:n].copy()
    solver = BDF(
        slope, 0.0, start.ravel(), time_limit_s, first_step=first_step_s, rtol=RELATIVE_TOLERANCE,
        atol=ABSOLUTE_TOLERANCE,
    )  # fmt: skip
    while solver.status == "running" and len(reached) < n_targets:
        solver.step()
    return np.array(reached + [math.nan] * (n_targets - len(reached)))


class _Hit(NamedTuple):
    """Runs that have reached a target, and the target of each (both count from 0)."""

    run: NDArray[np.int64]
    target: NDArray[np.int64]


class _Runs:
    """R robots on the way to ``targets``, from rest, head link along x, gait shape, tracked point at the origin."""

    def __init__(
        self,
        model: CentreModel | PublishedHeadModel,
        law: ControlLaw,
        gait: GaitConfig,
        tracks_head: Mask,
        targets: FloatArray,
    ) -> None:
        n_runs, n = len(tracks_head), RESILIENT.n_links
        self._model, self._law, self._targets = model, law, targets
        # The tracked point is the state's reference point + this times (centre of mass - head)
        self._to_tracked = float(model.head_is_reference) - tracks_head
        self.run = np.arange(n_runs)
        """(R,) numbers of the runs that are still under way."""
        self._next = np.zeros(n_runs, dtype=np.int64)
        # From head to centre of mass is linear in the link directions; in row j, only link j points along y.
        self._lever = centre_offset(RESILIENT, np.pi / 2 * np.eye(n))[:, 1]
        self._angles, self._place = slice(0, n), slice(n, n + 2)
        phi = serpenoid_reference(np.zeros(n_runs), gait.amplitude_rad, gait.phase_shift_rad, n - 1)
        # q and its rate, (2, R, N + 2): link angles, reference point (eq. 25)
        self._y = np.zeros((2, n_runs, n + 2))
        self._y[0, :, : n - 1] = np.cumsum(phi[:, ::-1], axis=1)[:, ::-1]
        self._y[0, :, self._place] = -self.tracked_xy()

    def joint_angle(self) -> FloatArray:
        """Return joint angles (R, J) [rad]."""
        theta = self._y[0, :, self._angles]
        return theta[:, :-1] - theta[:, 1:]

    def head_angle(self) -> FloatArray:
        """Return directions of the head links (R,) [rad]."""
        return self._y[0, :, RESILIENT.n_links - 1]

    def tracked_xy(self, q: FloatArray | None = None) -> FloatArray:
        """Return tracked points (R, 2) [m], world frame."""
        q = self._y[0] if q is None else q
        theta, tracked = q[:, self._angles], q[:, self._place].copy()
        tracked[:, 0] += np.cos(theta) @ self._lever * self._to_tracked
        tracked[:, 1] += np.sin(theta) @ self._lever * self._to_tracked
        return tracked

    @property
    def state(self) -> FloatArray:
        """Link angles and reference point, and their rates (2, R, N + 2)."""
        return self._y

    def aim_at(self, target: int) -> None:
        """Send all runs to this target, counted from 0."""
        self._next[:] = target

    def within_reach(self, q: FloatArray) -> Mask:
        """Return (R,) True where the tracked point is within reach of the run's target."""
        way = self._targets[self._next] - self.tracked_xy(q)
        return np.asarray(np.hypot(way[:, 0], way[:, 1]) <= RADIUS_M)

    def slope(self, time_s: float, y: FloatArray) -> FloatArray:
        """Return the rate (2, R, N + 2) of the state ``y``."""
        q, q_dot = y
        theta, theta_dot = q[:, self._angles], q_dot[:, self._angles]
        u = self._law.command(time_s, theta, theta_dot, self._targets[self._next] - self.tracked_xy(q))
        slope = np.empty_like(y)
        slope[0] = q_dot
        slope[1, :, self._angles], slope[1, :, self._place] = self._model.accelerate(
            theta, theta_dot, q[:, self._place], q_dot[:, self._place], u
        )
        return slope

    def advance(self, time_s: float) -> None:
        """Make one Runge-Kutta step from ``time_s``."""
        y, half = self._y, 0.5 * DT_S
        k1 = self.slope(time_s, y)
        k2 = self.slope(time_s + half, y + half * k1)
        k3 = self.slope(time_s + half, y + half * k2)
        k4 = self.slope(time_s + DT_S, y + DT_S * k3)
        self._y = y + DT_S / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)

    def arrive(self) -> _Hit:
        """Give the next target to runs that have reached one, drop runs that have reached the last, return the hits."""
        reached = self.within_reach(self._y[0])
        hit = _Hit(self.run[reached], self._next[reached])
        self._next[reached] += 1
        going = self._next < len(self._targets)
        if not going.all():
            self._y = self._y[:, going]
            self.run, self._next, self._to_tracked = self.run[going], self._next[going], self._to_tracked[going]
            self._law, self._model = self._law.select(going), self._model.select(going)
        return hit


# --- what joints and tracked points did ------------------------------------------------------------------------------


class Recording(NamedTuple):
    """Recording of one run, from the first step to the last target."""

    time_s: FloatArray
    """(T,) times [s], every 0.3 s."""
    joint_angle: FloatArray
    """(T, J) [rad] joint angles."""
    tracked_xy: FloatArray
    """(T, 2) [m] tracked point, world frame."""
    head_angle: FloatArray
    """(T,) [rad] direction of the head link."""
    duration_s: float
    outside_s: float
    """Time with at least one joint beyond the limit, over every step of the integration [s]."""
    peak_rad: float
    """Largest angle of any joint, either sign."""

    @property
    def outside(self) -> float:
        """Share of the time with at least one joint beyond the limit."""
        return self.outside_s / self.duration_s


Recordings = Mapping[Case, Recording]


class Recorder:
    """Recorder of R runs at every step; joint angles and tracked points are kept at every twelfth."""

    def __init__(self, n_runs: int, dt_s: float = DT_S) -> None:
        self._dt = dt_s
        self._samples: list[list[tuple[float, FloatArray, FloatArray, float]]] = [[] for _ in range(n_runs)]
        self._steps, self._outside, self._peak = np.zeros(n_runs), np.zeros(n_runs), np.zeros(n_runs)

    def listen(self, step: int, run: NDArray[np.int64], phi: FloatArray, tracked_xy: FloatArray,
               head_angle: FloatArray) -> None:  # fmt: skip
        """Record runs ``run`` (M,) after ``step`` steps: joint angles (M, J), tracked points (M, 2), heads (M,)."""
        size = np.abs(phi)
        self._steps[run] += 1.0
        self._outside[run] += (size > LIMIT_RAD).any(axis=1)
        self._peak[run] = np.maximum(self._peak[run], size.max(axis=1))
        if (step - 1) % _STEPS_PER_SAMPLE == 0:
            for row, index in enumerate(run.tolist()):
                now = (step * self._dt, phi[row].copy(), tracked_xy[row].copy(), float(head_angle[row]))
                self._samples[index].append(now)

    def recordings(self, cases: Sequence[Case]) -> dict[Case, Recording]:
        """Return everything recorded, by case."""
        found = {}
        for index, case in enumerate(cases):
            time, angle, place, head = (np.array(column) for column in zip(*self._samples[index], strict=True))
            found[case] = Recording(
                time, angle, place, head, self._steps[index] * self._dt, self._outside[index] * self._dt,
                float(self._peak[index]),
            )  # fmt: skip
        return found
