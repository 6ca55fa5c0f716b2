"""Episodes of the Waypoints env with a classical controller in the loop, all worlds at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from papers.fault_aware.contenders import scenario_settings
from snake_gym.config import build, merge
from snake_gym.controllers import make_controller
from snake_gym.controllers.base import Controller, ControllerState
from snake_gym.envs import DEFAULT_ENV, choose_env
from snake_gym.envs.core import SnakeCore
from snake_gym.robot.spec import FloatArray

SEED = 1_000_000
"""Of the first scenario: the benchmark's own, which no tuning has seen (that is above 2,000,000)."""
OnStep = Callable[[SnakeCore, Controller, ControllerState, FloatArray], None]
"""Called with the env before each step, and the command that is about to be given."""


def play(
    controller: Mapping[str, Any],
    env: Mapping[str, Any],
    n_episodes: int,
    seed: int = SEED,
    on_step: OnStep | None = None,
) -> SnakeCore:
    """Play one episode in each world and return the env as it ends.

    Args:
        controller: settings, ``kind`` included.
        env: settings laid over configs/env/locked_joints.yaml (robot, faults, sensors, time_limit_s ...).
        n_episodes: worlds; world i has the scenario ``seed + i``.
    """
    settings = merge(scenario_settings(), {**env, "n_threads": 1})
    settings["action"] = {"kind": "joint_reference"}
    make = choose_env(DEFAULT_ENV)
    core = make(n_episodes, AutoresetMode.DISABLED, config=build(make.config_type, settings, "env")).core
    core.reset(seed + np.arange(n_episodes, dtype=np.int64))
    driver = make_controller(dict(controller), core.spec)
    state = driver.initial_state(n_episodes)
    for _ in range(core.n_steps):
        command = driver.command(core.measurement, core.task.goal(), state, core.spec.control_dt_s)
        if on_step is not None:
            on_step(core, driver, state, command)
        core.step(command / core.spec.joint_limit_rad)
    return core
