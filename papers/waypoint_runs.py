"""Many robots through one list of targets, each with its own control law, until all have arrived.

Method: classical Runge-Kutta with the control law evaluated at every stage (a continuous controller, as in
sibilska2022), while the goal is that of the step's start; after each step a robot within ``radius_m`` of its target
gets the next one. Arrival times are therefore multiples of the step. Robots that have reached the last target leave
the batch.
Frame: world x-y, angles counter-clockwise, ``phi_i = theta_i - theta_{i+1}``.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from papers.dynamics import Mask, Model
from snake_gym.controllers.cc import couple
from snake_gym.controllers.guidance import SteeringConfig, bearing, steering_offset, wrap_angle
from snake_gym.controllers.serpenoid import GaitConfig, serpenoid_reference
from snake_gym.robot.measurement import centre_offset
from snake_gym.robot.spec import FloatArray, RobotSpec

OnProgress = Callable[[int, float], None]
"""Called now and then with (targets reached since the last call, simulated time [s])."""

OnStep = Callable[[float, NDArray[np.int64], FloatArray, FloatArray], None]
"""Called after every step with (time [s], which runs are under way (M,), their joint angles (M, J) [rad], their tracked
points (M, 2) [m] world frame)."""

_STEPS_PER_REPORT = 200


class ControlLaw:
    """Eq. 32-37 of sibilska2022 for R robots: the gait, the steering and the joint loop.

    Args:
        spec: the robot; its actuator holds k_p and k_d.
        gait, steering: parameters.
        coupling: (R,) c of eq. 37: 0 is SJC, 0.5 is CC.
    """

    def __init__(self, spec: RobotSpec, gait: GaitConfig, steering: SteeringConfig, coupling: FloatArray) -> None:
        self._gait, self._steering, self._coupling = gait, steering, coupling
        self._n_joints = spec.n_joints
        self._kp, self._kd = spec.joints("actuator.kp"), spec.joints("actuator.kd")
        self._active = np.ones(len(coupling), dtype=bool)

    def select(self, keep: Mask) -> ControlLaw:
        """The law of the runs in ``keep`` (R,)."""
        kept = copy(self)
        kept._coupling, kept._active = self._coupling[keep], self._active[keep]
        return kept

    def command(self, time_s: float, theta: FloatArray, theta_dot: FloatArray, way: FloatArray) -> FloatArray:
        """Joint accelerations u (R, J) [rad/s^2].

        Args:
            theta, theta_dot: (R, N) [rad], [rad/s].
            way: (R, 2) [m] from the tracked point to the target, world frame.
        """
        gait, steering = self._gait, self._steering
        error = wrap_angle(theta.sum(axis=1) / theta.shape[1] - bearing(way))
        offset = steering_offset(error, self._active, steering.heading_gain, steering.offset_limit_rad)
        phase = np.array([gait.frequency_rad_s * time_s])
        reference = serpenoid_reference(phase, gait.amplitude_rad, gait.phase_shift_rad, self._n_joints, offset)
        phi, phi_dot = theta[:, :-1] - theta[:, 1:], theta_dot[:, :-1] - theta_dot[:, 1:]
        return couple(self._kp * (reference - phi) - self._kd * phi_dot, self._coupling[:, None])


class Course(NamedTuple):
    """Where the robots go."""

    targets: FloatArray
    """(K, 2) [m] world frame, in order."""
    radius_m: float
    """A target is reached at this distance or less."""


class WaypointRuns:
    """R robots on one course, from rest, head link along x, gait shape, tracked point at the origin.

    Args:
        spec: the robot.
        model: its dynamics for R runs.
        gait, steering: parameters of the control law.
        coupling: (R,) c of eq. 37.
        tracks_head: (R,) which runs guide (and measure) the head link's centre; the others, the centre of mass.
    """

    def __init__(
        self,
        spec: RobotSpec,
        model: Model,
        gait: GaitConfig,
        steering: SteeringConfig,
        coupling: FloatArray,
        tracks_head: Mask,
        course: Course,
    ) -> None:
        n_runs, n = len(coupling), spec.n_links
        self._model, self._course = model, course
        self._law = ControlLaw(spec, gait, steering, coupling)
        # The tracked point is the state's reference point + this times (centre of mass - head)
        self._to_tracked = model.head_is_reference.astype(np.float64) - tracks_head
        self._run = np.arange(n_runs)
        self._next = np.zeros(n_runs, dtype=np.int64)
        self.arrivals_s = np.full((n_runs, len(course.targets)), np.nan)
        """(R, K) [s], NaN where not reached."""
        # From head to centre of mass is linear in the link directions; in row j, only link j points along y.
        self._lever = centre_offset(spec, np.pi / 2 * np.eye(n))[:, 1]
        self._angles = slice(0, n)
        self._place = slice(n, n + 2)
        phi = serpenoid_reference(np.zeros(n_runs), gait.amplitude_rad, gait.phase_shift_rad, spec.n_joints)
        theta = np.zeros((n_runs, n))
        theta[:, :-1] = np.cumsum(phi[:, ::-1], axis=1)[:, ::-1]
        # q and its rate, (2, R, N + 2): link angles, reference point (eq. 25)
        self._y = np.zeros((2, n_runs, n + 2))
        self._y[0, :, self._angles] = theta
        self._y[0, :, self._place] = -self._tracked(self._y[0])

    def run(
        self, dt_s: float, time_limit_s: float, on_progress: OnProgress | None = None, on_step: OnStep | None = None
    ) -> FloatArray:
        """Integrate until every robot has arrived or ``time_limit_s`` is over; returns ``arrivals_s`` (R, K)."""
        reached = 0
        steps = round(time_limit_s / dt_s)
        for step in range(steps):
            if self._run.size == 0:
                break
            self._advance(step * dt_s, dt_s)
            if on_step is not None:
                q = self._y[0]
                theta = q[:, self._angles]
                on_step((step + 1) * dt_s, self._run, theta[:, :-1] - theta[:, 1:], self._tracked(q))
            reached += self._arrive((step + 1) * dt_s)
            if on_progress is not None and (step % _STEPS_PER_REPORT == 0 or self._run.size == 0):
                on_progress(reached, (step + 1) * dt_s)
                reached = 0
        return self.arrivals_s

    def _tracked(self, q: FloatArray) -> FloatArray:
        """Tracked point of every robot (R, 2) [m], world frame."""
        theta = q[:, self._angles]
        tracked = q[:, self._place].copy()
        tracked[:, 0] += np.cos(theta) @ self._lever * self._to_tracked
        tracked[:, 1] += np.sin(theta) @ self._lever * self._to_tracked
        return tracked

    def _way(self, q: FloatArray) -> FloatArray:
        """From the tracked point to the current target (R, 2) [m]."""
        return self._course.targets[self._next] - self._tracked(q)

    def _slope(self, time_s: float, y: FloatArray) -> FloatArray:
        q, q_dot = y
        theta, theta_dot = q[:, self._angles], q_dot[:, self._angles]
        u = self._law.command(time_s, theta, theta_dot, self._way(q))
        slope = np.empty_like(y)
        slope[0] = q_dot
        slope[1, :, self._angles], slope[1, :, self._place] = self._model.accelerate(
            theta, theta_dot, q[:, self._place], q_dot[:, self._place], u
        )
        return slope

    def _advance(self, time_s: float, dt_s: float) -> None:
        y, half = self._y, 0.5 * dt_s
        k1 = self._slope(time_s, y)
        k2 = self._slope(time_s + half, y + half * k1)
        k3 = self._slope(time_s + half, y + half * k2)
        k4 = self._slope(time_s + dt_s, y + dt_s * k3)
        self._y = y + dt_s / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)

    def _arrive(self, time_s: float) -> int:
        """Note who has reached a target, give the next one, drop who has reached the last; returns how many did."""
        way = self._way(self._y[0])
        hit = np.hypot(way[:, 0], way[:, 1]) <= self._course.radius_m
        if not hit.any():
            return 0
        self.arrivals_s[self._run[hit], self._next[hit]] = time_s
        self._next[hit] += 1
        going = self._next < len(self._course.targets)
        if not going.all():
            self._y = self._y[:, going]
            self._run, self._next, self._to_tracked = self._run[going], self._next[going], self._to_tracked[going]
            self._law, self._model = self._law.select(going), self._model.select(going)
        return int(hit.sum())
