"""What a task is: its settings, where the robot starts, where it shall go, how a step is scored, when an episode ends.

The settings (``EnvConfig``) make the task; ``registry`` gives them the name under which Gymnasium finds both. The task
begins episodes, evaluates each step, and says where to go. It knows the truth of W worlds, for scores and ends; a
policy is shown its goal, and its signals where they have observation columns.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snake_gym.config import ConfigError, Settings, convert
from snake_gym.config.settings import Positive, PositiveCount, Share
from snake_gym.interface.actions import ActionConfig
from snake_gym.interface.observations import ObservationConfig
from snake_gym.physics.state import Obstacles
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.measurement import Goal
from snake_gym.robot.protocol import Robot
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.faults import FaultConfig
from snake_gym.simulation.randomisation import DrawnQuantities, Randomisation, RandomisationConfig
from snake_gym.simulation.sensors import SensorConfig, SensorSuite
from snake_gym.simulation.simulated_robot import Precision, SimulatedRobot
from snake_gym.tasks.costs import CostConfig
from snake_gym.tasks.privileged import check_privileged

BoolArray = NDArray[np.bool_]
Point = Literal["centre", "head"]
FARTHEST_M = 1e6
"""Largest coordinate of a place [m]: farther away, a position is no finer than 1e-10 m."""
Coordinate = Annotated[float, Field(ge=-FARTHEST_M, le=FARTHEST_M)]


class StartConfig(Settings):
    """How an episode begins: at rest, bent as one moment of a serpenoid wave, where the task says."""

    amplitude_rad: Annotated[float, Field(ge=0.0, le=math.pi)] = math.radians(20.0)
    """Amplitude of the wave: largest joint angle."""
    phase_shift_rad: float = math.radians(30.0)
    """Phase shift of the wave from joint to joint."""
    random: bool = True
    """Random phase of the wave and random heading; else phase 0 and head along x (sibilska2022)."""


class EnvConfig(Settings, ABC):
    """Settings of every environment; those of a task are a subclass, which makes the task.

    Its docstring is the env's page: what the task is, and what it adds to observations and rewards.
    """

    read_robot: ClassVar[Any] = staticmethod(load_robot)
    """Reader of ``robot``, for planar or spatial ones."""
    robot: str | dict[str, Any] = "resilient_servo"
    """A preset's name, the path of a robot's YAML file, or its settings."""
    action: ActionConfig = dataclasses.field(default_factory=ActionConfig)
    start: StartConfig = dataclasses.field(default_factory=StartConfig)
    faults: FaultConfig = dataclasses.field(default_factory=FaultConfig)
    sensors: SensorConfig = dataclasses.field(default_factory=SensorConfig)
    randomisation: RandomisationConfig = dataclasses.field(default_factory=RandomisationConfig)
    costs: CostConfig = dataclasses.field(default_factory=CostConfig)
    time_limit_s: Positive = 60.0
    """Time until an episode is truncated; a whole number of the robot's control steps."""
    n_threads: PositiveCount | None = None
    """Threads for the physics; None: as many as the process may use (its cores, or OMP_NUM_THREADS)."""
    precision: Precision = "float64"
    """Numbers in the physics: float64, or float32 for almost twice the speed on ground without Coulomb friction."""
    observation: ObservationConfig = dataclasses.field(default_factory=ObservationConfig)
    difficulty: Share = 1.0
    """Share of what makes an episode hard: 1: all of it, as set; 0: no faults, no randomisation, the widest fields and
    straightest ways. Start, course, commands and sensors' own noise stay random (`at_difficulty` of the settings).
    `env.unwrapped.set_difficulty` changes it for the next episodes."""

    def check(self) -> None:
        check_privileged(self.observation.privileged, self.randomisation)
        for kind in ("offset", "slipped", "silent") if self.action.kind in ("pressure", "torque") else ():
            if kind in self.faults.present_kinds:
                raise ValueError(f"faults has {kind}, which acts on references; {self.action.kind} actions have none")

    def without_privileged(self) -> EnvConfig:
        """The same env for a policy alone: its observations have no privileged part."""
        return dataclasses.replace(self, observation=dataclasses.replace(self.observation, privileged=()))

    def load_robot(self) -> Any:
        """The robot's specification, checked against the other settings."""
        spec = self.read_robot(self.robot)
        group = "env"
        try:
            self.faults.check_robot(spec)
            if not spec.in_space:
                self.randomisation.check_robot(spec)
            group = "env.sensors"
            self.sensors.encoder_faults.check_joints(spec.n_joints)
        except ValueError as error:
            raise ConfigError(f"{group}.{error}") from None
        bend_rad, stop_rad = self.start.amplitude_rad, float(spec.joints("joint_stop_rad").min())
        if bend_rad > stop_rad:
            raise ConfigError(
                f"env.start.amplitude_rad is {bend_rad:g}; expected at most the robot's joint_stop_rad, {stop_rad:g}"
            )
        return spec

    def n_steps(self, spec: RobotSpec) -> int:
        """Control steps until truncation; raises unless the time limit is a whole number of them."""
        steps = self.time_limit_s / spec.control_dt_s
        if round(steps) < 1 or abs(steps - round(steps)) > 1e-9 * steps:
            near = max(round(steps), 1) * spec.control_dt_s
            raise ConfigError(
                f"env.time_limit_s is {self.time_limit_s:g}; expected a multiple of the robot's control_dt_s "
                f"{spec.control_dt_s:g} (nearest: {near:g})"
            )
        return round(steps)

    def at_difficulty(self, difficulty: float) -> Self:
        """Return these settings with the share ``difficulty`` of what makes an episode hard; 1: as they are.

        It scales the number of faults of joints and encoders, and the level of the randomisation. A task with more to
        scale adds it; ``Task.begin`` gets these settings.
        """
        encoder_faults = self.sensors.encoder_faults.at_share(difficulty)
        return replace(
            self,
            difficulty=1.0,
            faults=self.faults.at_share(difficulty),
            sensors=replace(self.sensors, encoder_faults=encoder_faults),
            randomisation=replace(self.randomisation, level=difficulty * self.randomisation.level),
        )

    @abstractmethod
    def make_task(self, spec: RobotSpec, n_worlds: int) -> Task:
        """The task of W worlds."""

    def make_robot(self, spec: Any, n_worlds: int, task: Task) -> Robot:
        """The W robots of the task."""
        return SimulatedRobot(spec, n_worlds, self.n_threads, task.obstacles, self.precision)

    def make_randomisation(self, spec: Any, robot: Any) -> DrawnQuantities:
        """What varies from episode to episode, of the W robots."""
        return Randomisation(self.randomisation, spec, robot)

    def make_sensors(self, spec: RobotSpec, n_worlds: int) -> SensorSuite:
        """The sensors of W robots."""
        return SensorSuite(self.sensors, n_worlds, spec.n_joints, reveal_faults=self.faults.reveal)


