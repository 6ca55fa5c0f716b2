"""Pose without a sensor: the nominal model predicts where the joints' motion takes the robot.

With the joints' motion given, friction and momentum leave one motion of the head and the centre of mass: that of the
unactuated rows (``controllers.nominal_chain``), with the friction of the robot's specification.

The pose drifts: errors of friction and everything that the model leaves out (slopes, obstacles, slip) add up and are
never corrected. It serves for trials.
"""

from __future__ import annotations

import numpy as np

from snake_gym.controllers.nominal_chain import Motion, NominalChain
from snake_gym.hardware.pose.source import NO_POSE, PoseSample, PoseSource
from snake_gym.robot.measurement import centre_offset, chain_angles
from snake_gym.robot.spec import FloatArray, RobotSpec

_LONGEST_GAP_S = 0.5
"""Longest pause between two joint samples whose motion is followed [s]."""


class DeadReckoning(PoseSource):
    """Pose that follows from the joints of the nominal robot; the head starts at the origin, along x."""

    def __init__(self, spec: RobotSpec) -> None:
        self.spec = spec
        self._chain = NominalChain(spec)
        self._pose = NO_POSE
        self._last: FloatArray | None = None
        links = np.zeros((1, spec.n_links))
        self._rest = self._motion = Motion(links, links, np.zeros((1, 2)))
        """Link rates and velocity of the centre of mass, as last predicted."""

    def follow(self, joint_angle: FloatArray, joint_rate: FloatArray, stamp_s: float) -> None:
        """Move the pose on to ``stamp_s`` [s], by the change of the joint angles (J,) [rad] since the last call."""
        angle = np.array(joint_angle, dtype=np.float64)[None]
        before, pose, dt = self._last, self._pose, stamp_s - self._pose.stamp_s
        if dt <= 0.0 or not np.isfinite(angle).all():
            return
        if before is None or dt > _LONGEST_GAP_S:
            self._motion = self._rest
        else:
            rate, head = (angle - before) / dt, np.array([pose.angle])
            half_way = chain_angles(0.5 * (angle + before), head + 0.5 * dt * self._motion.omega[:, -1])
            head_rate, velocity = self._chain.predict_base(self._motion._replace(theta=half_way), rate, np.array([dt]))
            self._motion = Motion(half_way, chain_angles(rate, head_rate), velocity)
            centre = pose.xy_w + centre_offset(self.spec, chain_angles(before, head)) + dt * velocity
            head = head + dt * head_rate
            xy_w = (centre - centre_offset(self.spec, chain_angles(angle, head)))[0]
            self._pose = pose._replace(xy_w=xy_w, angle=float(head[0]))
        self._pose = self._pose._replace(stamp_s=stamp_s, valid=True)
        self._last = angle

    def turn_to(self, angle: float) -> None:
        """Correct the head's direction [rad], as a sensor has it."""
        self._pose = self._pose._replace(angle=angle)

    def read(self, now_s: float) -> PoseSample:
        return self._pose
