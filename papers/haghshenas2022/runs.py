"""The two paths of haghshenas2022, section 3, and the open gait, on the shipped muscle robot.

Frame: world x-y plane; the head link's centre begins at the origin, the robot straight along x and at rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from papers.drives import Drive, Follower, PathGuide, TargetSequence, drive, place
from papers.haghshenas2022.muscle_pair import muscle_force, muscle_length, muscle_lever
from snake_gym.controllers import make_controller
from snake_gym.controllers.line_of_sight import LineOfSight, LineOfSightConfig
from snake_gym.obstacles.polyline import Path, circle
from snake_gym.robot.presets import MUSCLE
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.simulated_robot import SimulatedRobot

ROBOT = replace(MUSCLE, control_dt_s=0.02)
"""The shipped robot at 50 commands per second: its gait takes half a second here."""
SPEED_M_S = 0.275
LOOKAHEAD_M = 1.5
CIRCLE = circle((1.0, 4.5), 4.2, (0.0, 0.0))
SQUARE = Path([[-3.4, 0.1], [5.4, 0.1], [5.4, 8.9], [-3.4, 8.9]], closed=True)
"""Side 8.8 m; its place is not given: about the centre of the circle."""
_SAMPLES = 4
"""In each control step."""
SETTLED_S = 15.0
"""From here on the speed counts as settled (the published transition takes 5 s)."""

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
"""Sharper turns, for the square by the published guidance."""

PathName = Literal["circle", "square"]
PATHS: dict[PathName, Path] = {"circle": CIRCLE, "square": SQUARE}
Ahead = Literal["tangent", "path"]


@dataclass(frozen=True)
class PathRun:
    """One robot along one path."""

    path: PathName
    ahead: Ahead
    """Look-ahead along the tangent (as published) or along the path."""
    run: Drive

    @property
    def settled(self) -> np.ndarray:
        """(T,) samples after the start."""
        return self.run.time_s > SETTLED_S

    @property
    def speed(self) -> FloatArray:
        """(T,) [m/s] of the centre of mass along the mean direction of the links."""
        return self.run.forward_m_s[:, 0]

    @property
    def rise_s(self) -> float:
        """From 10 % to 90 % of the speed wanted [s]; NaN if it does not get there."""
        passed = [np.flatnonzero(self.speed >= share * SPEED_M_S) for share in (0.1, 0.9)]
        if not all(first.size for first in passed):
            return math.nan
        return float(self.run.time_s[passed[1][0]] - self.run.time_s[passed[0][0]])

    @property
    def muscle_length_m(self) -> FloatArray:
        """(T, J, 2) [m] left, right."""
        return muscle_length(MUSCLE.actuator.muscle, self.run.joint_angle[:, 0])

    @property
    def muscle_force_n(self) -> FloatArray:
        """(T, J, 2) [N] tension of the left and right muscles, co-contraction included."""
        return muscle_force(MUSCLE.actuator.muscle, self.muscle_length_m, self.run.muscle_pressure[:, 0])

    @property
    def net_force_n(self) -> FloatArray:
        """(T, J) [N] that one muscle alone would have to pull with for the joint's torque: right positive."""
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
    """The muscle robot along ``path`` for ``duration_s`` [s], from rest."""
    sight = LineOfSight(PATHS[path], LineOfSightConfig(LOOKAHEAD_M, ahead))
    follower = Follower(make_controller(controller, ROBOT), PathGuide(sight, 1))
    return PathRun(path, ahead, drive(_robot(), follower, duration_s, advance, samples=_SAMPLES))


def gait_speed(frequency_rad_s: float, duration_s: float = 12.0) -> float:
    """Mean speed [m/s] along x of the gait at a fixed frequency, straight ahead, over the last half."""
    settings = {
        "kind": "pfl",
        **GAIT,
        "error_loop": "actuator",
        "frequency_rad_s": frequency_rad_s,
        "heading_gain": 0.4,
    }
    far = TargetSequence(np.array([[[1e3, 0.0]]]), 0.1)
    run = drive(_robot(), Follower(make_controller(settings, ROBOT), far), duration_s)
    half = len(run.time_s) // 2
    way = run.centre_xy[-1, 0] - run.centre_xy[half, 0]
    return float(way[0] / (run.time_s[-1] - run.time_s[half]))


def _robot() -> SimulatedRobot:
    robot = SimulatedRobot(ROBOT, 1, 1)
    head = float(MUSCLE.length_m / 2 - MUSCLE.links("link_half_length_m")[-1])
    place(robot, np.zeros((1, MUSCLE.n_joints)), np.zeros(1), np.array([[-head, 0.0]]))
    return robot