def check_place(xy: Any) -> FloatArray:
    """Return a place (2,) [m] on the ground. Raises ConfigError unless it is one."""
    return np.array(convert(tuple[Coordinate, Coordinate], xy, "place"))


class NewEpisodes(NamedTuple):
    """What was drawn for M episodes that begin."""

    rows: NDArray[np.int64]
    """(M,) their worlds."""
    config: Any
    """The task's settings at the difficulty of these episodes."""
    joint_angle: FloatArray
    """(M, J) [rad] the robots' shape."""
    heading: FloatArray
    """(M,) [rad] a random direction, for the task to use or not."""
    u: FloatArray
    """(M, n_random) random numbers in [0, 1)."""


class Start(NamedTuple):
    """Where the robots of M worlds begin."""

    point_xy: FloatArray
    """(M, 2) [m] the tracked point."""
    head_angle: FloatArray
    """(M,) [rad] of the head link."""
    placed: Callable[[], None] | None = None
    """Called when the robots stand there; None: nothing is left to do."""


class Step(NamedTuple):
    """One control step of W worlds, as it truly was."""

    goal: Goal
    """Where to go, during the step."""
    before_xy: FloatArray
    """(W, 2) [m] the tracked point when the step began."""
    point_xy: FloatArray
    """(W, 2) [m] the tracked point now."""
    state: Any
    """``ChainState`` of the robots now, of spatial robots theirs."""
    action: FloatArray
    """(W, A)."""
    work_j: FloatArray
    """(W,) [J] positive work of the actuators in the step."""
    live: BoolArray
    """(W,) worlds that took the step; in the others nothing moved and no reward is earned."""

    def efforts(self) -> dict[str, FloatArray]:
        """Return the reward terms that most tasks share: squared action, and work [J]."""
        return {"effort": (self.action * self.action).sum(axis=1) * self.live, "energy": self.work_j * self.live}


class Scenery(NamedTuple):
    """What pictures of one world show in addition to robot and targets."""

    features: FloatArray
    """(k, 6) obstacles, see ``physics.state.Obstacles``."""
    route_xy: FloatArray
    """(r, 2) [m] the way to the goal."""
    caption: str = ""
    """Text on where to go; "": how far the targets are."""


class Record(NamedTuple):
    """A number that a task keeps for each episode: an info, and part of the state."""

    unit: str
    meaning: str
    start: float = 0.0
    """Its value when an episode begins; its type is that of the array."""


