"""Simulated robot behind emulated servos: the project's physics, commanded by registers.

Joint i of the robot is servo i of the bus, angles in the robot's own sense.

- A servo without torque is a FREE joint of the physics: viscous friction and stops only.
- Torque limits are shares of the stall torque, the actuator's torque limit; a joint without one has a load of 0.
  They hold for the voltage of the motors, so that the speed at which a motor loses its torque falls with them.
- Speed limits are the smaller of the servo's and the actuator's.
- Time passes in steps of the physics; the remainder is kept for the next call. So an emulated robot and a simulated one
  that get the same targets at the same times move the same, except for the second order of the integrator, which begins
  anew with every call.
- Links stop where they meet, whatever ``links_touch`` says: what stands for a real robot does not pass through itself.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from snake_gym.physics.faults import FREE, HEALTHY, LOCKED
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot

_SLACK = 1e-6


class RobotPlant:
    """Simulated robot behind J servos; its physics steps fit the time between two readings of the joints.

    Args:
        spec: the robot; its actuator must follow joint angles ("position"), else ValueError.
        joint_angle: (J,) [rad] shape at the start, at rest; None: straight.
        head_angle: [rad] of the head link, world frame.
        head_xy: [m] centre of the head link at the start, world frame.
        step_s: time between two readings of the joints by the servos [s].
    """

    def __init__(
        self,
        spec: RobotSpec,
        joint_angle: FloatArray | None = None,
        head_angle: float = 0.0,
        head_xy: tuple[float, float] = (0.0, 0.0),
        step_s: float = 0.002,
    ) -> None:
        if spec.actuator.kind != "position":
            raise ValueError(f"robot.actuator.kind is {spec.actuator.kind!r}; expected 'position'")
        n = max(1, math.ceil(step_s / spec.step_s - 1e-9))
        self.spec = replace(spec, sim_dt_s=step_s / n, control_dt_s=step_s / n, links_touch=True)
        self.robot = SimulatedRobot(self.spec, 1, 1)
        shape = np.zeros(spec.n_joints) if joint_angle is None else np.asarray(joint_angle, dtype=np.float64)
        self.robot.set_shape(shape[None], np.array([head_angle]), np.array([head_xy]))
        self._torque_nm = spec.joints("actuator.torque_limit_nm")
        self._no_load_rad_s = spec.joints("actuator.no_load_speed_rad_s")
        self._speed_rad_s = spec.joints("actuator.speed_limit_rad_s")
        self._free = np.zeros(spec.n_joints, dtype=bool)
        self._jammed = np.zeros(spec.n_joints, dtype=bool)
        self._left_s = 0.0

    def advance(
        self,
        dt_s: float,
        target_rad: FloatArray,
        enabled: NDArray[np.bool_],
        torque_limit: FloatArray,
        speed_limit_rad_s: FloatArray,
    ) -> None:
        """Advance the robot by ``dt_s`` [s] under constant commands.

        Args:
            target_rad: (J,) joint angles that the servos aim at.
            enabled: (J,) False: no torque.
            torque_limit: (J,) share of the stall torque.
            speed_limit_rad_s: (J,) largest joint speeds.
        """
        step_s = self.robot.spec.step_s
        n_steps = int((self._left_s + dt_s) / step_s + _SLACK)
        self._left_s += dt_s - n_steps * step_s
        if n_steps == 0:
            return
        self._free = ~enabled
        self.robot.faults.kind[0] = np.where(self._free, FREE, np.where(self._jammed, LOCKED, HEALTHY))
        params = self.robot.params
        share = np.maximum(torque_limit, 1e-3)
        params.torque_limit[0], params.no_load_speed[0] = share * self._torque_nm, share * self._no_load_rad_s
        if np.isfinite(self._speed_rad_s).all():
            params.speed_limit[0] = np.clip(speed_limit_rad_s, 1e-6, self._speed_rad_s)
        aim = np.ascontiguousarray(target_rad[None, :], dtype=np.float64)
        if self.robot.delay is None:
            self.robot.step(aim, n_substeps=n_steps)
        else:
            for _ in range(n_steps):
                self.robot.step(aim)

    def jam(self, joint: int, is_jammed: bool = True) -> None:
        """Block joint ``joint`` (from 0 at the tail) where it is, or release it; if limp, as soon as torque is on."""
        self._jammed[joint] = is_jammed

    def bend(self, joint_angle: FloatArray) -> None:
        """Put the robot at rest into another shape (J,) [rad], as a hand would; the head stays where it is."""
        state = self.robot.state
        head, angle = state.head_xy.copy(), state.link_angle[:, -1].copy()
        self.robot.set_shape(np.asarray(joint_angle, dtype=np.float64)[None], angle, head, "head")

    def head_pose(self) -> tuple[float, float, float]:
        """Return the place (x, y) [m] and direction [rad] of the head link, world frame."""
        state = self.robot.state
        return float(state.head_xy[0, 0]), float(state.head_xy[0, 1]), float(state.link_angle[0, -1])

    def joint_angle(self) -> FloatArray:
        """Return the joint angles as the servos' encoders read them (J,) [rad]."""
        return self.robot.read_servos()[0][0]

    def joint_rate(self) -> FloatArray:
        """Return the joint rates as the servos' encoders read them (J,) [rad/s]."""
        return self.robot.read_servos()[1][0]

    def load(self) -> FloatArray:
        """Return joint torques (J,) as shares of the stall torque, in the sense of the angle; 0 without torque.

        No larger than what the servo may give: what a mechanical stop adds is no load of the motor.
        """
        limit = self.robot.params.torque_limit[0]
        return np.where(self._free, 0.0, np.clip(self.robot.state.joint_torque[0], -limit, limit) / self._torque_nm)
