"""Robots and goals in arbitrary places, for the tests of controllers."""

from __future__ import annotations

import math

import numpy as np

from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.presets import RESILIENT_SERVO

SPEC = RESILIENT_SERVO
N_JOINTS = SPEC.n_joints


def random_world(n_worlds: int, seed: int = 0) -> tuple[Measurement, Goal]:
    """Bent robots anywhere, each with a target anywhere."""
    rng = np.random.default_rng(seed)
    measurement = Measurement(
        joint_angle=rng.normal(0.0, 0.4, (n_worlds, N_JOINTS)),
        joint_rate=rng.normal(0.0, 1.0, (n_worlds, N_JOINTS)),
        head_xy_w=rng.normal(0.0, 2.0, (n_worlds, 2)),
        head_angle=rng.uniform(-10.0, 10.0, n_worlds),
        pose_valid=np.ones(n_worlds, dtype=bool),
    )
    return measurement, Goal(rng.normal(0.0, 2.0, (n_worlds, 2)), np.ones(n_worlds, dtype=bool))


def straight_world(n_worlds: int, head_angle: float = 0.0) -> tuple[Measurement, Goal]:
    """Straight robots at the origin, their target far away along x."""
    measurement = Measurement(
        joint_angle=np.zeros((n_worlds, N_JOINTS)),
        joint_rate=np.zeros((n_worlds, N_JOINTS)),
        head_xy_w=np.zeros((n_worlds, 2)),
        head_angle=np.full(n_worlds, head_angle),
        pose_valid=np.ones(n_worlds, dtype=bool),
    )
    return measurement, Goal(np.tile([1e6, 0.0], (n_worlds, 1)), np.ones(n_worlds, bool))


def take_world(measurement: Measurement, goal: Goal, world: int) -> tuple[Measurement, Goal]:
    """One world of a batch, alone."""
    rows = slice(world, world + 1)
    parts = [None if values is None else values[rows] for values in measurement]
    return Measurement(*parts), Goal(goal.target_xy_w[rows], goal.active[rows])  # type: ignore[arg-type]


def wrapped(angle: float) -> float:
    """``angle`` in (-pi, pi], by another route than the code's."""
    return math.pi - (math.pi - angle) % (2.0 * math.pi)
