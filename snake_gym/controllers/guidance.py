"""Point-of-sight guidance: bend the body until its mean direction points at the target.

Model: sibilska2022, eq. 31-36. ``theta_bar`` is the mean of the link angles, the bearing is the direction from the
tracked point (head or centre of mass) to the target, and the joint offset is

    phi_o = clip(k_theta wrap(theta_bar - atan2(d_y, d_x)), -limit, limit),   0 without an active target.

``phi_i = theta_i - theta_{i+1}``, so a positive offset on all joints turns the head clockwise. Departures: eq. 34 and
36 print the opposite sign of the bearing and a plain arctangent, where the published results need the quadrant-aware
angle with this sign; the difference is wrapped to (-pi, pi], so that a robot that has gone round once does not unwind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import Settings
from snake_gym.controllers.base import TWO_PI, Gain, Swing, searched
from snake_gym.robot.measurement import Goal, Measurement, tracked_point
from snake_gym.robot.spec import FloatArray, RobotSpec

TrackedPoint = Literal["centre", "head"]


class SteeringConfig(Settings):
    """Parameters of the guidance law; the defaults are those of sibilska2022, Table 3."""

    heading_gain: Gain = searched(1.0, 0.05, 3.0, log=True)
    """Joint offset per heading error, k_theta [rad/rad]."""
    offset_limit_rad: Swing = math.radians(40.0)
    """Largest joint offset [rad]."""
    tracked_point: TrackedPoint = "centre"
    """Point of the robot that goes to the target."""


def wrap_angle(angle: FloatArray) -> FloatArray:
    """Return ``angle`` [rad] brought into (-pi, pi] to rounding, same shape."""
    turns = angle * (1.0 / TWO_PI)
    turns -= 0.5
    np.ceil(turns, out=turns)
    turns *= TWO_PI
    return np.subtract(angle, turns, out=turns)


def bearing(displacement_xy_w: FloatArray) -> FloatArray:
    """Return the direction (W,) [rad] of the displacement (W, 2) [m] from tracked point to target (eq. 31, 36)."""
    return np.arctan2(displacement_xy_w[:, 1], displacement_xy_w[:, 0])


def steering_offset(
    heading_error: FloatArray,
    active: NDArray[np.bool_],
    gain: FloatArray | float,
    limit: FloatArray | float,
) -> FloatArray:
    """Return the joint offset phi_o (W,) [rad] for the heading error theta_bar - bearing (W,) [rad] (eq. 34)."""
    offset = heading_error * gain
    np.minimum(offset, limit, out=offset)
    np.maximum(offset, np.negative(limit), out=offset)
    offset[~active] = 0.0
    return offset


class PointOfSight:
    """Heading error of W robots, from measurements and the nominal geometry."""

    def __init__(self, spec: RobotSpec, point: TrackedPoint) -> None:
        self._spec = spec
        self.point = point
        # theta_bar = theta_N + sum_i (i / N) phi_i
        self._joint_weight = np.arange(1, spec.n_links)[:, None] / spec.n_links

    def offset(self, measurement: Measurement, goal: Goal, parameter: Mapping[str, FloatArray]) -> FloatArray:
        """Return the offset phi_o (W,) [rad] by the parameters of ``SteeringConfig``; 0 where the goal is inactive."""
        error = self.heading_error(measurement, goal)
        return steering_offset(error, goal.active, parameter["heading_gain"], parameter["offset_limit_rad"])

    def heading_error(self, measurement: Measurement, goal: Goal) -> FloatArray:
        """Return theta_bar - bearing (W,) [rad] in (-pi, pi]; from the last valid pose while the pose is lost."""
        error = self.heading(measurement)
        error -= bearing(goal.target_xy_w - tracked_point(self._spec, measurement, self.point))
        return wrap_angle(error)

    def heading(self, measurement: Measurement) -> FloatArray:
        """Return theta_bar (W,) [rad] (eq. 35), summed joint by joint: a world in a batch equals that world alone."""
        share = measurement.joint_angle.T.copy()  # worlds along the rows: numpy is faster on long ones
        share *= self._joint_weight
        if share.shape[1] == 1:  # np.sum would sum one world in another order
            mean = np.add.accumulate(share, axis=0)[-1]
        else:
            mean = np.add.reduce(share, axis=0)
        mean += measurement.head_angle
        return np.asarray(mean, dtype=np.float64)
