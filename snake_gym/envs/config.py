"""Settings of the env ``SnakeGym/Waypoints-v0``; every default of it is written here or in the parts named here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from snake_gym.config import ConfigError, build
from snake_gym.interface.actions import ActionConfig
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.faults import FaultConfig
from snake_gym.simulation.sensors import SensorConfig
from snake_gym.tasks.waypoints import CourseConfig, RewardConfig


@dataclass(frozen=True)
class StartConfig:
    """How an episode begins: at rest, bent as one moment of a serpenoid wave, the tracked point at the origin."""

    amplitude_rad: float = math.radians(20.0)
    phase_shift_rad: float = math.radians(30.0)
    random: bool = True
    """Random phase of the wave and random heading; else phase 0 and head along x (sibilska2022)."""

    def __post_init__(self) -> None:
        if not (0.0 <= self.amplitude_rad <= math.pi and math.isfinite(self.phase_shift_rad)):
            raise ValueError(f"start.amplitude_rad is {self.amplitude_rad:g}; expected in [0, pi]")


@dataclass(frozen=True)
class WaypointsConfig:
    """Everything that can be set in ``SnakeGym/Waypoints-v0``."""

    robot: str | dict[str, Any] = "resilient_servo"
    """A preset's name, the path of a robot's YAML file, or its settings."""
    action: ActionConfig = field(default_factory=ActionConfig)
    course: CourseConfig = field(default_factory=CourseConfig)
    start: StartConfig = field(default_factory=StartConfig)
    faults: FaultConfig = field(default_factory=FaultConfig)
    sensors: SensorConfig = field(default_factory=SensorConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    time_limit_s: float = 60.0
    stagger: bool = False
    """Vector env: the first episodes end at up to 32 times spread over the time limit: worlds are not all in step."""
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
        if round(steps) < 1 or abs(steps - round(steps)) > 1e-9 * steps:
            near = max(round(steps), 1) * spec.control_dt_s
            raise ConfigError(
                f"time_limit_s is {self.time_limit_s:g}; expected a multiple of the robot's control_dt_s "
                f"{spec.control_dt_s:g} (nearest: {near:g})"
            )
        return round(steps)


def as_config(config: WaypointsConfig | Mapping[str, Any] | None) -> WaypointsConfig:
    """The settings as a checked object."""
    if isinstance(config, WaypointsConfig):
        return config
    return build(WaypointsConfig, dict(config or {}), "env")
