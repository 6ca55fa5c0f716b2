r"""Dynamics of the nominal planar chain, for W robots at once: the model of model-based controllers.

Coordinates ``q = [phi_1 .. phi_J, theta_N, x, y]`` with (x, y) the centre of mass (wang, eq. 6; sibilska2022, eq. 6):
``theta = E phi + 1 theta_N``, and with B from lengths and masses, link i is at

    p_i = p + sum_j B_ij t_j,    t_j = (cos theta_j, sin theta_j),  n_j = (-sin theta_j, cos theta_j).

Links and centre of mass then decouple, and with ``G = B^T diag(m) B`` the equations of motion are

    (diag(I) + G_jk cos(theta_j - theta_k)) theta_ddot_k + G_jk sin(theta_j - theta_k) omega_k^2 = Q_j + (D^T u)_j
    M p_ddot = sum_i f_i

with u the joint torques, f_i the ground friction at the links' centres (viscous, and Coulomb as F v / max(|v|, 1 mm/s),
along both axes or each by itself as the robot's ``coulomb_axes`` say) plus gravity's pull, and Q their moments.
Multiplied from the left by ``[E 1]^T`` the rows of phi and theta_N are wang's eq. 26-27 with the centre of mass apart:
its M_12 M_22^-1 M_21 comes down to the division by the chain's moment of inertia.

Departures from wang: links may differ; friction may be Coulomb's; obstacles are not known.
The sums are not left to BLAS, which rounds a world alone and in a batch differently.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from snake_gym.robot.measurement import chain_angles
from snake_gym.robot.spec import FloatArray, RobotSpec

_CREEP_M_S = 1e-3
"""Speed [m/s] or [rad/s] below which Coulomb friction is viscous: a measured speed is no better than that."""

_ROUNDS = 4
"""Number of solutions that correct the secants of Coulomb friction."""


class Motion(NamedTuple):
    """Configuration and rates of W chains."""

    theta: FloatArray
    """Link angles (W, N) [rad]."""
    omega: FloatArray
    """Link rates (W, N) [rad/s]."""
    velocity: FloatArray
    """Velocity of the centre of mass (W, 2) [m/s], world frame."""


class NominalChain:
    """Dynamics of one RobotSpec on flat or inclined ground, without obstacles."""

    def __init__(self, spec: RobotSpec) -> None:
        half, mass = spec.links("link_half_length_m"), spec.links("link_mass_kg")
        n = spec.n_links
        self._mass, self._total = mass, float(mass.sum())
        self._inertia = spec.inertia()
        # p_i - p_1: half of link 1, the whole of those between, half of link i.
        from_first = np.tril(np.tile(2.0 * half, (n, 1)), -1)
        from_first[:, 0] = half[0]
        from_first[0, 0] = 0.0
        from_first[np.arange(1, n), np.arange(1, n)] = half[1:]
        self._place = from_first - (mass[:, None] * from_first).sum(axis=0) / self._total
        self._coupling = (self._place.T * mass) @ self._place
        self._c_t, self._c_n = spec.links("friction.tangential_ns_m"), spec.links("friction.normal_ns_m")
        self._c_r, self._backward = spec.links("friction.rotational_nms_rad"), spec.links("friction.backward")
        self._f_t, self._f_n = spec.coulomb_force("tangential"), spec.coulomb_force("normal")
        self._f_r = spec.links("friction.rotational_coulomb_nm")
        self._coupled = spec.friction.coulomb_axes == "coupled"
        self._is_dry = spec.has_coulomb_friction
        self._pull = spec.body_acceleration * self._total * (mass / self._total)[:, None]
        """Gravity's pull on the links on a slope (N, 2) [N], world frame."""
        self._load = np.zeros(n - 1)
        if spec.actuator.kind == "muscle":
            self._load += spec.actuator.muscle.damping_nms_rad

    def mass_matrix(self, theta: FloatArray) -> FloatArray:
        """Return the moments of inertia for the link rates (W, N, N) [kg m^2]."""
        difference = theta[:, :, None] - theta[:, None, :]
        return np.asarray(np.diag(self._inertia) + self._coupling * np.cos(difference))

    def predict_base(self, past: Motion, joint_rate: FloatArray, dt_s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rate of the head link (W,) [rad/s] and velocity of the centre of mass (W, 2) [m/s] after ``dt_s``.

        The unactuated rows (wang, eq. 27) give them as changes of the chain's angular and linear momentum, which no
        joint torque enters. ``joint_rate`` (W, J) [rad/s] are the rates at the end, after ``dt_s`` (W,) [s]. Friction
        is that of the step's end, which is stable for any dt, in the geometry of ``past.theta``.
        """
        theta = past.theta
        w, n = theta.shape
        mass, lever = self.mass_matrix(theta), self.levers(theta)
        row = mass.sum(axis=1)
        # Columns: unit rates of theta_N, x, y; the links' velocities (W, N, 2) that each gives.
        unit = np.zeros((w, 3, n, 2))
        unit[:, 0] = lever.sum(axis=2)
        unit[:, 1, :, 0] = 1.0
        unit[:, 2, :, 1] = 1.0
        bent = chain_angles(joint_rate, np.zeros(w))
        given = self._velocities(Motion(theta, bent, np.zeros((w, 2))), lever)
        inward = self._centripetal(theta, past.omega).sum(axis=1)
        end = past
        for _ in range(_ROUNDS if self._is_dry else 1):
            friction, spin = self._friction(end, lever)
            drag = (friction[:, None] * unit[..., None, :]).sum(axis=-1)
            system = dt_s[:, None, None] * (unit[:, :, None] * drag[:, None]).sum(axis=(-1, -2))
            system[:, 0, 0] += row.sum(axis=1) + dt_s * spin.sum(axis=1)
            system[:, 1, 1] += self._total
            system[:, 2, 2] += self._total
            force = self._pull - (friction * given[..., None, :]).sum(axis=-1)
            right = dt_s[:, None] * (unit * force[:, None]).sum(axis=(-1, -2))
            right[:, 0] += (row * (past.omega - bent)).sum(axis=1) - dt_s * (inward + (spin * bent).sum(axis=1))
            right[:, 1:] += self._total * past.velocity
            base = np.linalg.solve(system, right[..., None])[..., 0]
            end = Motion(theta, bent + base[:, :1], base[:, 1:])
        return base[:, 0], base[:, 1:]

    def joint_torque(self, motion: Motion, joint_acceleration: FloatArray) -> FloatArray:
        """Return the joint torques u (W, J) [N m] for given joint accelerations (W, J) [rad/s^2] (wang, eq. 29)."""
        theta, omega = motion.theta, motion.omega
        mass, lever = self.mass_matrix(theta), self.levers(theta)
        friction, spin = self._friction(motion, lever)
        force = -(friction * self._velocities(motion, lever)[..., None, :]).sum(axis=-1)
        force += self._pull
        moment = (lever * force[:, :, None, :]).sum(axis=(1, 3)) - spin * omega
        bent = chain_angles(joint_acceleration, np.zeros(len(theta)))
        load = (mass * bent[:, None, :]).sum(axis=-1) + self._centripetal(theta, omega) - moment
        row = mass.sum(axis=2)
        turn = -load.sum(axis=1) / row.sum(axis=1)
        torque = np.cumsum(load + row * turn[:, None], axis=1)[:, :-1]
        return np.asarray(torque + self._load * (omega[:, :-1] - omega[:, 1:]))

    def levers(self, theta: FloatArray) -> FloatArray:
        """Return the velocity of the centre of link i per rate of link j (W, N, N, 2) [m], world frame."""
        normal = np.stack([-np.sin(theta), np.cos(theta)], axis=-1)
        return np.asarray(self._place[:, :, None] * normal[:, None, :, :])

    def _velocities(self, motion: Motion, lever: FloatArray) -> FloatArray:
        """Return the velocities of the links' centres (W, N, 2) [m/s]."""
        turning = (lever * motion.omega[:, None, :, None]).sum(axis=2)
        return np.asarray(turning + motion.velocity[:, None, :])

    def _centripetal(self, theta: FloatArray, omega: FloatArray) -> FloatArray:
        difference = theta[:, :, None] - theta[:, None, :]
        return np.asarray((self._coupling * np.sin(difference) * (omega**2)[:, None, :]).sum(axis=-1))

    def _friction(self, motion: Motion, lever: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return C of ground friction ``-C v``: of each link (W, N, 2, 2) [N s/m], world frame, and its spin (W, N)."""
        theta = motion.theta
        cos, sin = np.cos(theta), np.sin(theta)
        velocity = self._velocities(motion, lever)
        along = cos * velocity[..., 0] + sin * velocity[..., 1]
        facing = np.where(along < 0.0, self._backward, 1.0)
        along = np.abs(along)
        across = np.abs(cos * velocity[..., 1] - sin * velocity[..., 0])
        if self._coupled:
            along = np.hypot(along, across)
            across = along
        c_t = facing * (self._c_t + self._f_t / np.maximum(along, _CREEP_M_S))
        c_n = self._c_n + self._f_n / np.maximum(across, _CREEP_M_S)
        mixed = (c_t - c_n) * sin * cos
        xx, yy = c_t * cos**2 + c_n * sin**2, c_t * sin**2 + c_n * cos**2
        matrix = np.stack([np.stack([xx, mixed], axis=-1), np.stack([mixed, yy], axis=-1)], axis=-2)
        return matrix, self._c_r + self._f_r / np.maximum(np.abs(motion.omega), _CREEP_M_S)
