"""Oracle: the same planar chain in MuJoCo. Shares no code with ``snake_gym.physics``.

Model: a tree of bodies rooted at the tail link, whose centre has two slides and a hinge; the hinges point along -z, so
that a joint's coordinate is ``phi_i = theta_i - theta_{i+1}`` and its motor torque is ``u_i``. A locked joint is no
joint: its two bodies are one rigid body, bent by the angle at which it was locked. Joints may have viscous damping.
Ground friction (sibilska2022, eq. 14) enters through MuJoCo's passive-force callback at every stage of its own
Runge-Kutta integrator; gravity and contacts are off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import mujoco
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class MujocoChain:
    """One robot.

    Args:
        half_length, mass, inertia, c_t, c_n, c_r: (N,) SI units.
        damping: (J,) viscous joint friction [N m s/rad].
        locked: joints (from 0) that are locked, with their angle [rad].
        dt_s: step.
    """

    def __init__(
        self,
        half_length: FloatArray,
        mass: FloatArray,
        inertia: FloatArray,
        c_t: FloatArray,
        c_n: FloatArray,
        c_r: FloatArray,
        damping: FloatArray,
        locked: dict[int, float],
        dt_s: float,
    ) -> None:
        self.n_links = len(mass)
        self.locked = locked
        self.moving = [joint for joint in range(self.n_links - 1) if joint not in locked]
        self._c_t, self._c_n, self._c_r = c_t, c_n, c_r
        self.model = mujoco.MjModel.from_xml_string(_chain_xml(half_length, mass, inertia, damping, locked, dt_s))
        self.data = mujoco.MjData(self.model)

    def set_state(self, theta: FloatArray, theta_dot: FloatArray, tail_xy: FloatArray, tail_vel: FloatArray) -> None:
        """Link angles and rates (N,), position and velocity of the tail link's centre (2,). Locked joints: rate 0."""
        phi, phi_dot = theta[:-1] - theta[1:], theta_dot[:-1] - theta_dot[1:]
        assert all(abs(phi[j] - angle) < 1e-12 and abs(phi_dot[j]) < 1e-12 for j, angle in self.locked.items())
        self.data.qpos[:] = [*tail_xy, theta[0], *phi[self.moving]]
        self.data.qvel[:] = [*tail_vel, theta_dot[0], *phi_dot[self.moving]]

    def link_accelerations(self, torque: FloatArray) -> FloatArray:
        """Angular accelerations (N,) [rad/s^2] under the joint torques (J,) [N m]."""
        with self._ground():
            self.data.ctrl[:] = torque[self.moving]
            mujoco.mj_forward(self.model, self.data)
        return self._spread(self.data.qacc[2], self.data.qacc[3:], 0.0)

    def run(self, n_steps: int, torque: Callable[[int], FloatArray]) -> None:
        """Integrate; ``torque(step)`` (J,) [N m] is held over each step."""
        with self._ground():
            for step in range(n_steps):
                self.data.ctrl[:] = torque(step)[self.moving]
                mujoco.mj_step(self.model, self.data)
            mujoco.mj_forward(self.model, self.data)

    def link_angles(self) -> FloatArray:
        """theta (N,) [rad]."""
        return self._spread(self.data.qpos[2], self.data.qpos[3:], self.locked)

    def link_rates(self) -> FloatArray:
        """(N,) [rad/s]."""
        return self._spread(self.data.qvel[2], self.data.qvel[3:], 0.0)

    def centre_xy(self) -> FloatArray:
        """Centre of mass (2,) [m]."""
        return np.array(self.data.subtree_com[0, :2])

    def _spread(self, tail: float, moving: FloatArray, locked: dict[int, float] | float) -> FloatArray:
        """Values of all links from the tail's and the joints'."""
        phi = np.zeros(self.n_links - 1)
        phi[self.moving] = moving
        for joint in self.locked:
            phi[joint] = locked[joint] if isinstance(locked, dict) else locked
        return tail - np.concatenate([[0.0], np.cumsum(phi)])

    @contextmanager
    def _ground(self) -> Iterator[None]:
        def push(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            motion = np.zeros(6)
            for link in range(self.n_links):
                body = link + 1
                mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, body, motion, 0)
                along, across = data.ximat[body].reshape(3, 3)[:, 0], data.ximat[body].reshape(3, 3)[:, 1]
                velocity = motion[3:]
                force = -self._c_t[link] * (along @ velocity) * along - self._c_n[link] * (across @ velocity) * across
                moment = np.array([0.0, 0.0, -self._c_r[link] * motion[2]])
                mujoco.mj_applyFT(model, data, force, moment, data.xipos[body], body, data.qfrc_passive)

        mujoco.set_mjcb_passive(push)
        try:
            yield
        finally:
            mujoco.set_mjcb_passive(None)


def _chain_xml(
    half_length: FloatArray,
    mass: FloatArray,
    inertia: FloatArray,
    damping: FloatArray,
    locked: dict[int, float],
    dt_s: float,
) -> str:
    n = len(mass)
    opening, motors = "", ""
    for link in range(n):
        place, centre = 2.0 * float(half_length[link - 1]), float(half_length[link])
        if link == 0:
            place, centre = 0.0, 0.0
        elif link == 1:
            place = float(half_length[0])
        bend = -float(locked.get(link - 1, 0.0))
        opening += f'<body pos="{place!r} 0 0" euler="0 0 {bend!r}">'
        # Only the moment about z matters; the other two satisfy the triangle inequality.
        moment = float(inertia[link])
        opening += f'<inertial pos="{centre!r} 0 0" mass="{float(mass[link])!r}" '
        opening += f'diaginertia="{moment!r} {moment!r} {moment!r}"/>'
        if link == 0:
            opening += '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>'
            opening += '<joint type="hinge" axis="0 0 1"/>'
        elif link - 1 not in locked:
            opening += f'<joint name="j{link}" type="hinge" axis="0 0 -1" damping="{float(damping[link - 1])!r}"/>'
            motors += f'<motor joint="j{link}"/>'
    return f"""<mujoco><compiler angle="radian" inertiafromgeom="false"/>
      <option timestep="{dt_s!r}" integrator="RK4" gravity="0 0 0"><flag contact="disable"/></option>
      <worldbody>{opening}{"</body>" * n}</worldbody><actuator>{motors}</actuator></mujoco>"""
