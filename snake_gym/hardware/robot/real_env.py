"""Real robot as a Gymnasium environment: the same spaces, observations and actions as in simulation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from snake_gym.config import apply_keywords
from snake_gym.config.errors import check_options
from snake_gym.hardware.robot.measured_task import MeasuredTask, task_settings
from snake_gym.hardware.robot.robot_loop import Contract, MeasuredCourse, RealRewardConfig
from snake_gym.hardware.robot.run_config import LoopSettings, action_contract, file_contract, open_loop, robot_of
from snake_gym.interface.actions import ActionConfig
from snake_gym.interface.observations import BOUND, ObservationConfig
from snake_gym.interface.policy_file import load_policy


class RealConfig(LoopSettings, kw_only=True):
    """Settings of ``SnakeGym/Real-v0``."""

    task: dict[str, Any] | None = None
    """Task instead of visiting ``course``: ``{id: SnakeGym/PathFollow-v0, ...}`` with the groups of settings that are
    the task's own, such as path, follow and reward; None: targets."""
    action: ActionConfig | None = None
    """Action; None: the policy's, or the default of ``ActionConfig``."""
    observation: ObservationConfig | None = None
    """Columns and history, without privileged ones; None: the policy's, or the default of ``ObservationConfig``."""
    reward: RealRewardConfig = field(default_factory=RealRewardConfig)

    def check(self) -> None:
        for name in ("action", "observation"):
            if self.policy is not None and getattr(self, name) is not None:
                raise ValueError(
                    f"{name} is set, and so is policy; expected one of them: the policy file has its {name}"
                )
        if self.task is not None and self.reward != RealRewardConfig():
            raise ValueError("reward is set, and so is task; expected task.reward")


class RealSnakeEnv(gym.Env[Any, Any]):
    """One real snake robot visits targets.

    Description:
        The servo chain on its bus, under the safety layers of ``snake_gym.hardware.guard``, with a pose source on its
        head. What is trained in ``SnakeGym/Waypoints-v0`` runs here unchanged. Without a port, emulated servos, byte
        for byte, moved by the project's physics, as fast as the processor allows.

    Tasks:
        ``task={"id": "SnakeGym/PathFollow-v0", "path": {...}}`` is another task than visiting targets: any that begins
        where the robot lies. Paths, commands and maps lie in front of the robot, as it is when the episode begins.
        ``SnakeGym/ObstacleField-v0`` needs a map (``field: {"kind": "list", "shapes": [...]}``); the distances to
        obstacles follow from map and pose. Whatever is scored is scored by measurements.

    Actions:
        ``Box(-1, 1, (A,), float32)``; their meaning is given by ``action.kind`` or the policy's contract.

    Observations:
        ``Box(-10, 10, (D,), float32)``: those of the simulated env with the same settings, but for contact forces.

    Rewards:
        Weighted sum of the terms progress, target and effort, or of the task's, from measurements; each is in the info.

    Start:
        The robot's present place. ``options={"targets": [[x, y], ...]}`` gives this episode's targets.

    End:
        Terminated when the course is complete; truncated after ``time_limit_s``, or when the robot has stopped for
        its safety: a warning and ``info["stop_reason"]`` say why. A pause between two steps that is longer than
        ``safety.command_timeout_s`` (0.5 s), such as a learner's update, is such a stop; set it longer than the longest
        update, and the robot holds its shape meanwhile.

    Arguments:
        config: settings as an object or mapping; further keyword arguments are settings too, laid over it
            (``RealConfig``).

    Versions:
        v0: first version.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self, render_mode: None = None, config: RealConfig | Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        if render_mode is not None:
            raise ValueError(f"render_mode is {render_mode!r}; expected None: the robot can be looked at")
        self.config = apply_keywords(RealConfig, config, settings, "env")
        contract, course = plan_task(self.config)
        self.loop, connected = open_loop(contract, self.config, course)
        self._close = connected.close
        self.robot_spec = self.loop.spec
        self.n_steps = max(1, round(self.config.time_limit_s / self.robot_spec.control_dt_s))
        self.observation_space = gym.spaces.Box(-BOUND, BOUND, (self.loop.layout.size,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (self.loop.decoder.size,), np.float32)
        self.render_mode = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an episode at the robot's present place. Raises BringUpError if it may not move."""
        targets = check_options(options, ("targets",)).get("targets")
        super().reset(seed=seed)
        self.loop.course.rng = self.np_random
        course = self.config.course if targets is None else replace(self.config.course, targets=targets)
        obs = self.loop.reset(None if targets is None else course.targets)
        return obs, {"progress_m": 0.0, "targets_reached": 0}

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Run one control period, in real time."""
        record = self.loop.step(np.asarray(action))
        course = self.loop.course
        weighted = {name: course.weights[name] * value for name, value in course.terms.items()}
        truncated = not course.complete and (self.loop.step_count >= self.n_steps or record.stop_reason is not None)
        if record.stop_reason is not None:  # for a learner that looks at no info
            warnings.warn(f"the robot is limp, and the episode cut short: {record.stop_reason}", stacklevel=2)
        info = {
            **course.infos(), "executed_reference_rad": record.body.reference, "wanted_reference_rad": record.wanted,
            "clamped": record.body.clamped, "lost_joints": record.body.lost, "sample_age_s": record.sample_age_s,
            "pose_age_s": record.pose_age_s, "pose_valid": record.pose.valid, "late_s": record.late_s,
            "held": record.held, "stop_reason": record.stop_reason or "", "news": record.news,
        }  # fmt: skip
        info |= {"reward_raw/" + name: value for name, value in course.terms.items()}
        info |= {"reward/" + name: value for name, value in weighted.items()}
        return record.observation, float(sum(weighted.values())), course.complete, truncated, info

    def close(self) -> None:
        """Switch the torque off and free the port; may be called twice."""
        self._close()


def plan_task(config: RealConfig) -> tuple[Contract, MeasuredCourse]:
    """Return the contract of the settings, and their task or course of targets. Raises ConfigError."""
    policy = None if config.policy is None else load_policy(config.policy, config.robot)
    spec = robot_of(config)
    if config.task is None:
        course = MeasuredCourse(config.course, spec, reward=config.reward)
    else:
        course = MeasuredTask(task_settings(config.task, spec, config.time_limit_s, policy), spec)
    if policy is not None:
        return file_contract(policy, config.robot, course.config.tracked_point), course
    return action_contract(config.action or ActionConfig(), spec, course, config.observation), course
