"""Pose without a sensor: the nominal model predicts where the joints' motion takes the robot.

A snake that crawls is slow: friction is far larger than inertia, so the forces of the ground balance at every moment.
With the joints' motion given, the head's velocity (v_x, v_y, omega) is the one for which force and torque of all links
sum to zero,

    sum_i F_i(v_i) = 0,   sum_i r_i x F_i(v_i) + tau_i = 0,   v_i = v_head + omega x r_i + (what the joints add),

with the friction of the robot's specification: viscous along and across each link and in rotation, and Coulomb through
its secant, found by a few repetitions. That is three linear equations for three unknowns (the resistive-force model;
see sibilska2022, eq. 14 and irani2015, eq. 4-5 for the friction).

The pose drifts: errors of friction and everything that the model leaves out (slopes, obstacles, slip) add up and are
never corrected. It serves for trials.
"""

from __future__ import annotations

import math

import numpy as np

from snake_gym.hardware.pose.source import NO_POSE, PoseSample, PoseSource
from snake_gym.robot.measurement import chain_angles
from snake_gym.robot.spec import FloatArray, RobotSpec

_REPETITIONS = 12
_SLOWEST = 1e-4
"""Speed below which Coulomb friction counts as viscous [m/s, rad/s]."""
_LONGEST_GAP_S = 0.5
"""Longest pause between two joint samples whose motion is followed [s]."""


class DeadReckoning(PoseSource):
    """Pose that follows from the joints of the nominal robot; the head starts at the origin, along x."""

    def __init__(self, spec: RobotSpec) -> None:
        self.spec = spec
        self._half = spec.links("link_half_length_m")
        self._viscous = np.stack([spec.links(f"friction.{axis}_ns_m") for axis in ("tangential", "normal")])
        self._coulomb = np.stack([spec.coulomb_force(axis) for axis in ("tangential", "normal")])
        self._coupled = spec.friction.coulomb_axes == "coupled"
        self._turning = spec.links("friction.rotational_nms_rad"), spec.links("friction.rotational_coulomb_nm")
        self._pose = NO_POSE
        self._last: FloatArray | None = None

    def follow(self, joint_angle: FloatArray, joint_rate: FloatArray, stamp_s: float) -> None:
        """Move the pose on to ``stamp_s`` [s], by the change of the joint angles (J,) [rad] since the last call."""
        angle = np.array(joint_angle, dtype=np.float64)
        if not np.isfinite(angle).all():
            return
        before, dt = self._last, stamp_s - self._pose.stamp_s
        if dt <= 0.0:
            return
        if before is not None and dt <= _LONGEST_GAP_S:
            rate = (angle - before) / dt
            # The midpoint rule: the velocity of half-way, from a first guess of half the step.
            half = self._velocity(0.5 * (angle + before), rate, self._pose.angle)
            turned = self._pose.angle + 0.5 * dt * half[2]
            middle = self._velocity(0.5 * (angle + before), rate, turned)
            xy_w, angle_w = self._pose.xy_w + dt * middle[:2], self._pose.angle + dt * float(middle[2])
            self._pose = self._pose._replace(xy_w=xy_w, angle=angle_w)
        self._pose = self._pose._replace(stamp_s=stamp_s, valid=True)
        self._last = angle

    def turn_to(self, angle: float) -> None:
        """Correct the head's direction [rad], as a sensor has it."""
        self._pose = self._pose._replace(angle=angle)

    def read(self, now_s: float) -> PoseSample:
        return self._pose

    def _velocity(self, joint_angle: FloatArray, joint_rate: FloatArray, head_angle: float) -> FloatArray:
        """Return (v_x, v_y, omega) of the head link, [m/s] and [rad/s]."""
        theta = chain_angles(joint_angle[None], np.array([head_angle]))[0]
        # Rates of the links relative to the head: theta_i = theta_N + phi_i + ... + phi_{N-1}.
        spin = np.append(np.cumsum(joint_rate[::-1])[::-1], 0.0)
        along = np.stack([np.cos(theta), np.sin(theta)], axis=1)
        across = np.stack([-along[:, 1], along[:, 0]], axis=1)
        lever = _from_head(along * self._half[:, None])
        push = _from_head(across * (self._half * spin)[:, None])
        # v_i = v + omega J r_i + push_i; its parts along and across are linear in (v, omega).
        turned = np.stack([-lever[:, 1], lever[:, 0]], axis=1)
        rows = np.stack([np.column_stack([axis, (axis * turned).sum(axis=1)]) for axis in (along, across)])
        given = np.stack([(axis * push).sum(axis=1) for axis in (along, across)])
        velocity = np.zeros(3)
        for _ in range(_REPETITIONS if self._coulomb.any() or self._turning[1].any() else 1):
            slip = rows @ velocity + given
            size = np.hypot(slip[0], slip[1])[None] if self._coupled else np.abs(slip)
            drag = self._viscous + self._coulomb / np.maximum(size, _SLOWEST)
            rate = spin + velocity[2]
            twist = self._turning[0] + self._turning[1] / np.maximum(np.abs(rate), _SLOWEST)
            matrix = np.einsum("aij,ai,aik->jk", rows, drag, rows)
            matrix[2, 2] += twist.sum()
            right = -np.einsum("aij,ai,ai->j", rows, drag, given)
            right[2] -= float((twist * spin).sum())
            velocity = np.linalg.solve(matrix + 1e-12 * math.fabs(np.trace(matrix)) * np.eye(3), right)
        return np.asarray(velocity)


def _from_head(part: FloatArray) -> FloatArray:
    """Return sums from the head's centre to each link's centre (N, 2) of ``part`` (N, 2), which is for half a link."""
    between = part[:-1] + part[1:]
    return np.concatenate([-np.cumsum(between[::-1], axis=0)[::-1], np.zeros((1, 2))])
