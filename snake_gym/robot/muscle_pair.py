"""Lengths, levers and forces of an antagonistic pair of muscles at a joint, for any array of joint angles.

``phi_i = theta_i - theta_{i+1}``: a positive angle bends the robot to the right, seen towards the head; the left muscle
then lengthens. Results have a last axis of 2: left, right. With h = attachment_m, w = half_width_m, the lengths of
haghshenas2022, eq. 8, are

    l = 2 (h cos(phi/2) +- w sin(phi/2)),   torque on phi per newton: -dl/dphi = -+w cos(phi/2) + h sin(phi/2)

(eq. 8 is the square of it; + and upper signs: left). Forces: see ``MuscleSpec``.
"""

from __future__ import annotations

import math

import numpy as np

from snake_gym.robot.spec import FloatArray, MuscleSpec

_SIDES = np.array([1.0, -1.0])


def muscle_length(spec: MuscleSpec, joint_angle: FloatArray) -> FloatArray:
    """Return length (..., 2) [m] of the left and right muscle at joint angles (...) [rad]."""
    half = 0.5 * np.asarray(joint_angle)[..., None]
    return 2.0 * (spec.attachment_m * np.cos(half) + _SIDES * spec.half_width_m * np.sin(half))


def muscle_lever(spec: MuscleSpec, joint_angle: FloatArray) -> FloatArray:
    """Return torque on the joint angle per newton of tension (..., 2) [m] of the left and right muscle."""
    half = 0.5 * np.asarray(joint_angle)[..., None]
    return spec.attachment_m * np.sin(half) - _SIDES * spec.half_width_m * np.cos(half)


def muscle_force(spec: MuscleSpec, length: FloatArray, pressure_pa: FloatArray) -> FloatArray:
    """Return tension [N] of muscles of given ``length`` [m] at gauge pressure [Pa]; 0 if contracted beyond limit."""
    a, b = spec.force_coefficients
    stretch = np.asarray(length) / spec.rest_length_m
    return np.asarray(pressure_pa) * math.pi * spec.radius_m**2 * np.maximum(a * stretch**2 - b, 0.0)
