"""A snake robot in MuJoCo behind emulated servos: a plant that shares no physics with this project.

Links stand on spheres as wheels, which roll on the floor with MuJoCo's own friction cones; the whole robot moves in
space, so the load on each wheel follows from its contacts. Servos are others' identification of the STS3215, with
brushed motors on a supply that sags, dry joints, gears with play, and a speed profile. Links touch each other. It is
given the sizes, masses and mechanical stops of a robot file, and none of its friction and servo numbers::

    python -m snake_gym.hardware emulate --robot configs/robot/sts3215_chain.yaml --link /tmp/snake-bus \\
        --set connection.emulated.plant=benchmarks.mujoco_servos:MujocoRobot
    python benchmarks/sim_to_real.py --plant benchmarks.mujoco_servos:MujocoRobot

Servo: https://github.com/TheRobotStudio/SO-ARM100, Simulation/SO101/joints_properties.xml (taken there from
https://github.com/apirrone/Open_Duck_Playground): armature 0.028 kg m2, damping 0.60 N m s/rad, dry friction
0.052 N m, gain 17.8 N m/rad, torque 3.35 N m, play of one degree.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np
from numpy.typing import NDArray

from snake_gym.robot.spec import FloatArray, RobotSpec

_STEP_S = 0.002
_HELD_NMS_RAD = 1e4
"""Damping of a jammed joint [N m s/rad]: it creeps by less than a milliradian in a second."""
# Numbers of the robot that no robot file tells; a gram of tape here, a tight bearing there.
HEAVIER = 1.05
"""Mass of the links over that of the robot file: cables, screws."""
WHEEL_RADIUS_M, WHEEL_KG = 0.015, 0.005
TRACK_M = 0.05
"""Distance between the two wheels of a link."""
GRIP = 0.5
"""Coefficient of friction between wheel and floor."""
ROLLING = 0.045
"""Torque that turns an axle, per weight times wheel radius."""
GAIN_NM_RAD, ARMATURE_KGM2, DRY_NM, PLAY_RAD = 17.8, 0.028, 0.052, 2.0 * 0.0087
DAMPING_NMS_RAD, LIMP_DAMPING_NMS_RAD = 0.60, 0.05
"""Generator effect of the motor that is on, and grease; grease alone."""
STALL_NM, STALL_A, SUPPLY_OHM = 3.35, 2.7, 0.1
TOP_RAD_S = 4.9
"""Fastest profile that the servo's loop follows."""


def build_xml(spec: RobotSpec) -> str:
    """Return the MJCF of the robot: links on wheels along x, the tail first; servo and slack hinge in every joint."""
    half, mass = spec.links("link_half_length_m"), HEAVIER * spec.links("link_mass_kg")
    radius = 0.9 * spec.links("link_radius_m")
    stop = spec.joints("joint_stop_rad")
    wheel, height = WHEEL_RADIUS_M, 0.02

    def body(i: int) -> str:
        side = 0.5 * TRACK_M
        own = mass[i] - 2.0 * WHEEL_KG
        length, width = 2.0 * half[i], 2.0 * radius[i]
        across = own * (width**2 + width**2) / 12.0
        upright = own * (length**2 + width**2) / 12.0
        text = f'<inertial pos="0 0 0" mass="{own}" diaginertia="{across} {upright} {upright}"/>'
        text += f'<geom class="link" fromto="{-half[i]} 0 0 {half[i]} 0 0" size="{radius[i]}"/>'
        axle = ROLLING * 0.5 * mass[i] * 9.81 * wheel
        for sign in (-1.0, 1.0):
            text += (
                f'<body pos="0 {sign * side} {wheel - height}"><joint axis="0 1 0" frictionloss="{axle}"/>'
                f'<geom class="wheel" size="{wheel}" mass="{WHEEL_KG}"/></body>'
            )
        if i + 1 < spec.n_links:
            lash = 0.5 * PLAY_RAD
            place = f'axis="0 0 -1" pos="{-half[i + 1]} 0 0" limited="true"'
            text += (
                f'<body name="link{i + 1}" pos="{half[i] + half[i + 1]} 0 0">'
                f'<joint name="servo{i}" {place} range="{-stop[i]} {stop[i]}" armature="{ARMATURE_KGM2}" '
                f'frictionloss="{DRY_NM}" damping="{DAMPING_NMS_RAD}"/>'
                f'<joint name="slack{i}" {place} range="{-lash} {lash}" damping="0.01" armature="0.0005"/>'
                f"{body(i + 1)}</body>"
            )
        return text

    servos = "".join(f'<position joint="servo{j}" kp="{GAIN_NM_RAD}"/>' for j in range(spec.n_joints))
    apart = "".join(
        f'<exclude body1="link{i}" body2="link{k}"/>' for i in range(spec.n_links)
        for k in range(i + 1, min(i + 3, spec.n_links))
    )  # fmt: skip
    return f"""<mujoco><compiler angle="radian" autolimits="true"/>
      <option timestep="{_STEP_S}" integrator="implicitfast" cone="elliptic" impratio="10"/>
      <default><default class="link"><geom type="capsule" contype="2" conaffinity="2" condim="1" mass="0"/></default>
      <default class="wheel"><geom type="sphere" contype="1" conaffinity="4" friction="{GRIP} 0 0"
        condim="3" priority="1"/></default>
      </default>
      <worldbody><geom type="plane" size="100 100 1" contype="4" conaffinity="1"/>
      <body name="link0" pos="0 0 {height}"><freejoint/>{body(0)}</body></worldbody>
      <contact>{apart}</contact><actuator>{servos}</actuator></mujoco>"""


