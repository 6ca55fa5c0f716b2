"""Replays logged runs with many candidate robots at once: every pair of candidate and log is one world of a batch.

The commands of the log go through the robot's own servo model. irani2015 imposes the measured joint angles instead;
that leaves no torque limit and no lag in the model, and needs encoders without gaps. Each log's own share of the torque
holds in its worlds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
        self.n_simulations = 0
        """Runs simulated so far: candidates times logs."""
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
        n_candidates, n_logs, n_joints = candidates.shape[0], len(self.logs), self.spec.n_joints
        n_worlds = n_candidates * n_logs
        robot = self._robots(candidates)
        joints, head_xy = np.tile(self._joints, (n_candidates, 1)), np.tile(self._head_xy, (n_candidates, 1))
        robot.set_shape(joints, np.tile(self._head_angle, n_candidates), head_xy)
        shape = (n_worlds, self._n_periods + 1)
        seen = Prediction(np.empty((*shape, 2)), np.empty(shape), np.empty((*shape, n_joints)))
        ends = np.tile([log.n_periods for log in self.logs], n_candidates)
        for k in range(self._n_periods + 1):
            seen.head_xy_m[:, k] = robot.state.head_xy
            seen.head_angle_rad[:, k] = robot.state.link_angle[:, -1]
            seen.joint_angle_rad[:, k] = robot.joint_angle()
            if k < self._n_periods:
                running = k < ends
                robot.step(np.tile(self._reference[k], (n_candidates, 1)), mask=None if running.all() else running)
        self.n_simulations += n_worlds
        return Prediction(*(values.reshape(n_candidates, n_logs, *values.shape[1:]) for values in seen))

    def _robots(self, candidates: FloatArray) -> SimulatedRobot:
        """One robot for each pair of candidate and log, the logs of a candidate side by side."""
        n_logs = len(self.logs)
        specs = [with_values(self.spec, self.coefficients, row) for row in candidates.tolist()]
        # The laws are those of a robot that has all that any candidate may have.
        highest = with_values(self.spec, self.coefficients, [c.high for c in self.coefficients])
        robot = SimulatedRobot(highest, len(specs) * n_logs)
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


def head_error(prediction: Prediction, logs: Sequence[RunLog]) -> FloatArray:
    """irani2015, eq. 6: distance of the predicted from the measured last head position, as a share of the measured
    displacement of the head: (K, L)."""
    share = np.empty(prediction.head_xy_m.shape[:2])
    for k, log in enumerate(logs):
        last = int(np.flatnonzero(np.isfinite(log.head_xy_m).all(axis=1))[-1])
        _, start_xy, _ = log.start()
        travelled = float(np.hypot(*(log.head_xy_m[last] - start_xy)))
        missed = prediction.head_xy_m[:, k, last] - log.head_xy_m[last]
        share[:, k] = np.hypot(missed[:, 0], missed[:, 1]) / max(travelled, 1e-9)
    return share
