"""Dynamics of robots whose joint accelerations are given: what a reproduced experiment integrates.

Frame: world x-y plane, angles counter-clockwise, ``phi_i = theta_i - theta_{i+1}``, link N is the head.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from snake_gym.physics.faults import LOCKED
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot

Mask = NDArray[np.bool_]
Point = Literal["centre", "head"]


class Model(Protocol):
    """Dynamics of R robots whose joint accelerations are given."""

    head_is_reference: Mask
    """(R,) where the head link's centre belongs to the state, not the centre of mass."""

    def accelerate(
        self, theta: FloatArray, theta_dot: FloatArray, point_xy: FloatArray, point_vel: FloatArray, u: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Link accelerations (R, N) [rad/s^2] and acceleration of the reference point (R, 2) [m/s^2]."""
        ...

    def select(self, keep: Mask) -> Model:
        """The model of the runs in ``keep`` (R,)."""
        ...


class ShippedPhysics:
    """The physics that every env uses, as a ``Model``; broken joints (R, J) are locked where they start."""

    def __init__(self, spec: RobotSpec, broken: Mask) -> None:
        self.head_is_reference = np.zeros(len(broken), dtype=bool)
        self._spec = spec
        self._broken = broken
        self._robot = SimulatedRobot(spec, len(broken), n_threads=1)
        self._robot.faults.kind[broken] = LOCKED

    def select(self, keep: Mask) -> ShippedPhysics:
        """See ``Model``."""
        return ShippedPhysics(self._spec, self._broken[keep])

    def accelerate(
        self, theta: FloatArray, theta_dot: FloatArray, point_xy: FloatArray, point_vel: FloatArray, u: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """See ``Model``; joint accelerations u of locked joints are ignored."""
        state = self._robot.state
        state.link_angle[:] = theta
        state.link_rate[:] = theta_dot
        state.centre_xy[:] = point_xy
        state.centre_vel[:] = point_vel
        return self._robot.derivative(u)


class SideBySide:
    """Runs of several models in one batch: first those of the first model, then those of the second, and so on."""

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = [model for model in models if model.head_is_reference.size]
        self.head_is_reference = np.concatenate([model.head_is_reference for model in models])
        ends = np.cumsum([model.head_is_reference.size for model in self._models]).tolist()
        self._rows = [slice(start, end) for start, end in zip([0, *ends][:-1], ends, strict=True)]

    def select(self, keep: Mask) -> SideBySide:
        """See ``Model``."""
        return SideBySide([model.select(keep[rows]) for model, rows in zip(self._models, self._rows, strict=True)])

    def accelerate(
        self, theta: FloatArray, theta_dot: FloatArray, point_xy: FloatArray, point_vel: FloatArray, u: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """See ``Model``."""
        theta_ddot, point_acc = np.empty_like(theta), np.empty_like(point_xy)
        for model, rows in zip(self._models, self._rows, strict=True):
            theta_ddot[rows], point_acc[rows] = model.accelerate(
                theta[rows], theta_dot[rows], point_xy[rows], point_vel[rows], u[rows]
            )
        return theta_ddot, point_acc
