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
    """Moving state of W chains, one row per world."""

    link_angle: FloatArray
    """Link angles theta (W, N) [rad]."""
    link_rate: FloatArray
    """Link rates omega (W, N) [rad/s]."""
    centre_xy: FloatArray
    """Centre of mass (W, 2) [m], world frame."""
    centre_vel: FloatArray
    """Velocity of the centre of mass (W, 2) [m/s], world frame."""
    time_s: FloatArray
    """Time since the world's reset (W,) [s]."""
    work_j: FloatArray
    """Positive work of the actuators since the world's reset (W,) [J]; of muscles that of their air (``muscles``)."""
    joint_torque: FloatArray
    """Joint torques in the last sub-step (W, J) [N m]."""
    head_xy: FloatArray
    """Centre of the head link (W, 2) [m], world frame; follows from the rest and is kept up to date for sensors."""
    contact_force: FloatArray
    """Mean force of all obstacles on each link over the last call of the stepper (W, N, 2) [N], world frame."""
    n_contacts: FloatArray
    """Mean number of touching contacts over the sub-steps of the last call (W,)."""
    penetration_m: FloatArray
    """Deepest penetration of any link into an obstacle in the last call (W,) [m]."""
    stood_still: FloatArray
    """Number of solutions (W,) since the reset whose laws did not settle, so that the world stood still."""
    supply: FloatArray
    """Voltage of the supply as a share of the nominal one (W,) (see physics.imperfections)."""
    lash_rad: FloatArray
    """Lead of the motor's side of the gears over the joint (W, J) [rad], at most half the backlash in size."""
    muscle_pressure: FloatArray
    """Gauge pressures of the left and right muscle (W, J, 2) [Pa]; (W, 0, 2) without muscles."""
    pressure_command: FloatArray
    """Pressures that their valves are commanded in addition to what the pair's loop asks, likewise [Pa]."""
    self_overlap_m: FloatArray
    """Deepest overlap of two links since the reset, at the ends of calls (W,) [m]; ``touch`` leaves out some pairs."""
    overlap_now_m: FloatArray
    """The same at the end of the last call (W,) [m]; 0: none."""
    slip_rad: FloatArray
    """Angle by which each joint's horn has slipped on its servo's shaft (W, J) [rad]."""
    slip_rate: FloatArray
    """Rate at which it has slipped in the last sub-step (W, J) [rad/s]."""


class ChainParams(NamedTuple):
    """Constant parameters of W chains; one row per world, so that worlds may differ."""

    mass: FloatArray
    """Link masses (W, N) [kg]."""
    inertia: FloatArray
    """Moments of inertia about the links' centres of mass (W, N) [kg m^2]."""
    half_length: FloatArray
    """Half lengths of the links (W, N) [m]."""
    ahead: FloatArray
    """Distance of a link's centre of mass ahead of its middle, as a share, in (-1, 1), of the half length (W, N)."""
    c_t: FloatArray
    """Viscous friction along the link (W, N) [N s/m]."""
    c_n: FloatArray
    """Viscous friction across the link (W, N) [N s/m]."""
    c_r: FloatArray
    """Viscous friction against rotation (W, N) [N m s/rad]."""
    coulomb_t: FloatArray
    """Largest Coulomb force along the link (W, N) [N]."""
    coulomb_n: FloatArray
    """Largest Coulomb force across the link (W, N) [N]."""
    coulomb_r: FloatArray
    """Largest Coulomb torque (W, N) [N m]."""
    backward: FloatArray
    """Factor of all friction along a link while it moves tail first (W, N)."""
    radius: FloatArray
    """Radius of the capsule that a link is for obstacles (W, N) [m]."""
    body_acc: FloatArray
    """Constant acceleration of every link (W, 2) [m/s^2], world frame (inclined ground)."""
    kp: FloatArray
    """Gain of the joint error (W, J) [N m/rad], or [1/s^2] for acceleration-controlled joints."""
    kd: FloatArray
    """Gain of the joint rate (W, J) [N m s/rad], or [1/s] for acceleration-controlled joints."""
    torque_limit: FloatArray
    """Torque limits (W, J) [N m]."""
    speed_limit: FloatArray
    """Speed limits (W, J) [rad/s]."""
    free_damping: FloatArray
    """Viscous friction of a joint that has lost power (W, J) [N m s/rad]."""
    stop: FloatArray
    """Angle of the mechanical stops on both sides (W, J) [rad]; inf: none."""
    dead_band: FloatArray
    """Largest error to which the loop does not react (W, J) [rad]."""
    play: FloatArray
    """Half the backlash (W, J) [rad]."""
    no_load_speed: FloatArray
    """Speed at which the torque limit has fallen to 0 (W, J) [rad/s]; inf: it does not fall."""
    joint_friction: FloatArray
    """Largest dry friction torque of a joint (W, J) [N m]."""
    sag_per_nm: FloatArray
    """Share of the supply's voltage that its resistance takes per torque (W, J) [1/(N m)]."""


class ContactParams(NamedTuple):
    """Parameters of the contact law for all worlds and contacts (see ``contact``)."""

    rigid: bool
    """True for complementarity instead of the stiff spring."""
    stiffness: float
    """Spring of each contact [N/m]."""
    damping: float
    """Damper of each contact [N s/m]."""
    restitution: float
    """Share, in [0, 1], of the normal velocity that an impact gives back."""
    viscous: float
    """Viscous friction along the surface [N s/m]."""
    coulomb: float
    """Coulomb coefficient along the surface [1]."""


