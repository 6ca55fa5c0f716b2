"""Point-of-sight guidance: bend the body until its mean direction points at the target.

Model: sibilska2022, eq. 31-36. ``theta_bar`` is the mean of the link angles, the bearing is the direction from the
tracked point (head or centre of mass) to the target, and the joint offset is

    phi_o = clip(k_theta wrap(theta_bar - atan2(d_y, d_x)), -limit, limit),   0 without an active target.

Signs: ``phi_i = theta_i - theta_{i+1}``, so a positive offset on all joints turns the head clockwise; it is positive
when the robot points to the left of the target.

Departures from the paper: eq. 34 and 36 print the opposite sign of the bearing and a plain arctangent, where the
published results need the quadrant-aware angle with this sign; the difference is wrapped to (-pi, pi], so that a robot
that has gone round once does not unwind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from snake_gym.controllers.base import TWO_PI, check_range
from snake_gym.robot.measurement import Goal, Measurement, centre_offset
from snake_gym.robot.spec import FloatArray, RobotSpec

TrackedPoint = Literal["centre", "head"]


@dataclass(frozen=True)
class SteeringConfig:
    """Parameters of the guidance law; the defaults are those of sibilska2022, Table 3."""

    heading_gain: float = 1.0
    """k_theta: joint offset per heading error [rad/rad]."""
    offset_limit_rad: float = math.radians(40.0)
    """Largest joint offset [rad]."""
    tracked_point: TrackedPoint = "centre"
    """Which point of the robot goes to the target."""

    def __post_init__(self) -> None:
        check_range("heading_gain", self.heading_gain, 0.0, 1e3, "0 to 1000")
        check_range("offset_limit_rad", self.offset_limit_rad, 0.0, math.pi, "0 to pi")
        if self.tracked_point not in ("centre", "head"):
            raise ValueError(f"tracked_point is {self.tracked_point!r}; expected 'centre' or 'head'")


def wrap_angle(angle: FloatArray) -> FloatArray:
    """``angle`` [rad] brought into (-pi, pi] to rounding, same shape."""
    turns = angle * (1.0 / TWO_PI)
    turns -= 0.5
    np.ceil(turns, out=turns)
    turns *= TWO_PI
    return np.subtract(angle, turns, out=turns)


def bearing(displacement_xy_w: FloatArray) -> FloatArray:
    """Direction (W,) [rad] of the displacement (W, 2) [m] from the tracked point to the target (eq. 31, 36)."""
    return np.arctan2(displacement_xy_w[:, 1], displacement_xy_w[:, 0])


def steering_offset(
    heading_error: FloatArray,
    active: NDArray[np.bool_],
    gain: FloatArray | float,
    limit: FloatArray | float,
) -> FloatArray:
    """Joint offset phi_o (W,) [rad] for the heading error theta_bar - bearing (W,) [rad] (eq. 34)."""
    offset = heading_error * gain
    np.minimum(offset, limit, out=offset)
    np.maximum(offset, np.negative(limit), out=offset)
    offset[~active] = 0.0
    return offset


class PointOfSight:
    """Heading error of W robots, from measurements and the nominal geometry.

    The centre of mass uses single-precision sines of wrapped angles, several times cheaper: they place it within a
    millionth of the robot's length. Sums over links run in a fixed order: a world in a batch gives the same bits as
    that world alone.
    """

    def __init__(self, spec: RobotSpec, point: TrackedPoint) -> None:
        self.point = point
        # The y component of the centre is linear in sin(theta): one link across at a time reads off its weight.
        weight = centre_offset(spec, 0.5 * math.pi * np.eye(spec.n_links))[:, 1]
        self._link_weight = weight[:, None, None].astype(np.float32)

    def heading_error(self, measurement: Measurement, goal: Goal) -> FloatArray:
        """theta_bar - bearing, wrapped to (-pi, pi] (W,) [rad]; the last valid pose where the pose is lost."""
        theta = _link_angles(measurement)
        head, target = measurement.head_xy_w, goal.target_xy_w
        x = target[:, 0] - head[:, 0]
        y = target[:, 1] - head[:, 1]
        if self.point == "centre":
            offset = self._centre_offset_w(theta)
            x -= offset[0]
            y -= offset[1]
        error = _sum_rows(theta)
        error *= 1.0 / theta.shape[0]
        error -= np.arctan2(y, x)
        return wrap_angle(error)

    def _centre_offset_w(self, theta: FloatArray) -> NDArray[np.float32]:
        """Centre of mass minus head-link centre (2, W) [m], world frame."""
        single = theta.astype(np.float32)
        parts = np.empty((theta.shape[0], 2, theta.shape[1]), dtype=np.float32)
        np.cos(single, out=parts[:, 0])
        np.sin(single, out=parts[:, 1])
        parts *= self._link_weight
        return _sum_rows(parts)


def _link_angles(measurement: Measurement) -> FloatArray:
    """Link angles (N, W) [rad] up to a whole number of turns (eq. 2); numpy is faster with worlds along the rows."""
    n_worlds, n_joints = measurement.joint_angle.shape
    theta = np.empty((n_joints + 1, n_worlds))
    theta[:-1] = measurement.joint_angle.T
    rows = list(theta)
    head = rows[-1]
    np.multiply(measurement.head_angle, 1.0 / TWO_PI, out=head)
    np.rint(head, out=head)
    head *= -TWO_PI
    head += measurement.head_angle
    for i in range(n_joints - 1, -1, -1):
        np.add(rows[i], rows[i + 1], rows[i])
    return theta


def _sum_rows(rows: NDArray[Any]) -> NDArray[Any]:
    """Sum over the first axis, row after row; np.sum takes another order where the rows have one number each."""
    if rows.shape[-1] == 1:
        return np.asarray(np.add.accumulate(rows, axis=0)[-1])
    return np.asarray(np.add.reduce(rows, axis=0))
