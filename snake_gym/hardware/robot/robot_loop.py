"""Control loop of one real robot at a fixed rate; the order of a step is that of the simulated env:

    decode the action from the last measurement -> command the servos -> wait for the tick -> read servos and pose ->
    score by what was measured -> observe

Observation and action are those of ``interface``, so a policy trained in simulation runs here unchanged. The loop needs
numpy and a ``Body``, no Gymnasium: ``real_env`` makes an env of it.

Ticks lie on a fixed grid. A step that comes too late (a stalled host) begins a new grid: no burst of steps follows.
While the pose is lost, the measurement repeats the last one, marked invalid; how long it may be lost is a setting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snake_gym.config import Settings
from snake_gym.config.settings import Positive
from snake_gym.hardware.guard.body import BodySample, BringUpError
from snake_gym.hardware.guard.client import Body
from snake_gym.hardware.pose.source import NO_POSE, PoseSample, PoseSource
from snake_gym.interface.actions import ActionDecoder
from snake_gym.interface.observations import ObservationLayout
from snake_gym.interface.observer import Observer
from snake_gym.plugins import check_numbers
from snake_gym.robot.chain import ChainSpec
from snake_gym.robot.measurement import Goal, Measurement, tracked_point
from snake_gym.robot.spec import FloatArray

_LATE_SHARE = 0.5
"""Lateness of a tick at which a new grid begins, as a share of the period."""


class RealRewardConfig(Settings):
    """Weights of the reward terms, which are computed from measurements; as in Waypoints."""

    progress: float = 10.0
    """Reward per metre towards the current target."""
    target: float = 2.0
    """Reward per target reached."""
    effort: float = -0.01
    """Reward per unit of squared action, summed over the action's entries."""


class CourseConfig(Settings):
    """Targets of the robot."""

    targets: Annotated[tuple[tuple[float, float], ...], Field(min_length=1)] = ((1.0, 0.0),)
    """Targets in order, in the world frame of the pose source [m]."""
    radius_m: Positive = 0.1
    """Distance from the tracked point at which a target is reached."""
    tracked_point: Literal["centre", "head"] = "centre"


class MeasuredCourse:
    """Progress of one robot along the targets, scored by measurements, since the true pose is unknown.

    While the pose is lost no target is reached and no progress is counted. Without targets (``is_free``, a robot driven
    by hand) progress is the distance from where it began.
    """

    columns: tuple[str, ...] = ()
    """Observation columns of the task alone."""
    holds_speed = False
    """True if the task commands a speed, which gaits hold."""
    rng: np.random.Generator | None = None
    """Generator of what an episode draws."""

    def __init__(
        self, config: CourseConfig, spec: Any, is_free: bool = False, reward: RealRewardConfig | None = None
    ) -> None:
        self.config = config
        self.layout_settings: dict[str, Any] = {}
        """Further arguments of the ``ObservationLayout``."""
        self.weights: dict[str, float] = asdict(reward or RealRewardConfig())
        self.terms: dict[str, float] = dict.fromkeys(self.weights, 0.0)
        """Reward terms of the last step, before their weights."""
        self._spec = spec
        self.targets_xy: FloatArray = np.array(() if is_free else config.targets, dtype=np.float64).reshape(-1, 2)
        self.index = 0
        """Index of the current target, which is the number of targets reached."""
        self.progress_m = 0.0
        self._last_xy: FloatArray | None = None
        self._start_xy: FloatArray | None = None

    @property
    def complete(self) -> bool:
        return 0 < len(self.targets_xy) <= self.index

    @property
    def distance_m(self) -> float:
        """Distance from the tracked point, as last seen, to the current target; NaN: not seen yet."""
        return math.nan if self._last_xy is None else float(np.hypot(*(self.goal().target_xy_w[0] - self._last_xy)))

    def begin(self, measurement: Measurement, targets: Sequence[Sequence[float]] | None = None) -> None:
        """Start at the first target, from the robot's present place; ``targets`` replaces those of the settings."""
        if targets is not None:
            self.targets_xy = np.array(targets, dtype=np.float64)
        self.index, self.progress_m = 0, 0.0
        self._last_xy = self._start_xy = self._point(measurement) if measurement.pose_valid[0] else None

    def localise(self, measurement: Measurement) -> Measurement:
        """Return a measurement of the pose source in the frame of the course, which here is the world's."""
        return measurement

    def signals(self) -> Mapping[str, FloatArray]:
        """Return the task's own signals for its observation columns."""
        return {}

    def goal(self) -> Goal:
        """Return the current target (1, 2) [m]; inactive when the course is complete, or free."""
        if not len(self.targets_xy):
            return Goal(np.zeros((1, 2)), np.zeros(1, bool))
        current = min(self.index, len(self.targets_xy) - 1)
        return Goal(self.targets_xy[current][None].copy(), np.array([not self.complete]))

    def infos(self) -> dict[str, Any]:
        """Return the numbers of the episode."""
        return {"progress_m": self.progress_m, "targets_reached": self.index, "is_success": self.complete}

    def advance(self, measurement: Measurement, action: FloatArray) -> None:
        """Score one step with ``action`` (1, A)."""
        self.terms = {"progress": 0.0, "target": 0.0, "effort": float((action**2).sum())}
        if self.complete or not measurement.pose_valid[0]:
            return
        here = self._point(measurement)
        before, self._last_xy = here if self._last_xy is None else self._last_xy, here
        self._start_xy = before if self._start_xy is None else self._start_xy
        is_free = not len(self.targets_xy)
        aim = self._start_xy if is_free else self.targets_xy[self.index]
        distance = float(np.hypot(*(aim - here)))
        made = float(np.hypot(*(aim - before))) - distance
        made = -made if is_free else made
        self.progress_m += made
        reached = not is_free and distance <= self.config.radius_m
        self.index += int(reached)
        self.terms |= {"progress": made, "target": float(reached)}

    def _point(self, measurement: Measurement) -> FloatArray:
        return tracked_point(self._spec, measurement, self.config.tracked_point)[0].copy()


