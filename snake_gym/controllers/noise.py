"""Random numbers of controllers: one stream for each world, which goes on from two numbers in the controller's state.

A controller is told no seed. The key of a world's stream is a hash of the joint angles and the target that it is first
given: a world in a batch has the numbers that it has alone, and worlds that begin alike have the same ones.
"""

from __future__ import annotations

import numpy as np

from snake_gym.controllers.base import ControllerState
from snake_gym.obstacles.splitmix import GOLDEN, TO_UNIT, mix
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.spec import FloatArray

KEY, COUNT = "noise_key", "noise_count"
_11_BITS = np.uint64(11)


def initial_noise(n_worlds: int) -> ControllerState:
    """Return the state of streams that have no key yet."""
    return {KEY: np.full(n_worlds, -1.0), COUNT: np.zeros(n_worlds)}


def begin_noise(state: ControllerState, measurement: Measurement, goal: Goal) -> None:
    """Give streams without a key one, from the measured joint angles and the target."""
    new = state[KEY] < 0.0
    if not new.any():
        return
    seen = np.concatenate([measurement.joint_angle[new], goal.target_xy_w[new]], axis=1) + 0.0  # -0 is 0
    key = np.zeros(len(seen), np.uint64)
    with np.errstate(over="ignore"):
        for bits in np.ascontiguousarray(seen).view(np.uint64).T:
            key = mix((key + GOLDEN) ^ bits)
    state[KEY][new] = key >> _11_BITS  # 53 bits, which a float holds


def draw_normal(state: ControllerState, count: int) -> FloatArray:
    """Return the next ``count`` standard normal numbers of each stream (W, count) (Box-Muller)."""
    half = (count + 1) // 2
    with np.errstate(over="ignore"):
        key = mix(state[KEY].astype(np.uint64) * GOLDEN)
        steps = state[COUNT].astype(np.uint64)[:, None] + np.arange(1, 2 * half + 1, dtype=np.uint64)
        u = (mix(key[:, None] + steps * GOLDEN) >> _11_BITS).astype(np.float64) * TO_UNIT
    state[COUNT] += 2.0 * half
    radius, angle = np.sqrt(-2.0 * np.log1p(-u[:, :half])), 2.0 * np.pi * u[:, half:]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)[:, :count]