class Obstacles(NamedTuple):
    """Immovable obstacles of W worlds as up to F features each, and a grid that finds those near a link.

    A feature is the set of points within ``radius`` of a segment ``start + u axis, 0 <= u <= length``: a disc where
    length is 0. A circle is one feature, a capsule or wall two discs and the segment between them, a convex polygon
    its corners (discs of radius 0) and its edges.
    """

    feature: FloatArray
    """Features (W, F, 6) [start_x, start_y, axis_x, axis_y, length, radius] [m], axis of length 1, world frame."""
    cell_start: IntArray
    """Index of the first item of each cell (W, C + 1); cell (ix, iy) has number ix * n_y + iy."""
    cell_item: IntArray
    """Features (W, M) that a link with its centre in the cell may touch before it has moved by the grid's skin."""
    origin_xy: FloatArray
    """Lower left corner of cell (0, 0) (W, 2) [m]."""
    n_cells: IntArray
    """Number of cells along x and y (W, 2); 0: no obstacles."""
    cell_m: float
    """Side of a cell [m]."""
    skin_m: float
    """Distance [m] that a link may move before its cell has to be looked up again."""


class LateCommands(NamedTuple):
    """Commands that begin to act within a call of the stepper, up to D for each of W worlds, oldest first."""

    aim: FloatArray
    """Joint angles that the actuators aim at (W, D, J) [rad]."""
    step: IntArray
    """Sub-steps in which they begin to act (W, D); those of sub-step 0 and before are not looked at."""


class Patches(NamedTuple):
    """Ground whose friction goes up and down from place to place, as on an egg box, in each of W worlds.

    Friction at the place p is that of the parameters times ``1 + height sin(q_x) sin(q_y)``, with
    ``q = pi / size_m * p + phase``, p taken along and across ``direction``.
    """

    height: FloatArray
    """Largest change of friction as a share (W,), in [0, 1)."""
    direction: FloatArray
    """Direction of the rows of patches (W,) [rad], world frame."""
    phase: FloatArray
    """Phases along and across ``direction`` at the origin (W, 2) [rad]."""
    size_m: float
    """Side of a patch [m]: of the area between two lines of unchanged friction."""
    link_angle: FloatArray
    """Link angles (W, N) [rad] as the control step begins."""
    centre_xy: FloatArray
    """Centres of mass (W, 2) [m] then, world frame."""


class FaultState(NamedTuple):
    """Joint faults, at most one of each joint, acting while onset_s <= time < end_s; intermittent ones in bursts within
    (see ``faults``). A joint with two faults has the second in another FaultState."""

    kind: IntArray
    """Codes of the faults (W, J), HEALTHY where there is none (see physics.faults)."""
    onset_s: FloatArray
    """Begin of the fault (W, J) [s]."""
    end_s: FloatArray
    """End of the fault (W, J) [s]; inf: it never ends."""
    strength: FloatArray
    """Share, in (0, 1], that is left of a WEAK joint's torque, a SLOW joint's speed limit, a weak muscle's tension or a
    leaking one's pressure (W, J); of a registered kind what it says."""
    offset_rad: FloatArray
    """Shift of an OFFSET joint's reference, or angle by which a SLIPPED joint's horn slips (W, J) [rad]."""
    period_s: FloatArray
    """Time from burst to burst of an intermittent fault (W, J) [s]; inf: it is not intermittent."""
    duty: FloatArray
    """Share of the period, in (0, 1], that a burst takes (W, J)."""
    jitter: FloatArray
    """Share of the pause, in [0, 1], by which a burst begins late at most, at random (W, J); 0: periodic."""
    key: IntArray
    """Key of the fault's random numbers (W, J), not negative (see physics.faults.hash_number)."""
    memory: FloatArray
    """Number that a registered kind keeps from control step to control step (W, J); 0 at the onset."""


def zero_state(n_worlds: int, n_links: int, n_muscle_pairs: int = 0) -> ChainState:
    """Return chains stretched along x, at rest, centre at the origin, muscles without pressure."""
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
        pressure_command=np.zeros((n_worlds, n_muscle_pairs, 2)),
        self_overlap_m=np.zeros(n_worlds),
        overlap_now_m=np.zeros(n_worlds),
        slip_rad=np.zeros(per_joint),
        slip_rate=np.zeros(per_joint),
    )


def no_obstacles(n_worlds: int) -> Obstacles:
    """Return the obstacles of an empty plane."""
    return Obstacles(
        np.zeros((n_worlds, 1, 6)), np.zeros((n_worlds, 2), np.int64), np.zeros((n_worlds, 1), np.int64),
        np.zeros((n_worlds, 2)), np.zeros((n_worlds, 2), np.int64), 1.0, 0.05,
    )  # fmt: skip


def no_late_commands(n_joints: int) -> LateCommands:
    """Return the commands of robots whose references act at once."""
    return LateCommands(np.zeros((1, 1, n_joints)), np.zeros((1, 1), np.int64))


def no_patches() -> Patches:
    """Return the patches of ground that is the same everywhere."""
    return Patches(np.zeros(1), np.zeros(1), np.zeros((1, 2)), 1.0, np.zeros((1, 1)), np.zeros((1, 2)))


def no_faults(n_worlds: int, n_joints: int) -> FaultState:
    """Return the faults of joints that are all healthy."""
    shape = (n_worlds, n_joints)
    never = np.full(shape, np.inf)
    return FaultState(
        np.zeros(shape, np.int64), np.zeros(shape), never, np.ones(shape), np.zeros(shape), never.copy(),
        np.ones(shape), np.zeros(shape), np.zeros(shape, np.int64), np.zeros(shape),
    )  # fmt: skip
