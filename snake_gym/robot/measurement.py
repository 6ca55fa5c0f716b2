"""The seam: everything a policy or a controller can know about a robot, simulated or real, and what it may ask for.

Frame: world x-y plane, angles counter-clockwise from x. W worlds (1 on hardware), J joints.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import choose
from snake_gym.robot.spec import FloatArray, RobotSpec

POINTS = ("centre", "head")
"""Points of a robot that can be tracked: its centre of mass, the centre of its head link."""


class Measurement(NamedTuple):
    """One sample of every sensor."""

    joint_angle: FloatArray
    """(W, J) [rad] phi_i = theta_i - theta_{i+1}, from the joint encoders."""
    joint_rate: FloatArray
    """(W, J) [rad/s]."""
    head_xy_w: FloatArray
    """(W, 2) [m] centre of the head link, world frame, from the pose source."""
    head_angle: FloatArray
    """(W,) [rad] orientation theta_N of the head link, world frame."""
    pose_valid: NDArray[np.bool_]
    """(W,) False while the pose source has lost the robot: the pose is then the last valid one."""
    centre_xy_w: FloatArray | None = None
    """(W, 2) [m] centre of mass where the sensor side has derived it already, else None: see ``tracked_point``."""
    contact_force_l: FloatArray | None = None
    """(W, N, 2) [N] force of the obstacles on each link, link frame (along it, to its left); None: no sensor."""
    range_m: FloatArray | None = None
    """(W, B) [m] distance along each beam of the head's scanner, right to left; None: no scanner."""
    joint_failed: NDArray[np.bool_] | None = None
    """(W, J) which joints are failed now, where somebody tells (``faults.reveal``); None: nobody does."""


class Goal(NamedTuple):
    """Where the robot should go."""

    target_xy_w: FloatArray
    """(W, 2) [m] current target, world frame."""
    active: NDArray[np.bool_]
    """(W,) False when the last target has been reached: steering stops."""


def link_angles(measurement: Measurement) -> FloatArray:
    """Link angles theta (W, N) [rad] from the head angle and the joint angles (sibilska2022, eq. 2)."""
    return chain_angles(measurement.joint_angle, measurement.head_angle)


def chain_angles(joint_angle: FloatArray, head_angle: FloatArray) -> FloatArray:
    """Link angles theta (W, N) [rad] for joint angles (W, J) and the head link's angle (W,) [rad]."""
    head = head_angle[:, None]
    tail_first = np.cumsum(joint_angle[:, ::-1], axis=1)[:, ::-1] + head
    return np.concatenate([tail_first, head], axis=1)


def mean_angle(measurement: Measurement) -> FloatArray:
    """Heading theta_bar = mean of the link angles (W,) [rad] (sibilska2022, eq. 35)."""
    n_joints = measurement.joint_angle.shape[1]
    weight = np.arange(1, n_joints + 1) / (n_joints + 1)
    # A sum along each row, not a matrix product: BLAS would round a world alone and in a batch differently.
    return measurement.head_angle + (measurement.joint_angle * weight).sum(axis=1)


def centre_offset(spec: RobotSpec, theta: FloatArray) -> FloatArray:
    """Centre of mass minus head-link centre (W, 2) [m], world frame, for link angles theta (W, N).

    Going tailwards from the head, ``p_i = p_{i+1} - l_i t_i - l_{i+1} t_{i+1}`` (sibilska2022, eq. 3); summed with the
    masses, link j contributes ``-l_j (m_1 + .. + m_j) t_j - l_j (m_1 + .. + m_{j-1}) t_j``.
    """
    weight = _centre_weights(spec)
    return np.stack([(np.cos(theta) * weight).sum(axis=1), (np.sin(theta) * weight).sum(axis=1)], axis=1)


def _centre_weights(spec: RobotSpec) -> FloatArray:
    half_length = spec.links("link_half_length_m")
    mass = spec.links("link_mass_kg")
    behind = np.cumsum(mass)
    weight = -half_length * (2.0 * behind - mass)
    # The head's own tip half does not lie between the head centre and any other link.
    weight[-1] = -half_length[-1] * behind[-2]
    return weight / behind[-1]


def tracked_point(spec: RobotSpec, measurement: Measurement, point: str) -> FloatArray:
    """Measured position (W, 2) [m] of ``point``: "head" (its centre) or "centre" (of mass, nominal geometry)."""
    if point == "head":
        return measurement.head_xy_w
    choose(point, POINTS, "point")
    if measurement.centre_xy_w is not None:
        return measurement.centre_xy_w
    return measurement.head_xy_w + centre_offset(spec, link_angles(measurement))
