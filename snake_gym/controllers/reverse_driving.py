"""Driving tail first: a robot seen from its other end is again a robot, and any gait drives it.

Model. Number the links from the head instead of the tail and let every link point the other way: the link angles are
then theta'_i = theta_{N+1-i} + pi, and with ``phi_i = theta_i - theta_{i+1}`` the joint angles phi'_i = -phi_{N-i}.
A gait that drives this mirrored robot forwards drives the real one backwards: its wave runs from the tail to the head,
a joint offset turns the tail to the side where the head would have gone, and the mean heading is turned by pi, so
guidance brings the tail round. The mirror is its own inverse; positions of the centre of mass and of the tracked point
stay.

Where the gait is ``alpha sin(phase + (i-1) delta)``, the shape at the moment of the change is the same for the phase
``-phase - (J-1) delta``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from snake_gym.robot.measurement import Measurement
from snake_gym.robot.spec import FloatArray


def mirror_joints(values: FloatArray, mirrored: NDArray[np.bool_]) -> FloatArray:
    """Joint angles, rates or references (W, J) as seen from the other end, in the worlds ``mirrored`` (W,)."""
    return np.where(mirrored[:, None], -values[:, ::-1], values)


def mirror_flags(values: FloatArray, mirrored: NDArray[np.bool_]) -> FloatArray:
    """What belongs to each joint and has no sign (W, J), renumbered in the worlds ``mirrored`` (W,)."""
    return np.where(mirrored[:, None], values[:, ::-1], values)


def mirror_measurement(measurement: Measurement, mirrored: NDArray[np.bool_]) -> Measurement:
    """The robot as seen from its other end in the worlds ``mirrored`` (W,): joints and heading.

    Positions stay what they are, so ``centre_xy_w`` has to be known where the centre of mass is guided. Forces and
    ranges belong to the real head and are left out.
    """
    tail_angle = measurement.head_angle + measurement.joint_angle.sum(axis=1)
    return Measurement(
        mirror_joints(measurement.joint_angle, mirrored),
        mirror_joints(measurement.joint_rate, mirrored),
        measurement.head_xy_w,
        np.where(mirrored, tail_angle + math.pi, measurement.head_angle),
        measurement.pose_valid,
        measurement.centre_xy_w,
    )


def mirror_phase(phase: FloatArray, phase_shift_rad: FloatArray, n_joints: int) -> FloatArray:
    """The phase (W,) [rad] with which the mirrored gait has the shape that the gait has now."""
    return np.asarray(-phase - (n_joints - 1) * phase_shift_rad, dtype=np.float64)
