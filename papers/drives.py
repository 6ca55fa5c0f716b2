"""Simulated robots driven by a controller through targets or along a path, with all samples recorded.

The controller sees exact measurements once every control step. Frame: world x-y plane; W robots side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from snake_gym.controllers import Controller, ControllerState
from snake_gym.controllers.feedback_linearization import Pfl
from snake_gym.controllers.line_of_sight import LineOfSight
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.simulated_robot import SimulatedRobot


class Guide(Protocol):
    """Source of the goals of W robots."""

    def goal(self, point_xy: FloatArray) -> Goal:
        """Return the goal of robots whose tracked points are at point_xy (W, 2) [m]."""
        ...


class TargetSequence:
    """Targets visited one after the other, each reached within ``radius_m``.

    Args:
        targets_xy: (W, K, 2) [m].
    """

    def __init__(self, targets_xy: FloatArray, radius_m: float) -> None:
        self._targets, self._radius = targets_xy, radius_m
        self.index = np.zeros(len(targets_xy), np.int64)
        """(W,) number of targets reached."""

    def goal(self, point_xy: FloatArray) -> Goal:
        last = self._targets.shape[1] - 1
        row = np.arange(len(self.index))
        gap = self._targets[row, np.minimum(self.index, last)] - point_xy
        self.index += (np.hypot(gap[:, 0], gap[:, 1]) <= self._radius) & (self.index <= last)
        return Goal(self._targets[row, np.minimum(self.index, last)], self.index <= last)


class PathGuide:
    """Path followed by line of sight."""

    def __init__(self, sight: LineOfSight, n_worlds: int) -> None:
        self._sight = sight
        self.state: ControllerState = sight.initial_state(n_worlds)

    def goal(self, point_xy: FloatArray) -> Goal:
        return self._sight.goal(point_xy, self.state)


@dataclass(frozen=True)
class Drive:
    """Recording of W robots: T samples, the last of each control step at its end."""

    time_s: FloatArray
    """(T,) times [s]."""
    centre_xy: FloatArray
    """(T, W, 2) [m] centre of mass."""
    centre_vel: FloatArray
    """(T, W, 2) [m/s] velocity of the centre of mass."""
    link_angle: FloatArray
    """(T, W, N) [rad] link angles."""
    wanted: FloatArray
    """(T, W, J) [rad] gait that the joints shall follow; NaN within a control step, and without a ``pfl`` gait."""
    joint_torque: FloatArray
    """(T, W, J) [N m] joint torques."""
    muscle_pressure: FloatArray
    """(T, W, J, 2) [Pa] muscle pressures; J is 0 without muscles."""
    penetration_m: FloatArray
    """(T, W) penetration of obstacles [m]."""
    cross_track_m: FloatArray
    """(T, W) distance from the path, left positive; NaN without a path."""
    reached: NDArray[np.int64]
    """(T, W) number of targets reached."""

    @property
    def joint_angle(self) -> FloatArray:
        """(T, W, J) [rad] joint angles."""
        return self.link_angle[..., :-1] - self.link_angle[..., 1:]

    @property
    def heading(self) -> FloatArray:
        """(T, W) [rad] mean of the link angles."""
        return self.link_angle.mean(axis=-1)

    @property
    def forward_m_s(self) -> FloatArray:
        """(T, W) velocity of the centre of mass along the heading."""
        heading = self.heading
        return np.cos(heading) * self.centre_vel[..., 0] + np.sin(heading) * self.centre_vel[..., 1]


class Follower(NamedTuple):
    """Controller and guide of the robots."""

    controller: Controller
    guide: Guide


def drive(
    robot: SimulatedRobot,
    follower: Follower,
    duration_s: float,
    advance: Callable[[float], None] | None = None,
    stop: Callable[[], bool] | None = None,
    samples: int = 1,
) -> Drive:
    """Drive the robots for ``duration_s`` [s], or until ``stop`` is true; ``advance`` is called with the share done.

    ``samples`` are recorded in each control step, a whole number of simulation steps apart. All measurements, including
    those that guide the centre of mass, are taken at the start of the control step.
    """
    controller, guide = follower
    spec, state = robot.spec, controller.initial_state(robot.n_worlds)
    pieces, rest = divmod(spec.n_substeps, samples)
    if rest:
        raise ValueError(f"samples is {samples}; expected a divisor of the {spec.n_substeps} steps in a control step")
    steps = round(duration_s / spec.control_dt_s)
    rows: list[tuple[FloatArray, ...]] = []
    for step in range(steps):
        measurement = measure(robot)
        goal = guide.goal(robot.state.centre_xy)
        command = controller.command(measurement, goal, state, spec.control_dt_s)
        wanted = np.full_like(measurement.joint_angle, np.nan)
        for sample in range(1, samples + 1):
            robot.step(command, n_substeps=pieces)
            if isinstance(controller, Pfl) and sample == samples:
                wanted = controller.wanted(state)
            rows.append(_sample(robot, guide, wanted))
        if advance is not None and step % 50 == 0:
            advance(step / steps)
        if stop is not None and stop():
            break
    time_s = spec.control_dt_s / samples * np.arange(1, len(rows) + 1)
    return Drive(time_s, *(np.stack(column) for column in zip(*rows, strict=True)))  # type: ignore[arg-type]


def _sample(robot: SimulatedRobot, guide: Guide, wanted: FloatArray) -> tuple[FloatArray, ...]:
    """Return the fields of ``Drive`` after the time, for one moment."""
    cross = guide.state["cross_track_m"] if isinstance(guide, PathGuide) else np.full(robot.n_worlds, np.nan)
    reached = guide.index if isinstance(guide, TargetSequence) else np.zeros(robot.n_worlds, np.int64)
    s = robot.state
    parts = (
        s.centre_xy, s.centre_vel, s.link_angle, wanted, s.joint_torque, s.muscle_pressure,
        s.penetration_m, cross, reached,
    )  # fmt: skip
    return tuple(np.array(values) for values in parts)


def measure(robot: SimulatedRobot) -> Measurement:
    """Return the measurement of ideal sensors."""
    state = robot.state
    return Measurement(
        joint_angle=robot.joint_angle(),
        joint_rate=robot.joint_rate(),
        head_xy_w=state.head_xy.copy(),
        head_angle=state.link_angle[:, -1].copy(),
        pose_valid=np.ones(robot.n_worlds, dtype=bool),
    )


def place(robot: SimulatedRobot, joint_angle: FloatArray, heading: FloatArray, centre_xy: FloatArray) -> None:
    """Put the robots to rest, bent by joint angles (W, J) [rad], with mean link angles ``heading`` (W,)."""
    share = np.arange(1, robot.spec.n_links) / robot.spec.n_links
    robot.set_shape(joint_angle, heading - (joint_angle * share).sum(axis=1), centre_xy, "centre")
