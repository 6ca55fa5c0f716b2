"""Models behind the numbers of sibilska2022: that of the centre of mass, and the head's of the published times.

Both take joint accelerations as given, ``phi_ddot = u``. The head-tracking model is eq. 24 with ``N m I_2`` in its last
block: N equal links with viscous anisotropic friction; the coordinates are the link angles and the position of the head
link's centre. Given joint accelerations (eq. 16 partially feedback-linearised) leave the sum of the rows of eq. 13 for
the head angle, and eq. 19 for the head:

    e^T (M_theta theta_ddot + W theta_dot^2 - l S K f_x + l C K f_y) = 0
    N m p_ddot = M_P theta_ddot + W_P theta_dot^2 + G_P f

Frame: world x-y, angles counter-clockwise, ``phi_i = theta_i - theta_{i+1}``, link N is the head.

Departures. From eq. 26: the paper prints ``m I_2``, which follows from eq. 17-19 and makes this model equal to that of
the centre of mass; its published times come from ``N m I_2``, which is inconsistent: the head then has a tenth of the
acceleration that the motion of the other links gives it. The model exists to reproduce those times and for nothing
else; robots are simulated by ``snake_gym.simulation``. From eq. 27: ``diag(H phi_bar)`` lost a dot.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from snake_gym.physics.faults import LOCKED
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot

Mask = NDArray[np.bool_]
HeadBlock = Literal["N m", "m"]


class CentreModel:
    """Model of the centre of mass (``SimulatedRobot.derivative``); broken joints (R, J) are locked where they start."""

    head_is_reference = False
    """True if the head link's centre belongs to the state, in place of the centre of mass."""

    def __init__(self, spec: RobotSpec, broken: Mask) -> None:
        self._spec, self._broken = spec, broken
        self._robot = SimulatedRobot(spec, len(broken), n_threads=1)
        self._robot.faults.kind[broken] = LOCKED

    def select(self, keep: Mask) -> CentreModel:
        """Return the model of the runs in ``keep`` (R,)."""
        return CentreModel(self._spec, self._broken[keep])

    def accelerate(
        self, theta: FloatArray, theta_dot: FloatArray, centre_xy: FloatArray, centre_vel: FloatArray, u: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return link accelerations (R, N) [rad/s^2] and the centre of mass's (R, 2) [m/s^2]: see the other model."""
        state = self._robot.state
        state.link_angle[:], state.link_rate[:] = theta, theta_dot
        state.centre_xy[:], state.centre_vel[:] = centre_xy, centre_vel
        return self._robot.derivative(u)


class PublishedHeadModel:
    """Model of the accelerations of R robots in head coordinates.

    Args:
        spec: a robot of equal links, without rotational friction.
        broken: (R, J) joints that get no control signal: their joint acceleration is 0.
        block: last block of the mass matrix: "N m" as in the published runs, or "m" as printed (and consistent).
    """

    head_is_reference = True

    def __init__(self, spec: RobotSpec, broken: Mask, block: HeadBlock = "N m") -> None:
        n = spec.n_links
        self._spec, self._broken, self._block = spec, broken, block
        self._half = float(spec.links("link_half_length_m")[0])
        self._mass = float(spec.links("link_mass_kg")[0])
        self._inertia = float(spec.inertia()[0])
        self._c_t = float(spec.links("friction.tangential_ns_m")[0])
        self._c_n = float(spec.links("friction.normal_ns_m")[0])
        self._head_mass = self._mass * (n if block == "N m" else 1)
        difference = np.eye(n)[:-1] - np.eye(n)[1:]  # D, eq. 5
        addition = np.eye(n)[:-1] + np.eye(n)[1:]  # A, eq. 5
        head = np.eye(n)[-1]  # a, eq. 6
        inner = np.linalg.inv(difference @ difference.T)
        self._v = addition.T @ inner @ addition  # eq. 15
        self._k = addition.T @ inner @ difference
        self._v_p = head @ difference.T @ inner @ addition  # eq. 20
        self._g_p = head - head @ difference.T @ inner @ difference  # eq. 23
        self._reach = self._half * np.linalg.inv(np.vstack([difference, head]))[:, :-1] @ addition  # l C A, eq. 9-12

    def select(self, keep: Mask) -> PublishedHeadModel:
        """Return the model of the runs in ``keep`` (R,)."""
        return PublishedHeadModel(self._spec, self._broken[keep], self._block)

    def accelerate(
        self, theta: FloatArray, theta_dot: FloatArray, head_xy: FloatArray, head_vel: FloatArray, u: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return link accelerations (R, N) [rad/s^2] and head acceleration (R, 2) [m/s^2].

        Args:
            theta, theta_dot: (R, N) [rad], [rad/s].
            head_xy, head_vel: (R, 2) [m], [m/s] world frame.
            u: (R, J) joint accelerations [rad/s^2]; those of broken joints are ignored.
        """
        cos, sin, square = np.cos(theta), np.sin(theta), theta_dot**2
        f_x, f_y = self._friction(cos, sin, theta_dot, head_vel)
        sin_v, cos_v = sin @ self._v, cos @ self._v
        ml2 = self._mass * self._half**2

        # e^T of eq. 13; V is symmetric
        inertia = self._inertia + ml2 * (sin_v * sin + cos_v * cos)  # e^T M_theta
        load = ml2 * square * (sin_v * cos - cos_v * sin) - self._half * ((sin @ self._k) * f_x - (cos @ self._k) * f_y)
        theta_ddot = np.zeros_like(theta)  # H (u, 0): the link accelerations if the head link did not turn
        np.cumsum(np.where(self._broken, 0.0, u)[:, ::-1], axis=1, out=theta_ddot[:, -2::-1])
        theta_ddot -= ((inertia * theta_ddot + load).sum(axis=1) / inertia.sum(axis=1))[:, None]

        ml = self._mass * self._half
        push_x = ml * ((sin * theta_ddot + cos * square) @ self._v_p) + f_x @ self._g_p
        push_y = ml * ((sin * square - cos * theta_ddot) @ self._v_p) + f_y @ self._g_p
        return theta_ddot, np.stack([push_x, push_y], axis=1) / self._head_mass

    def _friction(
        self, cos: FloatArray, sin: FloatArray, theta_dot: FloatArray, head_vel: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return ground friction on the links (R, N) [N], x and y (eq. 12, 14)."""
        x_dot = (sin * theta_dot) @ self._reach.T + head_vel[:, :1]
        y_dot = -(cos * theta_dot) @ self._reach.T + head_vel[:, 1:]
        along = (self._c_n - self._c_t) * (cos * x_dot + sin * y_dot)
        return along * cos - self._c_n * x_dot, along * sin - self._c_n * y_dot
