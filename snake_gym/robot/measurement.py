"""Measurements and goals: all data on a robot, simulated or real, that a policy or controller can use.

Frame: world x-y plane, angles counter-clockwise from x. W worlds (1 on hardware), J joints.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import choose
from snake_gym.robot.chain import ChainSpec, FloatArray

POINTS = ("centre", "head")
"""Points of a robot that can be tracked: its centre of mass, the centre of its head link."""


class Measurement(NamedTuple):
    """Sample of all sensors of W robots."""

    joint_angle: FloatArray
    """Joint angles phi_i = theta_i - theta_{i+1} (W, J) [rad], from the joint encoders."""
    joint_rate: FloatArray
    """Joint rates (W, J) [rad/s]."""
    head_xy_w: FloatArray
    """Centre of the head link (W, 2) [m], world frame, from the pose source."""
    head_angle: FloatArray
    """Orientation theta_N of the head link (W,) [rad], world frame."""
    pose_valid: NDArray[np.bool_]
    """Validity of the pose (W,), False while the pose source has lost the robot and repeats the last valid pose."""
    centre_xy_w: FloatArray | None = None
    """Centre of mass (W, 2) [m] if the sensor side has derived it already, else None: see ``tracked_point``."""
    contact_force_l: FloatArray | None = None
    """Force of the obstacles on each link (W, N, 2) [N], link frame (along it, to its left); None: no sensor."""
    range_m: FloatArray | None = None
    """Distance along each beam of the head's scanner (W, B) [m], right to left; None: no scanner."""
    joint_failed: NDArray[np.bool_] | None = None
    """Mask of joints failed now (W, J) where the env reveals them (``faults.reveal``), else None."""
    heading: FloatArray | None = None
    """Horizontal direction of the body (W,) [rad] of a spatial robot, derived from pose and joint angles
    (``spatial.kinematics.posture``); None: a planar robot, see ``mean_angle``."""
    muscle_pressure: FloatArray | None = None
    """Gauge pressures of the left and right muscle of each joint (W, J, 2) [Pa]; None: no muscles."""
    muscle_tension: FloatArray | None = None
    """Forces with which they pull (W, J, 2) [N], from load cells; None: no muscles."""
    head_up_h: FloatArray | None = None
    """Direction of the vertical (W, 3) in the base frame, from the inertial sensor; None: a planar robot."""
    head_z_w: FloatArray | None = None
    """Height of the middle of the head (W,) [m], from the pose source; None: a planar robot."""


class Goal(NamedTuple):
    """Targets of W robots."""

    target_xy_w: FloatArray
    """Current target (W, 2) [m], world frame."""
    active: NDArray[np.bool_]
    """Activity of the target (W,); False when the last target has been reached: steering stops."""
    speed_m_s: FloatArray | None = None
    """Commanded speed towards the target (W,) [m/s]; None: as fast as possible."""


def link_angles(measurement: Measurement) -> FloatArray:
    """Return link angles theta (W, N) [rad] from the head angle and the joint angles (sibilska2022, eq. 2)."""
    return chain_angles(measurement.joint_angle, measurement.head_angle)


def chain_angles(joint_angle: FloatArray, head_angle: FloatArray) -> FloatArray:
    """Return link angles theta (W, N) [rad] for joint angles (W, J) and the head link's angle (W,) [rad]."""
    head = head_angle[:, None]
    tail_first = np.cumsum(joint_angle[:, ::-1], axis=1)[:, ::-1] + head
    return np.concatenate([tail_first, head], axis=1)


def mean_angle(measurement: Measurement) -> FloatArray:
    """Return the heading theta_bar = mean of the link angles (W,) [rad] (sibilska2022, eq. 35).

    That of a spatial robot is ``measurement.heading``.
    """
    if measurement.heading is not None:
        return measurement.heading
    # A sum along each row, not a matrix product: BLAS would round a world alone and in a batch differently.
    return measurement.head_angle + (measurement.joint_angle * _shares(*measurement.joint_angle.shape)).sum(axis=1)


def head_angle_for(joint_angle: FloatArray, heading: FloatArray) -> FloatArray:
    """Return the angle (M,) [rad] of the head link at which the mean of the link angles is ``heading`` (M,) [rad]."""
    return heading - (joint_angle * _shares(*joint_angle.shape)).sum(axis=1)


@lru_cache(maxsize=16)
def _shares(n_rows: int, n_joints: int) -> FloatArray:
    """Return the shares of the joints in the mean link angle, in every row: numpy is slow to repeat a short one."""
    return np.tile(np.arange(1, n_joints + 1) / (n_joints + 1), (n_rows, 1))


def centre_offset(spec: ChainSpec, theta: FloatArray) -> FloatArray:
    """Return centre of mass minus head-link centre (W, 2) [m], world frame, for link angles theta (W, N).

    Going tailwards from the head, ``p_i = p_{i+1} - l_i t_i - l_{i+1} t_{i+1}`` (sibilska2022, eq. 3); summed with the
    masses, link j contributes ``-l_j (m_1 + .. + m_j) t_j - l_j (m_1 + .. + m_{j-1}) t_j``.
    """
    return weigh_directions(centre_weights(spec.links("link_half_length_m"), spec.links("link_mass_kg")), theta)


def centre_weights(half_length: FloatArray, mass: FloatArray, ahead: FloatArray | None = None) -> FloatArray:
    """Return the weights [m] of the links' directions in ``centre_offset``, (N,) or (W, N) as the arguments.

    Half lengths are in m and masses in kg; ``ahead`` of its middle, as a share of the half length, a link has its
    centre of mass.
    """
    behind = np.cumsum(mass, axis=-1)
    weight = -half_length * (2.0 * behind - mass)
    # The head's own tip half does not lie between the head centre and any other link.
    weight[..., -1] = -half_length[..., -1] * behind[..., -2]
    if ahead is not None:
        weight += mass * ahead * half_length
    return weight / behind[..., -1:]


def weigh_directions(weight: FloatArray, theta: FloatArray) -> FloatArray:
    """Return the sum (W, 2) of the directions of links at angles theta (W, N), with weights (N,) or (W, N)."""
    return np.array([(np.cos(theta) * weight).sum(axis=1), (np.sin(theta) * weight).sum(axis=1)]).T


def turn_back(xy_w: FloatArray, angle: FloatArray) -> FloatArray:
    """Return world vectors (W, 2) in frames at angles (W,) [rad]: their parts along the x axis and to its left."""
    cos, sin, (x, y) = np.cos(angle), np.sin(angle), xy_w.T.copy()
    return np.array([cos * x + sin * y, cos * y - sin * x]).T


def tracked_point(spec: ChainSpec, measurement: Measurement, point: str) -> FloatArray:
    """Return the measured position (W, 2) [m] of ``point``: "head" (its centre) or "centre" (of mass, nominal)."""
    if point == "head":
        return measurement.head_xy_w
    choose(point, POINTS, "point")
    if measurement.centre_xy_w is not None:
        return measurement.centre_xy_w
    return measurement.head_xy_w + centre_offset(spec, link_angles(measurement))
