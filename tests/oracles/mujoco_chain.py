"""Oracle: the planar chain with locked joints, obstacles and joint stops in MuJoCo. Shares no code with the physics.

Model: a tree of bodies rooted at the tail link, which has two slides and a hinge; hinges point along -z, so that a
joint's coordinate is ``phi_i = theta_i - theta_{i+1}``. A locked joint is no joint: its two bodies are one rigid body,
bent by the angle at which it was locked. Links are capsules lying in the plane; an obstacle is a row
[start_x, start_y, axis_x, axis_y, length, radius > 0]: a disc is an upright capsule, a segment a lying one. Contacts
are frictionless (condim 1); links see each other, but for neighbours, where the robot says so. Position actuators hold
the joints, velocity actuators of zero command at the links' centres are the viscous ground (sibilska2022, eq. 14),
gravity is a tilted plane's.

MuJoCo's contacts and stops are unilateral springs with dampers. Impacts without restitution need strong overdamping (a
critically damped one lets go at 0.135 of the impact velocity): rate of approach falls with time constant ``softness_s``
/ 2, damping ratio 10, impedance 0.9999. The rigid limit is approached by making ``softness_s`` and ``dt_s`` small
together; whoever uses this oracle shows that halving both changes nothing that matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import mujoco
import numpy as np

from snake_gym.robot.spec import FloatArray, RobotSpec

IMPEDANCE = 0.9999
DAMPING_RATIO = 10.0


@dataclass(frozen=True)
class MujocoRobot:
    """One robot; link fields (N,), joint fields (J,), SI units."""

    half_length: FloatArray
    mass: FloatArray
    inertia: FloatArray
    radius: FloatArray
    c_t: FloatArray
    c_n: FloatArray
    c_r: FloatArray
    kp: FloatArray
    kd: FloatArray
    stop: FloatArray
    """Joint stops at plus and minus this angle [rad]; inf: none."""
    pull: tuple[float, float] = (0.0, 0.0)
    """Acceleration along the ground [m/s^2]."""
    damping: Mapping[int, float] = field(default_factory=dict)
    """Viscous friction [N m s/rad] of some joints (from 0)."""
    locked: Mapping[int, float] = field(default_factory=dict)
    """Locked joints (from 0), with their angle [rad]."""
    links_touch: bool = False

    @classmethod
    def of(
        cls, spec: RobotSpec, damping: Mapping[int, float] | None = None, locked: Mapping[int, float] | None = None
    ) -> MujocoRobot:
        """The robot of a specification; what its servos cannot do stays out."""
        names = ("tangential_ns_m", "normal_ns_m", "rotational_nms_rad")
        return cls(
            spec.links("link_half_length_m"), spec.links("link_mass_kg"), spec.inertia(), spec.links("link_radius_m"),
            *(spec.links(f"friction.{name}") for name in names), spec.joints("actuator.kp"),
            spec.joints("actuator.kd"), spec.joints("joint_stop_rad"), tuple(spec.body_acceleration.tolist()),
            damping or {}, locked or {}, spec.links_touch,
        )  # fmt: skip


class MujocoChain:
    """One world of step ``dt_s``; ``features`` (F, 6), ``softness_s`` the time constant of contacts and stops.

    Without ``softness_s`` there are neither, and Runge-Kutta steps in place of implicit ones.
    """

    def __init__(
        self, robot: MujocoRobot, features: FloatArray | None, dt_s: float, softness_s: float | None = None
    ) -> None:
        self.n_links = len(robot.mass)
        self.robot = robot
        self.moving = [joint for joint in range(self.n_links - 1) if joint not in robot.locked]
        self.dt_s = dt_s
        rows = np.zeros((0, 6)) if features is None else features
        integrator = "RK4" if softness_s is None else "implicitfast"
        self.model = mujoco.MjModel.from_xml_string(_xml(robot, rows, dt_s, softness_s or 0.02, integrator))
        self.data = mujoco.MjData(self.model)

    def set_state(self, theta: FloatArray, rate: FloatArray, centre: FloatArray, velocity: FloatArray) -> None:
        """Link angles and rates (N,), position and velocity of the centre of mass (2,). Locked joints: rate 0."""
        direction = np.stack([np.cos(theta), np.sin(theta)], axis=1)
        across = np.stack([-direction[:, 1], direction[:, 0]], axis=1)
        half = self.robot.half_length[:, None]
        share = self.robot.mass / self.robot.mass.sum()

        def tail_of(step: FloatArray, mean: FloatArray) -> FloatArray:
            from_tail = np.vstack([np.zeros(2), np.cumsum(step[:-1] + step[1:], axis=0)])
            return np.asarray(mean - share @ from_tail)

        place = tail_of(half * direction, centre)
        motion = tail_of(half * rate[:, None] * across, velocity)
        phi, phi_rate = theta[:-1] - theta[1:], rate[:-1] - rate[1:]
        assert all(abs(phi[j] - angle) < 1e-12 and abs(phi_rate[j]) < 1e-12 for j, angle in self.robot.locked.items())
        self.data.qpos[:] = [*place, theta[0], *phi[self.moving]]
        self.data.qvel[:] = [*motion, rate[0], *phi_rate[self.moving]]
        mujoco.mj_forward(self.model, self.data)

    def run(self, seconds: float, reference: FloatArray | None = None, torque: FloatArray | None = None) -> None:
        """Integrate under a constant joint reference (J,) [rad], or joint torques (J,) [N m]."""
        if reference is not None:
            self.data.ctrl[: len(self.moving)] = reference[self.moving]
        if torque is not None:
            self.data.qfrc_applied[3:] = torque[self.moving]
        mujoco.mj_step(self.model, self.data, round(seconds / self.dt_s))
        mujoco.mj_forward(self.model, self.data)

    def generalised_velocity(self) -> FloatArray:
        """(N + 2,): link rates, velocity of the centre of mass."""
        mujoco.mj_subtreeVel(self.model, self.data)
        return np.concatenate([self.link_rates(), self.data.subtree_linvel[0, :2]])

    def link_angles(self) -> FloatArray:
        """theta (N,) [rad]."""
        return self._spread(self.data.qpos, self.robot.locked)

    def link_rates(self) -> FloatArray:
        """(N,) [rad/s]."""
        return self._spread(self.data.qvel, {})

    def _spread(self, coordinates: FloatArray, locked: Mapping[int, float]) -> FloatArray:
        """Values of all links from those of the tail and the joints; 0 at a joint that neither moves nor is listed."""
        phi = np.zeros(self.n_links - 1)
        phi[self.moving] = coordinates[3:]
        phi[list(locked)] = list(locked.values())
        return np.asarray(coordinates[2] - np.concatenate([[0.0], np.cumsum(phi)]))

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


def _xml(robot: MujocoRobot, features: FloatArray, dt_s: float, softness_s: float, integrator: str) -> str:
    hard = f'"{softness_s!r} {DAMPING_RATIO}"'
    near = f'"{IMPEDANCE} {IMPEDANCE} 0.001"'
    bodies, actuators, grounds = "", "", ""
    for link in range(len(robot.mass)):
        half, moment = float(robot.half_length[link]), float(robot.inertia[link])
        radius = float(robot.radius[link])
        place = 2.0 * float(robot.half_length[link - 1]) if link > 1 else float(robot.half_length[0]) * link
        at = half if link else 0.0
        bend = -float(robot.locked.get(link - 1, 0.0))
        bodies += f'<body pos="{place!r} 0 0" euler="0 0 {bend!r}">'
        bodies += f'<inertial pos="{at!r} 0 0" mass="{float(robot.mass[link])!r}" '
        bodies += f'diaginertia="{moment!r} {moment!r} {moment!r}"/><site name="s{link}" pos="{at!r} 0 0"/>'
        bodies += f'<geom type="capsule" fromto="{at - half!r} 0 0 {at + half!r} 0 0" size="{radius!r}"'
        bodies += f' condim="1" contype="1" conaffinity="{int(robot.links_touch)}" solref={hard} solimp={near}/>'
        if link == 0:
            bodies += '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>'
            bodies += '<joint type="hinge" axis="0 0 1"/>'
        elif link - 1 not in robot.locked:
            stop = float(robot.stop[link - 1])
            limits = f'range="{-stop!r} {stop!r}" solreflimit={hard} solimplimit={near}' if np.isfinite(stop) else ""
            damping = float(robot.damping.get(link - 1, 0.0))
            bodies += f'<joint name="j{link}" type="hinge" axis="0 0 -1" damping="{damping!r}" {limits}/>'
            actuators += (
                f'<position joint="j{link}" kp="{float(robot.kp[link - 1])!r}" kv="{float(robot.kd[link - 1])!r}"/>'
            )
        for gear, drag in (("1 0 0 0 0 0", robot.c_t), ("0 1 0 0 0 0", robot.c_n), ("0 0 0 0 0 1", robot.c_r)):
            grounds += f'<velocity site="s{link}" gear="{gear}" kv="{float(drag[link])!r}"/>'
    pegs = "".join(_obstacle(row, hard, near) for row in features.tolist())
    return f"""<mujoco><compiler angle="radian" autolimits="true" inertiafromgeom="false"/>
      <option timestep="{dt_s!r}" integrator="{integrator}" gravity="{robot.pull[0]!r} {robot.pull[1]!r} 0"
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
