"""Why the published inverse (eq. 44-51) cannot exist: ranks and balances, from the shipped physics."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from papers.haghshenas2022.muscle_pair import muscle_lever
from snake_gym.robot.presets import MUSCLE
from snake_gym.robot.spec import FloatArray, FrictionSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot

_SMALL = 1e-9
"""Singular values below this share of the largest count as zero."""


@dataclass(frozen=True)
class Inverse:
    """What muscle forces do to the eight accelerations of eq. 51, in S random states."""

    singular: FloatArray
    """(S, 8) singular values of the accelerations per muscle force, as shares of the largest; rows padded with 0."""
    rank: int
    """Largest rank found; eq. 48-49 need 8."""
    centre_share: float
    """Largest acceleration of the centre of mass per force, as a share of the largest joint acceleration."""
    missed: FloatArray
    """(S,) share of a random demand of eight accelerations that no muscle forces meet, ignoring that they only pull."""
    kinetic_share: float
    """Kinetic energy of the robot in pure translation by eq. 31, as a share of the true one."""


def examine(n_states: int, seed: int) -> Inverse:
    """Random states of the six-link robot; accelerations of [phi (5), mean link angle, centre of mass (2)]."""
    # Forces per torque: friction, which is the same with every torque, drops out.
    spec, rng = replace(MUSCLE, friction=FrictionSpec(0.0, 0.0)), np.random.default_rng(seed)
    n, j = spec.n_links, spec.n_joints
    robot = SimulatedRobot(spec, n_states * (j + 1), 1)
    shape = (n_states, 1, n)
    robot.state.link_angle[:] = np.repeat(np.cumsum(rng.normal(0.0, 0.4, shape), axis=2), j + 1, axis=1).reshape(-1, n)
    torque = np.tile(np.concatenate([np.zeros((1, j)), np.eye(j)]), (n_states, 1))
    link, centre = robot.derivative(torque)
    wanted = np.concatenate([link[:, :-1] - link[:, 1:], link.mean(axis=1, keepdims=True), centre], axis=1)
    wanted = wanted.reshape(n_states, j + 1, j + 3)
    per_torque = np.swapaxes(wanted[:, 1:] - wanted[:, :1], 1, 2)
    angle = robot.joint_angle().reshape(n_states, j + 1, j)[:, 0]
    lever = muscle_lever(spec.actuator.muscle, angle)  # ten forces, but each pair has one torque
    pairs = np.zeros((n_states, j, 2 * j))
    for joint in range(j):
        pairs[:, joint, 2 * joint : 2 * joint + 2] = lever[:, joint]
    per_force = per_torque @ pairs
    singular = np.linalg.svd(per_force, compute_uv=False)
    share = singular / singular[:, :1]
    demand = rng.normal(0.0, 1.0, (n_states, j + 3, 1))
    met = per_force @ np.linalg.pinv(per_force, rcond=_SMALL) @ demand
    missed = np.linalg.norm(demand - met, axis=1)[:, 0] / np.linalg.norm(demand, axis=1)[:, 0]
    centre_share = float(np.abs(per_force[:, -2:]).max() / np.abs(per_force[:, :j]).max())
    rank = int((share > _SMALL).sum(axis=1).max())
    return Inverse(share, rank, centre_share, missed, _translation_energy())


def _translation_energy() -> float:
    """Eq. 31's ``p_dot^T M_p p_dot / 2`` with M_p = m I_2, over the kinetic energy of the chain."""
    robot = SimulatedRobot(replace(MUSCLE), 1, 1)
    robot.state.centre_vel[0] = (1.0, 0.0)
    return float(0.5 * MUSCLE.links("link_mass_kg")[0] / robot.kinetic_energy()[0])
