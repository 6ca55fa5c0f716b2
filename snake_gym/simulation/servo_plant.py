"""The simulated robot behind emulated servos: goals, torque switches and limits in, joint angles out.

The robot's own actuator law (``robot.spec``) stands for the servos' position loop; a servo's torque limit scales its
torque limit, its speed limit is a further bound on its speed, and a servo without torque is a free joint. The emulated
servos look at their joints more often than a simulated robot takes steps, so the physics runs at a step of theirs.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from snake_gym.physics.faults import FREE, HEALTHY
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot


class PhysicsPlant:
    """A ``ServoPlant`` on the project's physics.

    Args:
        spec: the robot; its actuator must follow joint angles ("position").
        joint_angle: (J,) [rad] shape at the start, at rest; None: straight.
        head_angle: [rad] of the head link, world frame.
        point_xy: [m] where ``point`` ("head" or "centre") is at the start, world frame.
        step_s: time that the servos pass between two looks at their joints.
    """

    def __init__(
        self,
        spec: RobotSpec,
        joint_angle: FloatArray | None = None,
        head_angle: float = 0.0,
        point_xy: tuple[float, float] = (0.0, 0.0),
        point: str = "head",
        step_s: float = 0.002,
    ) -> None:
        if spec.actuator.kind != "position":
            raise ValueError(f"robot.actuator.kind is {spec.actuator.kind!r}; expected 'position' behind servos")
        sim_dt = min(spec.sim_dt_s, step_s)
        n = max(1, math.ceil(step_s / sim_dt - 1e-9))
        self.spec = replace(spec, sim_dt_s=step_s / n, control_dt_s=step_s, integrator="implicit")
        self.robot = SimulatedRobot(self.spec, 1, 1)
        shape = np.zeros(spec.n_joints) if joint_angle is None else np.asarray(joint_angle, dtype=np.float64)
        self.robot.set_shape(shape[None], np.array([head_angle]), np.array([point_xy]), point)
        self._torque = spec.joints("actuator.torque_limit_nm")
        self._speed = spec.joints("actuator.speed_limit_rad_s")
        self.jammed = np.zeros(spec.n_joints, dtype=np.int64)
        """(J,) kinds of joint fault, as in ``physics.faults``, that the robot has anyway."""

    def advance(
        self,
        dt_s: float,
        target_rad: FloatArray,
        enabled: NDArray[np.bool_],
        torque_limit: FloatArray,
        speed_limit_rad_s: FloatArray,
    ) -> None:
        """Let ``dt_s`` [s] pass, a multiple of ``step_s``. See ``ServoPlant``."""
        robot = self.robot
        robot.params.torque_limit[0] = self._torque * torque_limit
        robot.params.speed_limit[0] = np.minimum(self._speed, speed_limit_rad_s)
        robot.faults.kind[0] = np.where(self.jammed != HEALTHY, self.jammed, np.where(enabled, HEALTHY, FREE))
        robot.step(np.asarray(target_rad)[None], n_substeps=round(dt_s / self.spec.sim_dt_s))

    def joint_angle(self) -> FloatArray:
        """(J,) [rad]."""
        return np.asarray(self.robot.joint_angle()[0])

    def joint_rate(self) -> FloatArray:
        """(J,) [rad/s]."""
        return np.asarray(self.robot.joint_rate()[0])

    def load(self) -> FloatArray:
        """(J,) motor torque as a share of the torque limit, signed; without a limit 0."""
        share = self.robot.state.joint_torque[0] / self._torque
        return np.clip(share, -1.0, 1.0)
