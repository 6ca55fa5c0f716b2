"""From the true state of spatial robots to what their sensors say: the sensors of planar ones, in space.

Encoders tell joint angles and rates, a pose source on the head its place and directions, an inertial sensor the
vertical. Body heading and centre of mass follow from the measured pose and angles by the nominal kinematics
(liu2024, eq. 1-6), as on the real robot.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from snake_gym.robot.measurement import Measurement
from snake_gym.robot.protocol import Robot
from snake_gym.simulation.sensors import SensorSuite
from snake_gym.spatial.kinematics import posture
from snake_gym.spatial.simulation import SpatialRobot


class SpatialSensors(SensorSuite):
    """Sensors of W spatial robots; noise, resolution and faults of encoders as of planar ones."""

    def measure(self, robot: Robot, rows: Any = slice(None)) -> Measurement:
        """One sample of every sensor of the worlds of ``rows`` (M of them; all by default); fresh arrays (M, ...)."""
        robot = cast(SpatialRobot, robot)
        config, n_joints = self.sensors, robot.spec.n_joints
        angle, rate = robot.joint_angle()[rows].copy(), robot.joint_rate()[rows].copy()
        rotation, origin = robot.base_pose(rows)
        if not config.is_perfect:
            noise = self.streams["sensors"].normal(2 * n_joints + 3, rows)
            angle = angle + config.angle_noise_rad * noise[:, :n_joints]
            rate = rate + config.rate_noise_rad_s * noise[:, n_joints : 2 * n_joints]
            origin[:, :2] += config.position_noise_m * noise[:, -3:-1]
            turn = config.heading_noise_rad * noise[:, -1, None]
            cos, sin, x, y = np.cos(turn), np.sin(turn), rotation[:, 0].copy(), rotation[:, 1].copy()
            rotation[:, 0], rotation[:, 1] = cos * x - sin * y, sin * x + cos * y
        angle, rate = self.encoders.read(angle, rate, robot.state.time_s[rows], rows)
        if config.encoder_step_rad > 0.0:
            angle = np.rint(angle / config.encoder_step_rad) * config.encoder_step_rad
        shape = posture(robot.spec, rotation, origin, angle)
        head, ahead = shape.middle[:, -1], shape.axis[:, -1]
        sample = Measurement(
            angle, rate, head[:, :2].copy(), np.arctan2(ahead[:, 1], ahead[:, 0]), np.ones(len(angle), bool),
            shape.centre[:, :2].copy(), heading=shape.heading, head_up_h=rotation[:, 2].copy(),
            head_z_w=head[:, 2].copy(),
        )  # fmt: skip
        return sample._replace(joint_failed=robot.failed_now()[rows]) if self.reveal_faults else sample
