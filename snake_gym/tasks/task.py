"""What a task is: its settings, where the robot starts, where it shall go, how a step is scored, when an episode ends.

A task holds the truth of W worlds and may use it, for scores and ends. What a policy is shown of it is the ``Goal``,
and the signals for which it has observation columns. Everything that changes lies in arrays whose first axis counts
worlds. The settings (``EnvConfig``) make the task; ``registry`` gives them the name under which Gymnasium finds both.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snake_gym.config import ConfigError, Settings
from snake_gym.config.errors import show
from snake_gym.config.settings import Positive, PositiveCount, Share
from snake_gym.interface.actions import ActionConfig
from snake_gym.interface.observations import ObservationConfig
from snake_gym.physics.state import ChainState, Obstacles
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.measurement import Goal
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.faults import FaultConfig
from snake_gym.simulation.randomisation import DrawnQuantities, Randomisation, RandomisationConfig
from snake_gym.simulation.sensors import SensorConfig, SensorSuite
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.tasks.costs import CostConfig
from snake_gym.tasks.privileged import check_privileged

BoolArray = NDArray[np.bool_]
Point = Literal["centre", "head"]
FARTHEST_M = 1e6
"""Largest coordinate of a place [m]: farther away, a position is no finer than 1e-10 m."""
_ROUNDING = 1e-9
"""Rounding of sums over an episode, as a share of a bound."""


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
    observation: ObservationConfig = dataclasses.field(default_factory=ObservationConfig)
    difficulty: Share = 1.0
    """Share of what makes an episode hard: 1: all of it, as set; 0: no faults, no randomisation, the widest fields and
    straightest ways. Start, course, commands and sensors' own noise stay random (`at_difficulty` of the settings).
    `env.unwrapped.set_difficulty` changes it for the next episodes."""

    def check(self) -> None:
        check_privileged(self.observation.privileged, self.randomisation)

    def without_privileged(self) -> EnvConfig:
        """The same env for a policy alone, whose observations have no privileged part."""
        return dataclasses.replace(self, observation=dataclasses.replace(self.observation, privileged=()))

    def load_robot(self) -> RobotSpec:
        """The robot's specification, checked against the other settings."""
        spec = load_robot(self.robot)
        group = "env"
        try:
            self.faults.check_robot(spec)
            self.randomisation.check_robot(spec)
            group = "env.sensors"
            self.sensors.encoder_faults.check_joints(spec.n_joints)
        except ValueError as error:
            raise ConfigError(f"{group}.{error}") from None
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
        scale adds it, and its ``Task.follow`` takes it over.
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

    def make_robot(self, spec: Any, n_worlds: int, task: Task) -> Any:
        """The W robots of the task: a ``SimulatedRobot``, or what has the same methods and state."""
        return SimulatedRobot(spec, n_worlds, self.n_threads, task.obstacles)

    def make_randomisation(self, spec: Any, robot: Any) -> DrawnQuantities:
        """What varies from episode to episode, of the W robots."""
        return Randomisation(self.randomisation, spec, robot)

    def make_sensors(self, spec: RobotSpec, n_worlds: int) -> SensorSuite:
        """The sensors of W robots."""
        return SensorSuite(self.sensors, n_worlds, spec.n_joints, reveal_faults=self.faults.reveal)


def check_place(xy: Any) -> FloatArray:
    """Return a place (2,) [m] on the ground. Raises ConfigError unless it is one."""
    try:
        place = np.asarray(xy, np.float64)
    except (TypeError, ValueError):
        place = np.zeros(0)
    if place.shape != (2,) or not (np.abs(place) <= FARTHEST_M).all():
        raise ConfigError(f"the place is {show(xy)}; expected two coordinates [m] of at most {FARTHEST_M:g}")
    return place


class Start(NamedTuple):
    """Where the robots of M worlds begin."""

    point_xy: FloatArray
    """(M, 2) [m] the tracked point."""
    head_angle: FloatArray
    """(M,) [rad] of the head link."""


class Scenery(NamedTuple):
    """What lies in one world, for pictures."""

    features: FloatArray
    """(k, 6) obstacles, see ``physics.state.Obstacles``."""
    route_xy: FloatArray
    """(r, 2) [m] the way to the goal."""


class Record(NamedTuple):
    """A number that a task keeps for each episode: an info, and part of the state."""

    unit: str
    meaning: str
    start: float = 0.0
    """Its value when an episode begins."""


