"""Oracle: the planar chain with obstacles and joint stops in MuJoCo. Shares no code with ``snake_gym``.

Model: a tree of bodies rooted at the tail link, which has two slides and a hinge; hinges point along -z, so that a
joint's coordinate is ``phi_i = theta_i - theta_{i+1}``. Links are capsules lying in the plane; an obstacle is a row
[start_x, start_y, axis_x, axis_y, length, radius > 0]: a disc is an upright capsule, a segment a lying one. Contacts
are frictionless (condim 1) and links do not see each other. Position actuators hold the joints, velocity actuators of
zero command at the links' centres are the viscous ground (as ``implicitfast`` likes them), gravity is a tilted plane's.

MuJoCo's contacts and stops are unilateral springs with dampers. Impacts without restitution need strong overdamping (a
critically damped one lets go at 0.135 of the impact velocity): rate of approach falls with time constant ``softness_s``
/ 2, damping ratio 10, impedance 0.9999. The rigid limit is approached by making ``softness_s`` and ``dt_s`` small
together; whoever uses this oracle shows that halving both changes nothing that matters.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IMPEDANCE = 0.9999
DAMPING_RATIO = 10.0


@dataclass(frozen=True)
class ContactRobot:
    """One robot; link fields (N,), joint fields (J,), SI units."""

    half_length: FloatArray
    mass: FloatArray
    inertia: FloatArray
    radius: FloatArray
    c_t: FloatArray
    c_n: FloatArray
    kp: FloatArray
    kd: FloatArray
    stop: FloatArray
    """Joint stops at plus and minus this angle [rad]; inf: none."""
    pull: tuple[float, float] = (0.0, 0.0)
    """Acceleration along the ground [m/s^2]."""


class MujocoContactChain:
    """One world; ``features`` (F, 6), ``dt_s`` its step, ``softness_s`` the time constant of contacts and stops."""

    def __init__(self, robot: ContactRobot, features: FloatArray, dt_s: float, softness_s: float) -> None:
        self.n_links = len(robot.mass)
        self.robot = robot
        self.dt_s = dt_s
        self.model = mujoco.MjModel.from_xml_string(_xml(robot, features, dt_s, softness_s))
        self.data = mujoco.MjData(self.model)

    def set_state(self, theta: FloatArray, rate: FloatArray, centre: FloatArray, velocity: FloatArray) -> None:
        """Link angles and rates (N,), position and velocity of the centre of mass (2,)."""
        direction = np.stack([np.cos(theta), np.sin(theta)], axis=1)
        across = np.stack([-direction[:, 1], direction[:, 0]], axis=1)
        half = self.robot.half_length[:, None]
        share = self.robot.mass / self.robot.mass.sum()

        def tail_of(step: FloatArray, mean: FloatArray) -> FloatArray:
            from_tail = np.vstack([np.zeros(2), np.cumsum(step[:-1] + step[1:], axis=0)])
            return np.asarray(mean - share @ from_tail)

        place = tail_of(half * direction, centre)
        motion = tail_of(half * rate[:, None] * across, velocity)
        self.data.qpos[:] = [*place, theta[0], *(theta[:-1] - theta[1:])]
        self.data.qvel[:] = [*motion, rate[0], *(rate[:-1] - rate[1:])]
        mujoco.mj_forward(self.model, self.data)

    def run(self, seconds: float, reference: FloatArray | None = None) -> None:
        """Integrate under a constant joint reference (J,) [rad]."""
        if reference is not None:
            self.data.ctrl[: self.n_links - 1] = reference
        mujoco.mj_step(self.model, self.data, round(seconds / self.dt_s))
        mujoco.mj_forward(self.model, self.data)

    def generalised_velocity(self) -> FloatArray:
        """(N + 2,): link rates, velocity of the centre of mass."""
        mujoco.mj_subtreeVel(self.model, self.data)
        return np.concatenate([self.link_rates(), self.data.subtree_linvel[0, :2]])

    def link_angles(self) -> FloatArray:
        """theta (N,) [rad]."""
        return np.asarray(self.data.qpos[2] - np.concatenate([[0.0], np.cumsum(self.data.qpos[3:])]))

    def link_rates(self) -> FloatArray:
        """(N,) [rad/s]."""
        return np.asarray(self.data.qvel[2] - np.concatenate([[0.0], np.cumsum(self.data.qvel[3:])]))

    def link_centres(self) -> FloatArray:
        """(N, 2) [m]."""
        return np.array(self.data.xipos[1 : self.n_links + 1, :2])

    def centre_xy(self) -> FloatArray:
        """(2,) [m] centre of mass."""
        return np.array(self.data.subtree_com[0, :2])

    @property
    def n_contacts(self) -> int:
        """Contacts that press at this instant."""
        force = np.zeros(6)
        count = 0
        for number in range(self.data.ncon):
            mujoco.mj_contactForce(self.model, self.data, number, force)
            count += bool(force[0] > 0.0)
        return count

    @property
    def n_stops(self) -> int:
        """Joints that press on a stop at this instant."""
        stops = self.data.efc_type == mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT
        return int((stops & (self.data.efc_force > 0.0)).sum())


def _xml(robot: ContactRobot, features: FloatArray, dt_s: float, softness_s: float) -> str:
    hard = f'"{softness_s!r} {DAMPING_RATIO}"'
    near = f'"{IMPEDANCE} {IMPEDANCE} 0.001"'
    bodies, actuators, grounds = "", "", ""
    for link in range(len(robot.mass)):
        half, moment = float(robot.half_length[link]), float(robot.inertia[link])
        radius = float(robot.radius[link])
        place = 2.0 * float(robot.half_length[link - 1]) if link > 1 else float(robot.half_length[0]) * link
        at = half if link else 0.0
        bodies += f'<body pos="{place!r} 0 0"><inertial pos="{at!r} 0 0" mass="{float(robot.mass[link])!r}" '
        bodies += f'diaginertia="{moment!r} {moment!r} {moment!r}"/><site name="s{link}" pos="{at!r} 0 0"/>'
        bodies += f'<geom type="capsule" fromto="{at - half!r} 0 0 {at + half!r} 0 0" size="{radius!r}"'
        bodies += f' condim="1" contype="1" conaffinity="0" solref={hard} solimp={near}/>'
        if link == 0:
            bodies += '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>'
            bodies += '<joint type="hinge" axis="0 0 1"/>'
        else:
            stop = float(robot.stop[link - 1])
            limits = f'range="{-stop!r} {stop!r}" solreflimit={hard} solimplimit={near}' if np.isfinite(stop) else ""
            bodies += f'<joint name="j{link}" type="hinge" axis="0 0 -1" {limits}/>'
            actuators += (
                f'<position joint="j{link}" kp="{float(robot.kp[link - 1])!r}" kv="{float(robot.kd[link - 1])!r}"/>'
            )
        grounds += f'<velocity site="s{link}" gear="1 0 0 0 0 0" kv="{float(robot.c_t[link])!r}"/>'
        grounds += f'<velocity site="s{link}" gear="0 1 0 0 0 0" kv="{float(robot.c_n[link])!r}"/>'
    pegs = "".join(_obstacle(row, hard, near) for row in features.tolist())
    return f"""<mujoco><compiler angle="radian" autolimits="true" inertiafromgeom="false"/>
      <option timestep="{dt_s!r}" integrator="implicitfast" gravity="{robot.pull[0]!r} {robot.pull[1]!r} 0"
        solver="Newton" iterations="200" tolerance="1e-14" ls_iterations="100"/>
      <worldbody>{pegs}{bodies}{"</body>" * len(robot.mass)}</worldbody>
      <actuator>{actuators}{grounds}</actuator></mujoco>"""


def _obstacle(row: list[float], hard: str, near: str) -> str:
    x, y, axis_x, axis_y, length, radius = row
    assert radius > 0.0, "MuJoCo has no capsule of radius 0"
    ends = f"{x!r} {y!r} -1 {x!r} {y!r} 1"
    if length > 0.0:
        ends = f"{x!r} {y!r} 0 {x + length * axis_x!r} {y + length * axis_y!r} 0"
    material = f'condim="1" contype="0" conaffinity="1" solref={hard} solimp={near}'
    return f'<geom type="capsule" fromto="{ends}" size="{radius!r}" {material}/>'
