"""Settings of the environments; every default of them is written here or in the parts named here."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from snake_gym.config import ConfigError, apply_keywords
from snake_gym.interface.actions import ActionConfig
from snake_gym.obstacles.plans import FieldConfig
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.exteroception import ContactSensorConfig, RangeScanConfig, SensorSuite
from snake_gym.simulation.faults import FaultConfig
from snake_gym.simulation.sensors import SensorConfig
from snake_gym.tasks.obstacle_field import FieldRewardConfig, GoalConfig, ObstacleField, robot_extent
from snake_gym.tasks.task import Task
from snake_gym.tasks.waypoints import CourseConfig, RewardConfig, Waypoints

MAX_STEPS = 10_000_000
"""Longest episode, in control steps: weeks."""


@dataclass(frozen=True)
class StartConfig:
    """How an episode begins: at rest, bent as one moment of a serpenoid wave, the tracked point at the origin."""

    amplitude_rad: float = math.radians(20.0)
    phase_shift_rad: float = math.radians(30.0)
    random: bool = True
    """Random phase of the wave and random heading; else phase 0 and head along x (sibilska2022)."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.amplitude_rad <= math.pi:
            raise ValueError(f"start.amplitude_rad is {self.amplitude_rad:g}; expected in [0, pi]")
        if not math.isfinite(self.phase_shift_rad):
            raise ValueError(f"start.phase_shift_rad is {self.phase_shift_rad:g}; expected a finite number")


@dataclass(frozen=True)
class EnvConfig(ABC):
    """What can be set in every environment."""

    robot: str | dict[str, Any] = "resilient_servo"
    """A preset's name, the path of a robot's YAML file, or its settings."""
    action: ActionConfig = dataclasses.field(default_factory=ActionConfig)
    start: StartConfig = dataclasses.field(default_factory=StartConfig)
    faults: FaultConfig = dataclasses.field(default_factory=FaultConfig)
    sensors: SensorConfig = dataclasses.field(default_factory=SensorConfig)
    time_limit_s: float = 60.0
    n_threads: int | None = None
    """Threads for the physics; None: as many as the process may use."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.time_limit_s) and self.time_limit_s > 0.0):
            raise ValueError(f"time_limit_s is {self.time_limit_s:g}; expected finite and > 0")
        if self.n_threads is not None and self.n_threads < 1:
            raise ValueError(f"n_threads is {self.n_threads}; expected >= 1, or null for all")

    def load_robot(self) -> RobotSpec:
        """The robot's specification, checked against the other settings."""
        spec = load_robot(self.robot)
        try:
            self.faults.check_robot(spec)
            self.sensors.encoder_faults.check_joints(spec.n_joints)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        return spec

    def n_steps(self, spec: RobotSpec) -> int:
        """Control steps until truncation; raises unless the time limit is a whole number of them."""
        steps = self.time_limit_s / spec.control_dt_s
        if steps > MAX_STEPS * (1.0 + 1e-9):
            raise ConfigError(
                f"time_limit_s is {self.time_limit_s:g}; expected at most {MAX_STEPS * spec.control_dt_s:g} "
                f"({MAX_STEPS} control steps of this robot)"
            )
        if round(steps) < 1 or abs(steps - round(steps)) > 1e-9 * steps:
            near = max(round(steps), 1) * spec.control_dt_s
            raise ConfigError(
                f"time_limit_s is {self.time_limit_s:g}; expected a multiple of the robot's control_dt_s "
                f"{spec.control_dt_s:g} (nearest: {near:g})"
            )
        return round(steps)

    @abstractmethod
    def make_task(self, spec: RobotSpec, n_worlds: int) -> Task:
        """The task of W worlds."""

    def make_sensors(self, spec: RobotSpec, n_worlds: int) -> SensorSuite:
        """The sensors of W robots."""
        return SensorSuite(self.sensors, n_worlds, spec.n_joints)


@dataclass(frozen=True)
class WaypointsConfig(EnvConfig):
    """Everything that can be set in ``SnakeGym/Waypoints-v0``."""

    course: CourseConfig = dataclasses.field(default_factory=CourseConfig)
    reward: RewardConfig = dataclasses.field(default_factory=RewardConfig)

    def make_task(self, spec: RobotSpec, n_worlds: int) -> Task:
        """Courses of targets on a plane."""
        return Waypoints(self.course, n_worlds, self.reward)


@dataclass(frozen=True)
class ObstacleFieldConfig(EnvConfig):
    """Everything that can be set in ``SnakeGym/ObstacleField-v0``."""

    field: FieldConfig = dataclasses.field(default_factory=FieldConfig)
    goal: GoalConfig = dataclasses.field(default_factory=GoalConfig)
    reward: FieldRewardConfig = dataclasses.field(default_factory=FieldRewardConfig)
    contact_sensor: ContactSensorConfig = dataclasses.field(default_factory=ContactSensorConfig)
    range_scan: RangeScanConfig = dataclasses.field(default_factory=RangeScanConfig)

    def make_task(self, spec: RobotSpec, n_worlds: int) -> Task:
        """Random fields with a goal behind them."""
        start = self.start
        extent = robot_extent(spec, start.amplitude_rad, start.phase_shift_rad, self.goal.tracked_point)
        return ObstacleField(self.field, self.goal, self.reward, spec, extent, n_worlds)

    def make_sensors(self, spec: RobotSpec, n_worlds: int) -> SensorSuite:
        """Encoders, pose, contact forces and the scanner on the head."""
        return SensorSuite(self.sensors, n_worlds, spec.n_joints, self.contact_sensor, self.range_scan)


_ARGUMENTS = (
    "config", "render_mode", "max_episode_steps", "disable_env_checker", "num_envs", "autoreset_mode",
    "vectorization_mode", "vector_kwargs", "wrappers",
)  # fmt: skip
"""What ``make`` and ``make_vec`` take beside the settings."""
AnyConfig = TypeVar("AnyConfig", bound=EnvConfig)


def as_config(
    kind: type[AnyConfig], config: EnvConfig | Mapping[str, Any] | None, keywords: Mapping[str, Any]
) -> AnyConfig:
    """The settings as a checked object of the given kind: ``config`` with ``keywords`` laid over it."""
    if isinstance(config, EnvConfig) and not isinstance(config, kind):
        raise ConfigError(f"the settings are a {type(config).__name__}; this env expects a {kind.__name__}")
    return apply_keywords(kind, config, keywords, "env", _ARGUMENTS)