class Task(ABC):
    """One task in W worlds. The goal is the current target, unless a subclass shows something else.

    ``reward``: dataclass of weights, one for each reward term; the reward is the sum of weight times term.
    ``n_targets`` K: places to reach in each world, each reached when the ``tracked_point`` is within ``radius_m``.
    """

    stream: ClassVar[str] = "task"
    """Name of the random streams that ``begin`` gets its numbers from."""
    score: ClassVar[str] = "progress_m"
    """Name of the info by which policies are compared: "progress_m", "is_success" or a record, the more the better."""
    columns: tuple[str, ...] = ()
    """Registered observation columns of this task, to which ``standard`` in ``observation.columns`` refers too. Where
    they depend on the settings, the class has all of them, an instance those that its settings give."""
    records: ClassVar[Mapping[str, Record]] = {"progress_m": Record("m", "way made so far")}
    """What is kept of each episode, ``progress_m`` among them; the arrays are ``record[name]``, written in place."""
    further_infos: ClassVar[Mapping[str, tuple[str, str]]] = {"is_success": ("bool", "all targets have been reached")}
    """Unit and meaning of those ``infos`` that are no records, ``is_success`` among them."""
    commands_speed: bool = False
    """Whether the goal has a speed, which a gait below the policy then holds."""
    obstacles: Obstacles | None = None
    """What the robots may touch: the same arrays for good, rewritten in place by ``begin``; None: nothing."""
    robot: SimulatedRobot
    """The robots, for their true parameters; the env sets it before the first episode."""

    def __init__(
        self, reward: Any, n_worlds: int, n_targets: int = 1, radius_m: float = 0.1, tracked_point: Point = "centre"
    ) -> None:
        self.weights: Mapping[str, float] = dataclasses.asdict(reward)
        self.radius_m = radius_m
        self.tracked_point: Point = tracked_point
        self.n_targets = n_targets
        self.targets_xy: FloatArray = np.zeros((n_worlds, n_targets, 2))
        """(W, K, 2) [m] the places to reach, in order."""
        self.index = np.zeros(n_worlds, np.int64)
        """(W,) current target; equal to the number of targets reached."""
        self.record: dict[str, FloatArray] = {name: np.full(n_worlds, r.start) for name, r in self.records.items()}
        self._rows = np.arange(n_worlds)
        self._goal = Goal(np.zeros((n_worlds, 2)), np.zeros(n_worlds, bool))

    @property
    def n_random(self) -> int:
        """Random numbers that ``begin`` needs per world."""
        return 0

    def follow(self, config: Any) -> None:  # noqa: B027
        """Let ``begin`` follow the settings ``config``: those that made the task, at some difficulty.

        Raises ConfigError for what cannot be made.
        """

    @abstractmethod
    def begin(self, joint_angle: FloatArray, heading: FloatArray, u: FloatArray, rows: NDArray[np.int64]) -> Start:
        """New episodes in the worlds of ``rows`` (M indices); returns where their robots are to start.

        ``joint_angle`` (M, J) [rad]: the robots' shape; ``heading`` (M,) [rad]: a direction that the task may use or
        not; ``u`` (M, n_random): numbers in [0, 1).
        """

    def placed(self, rows: NDArray[np.int64]) -> None:  # noqa: B027
        """Take note that the robots of new episodes in the worlds of ``rows`` stand where they start."""

    @abstractmethod
    def evaluate(
        self, before_xy: FloatArray, state: ChainState, action: FloatArray, work_j: FloatArray, live: BoolArray
    ) -> tuple[dict[str, FloatArray], BoolArray]:
        """Raw reward terms (dict of (W,), named as in ``weights``) of one step and which worlds are complete.

        ``before_xy`` (W, 2) [m]: tracked point at the step's start; ``action`` (W, A); ``work_j`` (W,) [J]: positive
        actuator work of the step; ``live`` (W,): worlds that took the step.
        """

    @property
    def progress_m(self) -> FloatArray:
        """(W,) [m] way made so far."""
        return self.record["progress_m"]

    def restart(self, rows: NDArray[np.int64]) -> None:
        """Targets reached and records of new episodes in the worlds of ``rows``; for ``begin``."""
        self.index[rows] = 0
        for name, values in self.record.items():
            values[rows] = self.records[name].start

    def infos(self) -> dict[str, NDArray[Any]]:
        """What is told of each world's episode so far: fresh arrays (W,)."""
        records = {name: values.copy() for name, values in self.record.items()}
        return {**records, "is_success": self.index >= self.n_targets}

    def point(self, state: ChainState) -> FloatArray:
        """True position (W, 2) [m] of the tracked point."""
        return state.head_xy if self.tracked_point == "head" else state.centre_xy

    def update_goal(self, measured_xy: FloatArray, rows: Any) -> None:  # noqa: B027
        """Make ``goal`` follow from where the tracked point was measured (M, 2) [m] in the worlds of ``rows``."""

    @property
    def target_moves(self) -> bool:
        """Whether a person may move the current target with ``move_target``."""
        return self.n_targets > 0

    def caption(self, world: int) -> str:
        """Return what a picture of the world says of its task beside the progress; "": where its targets are."""
        return ""

    def move_target(self, world: int, xy: Any) -> None:
        """Move the current target of one world to ``xy`` (2,) [m], during the episode.

        Raises ConfigError where there is none, or the task's targets follow from something else.
        """
        place = check_place(xy)
        if self.n_targets == 0:
            raise ConfigError("this task has no target of its own to be moved")
        if self.index[world] >= self.n_targets:
            raise ConfigError("all targets are reached; no target is left to be moved")
        self.targets_xy[world, self.index[world]] = place
        self.restored()

    def goal(self) -> Goal:
        """Where to go now; inactive where all targets are reached. Not to be written to."""
        return self._goal

    def signals(self) -> Mapping[str, FloatArray]:
        """What ``columns`` are made from beside measurement and goal: arrays (W, ...) by name."""
        return {}

    def scenario(self) -> dict[str, NDArray[Any]]:
        """What the present episodes were given; copies (W, ...)."""
        return {"targets_xy": self.targets_xy.copy()}

    def scenery(self, world: int) -> Scenery | None:
        """What lies in one world; None: nothing but targets."""
        return None

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that changes, by name: the arrays themselves."""
        return {"targets_xy": self.targets_xy, "target_index": self.index, **self.record}

    def restored(self) -> None:
        """Make the rest follow after the arrays of ``state_arrays`` were written to; here, the goal."""
        current = np.minimum(self.index, self.n_targets - 1)
        self._goal = Goal(self.targets_xy[self._rows, current], self.index < self.n_targets)
