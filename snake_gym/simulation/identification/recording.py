"""Logs of simulated runs, to try an identification on a robot with known coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from snake_gym.physics.faults import FREE
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.identification.run_log import RunLog
from snake_gym.simulation.sensors import SensorConfig, measure
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.simulation.streams import RandomStreams


def record_runs(
    spec: RobotSpec,
    references: FloatArray,
    period_s: float,
    sensors: SensorConfig,
    seed: int = 0,
    free_joints: Sequence[tuple[int, ...]] | None = None,
    n_rest: int = 1,
) -> list[RunLog]:
    """Simulate L runs from rest and return their logs, as sensors would have written them.

    Args:
        references: (L, T, J) [rad]; a run begins in the shape of its first reference, head at the origin, looking
            along x.
        free_joints: for each run, the joints without power, from 1 at the tail; their encoders then give no reading.
        n_rest: samples taken before the first command; they are the first of the log.
    """
    n_runs = references.shape[0]
    free = [()] * n_runs if free_joints is None else [tuple(joints) for joints in free_joints]
    robot = SimulatedRobot(replace(spec, control_dt_s=period_s), n_runs)
    robot.set_shape(references[:, 0], np.zeros(n_runs), np.zeros((n_runs, 2)))
    for run, joints in enumerate(free):
        for joint in joints:
            robot.faults.kind[run, joint - 1] = FREE
    streams = RandomStreams("recording", n_runs)
    streams.begin(np.arange(n_runs), np.full(n_runs, seed))
    held = np.concatenate([np.repeat(references[:, :1], n_rest - 1, axis=1), references], axis=1)
    samples = []
    for k in range(held.shape[1] + 1):
        samples.append(measure(robot, sensors, streams))
        if k < held.shape[1]:
            robot.step(held[:, k])
    angle = np.stack([sample.joint_angle for sample in samples], axis=1)
    head_xy = np.stack([sample.head_xy_w for sample in samples], axis=1)
    heading = np.stack([sample.head_angle for sample in samples], axis=1)
    for run, joints in enumerate(free):
        angle[run][:, np.array(joints, dtype=np.int64) - 1] = np.nan
    return [
        RunLog(period_s, held[run], angle[run], head_xy[run], heading[run], free[run], n_rest) for run in range(n_runs)
    ]
