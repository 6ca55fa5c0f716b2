"""Replays logged runs with many candidate robots at once: every pair of candidate and log is one world of a batch.

The commands of the log go through the robot's own servo model, from where the robot was, never corrected. irani2015
imposes the measured joint angles instead; that leaves no torque limit and no lag in the model, and needs encoders
without gaps. Each log's own share of the torque holds in its worlds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.physics.faults import FREE
from snake_gym.physics.state import ChainParams
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.identification.coefficients import Coefficient, with_values
from snake_gym.simulation.identification.run_log import RunLog
from snake_gym.simulation.robot_params import chain_params
from snake_gym.simulation.simulated_robot import SimulatedRobot

STEP_S = 0.0025
"""Longest physics step of the replay."""
BACKLASH_STEP_S = 0.002
"""Longest physics step with backlash; longer ones exaggerate it."""


class Prediction(NamedTuple):
    """What K candidates would have measured in L runs of up to T periods; after a run's end it stays as it was."""

    head_xy_m: FloatArray
    """(K, L, T + 1, 2)."""
    head_angle_rad: FloatArray
    """(K, L, T + 1)."""
    joint_angle_rad: FloatArray
    """(K, L, T + 1, J)."""


class Replay:
    """Logged runs and the robot that they are replayed with.

    Args:
        logs: runs of one robot with one control period, at least one.
        spec: the robot but for the coefficients.
        coefficients: what candidates differ in.
    """

    def __init__(self, logs: Sequence[RunLog], spec: RobotSpec, coefficients: Sequence[Coefficient]) -> None:
        for log in logs:
            if (had := log.reference_rad.shape[1]) != spec.n_joints:
                raise ConfigError(f"the log has {had} joints; expected {spec.n_joints} ({spec.name})")
            if log.period_s != logs[0].period_s:
                raise ConfigError(f"log: period_s is {log.period_s:g}; expected {logs[0].period_s:g} as in the others")
        self.logs = tuple(logs)
        self.coefficients = tuple(coefficients)
        self.spec = replace(spec, control_dt_s=logs[0].period_s)
        self._n_periods = max(log.n_periods for log in logs)
        starts = [log.start() for log in logs]
        self._joints = np.array([joints for joints, _, _ in starts])
        self._head_xy = np.array([xy for _, xy, _ in starts])
        self._head_angle = np.array([angle for _, _, angle in starts])
        self._reference = np.zeros((self._n_periods, len(logs), spec.n_joints))
        for k, log in enumerate(logs):
            self._reference[: log.n_periods, k] = log.reference_rad

    def predict(self, candidates: FloatArray) -> Prediction:
        """Replay every log with every candidate (K, number of coefficients)."""
        specs = [with_values(self.spec, self.coefficients, row) for row in candidates.tolist()]
        shape = (len(specs), len(self.logs), self._n_periods + 1)
        seen = Prediction(np.empty((*shape, 2)), np.empty(shape), np.empty((*shape, self.spec.n_joints)))
        for delay_s in {spec.actuator.delay_s for spec in specs}:  # the worlds of a robot have one delay
            members = [k for k, spec in enumerate(specs) if spec.actuator.delay_s == delay_s]
            for values, played in zip(seen, self._play([specs[k] for k in members]), strict=True):
                values[members] = played
        return seen

    def _play(self, specs: Sequence[RobotSpec]) -> Prediction:
        """Replay every log with every robot of ``specs``, which have one delay."""
        n_worlds = len(specs) * len(self.logs)
        robot = self._robots(specs)
        joints, head_xy = np.tile(self._joints, (len(specs), 1)), np.tile(self._head_xy, (len(specs), 1))
        robot.set_shape(joints, np.tile(self._head_angle, len(specs)), head_xy)
        shape = (n_worlds, self._n_periods + 1)
        seen = Prediction(np.empty((*shape, 2)), np.empty(shape), np.empty((*shape, self.spec.n_joints)))
        ends = np.tile([log.n_periods for log in self.logs], len(specs))
        for k in range(self._n_periods + 1):
            seen.head_xy_m[:, k] = robot.state.head_xy
            seen.head_angle_rad[:, k] = robot.state.link_angle[:, -1]
            seen.joint_angle_rad[:, k] = robot.joint_angle()
            if k < self._n_periods:
                running = k < ends
                robot.step(np.tile(self._reference[k], (len(specs), 1)), mask=None if running.all() else running)
        return Prediction(*(values.reshape(len(specs), len(self.logs), *values.shape[1:]) for values in seen))

    def _robots(self, specs: Sequence[RobotSpec]) -> SimulatedRobot:
        """Return one robot for each pair of candidate and log, the logs of a candidate side by side."""
        n_logs = len(self.logs)
        # The laws are those of a robot that has all that any candidate may have.
        highest = with_values(self.spec, self.coefficients, [one.high for one in self.coefficients])
        actuator = replace(highest.actuator, delay_s=specs[0].actuator.delay_s)
        robot = SimulatedRobot(replace(highest, actuator=actuator), len(specs) * n_logs)
        rows = [chain_params(spec, 1) for spec in specs]
        robot.use_parameters(
            ChainParams(*(np.repeat(np.concatenate(part), n_logs, axis=0) for part in zip(*rows, strict=True)))
        )
        for k, log in enumerate(self.logs):
            # A servo's limit holds for the voltage of its motor: with half of it, the motor turns half as fast.
            robot.params.torque_limit[k::n_logs] *= log.torque_share
            robot.params.no_load_speed[k::n_logs] *= log.torque_share
            for joint in log.free_joints:
                robot.faults.kind[k::n_logs, joint - 1] = FREE
        return robot


