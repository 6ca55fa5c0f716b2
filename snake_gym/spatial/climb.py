"""Task of spatial robots: climb a pole, wound around it as a spiral that rolls, while a joint fails."""

from __future__ import annotations

import math
from dataclasses import field, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snake_gym.config import ConfigError
from snake_gym.config.settings import NonNegative, Positive
from snake_gym.interface.actions import ActionKind
from snake_gym.robot.measurement import Goal
from snake_gym.robot.recorded_body import Ground, Pole
from snake_gym.robot.spec import FloatArray
from snake_gym.spatial.gaits import GAITS, Wave
from snake_gym.spatial.kinematics import wind_pose
from snake_gym.spatial.spec import SpatialSpec
from snake_gym.spatial.waypoints import SpatialActionConfig, SpatialEnvConfig
from snake_gym.tasks.task import BoolArray, NewEpisodes, Record, Scenery, Start, Step, Task

ROBOT = "configs/robot/spatial/snake_robot_iii_climber.yaml"
GAIT = {
    "kind": "multimodal", "mode": "SRL", "start": "wound", "frequency_rad_s": 2.0,
    "spiral_radius_m": 0.2, "spiral_pitch_m": 0.06,
}  # fmt: skip
"""A spiral for the pole and the robot of the default."""
LOOSE = 1.08
"""Radius of the spiral of a robot that is put on the pole, to the distance of its axis: links are straight."""


class ClimbActionConfig(SpatialActionConfig):
    """What an action means to a climbing robot: by default a correction to the spiral."""

    kind: ActionKind = "residual"
    controller: dict[str, Any] = field(default_factory=lambda: dict(GAIT))


class ClimbConfig(SpatialEnvConfig):
    """A spatial snake robot climbs a pole, by default with 0 to 3 joints locked.

    It begins wound around the pole at a random phase of its gait, its servos pressing. It has fallen when its centre of
    mass is ``fall_m`` below the highest place so far: that ends the episode, and the height gained is lost. Terminated
    at the pole's top as well. The goal is the pole's axis.
    """

    robot: str | dict[str, Any] = ROBOT
    action: ClimbActionConfig = field(default_factory=ClimbActionConfig)
    time_limit_s: Positive = 30.0
    pole_radius_m: Annotated[float, Field(ge=0.05, le=1.0)] = 0.17
    """Radius of the pole."""
    pole_height_m: Annotated[float, Field(ge=1.0, le=100.0)] = 10.0
    """Height of the pole."""
    start_height_m: NonNegative = 1.0
    """Height of the robot's lowest link when an episode begins."""
    spiral_radius_m: Positive = 0.2
    """Radius of the spiral that its servos aim at then; they press if it is less than what the pole leaves."""
    spiral_pitch_m: NonNegative = 0.06
    """Rise of that spiral per radian."""
    climb_m: Positive = 2.0
    """Height to be gained for a success."""
    fall_m: Positive = 0.5
    """Way down, from the highest place so far, that is a fall."""

    def ground(self) -> Ground:
        """A plane and the pole."""
        half = 0.5 * self.pole_height_m
        return Ground(poles=(Pole((0.0, 0.0, half), self.pole_radius_m, half),))

    def make_task(self, spec: Any, n_worlds: int) -> Task:
        start, needed = self.start_height_m, self.start_height_m + self.climb_m + spec.length_m
        if self.pole_height_m < needed:
            why = f"start_height_m {start:g}, climb_m {self.climb_m:g} and the robot"
            raise ConfigError(f"env.pole_height_m is {self.pole_height_m:g}; expected at least {needed:g}, for {why}")
        return Climb(self, spec, n_worlds)


class Climb(Task):
    """Heights of W robots on poles."""

    stream = "climb"
    columns = ("head_up", "head_height", "gait_mode")
    moves_target = False
    n_random = 1
    records = {  # noqa: RUF012
        "progress_m": Record("m", "height gained so far; at most 0 after a fall"),
        "is_success": Record("bool", "`climb_m` have been gained, and the robot has not fallen", False),
        "fell": Record("bool", "the robot has fallen", False),
    }

    def __init__(self, config: ClimbConfig, spec: SpatialSpec, n_worlds: int) -> None:
        super().__init__(config.reward, n_worlds, 0)
        self._climb, self._spec = config, spec
        self.phase: FloatArray = self.keep("start_phase", 0.0)
        """(W,) [rad] of the spiral at the start."""
        self.height: FloatArray = self.keep("height", math.inf)
        """(W,) [m] of the centre of mass after the last step; inf: not known yet, on a real robot."""
        self.highest: FloatArray = self.keep("highest", 0.0)
        """(W,) [m] most height gained."""
        self.scenario |= {"start_phase": self.phase}

    def begin(self, new: NewEpisodes) -> Start:
        self.phase[new.rows] = 2.0 * np.pi * new.u[:, 0]
        return Start(np.zeros((new.rows.size, 2)), new.heading, partial(self._wind, new.rows))

    def _wind(self, rows: NDArray[np.int64]) -> None:
        """Wind robots loosely around their poles, after all were placed on the ground; their servos aim to press."""
        robot: Any = self.robot
        config, spec = self._climb, self._spec
        gait = replace(GAITS["SRL"], spiral_pitch_m=config.spiral_pitch_m)
        loose = LOOSE * (config.pole_radius_m + spec.rest_radius_m)
        waves = [Wave(replace(gait, spiral_radius_m=radius), spec) for radius in (loose, config.spiral_radius_m)]
        phase = self.phase[rows, None]
        angle, aim = (wave.amplitude_rad * np.cos(wave.phase_rad + phase) for wave in waves)
        quaternions, bases = (np.array(part) for part in zip(*(wind_pose(spec, one) for one in angle), strict=True))
        bases[:, 2] += config.start_height_m + spec.rest_radius_m
        robot.set_pose(angle, quaternions, bases, np.isin(self.rows, rows))
        robot.servos.command[rows] = aim
        self.height[rows] = robot.state.centre_z[rows]

    def evaluate(self, step: Step) -> tuple[dict[str, FloatArray], BoolArray]:
        config, state, live, record = self._climb, step.state, step.live, self.record
        climbed = np.where(live & np.isfinite(self.height), state.centre_z - self.height, 0.0)
        np.copyto(self.height, state.centre_z, where=live)
        gained = record["progress_m"]
        gained += climbed
        np.maximum(self.highest, gained, out=self.highest)
        fell = live & (gained < self.highest - config.fall_m)
        lost = np.where(fell, np.maximum(gained, 0.0), 0.0)
        gained -= lost
        up = live & ~record["is_success"] & (gained >= config.climb_m)
        record["fell"] |= fell
        record["is_success"][:] = (record["is_success"] | up) & ~record["fell"]
        terms = {"progress": climbed - lost, "target": up.astype(np.float64), **step.efforts()}
        return terms, fell | (state.centre_z > config.pole_height_m - 0.5 * self._spec.length_m)

    def goal(self) -> Goal:
        return Goal(np.zeros((self.rows.size, 2)), np.ones(self.rows.size, bool))

    def scenery(self, world: int) -> Scenery:
        pole = np.array([[0.0, 0.0, 1.0, 0.0, 0.0, self._climb.pole_radius_m]])
        return Scenery(pole, np.zeros((1, 2)), f"up the pole, success at {self._climb.climb_m:g} m")