class MujocoRobot:
    """The robot behind J servos (``ServoPlant``).

    Args:
        spec: robot file, for sizes, masses and stops.
        joint_angle: (J,) [rad] shape at the start, at rest; None: straight.
        head_angle: [rad] of the head link, world frame.
        head_xy: [m] centre of the head link at the start, world frame.
    """

    def __init__(
        self,
        spec: RobotSpec,
        joint_angle: FloatArray | None = None,
        head_angle: float = 0.0,
        head_xy: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self.spec = spec
        self.model = mujoco.MjModel.from_xml_string(build_xml(spec))
        self.data = mujoco.MjData(self.model)
        joints = [self.model.joint(f"servo{j}") for j in range(spec.n_joints)]
        self._at = np.array([one.qposadr[0] for one in joints])
        self._dof = np.array([one.dofadr[0] for one in joints])
        self._slack = np.array([self.model.joint(f"slack{j}").qposadr[0] for j in range(spec.n_joints)])
        self._head = self.model.body(f"link{spec.n_links - 1}").id
        self._on = np.ones(spec.n_joints, dtype=bool)
        self._jammed = np.zeros(spec.n_joints, dtype=bool)
        self._left_s = 0.0
        self._reference = np.zeros(spec.n_joints)
        shape = np.zeros(spec.n_joints) if joint_angle is None else np.asarray(joint_angle, dtype=np.float64)
        self._place(shape, head_angle, np.asarray(head_xy, dtype=np.float64))
        mujoco.mj_step(self.model, self.data, round(0.3 / _STEP_S))  # it comes to rest on its wheels
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
        n_steps = int((self._left_s + dt_s) / _STEP_S + 1e-6)
        self._left_s += dt_s - n_steps * _STEP_S
        model, data = self.model, self.data
        way = np.minimum(speed_limit_rad_s, TOP_RAD_S) * dt_s
        self._reference = np.where(
            enabled, self._reference + np.clip(target_rad - self._reference, -way, way), data.qpos[self._at]
        )
        if (enabled != self._on).any():
            self._on = enabled.copy()
            model.actuator_gainprm[:, 0] = np.where(enabled, GAIN_NM_RAD, 0.0)
            model.actuator_biasprm[:, 1] = -model.actuator_gainprm[:, 0]
            self._set_damping()
        # The motors' currents pull the voltage down that drives them.
        volts = 1.0 - SUPPLY_OHM * STALL_A * float((self.load() ** 2).sum()) / 12.0
        most = np.maximum(torque_limit, 1e-6) * STALL_NM * max(volts, 0.0)
        model.actuator_forcelimited[:] = True
        model.actuator_forcerange[:] = np.stack([-most, most], axis=1)
        data.ctrl[:] = self._reference
        if n_steps:
            mujoco.mj_step(model, data, n_steps)

    def joint_angle(self) -> FloatArray:
        """Return the angles of the servos' shafts (J,) [rad], before the play."""
        return np.array(self.data.qpos[self._at])

    def joint_rate(self) -> FloatArray:
        """Return the rates of the servos' shafts (J,) [rad/s]."""
        return np.array(self.data.qvel[self._dof])

    def load(self) -> FloatArray:
        """Return motor torques (J,) as shares of the stall torque."""
        return np.array(self.data.actuator_force) / STALL_NM

    def head_pose(self) -> tuple[float, float, float]:
        """Return place [m] and direction [rad] of the head link."""
        x, y, _ = self.data.xpos[self._head]
        forward = self.data.xmat[self._head].reshape(3, 3)[:, 0]
        return float(x), float(y), math.atan2(forward[1], forward[0])

    def jam(self, joint: int, is_jammed: bool = True) -> None:
        """Hold joint ``joint`` (from 0) where it is, or let it go."""
        self._jammed[joint] = is_jammed
        self._set_damping()

    def _set_damping(self) -> None:
        damping = np.where(self._on, DAMPING_NMS_RAD, LIMP_DAMPING_NMS_RAD)
        self.model.dof_damping[self._dof] = np.where(self._jammed, _HELD_NMS_RAD, damping)

    def bend(self, joint_angle: FloatArray) -> None:
        """Put the robot at rest into another shape (J,) [rad], as a hand would; the head stays where it is."""
        x, y, angle = self.head_pose()
        self._place(np.asarray(joint_angle, dtype=np.float64), angle, np.array([x, y]))

    def _place(self, shape: FloatArray, head_angle: float, head_xy: FloatArray) -> None:
        """Put the robot at rest into a shape, at the height and on the wheels that it has."""
        data = self.data
        data.qpos[self._at], data.qpos[self._slack], data.qvel[:] = shape, 0.0, 0.0
        data.qpos[3:7] = (1.0, 0.0, 0.0, 0.0)
        mujoco.mj_kinematics(self.model, data)
        turn = head_angle - self.head_pose()[2]
        data.qpos[3:7] = (math.cos(0.5 * turn), 0.0, 0.0, math.sin(0.5 * turn))
        mujoco.mj_kinematics(self.model, data)
        data.qpos[:2] += head_xy - np.array(self.head_pose()[:2])
        mujoco.mj_forward(self.model, data)
        self._reference = np.array(shape)
