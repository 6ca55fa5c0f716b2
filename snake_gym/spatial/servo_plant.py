"""Spatial robot behind emulated servos: MuJoCo, commanded by registers, on flat ground.

The robot is that of ``simulation``: same model file, same physics step. A servo without torque leaves its joint to
damping and dry friction. Links do not see each other.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np
from numpy.typing import NDArray

from snake_gym.robot.spec import FloatArray
from snake_gym.spatial.mjcf import quaternion, write_mjcf
from snake_gym.spatial.spec import SpatialSpec

_HELD_NMS_RAD = 1e4
"""Damping of a jammed joint: it creeps by less than a milliradian in a second."""
_SLACK = 1e-6


class SpatialPlant:
    """Spatial robot behind J servos (``ServoPlant``).

    Args:
        spec: the robot.
        joint_angle: (J,) [rad] shape at the start, at rest; None: straight.
        head_angle: [rad] horizontal direction of the head at the start, world frame.
        head_xy: [m] middle of the head at the start, world frame.
    """

    def __init__(
        self,
        spec: SpatialSpec,
        joint_angle: FloatArray | None = None,
        head_angle: float = 0.0,
        head_xy: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self.spec = spec
        self.model = mujoco.MjModel.from_xml_string(write_mjcf(spec))
        self._gravity = float(self.model.opt.gravity[2])
        self.data = mujoco.MjData(self.model)
        joints = [self.model.joint(f"joint_{j + 1}") for j in range(spec.n_joints)]
        self._at = np.array([one.qposadr[0] for one in joints])
        self._dof = np.array([one.dofadr[0] for one in joints])
        self._damping = self.model.dof_damping[self._dof].copy()
        self._number = np.array([one.id for one in joints])
        self._gain, self._bias = self.model.actuator_gainprm.copy(), self.model.actuator_biasprm.copy()
        self._torque = spec.joints("actuator.torque_limit_nm")
        self._speed = spec.joints("actuator.speed_limit_rad_s")
        self._on = np.ones(spec.n_joints, dtype=bool)
        self._left_s = 0.0
        self._reference = np.zeros(spec.n_joints)
        shape = np.zeros(spec.n_joints) if joint_angle is None else np.asarray(joint_angle, dtype=np.float64)
        self._place(shape, head_angle, np.asarray(head_xy, dtype=np.float64))

    def advance(
        self,
        dt_s: float,
        target_rad: FloatArray,
        enabled: NDArray[np.bool_],
        torque_limit: FloatArray,
        speed_limit_rad_s: FloatArray,
    ) -> None:
        """Let ``dt_s`` [s] pass under constant commands, see ``ServoPlant``."""
        step_s, model, data = self.spec.sim_dt_s, self.model, self.data
        n_steps = int((self._left_s + dt_s) / step_s + _SLACK)
        self._left_s += dt_s - n_steps * step_s
        way = np.minimum(speed_limit_rad_s, self._speed) * dt_s
        self._reference = np.where(
            enabled, self._reference + np.clip(target_rad - self._reference, -way, way), data.qpos[self._at]
        )
        if (enabled != self._on).any():
            self._on = enabled.copy()
            both = np.tile(enabled, 2)[:, None]  # of servos and of their back electromotive forces
            model.actuator_gainprm[:] = np.where(both, self._gain, 0.0)
            model.actuator_biasprm[:] = np.where(both, self._bias, 0.0)
        most = np.maximum(torque_limit, 1e-6) * self._torque
        limited = np.isfinite(most)
        model.jnt_actfrclimited[self._number] = limited
        model.jnt_actfrcrange[self._number[limited]] = np.stack([-most, most], axis=1)[limited]
        data.ctrl[: self.spec.n_joints] = self._reference
        if n_steps:
            mujoco.mj_step(model, data, n_steps)

    def joint_angle(self) -> FloatArray:
        """Return the joint angles (J,) [rad]."""
        return np.array(self.data.qpos[self._at])

    def joint_rate(self) -> FloatArray:
        """Return the joint rates (J,) [rad/s]."""
        return np.array(self.data.qvel[self._dof])

    def load(self) -> FloatArray:
        """Return the motor torques (J,) as shares of the stall torque; 0 for servos that have no limit."""
        return np.asarray(self.data.qfrc_actuator[self._dof] / self._torque)

    def head_pose(self) -> tuple[float, ...]:
        """Return place x, y [m], direction [rad] and height [m] of the head, and the vertical (3) in its frame."""
        place, turn = self._head()
        ahead = -turn[:, 1]
        x, y, z = place + 0.5 * self.spec.head_length_m * ahead
        return float(x), float(y), math.atan2(ahead[1], ahead[0]), float(z), *turn[2].tolist()

    def jam(self, joint: int, is_jammed: bool = True) -> None:
        """Hold joint ``joint`` (from 0) where it is, or let it go."""
        self.model.dof_damping[self._dof[joint]] = _HELD_NMS_RAD if is_jammed else self._damping[joint]

    def lift(self, is_lifted: bool = True) -> None:
        """Hold the robot up, free of its weight and of the ground, or put it down as it is bent."""
        self.model.opt.gravity[2] = 0.0 if is_lifted else self._gravity
        self.bend(self.joint_angle())
        if is_lifted:
            self.data.qpos[2] += self.spec.length_m
            mujoco.mj_forward(self.model, self.data)

    def bend(self, joint_angle: FloatArray) -> None:
        """Put the robot at rest into another shape (J,) [rad], as a hand would; the head stays where it is."""
        x, y, angle = self.head_pose()[:3]
        self._place(np.asarray(joint_angle, dtype=np.float64), angle, np.array([x, y]))

    def _head(self) -> tuple[FloatArray, FloatArray]:
        """Return place (3,) [m] and rotation (3, 3) of the base frame, as they are now."""
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, self.data.qpos[3:7] / np.linalg.norm(self.data.qpos[3:7]))
        return np.array(self.data.qpos[:3]), turn.reshape(3, 3)

    def _place(self, shape: FloatArray, head_angle: float, head_xy: FloatArray) -> None:
        """Put the robot at rest into a shape, level, its lowest link just above the ground."""
        data = self.data
        data.qpos[self._at], data.qvel[:] = shape, 0.0
        data.qpos[:3] = 0.0
        data.qpos[3:7] = quaternion(0.0, 0.0, head_angle + 0.5 * math.pi)
        mujoco.mj_kinematics(self.model, data)
        lowest = float((data.xpos[1:, 2]).min())
        ahead = np.array([math.cos(head_angle), math.sin(head_angle)])
        data.qpos[:2] = head_xy - 0.5 * self.spec.head_length_m * ahead
        data.qpos[2] = self.spec.rest_height_m + 1e-3 - min(lowest, 0.0)
        mujoco.mj_forward(self.model, data)
        self._reference = np.array(shape)
