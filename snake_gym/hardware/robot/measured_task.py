"""A task of the simulated envs on a real robot: scored and shown by what is measured, as nobody knows the truth.

Paths, commands and maps are laid out from where the robot lies when an episode begins, in the direction of its mean
link: the measurements that policy, gait and score get are moved there. Steps without a pose score nothing.

Obstacles are those of a given map (``field.kind: list``), and the distances to them follow from map and pose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import numpy as np

from snake_gym.config import ConfigError, Settings, build, to_dict
from snake_gym.hardware.robot.robot_loop import CourseConfig, MeasuredCourse
from snake_gym.interface.policy_file import FilePolicy
from snake_gym.obstacles.ray_casting import cast_rays
from snake_gym.physics.state import zero_state
from snake_gym.registry import find_task
from snake_gym.robot.measurement import Goal, Measurement, link_angles, mean_angle, tracked_point
from snake_gym.robot.spec import FloatArray
from snake_gym.tasks.task import EnvConfig, NewEpisodes, Step, begin_episodes

_NOT_REAL = {field.name for field in fields(EnvConfig)} - {"start"} | {"contact_sensor"}
"""Settings of simulated envs without a use on a real robot, or given next to the task."""
_UNFELT = ("energy", "contact")
"""Reward terms that nothing on the robot measures."""
_TURNED_RAD = 0.01
"""Most by which a task may want the head to begin in another direction than it lies."""


def task_settings(task: Mapping[str, Any], spec: Any, time_limit_s: float, policy: FilePolicy | None) -> EnvConfig:
    """Return the settings of the env that ``task`` names, ``{id: ..., and the task's own groups}``.

    Where ``policy`` was trained in that env, its settings hold where ``task`` gives none. Raises ConfigError.
    """
    given = dict(task)
    if "id" not in given:
        raise ConfigError("task.id is missing; expected the name of an env such as SnakeGym/PathFollow-v0")
    env_id = given.pop("id")
    kind = find_task(env_id, "task.id")
    wrong = sorted(given.keys() & _NOT_REAL)
    if wrong:
        own = ", ".join(field.name for field in fields(kind) if field.name not in _NOT_REAL)
        raise ConfigError(f"task.{wrong[0]} is set, which a real robot's task does not have; expected one of {own}")
    if policy is not None and policy.env_id == env_id:
        given = {name: value for name, value in policy.env_config.items() if name not in _NOT_REAL} | given
    config: EnvConfig = build(kind, {**given, "robot": to_dict(spec), "time_limit_s": time_limit_s}, "task")
    field, grounds = getattr(config, "field", None), getattr(config, "kinds", None)
    if isinstance(field, Settings) and getattr(field, "kind", None) != "list":
        raise ConfigError(
            f"task.field.kind is {getattr(field, 'kind', None)!r}; expected 'list': a real robot's map is given"
        )
    if grounds is not None and len(grounds) != 1:
        raise ConfigError(f"task.kinds is {list(grounds)}; expected one kind: the ground that the robot lies on")
    for name in _UNFELT:
        weight = getattr(getattr(config, "reward", None), name, 0.0)
        if weight:
            raise ConfigError(f"task.reward.{name} is {weight:g}; expected 0: nothing on a real robot measures it")
    return config


class MeasuredTask(MeasuredCourse):
    """One task for one real robot."""

    def __init__(self, config: EnvConfig, spec: Any) -> None:
        self.task = config.make_task(spec, 1)
        super().__init__(CourseConfig(tracked_point=self.task.tracked_point), spec)
        self.env_config, self.weights = config, dict(self.task.weights)
        scan = getattr(config, "range_scan", None)
        self.scan = None if self.task.obstacles is None else scan
        self.columns, self.layout_settings = self.task.columns, {"task_columns": self.task.columns}
        self.holds_speed = self.task.commands_speed
        if self.scan is not None:
            self.columns = (*self.columns, "range")
            self.layout_settings |= {"n_beams": self.scan.n_beams, "max_range_m": self.scan.max_range_m}
        self.terms = dict.fromkeys(self.weights, 0.0)
        self._origin: FloatArray = np.zeros(2)
        self._done = False
        self._steps = 0

    @property
    def complete(self) -> bool:
        return self._done

    def begin(self, measurement: Measurement, targets: Sequence[Sequence[float]] | None = None) -> None:
        """Lay the task out from where the robot lies."""
        if targets is not None:
            raise ConfigError("reset got targets; expected none: the task says where to go")
        task, row = self.task, np.zeros(1, np.int64)
        heading = mean_angle(measurement)
        u = (self.rng or np.random.default_rng()).uniform(size=(1, task.n_random))
        start = begin_episodes(task, NewEpisodes(row, self.env_config, measurement.joint_angle, heading, u))
        turned = math.remainder(float(start.head_angle[0] - measurement.head_angle[0]), 2.0 * math.pi)
        if abs(turned) > _TURNED_RAD:
            raise ConfigError(
                f"the task puts the robot itself where it begins, with its head turned by {math.degrees(turned):.0f} "
                "degrees; expected one that begins where the robot lies"
            )
        self._origin = self._point(measurement) - start.point_xy[0]
        self._last_xy = start.point_xy[0].copy()
        self._done, self._steps, self.index, self.progress_m = False, 0, 0, 0.0
        self.terms = dict.fromkeys(self.weights, 0.0)
        task.update_goal(start.point_xy, slice(None))

    def localise(self, measurement: Measurement) -> Measurement:
        head, centre = measurement.head_xy_w, tracked_point(self._spec, measurement, "centre")
        moved = measurement._replace(head_xy_w=head - self._origin, centre_xy_w=centre - self._origin)
        if self.scan is None or self.task.obstacles is None:
            return moved
        feature, reach_m = np.ascontiguousarray(self.task.obstacles.feature[:1]), self.scan.max_range_m
        seen_m = cast_rays(feature, moved.head_xy_w, moved.head_angle, self.scan.beam_angles(), reach_m)
        return moved._replace(range_m=seen_m)

    def signals(self) -> Mapping[str, FloatArray]:
        return self.task.signals()

    def goal(self) -> Goal:
        return self.task.goal()

    def advance(self, measurement: Measurement, action: FloatArray) -> None:
        self._steps += 1
        self.terms = dict.fromkeys(self.weights, 0.0)
        if self._done or not measurement.pose_valid[0]:
            return
        point, state = tracked_point(self._spec, measurement, self.task.tracked_point), self._state(measurement)
        before = point if self._last_xy is None else self._last_xy[None]
        live = np.ones(1, bool)
        terms, complete = self.task.evaluate(Step(self.task.goal(), before, point, state, action, np.zeros(1), live))
        self.task.update_goal(point, slice(None))
        self.terms = {name: float(values[0]) for name, values in terms.items()}
        self._last_xy, self._done = point[0].copy(), bool(complete[0])
        self.index, self.progress_m = int(self.task.index[0]), float(self.task.record["progress_m"][0])

    def infos(self) -> dict[str, Any]:
        return {"targets_reached": self.index} | {name: values[0].item() for name, values in self.task.record.items()}

    def _state(self, measurement: Measurement) -> Any:
        """Return the robot's state as measured; nothing that it cannot feel."""
        state = zero_state(1, self._spec.n_links)._replace(
            link_angle=link_angles(measurement), centre_xy=tracked_point(self._spec, measurement, "centre"),
            time_s=np.array([self._steps * self._spec.control_dt_s]), head_xy=measurement.head_xy_w,
        )  # fmt: skip
        if measurement.head_z_w is None:
            return state
        return SimpleNamespace(**state._asdict(), centre_z=measurement.head_z_w)  # tasks of spatial robots ask for it
