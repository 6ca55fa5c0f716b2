"""Oracle: the planar chain of sibilska2022 as dense matrices in plain numpy. Shares no code with ``snake_gym.physics``.

Model: N rigid links, viscous anisotropic friction at every link centre, joints torque-driven or with a given joint
acceleration (partial feedback linearisation), any mixture per run.
Frame: world x-y plane, angles counter-clockwise; link 1 is the tail, ``phi_i = theta_i - theta_{i+1}``; a joint torque
``u_i`` is conjugate to ``phi_i`` (+u_i on link i, -u_i on link i+1).
Source: Liljebäck et al. as given in sibilska2022, eq. 3-5 (geometry), 13-16 (dynamics), 14 (friction), with the
centre-of-mass rows ``N m p_ddot = e^T f`` in place of the head rows 18-23.
Departure: the constants m, l, J become diagonal matrices, so links may differ; with ``M = diag(m)``, ``L = diag(l)``

    m V -> V = A^T (D M^-1 D^T)^-1 A,   K -> K = A^T (D M^-1 D^T)^-1 D M^-1

and the equations keep their form. A rotational friction torque ``-c_r theta_dot`` may act on each link.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_gym.robot.spec import FloatArray, RobotSpec


class DenseState(NamedTuple):
    """Generalised coordinates of R runs."""

    theta: FloatArray
    """(R, N) [rad]."""
    theta_dot: FloatArray
    """(R, N) [rad/s]."""
    centre: FloatArray
    """(R, 2) [m] centre of mass, world frame."""
    centre_dot: FloatArray
    """(R, 2) [m/s]."""


Drive = Callable[[float, DenseState], tuple[FloatArray, NDArray[np.bool_]]]
"""(time, state) -> (u (R, J), accelerated (R, J)): u is a joint acceleration where accelerated, else a torque."""


@dataclass(frozen=True)
class DenseChain:
    """One robot; every field is (N,) in SI units."""

    half_length: FloatArray
    mass: FloatArray
    inertia: FloatArray
    c_t: FloatArray
    c_n: FloatArray
    c_r: FloatArray

    @classmethod
    def of(cls, spec: RobotSpec) -> DenseChain:
        """The chain of a robot."""
        names = ("tangential_ns_m", "normal_ns_m", "rotational_nms_rad")
        friction = (spec.links(f"friction.{name}") for name in names)
        return cls(spec.links("link_half_length_m"), spec.links("link_mass_kg"), spec.inertia(), *friction)

    @property
    def n_links(self) -> int:
        return len(self.mass)

    @property
    def difference(self) -> FloatArray:
        """D (J, N), eq. 5."""
        n = self.n_links
        return np.eye(n)[:-1] - np.eye(n)[1:]

    @property
    def addition(self) -> FloatArray:
        """A (J, N), eq. 5."""
        n = self.n_links
        return np.eye(n)[:-1] + np.eye(n)[1:]

    def constraint_matrices(self) -> tuple[FloatArray, FloatArray]:
        """V and K (N, N), eq. 15 for links that may differ."""
        d, a = self.difference, self.addition
        inverse_mass = np.diag(1.0 / self.mass)
        middle = np.linalg.inv(d @ inverse_mass @ d.T)
        return a.T @ middle @ a, a.T @ middle @ d @ inverse_mass

    def _along(self) -> FloatArray:
        """Coefficients (N, N) of eq. 4 closed by ``sum m_i x_i = M p``."""
        closing = np.vstack([self.difference, self.mass / self.mass.sum()])
        return np.asarray(np.linalg.inv(closing)[:, :-1] @ self.addition @ np.diag(self.half_length))

    def link_offsets(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Link centres minus centre of mass, x and y (R, N) [m]: eq. 4 closed by ``sum m_i x_i = M p``."""
        along = self._along()
        return -np.cos(theta) @ along.T, -np.sin(theta) @ along.T

    def link_centres(self, theta: FloatArray, centre: FloatArray) -> FloatArray:
        """Link centres (N, 2) [m] of one run: theta (N,), centre of mass (2,)."""
        return np.column_stack([offset[0] for offset in self.link_offsets(theta[None])]) + centre

    def link_velocities(self, state: DenseState) -> tuple[FloatArray, FloatArray]:
        """Velocities of the link centres, x and y (R, N) [m/s]: the derivative of eq. 4 (compare eq. 12)."""
        along = self._along()
        x_dot = (np.sin(state.theta) * state.theta_dot) @ along.T + state.centre_dot[:, :1]
        y_dot = -(np.cos(state.theta) * state.theta_dot) @ along.T + state.centre_dot[:, 1:]
        return x_dot, y_dot

    def friction(self, state: DenseState) -> tuple[FloatArray, FloatArray]:
        """Ground friction on every link, x and y (R, N) [N], eq. 14."""
        x_dot, y_dot = self.link_velocities(state)
        c, s = np.cos(state.theta), np.sin(state.theta)
        cross = (self.c_t - self.c_n) * s * c
        f_x = -((self.c_t * c**2 + self.c_n * s**2) * x_dot + cross * y_dot)
        f_y = -(cross * x_dot + (self.c_t * s**2 + self.c_n * c**2) * y_dot)
        return f_x, f_y

    def mass_matrix(self, theta: FloatArray) -> FloatArray:
        """M_theta (R, N, N), eq. 15."""
        v, _ = self.constraint_matrices()
        s, c = np.sin(theta) * self.half_length, np.cos(theta) * self.half_length
        outer = s[:, :, None] * s[:, None, :] + c[:, :, None] * c[:, None, :]
        return np.asarray(np.diag(self.inertia) + v * outer)

    def kinetic_energy(self, state: DenseState) -> FloatArray:
        """(R,) [J]."""
        x_dot, y_dot = self.link_velocities(state)
        spin = (self.inertia * state.theta_dot**2).sum(axis=1)
        return np.asarray(0.5 * ((self.mass * (x_dot**2 + y_dot**2)).sum(axis=1) + spin))

    def accelerate(
        self, state: DenseState, u: FloatArray, accelerated: NDArray[np.bool_]
    ) -> tuple[FloatArray, FloatArray]:
        """Link accelerations (R, N) [rad/s^2] and centre acceleration (R, 2) [m/s^2].

        ``u`` (R, J) is a joint acceleration [rad/s^2] where ``accelerated`` (R, J), else a joint torque [N m]. The
        joint torques behind given accelerations are unknowns of the same linear system: eq. 13 with one more row per
        joint, ``D theta_ddot = u`` or ``tau = u``.
        """
        theta, theta_dot = state.theta, state.theta_dot
        n_runs, n = theta.shape
        v, k = self.constraint_matrices()
        s, c = np.sin(theta) * self.half_length, np.cos(theta) * self.half_length
        f_x, f_y = self.friction(state)
        w = v * (s[:, :, None] * c[:, None, :] - c[:, :, None] * s[:, None, :])
        load = np.einsum("rij,rj->ri", w, theta_dot**2) - s * (f_x @ k.T) + c * (f_y @ k.T) + self.c_r * theta_dot

        d = self.difference
        system = np.zeros((n_runs, 2 * n - 1, 2 * n - 1))
        system[:, :n, :n] = self.mass_matrix(theta)
        system[:, :n, n:] = -d.T
        system[:, n:, :n] = np.where(accelerated[:, :, None], d, 0.0)
        system[:, n:, n:] = np.where(accelerated[:, :, None], 0.0, np.eye(n - 1))
        right = np.concatenate([-load, u], axis=1)
        theta_ddot = np.linalg.solve(system, right[:, :, None])[:, :n, 0]
        centre_ddot = np.stack([f_x.sum(axis=1), f_y.sum(axis=1)], axis=1) / self.mass.sum()
        return theta_ddot, centre_ddot


def step_rk4(chain: DenseChain, state: DenseState, drive: Drive, time_s: float, dt_s: float) -> DenseState:
    """One classical Runge-Kutta step; ``drive`` is evaluated at every stage."""

    def slope(t: float, at: DenseState) -> DenseState:
        u, accelerated = drive(t, at)
        theta_ddot, centre_ddot = chain.accelerate(at, u, accelerated)
        return DenseState(at.theta_dot, theta_ddot, at.centre_dot, centre_ddot)

    def shifted(by: DenseState, h: float) -> DenseState:
        return DenseState(*(x + h * dx for x, dx in zip(state, by, strict=True)))

    k1 = slope(time_s, state)
    k2 = slope(time_s + dt_s / 2, shifted(k1, dt_s / 2))
    k3 = slope(time_s + dt_s / 2, shifted(k2, dt_s / 2))
    k4 = slope(time_s + dt_s, shifted(k3, dt_s))
    mean = DenseState(*((a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(k1, k2, k3, k4, strict=True)))
    return shifted(mean, dt_s)
