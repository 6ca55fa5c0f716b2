"""Runs of haghshenas2022, section 3, its numbers, and why its inverse (eq. 44-51) cannot exist.

The shipped muscle robot follows the two paths, or crawls by the open gait; ranks and balances come from the shipped
physics. Frame: world x-y plane; the head link's centre begins at the origin, the robot straight along x and at rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from papers.drives import Drive, Follower, PathGuide, drive, place
from snake_gym.controllers import make_controller
from snake_gym.controllers.line_of_sight import LineOfSight, LineOfSightConfig
from snake_gym.obstacles.polyline import Path, circle
from snake_gym.robot.actuator_spec import ActuatorSpec
from snake_gym.robot.muscle_pair import muscle_force, muscle_length, muscle_lever
from snake_gym.robot.presets import MUSCLE
from snake_gym.robot.spec import FloatArray, FrictionSpec, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot

ROBOT = replace(MUSCLE, control_dt_s=0.02)
"""Shipped robot at 50 commands per second: its gait takes half a second here."""
SPEED_M_S = 0.275
LOOKAHEAD_M = 1.5
CIRCLE = circle((1.0, 4.5), 4.2, (0.0, 0.0))
SQUARE = Path([[-3.4, 0.1], [5.4, 0.1], [5.4, 8.9], [-3.4, 8.9]], closed=True)
"""Path of side 8.8 m about the centre of the circle; the paper does not give its place."""
_SAMPLES = 4
"""Number of samples in each control step."""
SETTLED_S = 15.0
"""Time after which the speed counts as settled [s] (the published transition takes 5 s)."""

GAIT: dict[str, Any] = {"amplitude_rad": math.radians(30.0), "phase_shift_rad": math.radians(72.0)}
CONTROLLER: dict[str, Any] = {
    "kind": "speed",
    **GAIT,
    "speed_m_s": SPEED_M_S,
    "frequency_gain_rad_m": 16.0,
    "frequency_limit_rad_s": 20.0,
    "heading_gain": 0.4,
    "offset_limit_rad": math.radians(6.0),
    "offset_bandwidth_rad_s": 2.0,
}
SHARP: dict[str, Any] = {**CONTROLLER, "offset_limit_rad": math.radians(18.0)}
"""Settings with sharper turns, for the square by the published guidance."""

PathName = Literal["circle", "square"]
PATHS: dict[PathName, Path] = {"circle": CIRCLE, "square": SQUARE}
Ahead = Literal["tangent", "path"]


@dataclass(frozen=True)
class PathRun:
    """Run of one robot along one path."""

    path: PathName
    ahead: Ahead
    """Direction of the look-ahead: along the tangent (as published) or along the path."""
    run: Drive

    @property
    def settled(self) -> np.ndarray:
        """(T,) True for samples after the start."""
        return self.run.time_s > SETTLED_S

    @property
    def at_corner(self) -> np.ndarray:
        """(T,) True where the centre of mass is within the look-ahead of a corner of the square."""
        gap = np.linalg.norm(self.run.centre_xy[:, :1] - SQUARE.points_xy, axis=2)
        return np.asarray(gap.min(axis=1) < LOOKAHEAD_M)

    @property
    def speed(self) -> FloatArray:
        """(T,) speed [m/s] of the centre of mass along the mean direction of the links."""
        return self.run.forward_m_s[:, 0]

    @property
    def rise_s(self) -> float:
        """Rise time of the speed from 10 % to 90 % of the reference [s]; NaN if it does not reach that."""
        passed = [np.flatnonzero(self.speed >= share * SPEED_M_S) for share in (0.1, 0.9)]
        if not all(first.size for first in passed):
            return math.nan
        return float(self.run.time_s[passed[1][0]] - self.run.time_s[passed[0][0]])

    @property
    def muscle_length_m(self) -> FloatArray:
        """(T, J, 2) [m] length of the left and right muscles."""
        return muscle_length(MUSCLE.actuator.muscle, self.run.joint_angle[:, 0])

    @property
    def muscle_force_n(self) -> FloatArray:
        """(T, J, 2) [N] tension of the left and right muscles, co-contraction included."""
        return muscle_force(MUSCLE.actuator.muscle, self.muscle_length_m, self.run.muscle_pressure[:, 0])

    @property
    def net_force_n(self) -> FloatArray:
        """(T, J) [N] force with which one muscle alone would give the joint's torque: right positive."""
        lever = muscle_lever(MUSCLE.actuator.muscle, self.run.joint_angle[:, 0])
        torque = self.run.joint_torque[:, 0]
        return np.where(torque > 0.0, torque / lever[..., 1], -torque / lever[..., 0])

    @property
    def deviation_m(self) -> float:
        """Largest distance from the path once settled [m]."""
        return float(np.abs(self.run.cross_track_m[self.settled]).max())


