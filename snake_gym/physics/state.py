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
    contact_force: FloatArray
    """(W, N, 2) [N] world frame, force of all obstacles on each link, mean over the last call of the stepper."""
    n_contacts: FloatArray
    """(W,) touching contacts, mean over the sub-steps of the last call."""
    penetration_m: FloatArray
    """(W,) [m] deepest penetration of any link into an obstacle in the last call."""
    stood_still: FloatArray
    """(W,) implicit solutions since the world's reset whose laws were not settled: the world stood still instead."""
    supply: FloatArray
    """(W,) voltage of the supply as a share of the nominal one (see physics.imperfections)."""
    lash_rad: FloatArray
    """(W, J) [rad] motor's side of the gears ahead of the joint, within plus and minus half the backlash."""
    muscle_pressure: FloatArray
    """(W, J, 2) [Pa] gauge pressures of the left and right muscle; (W, 0, 2) without muscles."""


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
    coulomb_t: FloatArray
    """(W, N) [N] largest Coulomb force along the link."""
    coulomb_n: FloatArray
    """(W, N) [N] across the link."""
    coulomb_r: FloatArray
    """(W, N) [N m] largest Coulomb torque."""
    radius: FloatArray
    """(W, N) [m] of the capsule that a link is for obstacles."""
    body_acc: FloatArray
    """(W, 2) [m/s^2] constant acceleration of every link, world frame (inclined ground)."""
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
    stop: FloatArray
    """(W, J) [rad] mechanical stop at plus and minus this angle; inf: none."""
    dead_band: FloatArray
    """(W, J) [rad] error to which the loop does not react."""
    play: FloatArray
    """(W, J) [rad] half the backlash."""
    no_load_speed: FloatArray
    """(W, J) [rad/s] at which the torque limit has fallen to 0; inf: it does not fall."""
    sag_per_nm: FloatArray
    """(W, J) [1/(N m)] share of the supply's voltage that its resistance takes per torque."""


class ContactParams(NamedTuple):
    """The contact law, for all worlds and contacts (see ``contact``)."""

    rigid: bool
    """Complementarity instead of the stiff spring."""
    stiffness: float
    """[N/m]."""
    damping: float
    """[N s/m]."""
    restitution: float
    """In [0, 1]."""
    viscous: float
    """[N s/m] along the surface."""
    coulomb: float
    """[1] along the surface."""


class Obstacles(NamedTuple):
    """Immovable obstacles of W worlds as up to F features each, and a grid that finds those near a link.

    A feature is the set of points within ``radius`` of a segment ``start + u axis, 0 <= u <= length``: a disc where
    length is 0. A circle is one feature, a capsule or wall two discs and the segment between them, a convex polygon
    its corners (discs of radius 0) and its edges.
    """

    feature: FloatArray
    """(W, F, 6) [start_x, start_y, axis_x, axis_y, length, radius] [m], axis of length 1, world frame."""
    cell_start: IntArray
    """(W, C + 1) where the items of each cell begin; cell (ix, iy) has number ix * n_y + iy."""
    cell_item: IntArray
    """(W, M) features that a link with its centre in the cell may touch before it has moved by the grid's skin."""
    origin_xy: FloatArray
    """(W, 2) [m] lower left corner of cell (0, 0)."""
    n_cells: IntArray
    """(W, 2) cells along x and y; 0: no obstacles."""
    cell_m: float
    """[m] side of a cell."""
    skin_m: float
    """[m] how far a link may move before its cell has to be looked up again."""


class FaultState(NamedTuple):
    """Joint faults, acting while onset_s <= time < end_s; intermittent ones in bursts within (see ``faults``)."""

    kind: IntArray
    """(W, J) HEALTHY, LOCKED, FREE, WEAK, SLOW or OFFSET (see physics.faults)."""
    onset_s: FloatArray
    """(W, J) [s]."""
    end_s: FloatArray
    """(W, J) [s], inf for good."""
    strength: FloatArray
    """(W, J) what is left, in (0, 1]: of a WEAK joint's torque, of a SLOW joint's speed limit."""
    offset_rad: FloatArray
    """(W, J) [rad] by which an OFFSET joint's reference is shifted."""
    period_s: FloatArray
    """(W, J) [s] from burst to burst of an intermittent fault; inf: it is not intermittent."""
    duty: FloatArray
    """(W, J) share of the period, in (0, 1], that a burst takes."""


def zero_state(n_worlds: int, n_links: int, n_muscle_pairs: int = 0) -> ChainState:
    """Stretched along x, at rest, centre at the origin; muscles without pressure."""
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
        contact_force=np.zeros((n_worlds, n_links, 2)),
        n_contacts=np.zeros(n_worlds),
        penetration_m=np.zeros(n_worlds),
        stood_still=np.zeros(n_worlds),
        supply=np.ones(n_worlds),
        lash_rad=np.zeros(per_joint),
        muscle_pressure=np.zeros((n_worlds, n_muscle_pairs, 2)),
    )


def no_obstacles(n_worlds: int) -> Obstacles:
    """An empty plane."""
    return Obstacles(
        np.zeros((n_worlds, 1, 6)), np.zeros((n_worlds, 2), np.int64), np.zeros((n_worlds, 1), np.int64),
        np.zeros((n_worlds, 2)), np.zeros((n_worlds, 2), np.int64), 1.0, 0.05,
    )  # fmt: skip


def no_faults(n_worlds: int, n_joints: int) -> FaultState:
    """All joints healthy."""
    shape = (n_worlds, n_joints)
    never = np.full(shape, np.inf)
    return FaultState(
        np.zeros(shape, np.int64), np.zeros(shape), never, np.ones(shape), np.zeros(shape), never.copy(), np.ones(shape)
    )