class LoopConfig(Settings):
    """Time-outs of the loop."""

    pose_timeout_s: Positive = 2.0
    """Time without a pose after which the robot holds its shape until it is back."""
    first_pose_timeout_s: Positive = 10.0
    """Longest wait for the first pose."""


class StepRecord(NamedTuple):
    """Result of one step, for infos and logs."""

    observation: NDArray[np.float32]
    """(D,) observation after the step."""
    stop_reason: str | None
    """Reason why the robot has stopped for good; None: it goes on."""
    wanted: FloatArray
    """(J,) [rad] references that the policy asked for."""
    body: BodySample
    pose: PoseSample
    sample_age_s: float
    """Age of the servos' sample when the observation was made [s]."""
    pose_age_s: float
    late_s: float
    """Lateness of the tick [s]."""
    held: bool
    """True if the policy was not followed, because the pose has been lost for too long."""
    news: tuple[str, ...]


class Contract(NamedTuple):
    """Agreement of a policy and a loop: action, observation and robot."""

    decoder: ActionDecoder
    layout: ObservationLayout
    robot: ChainSpec
    """Nominal robot; scales of action and observation may be those of another one, as trained."""


class RobotLoop:
    """Control loop of one real robot, on a body and a pose source that the caller closes."""

    def __init__(
        self, contract: Contract, body: Body, pose: PoseSource, course: MeasuredCourse, config: LoopConfig,
        time_limit_s: float = math.inf,
    ) -> None:  # fmt: skip
        self.decoder, self.layout, self.body, self.pose, self.config = *contract[:2], body, pose, config
        self.spec: ChainSpec = self.decoder.spec
        self.course = course
        self.state = self.decoder.initial_state(1)
        self.action: FloatArray = np.zeros((1, self.decoder.size))
        self.reference: FloatArray = np.zeros((1, self.spec.n_joints))
        self.measurement: Measurement | None = None
        self.observer = Observer(self.layout, 1)
        self.step_count = 0
        self.n_steps = max(1.0, time_limit_s / self.spec.control_dt_s)
        """Control steps of an episode's time limit."""
        self._tick_s = 0.0
        self.last_pose = NO_POSE
        """Pose of the last measurement."""
        self.watch: Callable[[BodySample], None] | None = None
        """Function called with every sample, once a bus cycle."""
        body.watch = self._take

    def reset(self, targets: Sequence[Sequence[float]] | None = None) -> NDArray[np.float32]:
        """Begin an episode at the robot's present place. Return the first observation (D,). Raises BringUpError: the
        robot may not move, or no pose came in time."""
        self.state = self.decoder.initial_state(1)
        rest = Measurement(self.reference, self.reference, np.zeros((1, 2)), np.zeros(1), np.ones(1, bool))
        self.decoder.perceive(rest, self.decoder.initial_state(1))  # loads an estimator, for longer than servos wait
        self.body.start()
        # The robot may have been up for long without a reading.
        sample = self._wait_for_pose(self.body.run_until(self.body.clock.now()))
        if self.body.stop_reason is not None:
            raise BringUpError(f"the episode cannot begin: {self.body.stop_reason}")
        seen = self._measure(sample)
        self.course.begin(seen, targets)
        self.measurement = self.course.localise(seen)
        self.action = np.zeros((1, self.decoder.size))
        self.reference = sample.joint_angle[None].copy()
        self.step_count = 0
        self.observer.begin(self.measurement)
        self._tick_s = self.body.clock.now()
        return self._observe(self.measurement)

    def step(self, action: NDArray[Any]) -> StepRecord:
        """Run one control step with an action (A,). Raises ValueError: wrong shape, or an entry that is not finite."""
        if self.measurement is None:
            raise RuntimeError("step before the first reset")
        values = check_numbers(action, (self.decoder.size,), "action")
        self.action = values.astype(np.float64).clip(-1.0, 1.0)[None]
        held = self.body.clock.now() - self.last_pose.stamp_s > self.config.pose_timeout_s
        if not held:
            self.reference = self.decoder.decode(self.action, self.measurement, self.course.goal(), self.state)
        self.body.command(self.decoder.to_servos(self.reference, self.state)[0])
        late_s = max(0.0, self.body.clock.now() - self._tick_s)
        if late_s > _LATE_SHARE * self.spec.control_dt_s:
            self._tick_s = self.body.clock.now()
        self._tick_s += self.spec.control_dt_s
        sample = self.body.run_until(self._tick_s)
        self.measurement = self.decoder.perceive(self.course.localise(self._measure(sample)), self.state)
        self.step_count += 1
        self.observer.advance(self.measurement)
        now = self.body.clock.now()
        self.course.advance(self.measurement, self.action)
        return StepRecord(
            self._observe(self.measurement), self.body.stop_reason, self.reference[0].copy(), sample, self.last_pose,
            now - sample.stamp_s, now - self.last_pose.stamp_s, late_s, held, tuple(self.body.news()),
        )  # fmt: skip

    def _take(self, sample: BodySample) -> None:
        self.pose.follow(sample.joint_angle, sample.joint_rate, sample.stamp_s)
        if self.watch is not None:
            self.watch(sample)

    def _wait_for_pose(self, sample: BodySample) -> BodySample:
        """Hold the shape until there is a pose. Return the newest sample."""
        clock = self.body.clock
        give_up = clock.now() + self.config.first_pose_timeout_s
        while True:
            self.pose.follow(sample.joint_angle, sample.joint_rate, sample.stamp_s)
            self.last_pose = self.pose.read(clock.now())
            if self.last_pose.valid:
                return sample
            why = self.body.stop_reason
            if why is None and clock.now() > give_up:
                why = f"no pose within {self.config.first_pose_timeout_s:g} s"
                why += f": {self.pose.trouble}" if self.pose.trouble else ""
            if why is not None:
                raise BringUpError(f"the episode cannot begin: {why}")
            sample = self.body.run_until(clock.now() + self.spec.control_dt_s)
            self.body.command(sample.reference)

    def _measure(self, sample: BodySample) -> Measurement:
        pose = self.pose.read(self.body.clock.now())
        self.last_pose = pose if pose.valid else self.last_pose._replace(valid=False)
        measurement = Measurement(
            sample.joint_angle[None].copy(), sample.joint_rate[None].copy(), self.last_pose.xy_w[None].copy(),
            np.array([self.last_pose.angle]), np.array([self.last_pose.valid]),
        )  # fmt: skip
        return self.spec.locate(measurement, pose.up_h, pose.z_w)

    def _observe(self, measurement: Measurement) -> NDArray[np.float32]:
        phase = self.decoder.phase(self.state)
        remaining = np.array([max(0.0, 1.0 - self.step_count / self.n_steps)])
        goal = self.course.goal()
        signals = {**self.course.signals(), **self.decoder.signals(self.state)}
        return self.observer.look(measurement, goal, self.reference, self.action, phase, signals, remaining)[0]