@dataclass(frozen=True, eq=False)
class ReplayedRun:
    """A run as measured and as simulated, on the same grid: T + 1 samples, J joints."""

    time_s: FloatArray
    measured_joint: FloatArray
    """(T + 1, J) [rad]; NaN where an encoder said nothing."""
    simulated_joint: FloatArray
    reference: FloatArray
    """(T, J) [rad]."""
    measured_xy: FloatArray
    """(T + 1, 2) [m]; NaN without a pose."""
    simulated_xy: FloatArray

    def errors(self) -> dict[str, float]:
        """Return the root mean square joint error [rad] and path error [m], its end, and the path's length [m]."""
        away = np.hypot(*(self.simulated_xy - self.measured_xy).T)
        seen = np.flatnonzero(np.isfinite(away))
        return {
            "joint_rms_rad": float(np.sqrt(np.nanmean((self.simulated_joint - self.measured_joint) ** 2))),
            "path_rms_m": float(np.sqrt((away[seen] ** 2).mean())),
            "path_end_m": float(away[seen[-1]]),
            "path_length_m": float(np.hypot(*np.diff(self.measured_xy[seen], axis=0).T).sum()),
        }


def with_finer_step(spec: RobotSpec, period_s: float) -> RobotSpec:
    """Return ``spec`` with the log's period as control step and a physics step of at most ``STEP_S`` in it."""
    longest = BACKLASH_STEP_S if "backlash_rad" in spec.actuator.imperfections else STEP_S
    steps = max(1, math.ceil(period_s / min(spec.step_s, longest) - 1e-9))
    return replace(spec, control_dt_s=period_s, sim_dt_s=period_s / steps)


def replay(log: RunLog, spec: RobotSpec) -> ReplayedRun:
    """Play the log's references on ``spec``. Raises ConfigError where it has another number of joints."""
    seen = Replay([log], with_finer_step(spec, log.period_s), ()).predict(np.empty((1, 0)))
    return ReplayedRun(
        log.period_s * np.arange(log.n_periods + 1, dtype=np.float64), log.joint_angle_rad, seen.joint_angle_rad[0, 0],
        log.reference_rad, log.head_xy_m, seen.head_xy_m[0, 0],
    )  # fmt: skip