class Task(ABC):
    """One task in W worlds. The goal is the current target, unless a subclass shows something else.

    ``reward``: dataclass of weights, one for each reward term; the reward is the sum of weight times term.
    ``n_targets`` K: places to reach in each world, each reached when the ``tracked_point`` is within ``radius_m``.
    """

    stream: ClassVar[str] = "task"
    """Name of the random streams of ``NewEpisodes.u``."""
    score: ClassVar[str] = "progress_m"
    """The record by which policies are compared, the more the better."""
    columns: tuple[str, ...] = ()
    """Registered observation columns of this task, to which ``standard`` in ``observation.columns`` refers too. Where
    they depend on the settings, the class has all of them, an instance those that its settings give."""
    records: Mapping[str, Record] = {
        "progress_m": Record("m", "way made so far"),
        "is_success": Record("bool", "all targets have been reached", False),
    }
    """The infos of each episode. A subclass names its own; these two are added."""
    n_random: int = 0
    """Random numbers for each new episode."""
    commands_speed: bool = False
    """Whether the goal has a speed, which a gait below the policy then holds."""
    moves_target: bool = True
    """Whether a person may move the current target with ``move_target``."""
    obstacles: Obstacles | None = None
    """What the robots may touch: the same arrays for good, rewritten in place by ``begin``; None: nothing."""
    robot: Robot
    """The robots, for their true parameters; the env sets it before the first episode."""

    def __init__(
        self, reward: Any, n_worlds: int, n_targets: int = 1, radius_m: float = 0.1, tracked_point: Point = "centre"
    ) -> None:
        self.weights: Mapping[str, float] = dataclasses.asdict(reward)
        self.radius_m = radius_m
        self.tracked_point: Point = tracked_point
        self.n_targets = n_targets
        self.rows = np.arange(n_worlds)
        self.arrays: dict[str, NDArray[Any]] = {}
        """The state: arrays (W, ...) by name, written in place."""
        self.starts: dict[str, float] = {}
        """Values of arrays when an episode begins; the others are for ``begin`` to write."""
        self.targets_xy: FloatArray = np.zeros((n_worlds, n_targets, 2))
        """(W, K, 2) [m] the places to reach, in order."""
        self.arrays["targets_xy"] = self.targets_xy
        self.scenario: dict[str, NDArray[Any]] = {"targets_xy": self.targets_xy}
        """What the present episodes were given: arrays (W, ...) of the state, or parts of them, by name."""
        self.index = self.keep("target_index", 0)
        """(W,) current target; equal to the number of targets reached."""
        self.records = {**Task.records, **self.records}
        self.record = {name: self.keep(name, record.start) for name, record in self.records.items()}

    def keep(self, name: str, start: float, *shape: int) -> NDArray[Any]:
        """Return a new array (W, *shape) of the state; each episode begins with ``start``, of the array's type."""
        self.arrays[name], self.starts[name] = np.full((self.rows.size, *shape), start), start
        return self.arrays[name]

    @abstractmethod
    def begin(self, new: NewEpisodes) -> Start:
        """Lay out new episodes, and return where their robots are to start. Raises ConfigError where it cannot.

        Arrays made by ``keep`` have their first values already.
        """

    @abstractmethod
    def evaluate(self, step: Step) -> tuple[dict[str, FloatArray], BoolArray]:
        """Return the raw reward terms of a step (dict of (W,), named as in ``weights``), and the complete worlds (W,).

        Writes the records, ``is_success`` among them.
        """

    def update_goal(self, measured_xy: FloatArray, rows: Any) -> None:  # noqa: B027
        """Note where the tracked point was measured (M, 2) [m] in the worlds of ``rows``, for what policies see.

        Called once when an episode begins, and after each step.
        """

    def goal(self) -> Goal:
        """Return where to go now, as the arrays say; inactive where all targets are reached."""
        current = np.minimum(self.index, self.n_targets - 1)
        return Goal(self.targets_xy[self.rows, current], self.index < self.n_targets)

    def signals(self) -> Mapping[str, FloatArray]:
        """Return what else ``columns`` are made from than measurement and goal: arrays (W, ...) by name."""
        return {}

    def move_target(self, world: int, xy: Any) -> None:
        """Move the current target of one world to ``xy`` (2,) [m], during the episode. Raises ConfigError."""
        place = check_place(xy)
        if not self.moves_target or self.index[world] >= self.n_targets:
            raise ConfigError("no target is left to be moved, or the task has none of its own")
        self.targets_xy[world, self.index[world]] = place

    def scenery(self, world: int) -> Scenery | None:
        """Return what pictures of one world show in addition to robot and targets; None: nothing."""
        return None

    def restored(self) -> None:  # noqa: B027
        """Make the rest follow after ``arrays`` were written to from outside."""


def begin_episodes(task: Task, new: NewEpisodes) -> Start:
    """Begin episodes: the state's rows get their first values, then the task lays out what is new."""
    for name, start in task.starts.items():
        task.arrays[name][new.rows] = start
    return task.begin(new)


def unkept(task: Task) -> dict[str, Any]:
    """Return copies of a task's attributes that are numbers or arrays, but no part of its state."""
    kept = {id(values) for values in task.arrays.values()}
    numbers = {name: value for name, value in vars(task).items() if isinstance(value, np.ndarray | int | float)}
    return {name: np.copy(value) for name, value in numbers.items() if id(value) not in kept}


def check_kept(task: Task, at_first: Mapping[str, Any]) -> None:
    """Raise ConfigError where an attribute of a user's task has changed that was not made by ``Task.keep``."""
    for name, value in unkept(task).items():
        if name not in at_first or not np.array_equal(value, at_first[name]):
            raise ConfigError(
                f"the task has changed its {name}, which no saved state holds; expected an array from "
                f"self.keep({name!r}, ...), written in place"
            )
