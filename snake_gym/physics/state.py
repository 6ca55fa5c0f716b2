"""State, parameters and faults of W chains of N links (J = N - 1 joints): plain float64 C-arrays, one row per world.

State: link angles and rates, position and velocity of the centre of mass. The links' positions follow from them, so
that joints cannot drift apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class ChainState(NamedTuple):
    """What moves."""

    link_angle: FloatArray
    """(W, N) [rad] theta."""
    link_rate: FloatArray
    """(W, N) [rad/s] omega."""
    centre_xy: FloatArray
    """(W, 2) [m] centre of mass, world frame."""
    centre_vel: FloatArray
    """(W, 2) [m/s]."""
    time_s: FloatArray
    """(W,) [s] since the world's reset."""
    work_j: FloatArray
    """(W,) [J] positive work of the actuators since the world's reset."""
    joint_torque: FloatArray
    """(W, J) [N m] torque in the last sub-step."""
    head_xy: FloatArray
    """(W, 2) [m] centre of the head link; follows from the rest, kept up to date for the sensors."""


class ChainParams(NamedTuple):
    """What does not move; one row per world, so that worlds may differ."""

    mass: FloatArray
    """(W, N) [kg]."""
    inertia: FloatArray
    """(W, N) [kg m^2] about the link's centre."""
    half_length: FloatArray
    """(W, N) [m]."""
    c_t: FloatArray
    """(W, N) [N s/m] viscous friction along the link."""
    c_n: FloatArray
    """(W, N) [N s/m] across the link."""
    c_r: FloatArray
    """(W, N) [N m s/rad] rotational."""
    kp: FloatArray
    """(W, J) [N m/rad], or [1/s^2] for acceleration-controlled joints."""
    kd: FloatArray
    """(W, J) [N m s/rad], or [1/s]."""
    torque_limit: FloatArray
    """(W, J) [N m]."""
    speed_limit: FloatArray
    """(W, J) [rad/s]."""
    free_damping: FloatArray
    """(W, J) [N m s/rad] of a joint that has lost power."""


class FaultState(NamedTuple):
    """Joint faults, active while onset_s <= time < end_s."""

    kind: IntArray
    """(W, J) HEALTHY, LOCKED, FREE or WEAK (see physics.faults)."""
    onset_s: FloatArray
    """(W, J) [s]."""
    end_s: FloatArray
    """(W, J) [s], inf for good."""
    strength: FloatArray
    """(W, J) torque left to a WEAK joint, in (0, 1)."""


def zero_state(n_worlds: int, n_links: int) -> ChainState:
    """Stretched along x, at rest, centre at the origin."""
    per_link, per_axis, per_joint = (n_worlds, n_links), (n_worlds, 2), (n_worlds, n_links - 1)
    return ChainState(
        link_angle=np.zeros(per_link),
        link_rate=np.zeros(per_link),
        centre_xy=np.zeros(per_axis),
        centre_vel=np.zeros(per_axis),
        time_s=np.zeros(n_worlds),
        work_j=np.zeros(n_worlds),
        joint_torque=np.zeros(per_joint),
        head_xy=np.zeros(per_axis),
    )


def no_faults(n_worlds: int, n_joints: int) -> FaultState:
    """All joints healthy."""
    shape = (n_worlds, n_joints)
    return FaultState(np.zeros(shape, np.int64), np.zeros(shape), np.full(shape, np.inf), np.ones(shape))
