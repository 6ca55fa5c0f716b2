"""Targets one after the other on free ground and among pegs, and a trajectory followed without a break."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from papers.drives import Drive, Follower, PathGuide, TargetSequence, drive, place
from snake_gym.controllers import make_controller
from snake_gym.controllers.line_of_sight import LineOfSight, LineOfSightConfig
from snake_gym.obstacles.fields import FieldConfig, FieldMaker
from snake_gym.obstacles.grid import empty_arrays, with_ends, write_world
from snake_gym.obstacles.polyline import Path
from snake_gym.robot.presets import PEGBOARD
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.tasks.obstacle_field import robot_extent

TARGETS = ((2.0, 1.0), (4.0, 0.6), (5.2, -1.0), (3.8, -2.4), (1.6, -2.0))
"""[m] on free ground; the paper's are not given."""
RADIUS_M = 0.15
"""A target is reached at this distance of the centre of mass."""
SPACING_M = 0.8
"""Between targets on the way through a pegboard."""
LOOKAHEAD_M = 0.7
"""On the trajectory: half a robot."""
_SECONDS_PER_M = 20.0
"""Time allowed for a course."""


@dataclass(frozen=True)
class Course:
    """Targets and what the robots made of them."""

    targets_xy: FloatArray
    """(W, K, 2) [m]."""
    features: tuple[FloatArray, ...]
    """W times (k, 6) obstacles."""
    run: Drive

    @property
    def complete(self) -> float:
        """Share of the W robots that reached every target."""
        return float((self.run.reached[-1] == self.targets_xy.shape[1]).mean())


def free_course(controller: Mapping[str, Any], advance: Callable[[float], None], n_targets: int = 5) -> Course:
    """The sequence of ``TARGETS`` on free ground."""
    targets = np.array(TARGETS[:n_targets])[None]
    return _visit(SimulatedRobot(PEGBOARD, 1, 1), controller, targets, (np.zeros((0, 6)),), np.zeros(1), advance)


def pegboard_courses(
    n_boards: int, difficulty: float, seed: int, controller: Mapping[str, Any], advance: Callable[[float], None]
) -> Course:
    """Targets every ``SPACING_M`` on the way through random pegboards; the robot sees the next target only."""
    spec = PEGBOARD
    extent = robot_extent(spec, math.radians(20.0), math.radians(30.0), "centre")
    maker = FieldMaker(FieldConfig(kind="pegboard", difficulty=difficulty), extent)
    half, radius = float(spec.links("link_half_length_m").max()), float(spec.links("link_radius_m").max())
    skin = 0.5 * half
    reach = half + radius + skin
    arrays = empty_arrays(n_boards, maker.bounds.with_ends(), reach, skin)
    targets, shown = [], []
    for board in range(n_boards):
        field = maker.make(np.random.default_rng(seed + board))
        write_world(arrays, board, with_ends(field.features), reach)
        path = Path(field.route[np.r_[True, np.any(np.diff(field.route, axis=0) != 0.0, axis=1)]])
        count = math.ceil(3.0 * spec.length_m / SPACING_M)
        targets.append(path.place(path.length_m * np.arange(1, count + 1) / count))
        shown.append(field.features)
    robot = SimulatedRobot(spec, n_boards, 1, arrays)
    return _visit(robot, controller, np.stack(targets), tuple(shown), np.zeros(n_boards), advance)


def _visit(
    robot: SimulatedRobot,
    controller: Mapping[str, Any],
    targets: FloatArray,
    features: tuple[FloatArray, ...],
    heading: FloatArray,
    advance: Callable[[float], None],
) -> Course:
    n = robot.n_worlds
    place(robot, np.zeros((n, robot.spec.n_joints)), heading, np.zeros((n, 2)))
    guide = TargetSequence(targets, RADIUS_M)
    way = np.linalg.norm(np.diff(targets, axis=1, prepend=0.0), axis=2).sum(axis=1).max()
    done = Follower(make_controller(controller, robot.spec), guide)
    run = drive(
        robot, done, float(_SECONDS_PER_M * way), advance, lambda: bool((guide.index == targets.shape[1]).all())
    )
    return Course(targets, features, run)


def figure_eight(size_m: float = 3.0) -> Path:
    """A figure of eight, ``x = a sin s, y = a sin s cos s``: it starts in its crossing and turns both ways."""
    s = np.linspace(0.0, 2.0 * math.pi, 720, endpoint=False)
    return Path(size_m * np.stack([np.sin(s), np.sin(s) * np.cos(s)], axis=1), closed=True)


def follow_trajectory(
    controller: Mapping[str, Any], duration_s: float, advance: Callable[[float], None], spec: RobotSpec = PEGBOARD
) -> Drive:
    """The centre of mass along the figure of eight without a break, guided by line of sight."""
    robot, path = SimulatedRobot(spec, 1, 1), figure_eight()
    direction = path.tangent(np.zeros(1))[0]
    heading = np.array([math.atan2(direction[1], direction[0])])
    place(robot, np.zeros((1, robot.spec.n_joints)), heading, path.place(np.zeros(1)))
    sight = LineOfSight(path, LineOfSightConfig(LOOKAHEAD_M, "path"))
    return drive(robot, Follower(make_controller(controller, spec), PathGuide(sight, 1)), duration_s, advance)
