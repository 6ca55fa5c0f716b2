"""Task of spatial robots: visit targets on the ground one after another, by any of five gaits or by their joints.

The course, its rewards and its records are those of planar robots (``waypoints``); the robot and its sensors are those
of ``snake_gym.spatial``, which needs MuJoCo.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from snake_gym.config import ConfigError, require
from snake_gym.interface.actions import ActionConfig, ActionKind
from snake_gym.interface.observations import Seen, register_column
from snake_gym.robot.protocol import Robot
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.randomisation import DrawnQuantities
from snake_gym.simulation.sensors import SensorSuite
from snake_gym.spatial.gaits import MODES
from snake_gym.spatial.spec import GAIT, load_spatial_robot
from snake_gym.tasks.task import EnvConfig, StartConfig, Task
from snake_gym.tasks.waypoints import CourseConfig, Distance, RewardConfig, Waypoints

ROBOT = "configs/robot/spatial/snake_robot_iii.yaml"
VARIED = (
    "friction_along", "mass", "servo_gain", "servo_damping", "torque_limit", "speed_limit", "supply_voltage",
    "joint_friction_nm",
)  # fmt: skip
"""Quantities of the randomisation that spatial robots have."""


@register_column("head_up", "1", "direction of the vertical in the head's frame, from its inertial sensor", 3)
def head_up(seen: Seen) -> FloatArray:
    up = seen.measurement.head_up_h
    return np.array([0.0, 0.0, 1.0]) if up is None else up


@register_column("head_height", "m", "height of the head", needs="a spatial robot")
def head_height(seen: Seen) -> FloatArray:
    height = seen.measurement.head_z_w
    return np.zeros(1) if height is None else height[:, None]


@register_column(
    "gait_mode", "1", "1 for the mode that the controller below the policy is in, 0 for the others",
    lambda layout: len(MODES) * ("mode" in layout.controller_signals), needs="a controller with modes below the policy",
)  # fmt: skip
def gait_mode(seen: Seen) -> FloatArray:
    return (seen.signals["mode"][:, None] == np.arange(len(MODES))).astype(np.float64)


class SpatialActionConfig(ActionConfig):
    """What an action means to a spatial robot: the same, on the network of five gaits."""

    kind: ActionKind = "gait"
    controller: dict[str, Any] = field(default_factory=lambda: dict(GAIT))

    def check(self) -> None:
        """Raise ValueError for settings that the gaits of spatial robots have no use for."""
        super().check()
        if self.kind == "gait" and self.controller.get("guided"):
            raise ValueError(
                "action.controller.guided is true, but actions set pace and steering; expected residual ones"
            )


class SpatialStartConfig(StartConfig):
    """How an episode begins: straight."""

    amplitude_rad: Annotated[float, Field(ge=0.0, le=math.pi)] = 0.0


class SpatialCourseConfig(CourseConfig):
    """Where the targets are, wider for longer robots."""

    max_turn_rad: Annotated[float, Field(ge=0.0, le=math.pi)] = math.pi / 2.0
    radius_m: Distance = 0.3


class SpatialEnvConfig(EnvConfig):
    """Settings that envs of spatial robots have in common."""

    read_robot: ClassVar[Any] = staticmethod(load_spatial_robot)
    robot: str | dict[str, Any] = ROBOT
    """The path of a spatial robot's YAML file, or its settings."""
    action: SpatialActionConfig = field(default_factory=SpatialActionConfig)
    start: SpatialStartConfig = field(default_factory=SpatialStartConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    view: Literal["beside", "camera_left", "camera_right"] = "beside"
    """Camera of ``render``; beside: it follows the robot; camera_left, camera_right: it is on the robot's head."""

    def check(self) -> None:
        super().check()
        if self.precision != "float64":
            raise ValueError(f"precision is {self.precision!r}; expected 'float64', in which MuJoCo computes")
        for name in self.randomisation.ranges:
            if name not in VARIED:
                raise ValueError(f"randomisation.{name} is set; of spatial robots vary {', '.join(VARIED)}")
        events = [event.joint for event in self.faults.events]
        if self.faults.second_share > 0.0 or len(set(events)) < len(events):
            what = "events has two of one joint" if events else f"second_share is {self.faults.second_share:g}"
            raise ValueError(f"faults.{what}; expected one fault a joint, as spatial robots have no second ones")
        if self.costs.contact_force_n is not None:
            raise ValueError("costs.contact_force_n is set; expected null, as spatial robots do not tell that force")

    def load_robot(self) -> Any:
        """The spatial robot's specification, checked against the other settings."""
        spec = super().load_robot()
        for name, limit in (("torque_limit", "torque_limit_nm"), ("speed_limit", "speed_limit_rad_s")):
            if name in self.randomisation.ranges and np.isinf(spec.joints(f"actuator.{limit}")).any():
                raise ConfigError(f"env.randomisation.{name} is set, but actuator.{limit} of {spec.name} is inf")
        return spec

    def make_robot(self, spec: Any, n_worlds: int, task: Task) -> Robot:
        """The W robots, on the ground of the task."""
        require("an env of spatial robots", "mujoco")
        from snake_gym.spatial.simulation import SpatialRobot

        return SpatialRobot(spec, n_worlds, self.n_threads, self.ground())

    def make_randomisation(self, spec: Any, robot: Any) -> DrawnQuantities:
        """What varies from episode to episode, of the W robots."""
        from snake_gym.spatial.randomisation import SpatialRandomisation

        return SpatialRandomisation(self.randomisation, spec, robot)

    def ground(self) -> Any:
        """The ground of all worlds; None: flat."""
        return None

    def make_sensors(self, spec: Any, n_worlds: int) -> SensorSuite:
        """The sensors of W spatial robots."""
        from snake_gym.spatial.sensors import SpatialSensors

        return SpatialSensors(self.sensors, n_worlds, spec.n_joints, reveal_faults=self.faults.reveal)


class SpatialWaypointsConfig(SpatialEnvConfig):
    """A spatial snake robot visits targets on flat ground, by default with 0 to 3 joints locked.

    A chain of alternating yaw and pitch joints crawls, winds and rolls in gravity on a ground with dry friction. Its
    actions are joint references, a residual on the network of five gaits, or the gait itself: which mode, how fast,
    steered how. The joints of ``faults`` fail, unknown to the policy. It is to bring its tracked point to one target
    after another. Terminated when the course is complete.
    """

    course: SpatialCourseConfig = field(default_factory=SpatialCourseConfig)

    def make_task(self, spec: Any, n_worlds: int) -> Task:
        return SpatialWaypoints(self.course, n_worlds, self.reward)


class SpatialWaypoints(Waypoints):
    """Targets and progress of W spatial robots, which also see where up is, and the gait's mode."""

    columns = (*Waypoints.columns, "head_up", "head_height", "gait_mode")