def follow(
    path: PathName, ahead: Ahead, duration_s: float, controller: dict[str, Any], advance: Callable[[float], None]
) -> PathRun:
    """Return the run of the muscle robot along ``path`` for ``duration_s`` [s], from rest."""
    sight = LineOfSight(PATHS[path], LineOfSightConfig(LOOKAHEAD_M, ahead))
    follower = Follower(make_controller(controller, ROBOT), PathGuide(sight, 1))
    return PathRun(path, ahead, drive(_robot(), follower, duration_s, advance, samples=_SAMPLES))


STIFF = replace(ROBOT, control_dt_s=0.001, actuator=ActuatorSpec(kind="position", kp=100.0, kd=0.2))
"""Robot with joints that follow their references 2 ms late, in place of muscles."""


def gait_speed(frequency_rad_s: float, periods: int = 12) -> float:
    """Return the mean speed [m/s] of the gait with imposed joint motion, over the last half of ``periods``."""
    amplitude_rad = np.full(MUSCLE.n_joints, GAIT["amplitude_rad"])
    robot, lag = _robot(STIFF), GAIT["phase_shift_rad"] * np.arange(MUSCLE.n_joints)
    step = 2.0 * math.pi / (frequency_rad_s * round(2.0 * math.pi / frequency_rad_s / STIFF.control_dt_s))
    place(robot, (amplitude_rad * np.sin(lag))[None], np.zeros(1), np.zeros((1, 2)))
    per_period = round(2.0 * math.pi / frequency_rad_s / step)
    at = np.empty((periods + 1, 2))
    for k in range(periods * per_period + 1):
        if k % per_period == 0:
            at[k // per_period] = robot.state.centre_xy[0]
        robot.step((amplitude_rad * np.sin(frequency_rad_s * k * step + lag))[None])
    way = np.diff(at[periods // 2 :], axis=0)
    return float(np.hypot(way[:, 0], way[:, 1]).mean() / (per_period * STIFF.control_dt_s))


def lengths_of_gait() -> tuple[FloatArray, FloatArray]:
    """Return shortest and longest length (J, 2) [mm] of eq. 8 where all joints swing by the gait's amplitude."""
    end = np.full((2, MUSCLE.n_joints), GAIT["amplitude_rad"]) * np.array([[-1.0], [1.0]])
    length = 1e3 * muscle_length(MUSCLE.actuator.muscle, end)
    return length.min(axis=0), length.max(axis=0)


def _robot(spec: RobotSpec = ROBOT) -> SimulatedRobot:
    robot = SimulatedRobot(spec, 1, 1)
    head = float(MUSCLE.length_m / 2 - MUSCLE.links("link_half_length_m")[-1])
    place(robot, np.zeros((1, MUSCLE.n_joints)), np.zeros(1), np.array([[-head, 0.0]]))
    return robot


class Published(NamedTuple):
    """Published speed and muscle lengths on one path."""

    mean_m_s: float
    least_m_s: float
    most_m_s: float
    """Largest speed of the settled oscillation; ``least_m_s`` is the smallest."""
    source: str
    shortest_mm: FloatArray
    """(J, 2) [mm] shortest length, left and right."""
    longest_mm: FloatArray
    """(J, 2) [mm] longest length, left and right."""
    table: str


def _left_right(right_left: list[float]) -> FloatArray:
    """Return lengths (J, 2), left and right, from a table's values in the order m1 right, m1 left, m2 right ..."""
    return np.array(right_left).reshape(-1, 2)[:, ::-1]


PUBLISHED: dict[PathName, Published] = {
    "circle": Published(
        0.277, 0.264, 0.290, "Section 3.1, Fig. 4",
        _left_right([82.0, 81.0, 82.2, 81.6, 85.0, 83.8, 85.4, 84.5, 83.6, 82.7]),
        _left_right([110.3, 110.0, 110.1, 109.9, 109.5, 109.1, 109.3, 109.0, 109.8, 109.6]), "Table 1",
    ),
    "square": Published(
        0.28, 0.268, 0.292, "Section 3.2, Fig. 8",
        _left_right([80.6, 76.0, 81.8, 75.2, 85.4, 79.1, 86.4, 80.4, 83.2, 77.4]),
        # printed 11.2, which is no length of a 100 mm muscle
        _left_right([111.2, 110.4, 111.3, 110.1, 110.7, 109.0, 110.4, 108.6, 111.0, 109.7]), "Table 2",
    ),
}  # fmt: skip
RISE_S = 5.0
CORNER_M = 0.9
FORCE_N = (0.2, 0.6)
"""Published range of forces along most of the way (section 3.2)."""
CORNER_FORCE_N = 10.0
"""Published order of magnitude of forces round the corners (section 3.2)."""
_SMALL = 1e-9
"""Singular values below this share of the largest count as zero."""


class Inverse(NamedTuple):
    """Effect of muscle forces on the eight accelerations of eq. 51, in S random states."""

    rank: int
    """Largest rank found; eq. 48-49 need 8."""
    centre_share: float
    """Largest acceleration of the centre of mass per force, as a share of the largest joint acceleration."""
    missed: FloatArray
    """(S,) share of a random demand of eight accelerations that no muscle forces meet, ignoring that they only pull."""
    kinetic_share: float
    """Kinetic energy of the robot in pure translation by eq. 31, as a share of the true one."""


def examine(n_states: int, seed: int) -> Inverse:
    """Return results in random states; accelerations of [phi (5), mean link angle, centre of mass (2)]."""
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
    demand = rng.normal(0.0, 1.0, (n_states, j + 3, 1))
    met = per_force @ np.linalg.pinv(per_force, rcond=_SMALL) @ demand
    missed = np.linalg.norm(demand - met, axis=1)[:, 0] / np.linalg.norm(demand, axis=1)[:, 0]
    centre_share = float(np.abs(per_force[:, -2:]).max() / np.abs(per_force[:, :j]).max())
    rank = int(np.linalg.matrix_rank(per_force, rtol=_SMALL).max())
    return Inverse(rank, centre_share, missed, _translation_energy())


def _translation_energy() -> float:
    """Return eq. 31's ``p_dot^T M_p p_dot / 2`` with M_p = m I_2, over the kinetic energy of the chain."""
    robot = SimulatedRobot(replace(MUSCLE), 1, 1)
    robot.state.centre_vel[0] = (1.0, 0.0)
    return float(0.5 * MUSCLE.links("link_mass_kg")[0] / robot.kinetic_energy()[0])


class Results(NamedTuple):
    """Results of all runs of the study."""

    circle: PathRun
    """Circle by the published guidance."""
    square: PathRun
    """Square with look-ahead along the path."""
    published_square: PathRun
    """Square by the published guidance, with sharper turns."""
    gait_m_s: float
    """Speed of the gait with the amplitude and frequency of section 3, joint motion imposed."""
    inverse: Inverse


def length_range_mm(run: PathRun) -> tuple[FloatArray, FloatArray]:
    """Return shortest and longest length of each muscle (J, 2) [mm], left and right, over the whole run."""
    length = 1e3 * run.muscle_length_m
    return length.min(axis=0), length.max(axis=0)
