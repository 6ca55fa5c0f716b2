"""Oracle: plans played in copies of the env itself. It is a bound to compare with, no controller: it sees the truth.

The copies have the world's whole state: true pose and velocities, parameters drawn for the episode, faults that act
and those to come, pushes to come, obstacles. ``oracle`` knows the targets to come too; ``oracle_next`` counts the
current one only, as every policy is shown. ``oracle_now`` does not know the faults to come either, nor the ends and
pauses of those that act: to it, what has failed now has failed for good. The search is that of the controller ``mpc``
(``controllers.plans``). It is no true bound: a longer or better search may find more.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.benchmark.scenarios import ORACLES, Entrant, Scenarios
from snake_gym.config import ConfigError, to_dict
from snake_gym.controllers.mpc import MpcConfig
from snake_gym.controllers.noise import COUNT, KEY
from snake_gym.controllers.plans import PlanConfig, Planner, Plans, Worth
from snake_gym.envs import SnakeVectorEnv
from snake_gym.envs.core import SnakeCore
from snake_gym.physics.faults import HEALTHY, acting
from snake_gym.robot.protocol import Robot
from snake_gym.robot.spec import FloatArray

SAMPLES = 128
_MOST_COPIES = 4096
"""Largest number of copies that are held at once; one takes about 10 kB."""


def oracle_entrant(name: str, scenarios: Scenarios, **settings: Any) -> Entrant:
    """Return an oracle, by a name of ``ORACLES``; ``settings`` of ``PlanConfig`` replace its own.

    Raises ConfigError unless the task scores progress towards targets.
    """
    env = scenarios.env
    task = env.make_task(scenarios.spec, 1)
    if task.score not in ("progress_m", "is_success") or task.n_targets == 0:
        raise ConfigError(f"{name} plans for progress towards targets; {scenarios.env_id} is scored by {task.score}")
    plan = PlanConfig(**{"samples": SAMPLES, **settings})
    env_settings = {"action": {"kind": "joint_reference"}}
    knows = ORACLES[name]
    identity = {"oracle": {"knows": list(knows), "plan": to_dict(plan)}}
    to_come = " and ".join(knows)
    note = f"sees the truth: parameters, faults that act{f', {to_come} to come' if to_come else ''}"
    return Entrant(name, "oracle", env_settings, lambda env: Oracle(env, plan, knows), identity, (note,))


class Oracle:
    """Policy for ``env``, in the action space of joint references; all worlds begin an episode together."""

    def __init__(self, env: SnakeVectorEnv, plan: PlanConfig, knows: tuple[str, ...]) -> None:
        self._core, self._knows = env.core, knows
        self._gait, self._planner = MpcConfig(), Planner(plan, env.core.spec)
        self._n_rows = max(1, min(env.num_envs, _MOST_COPIES // plan.samples))
        self._copies = SnakeCore(env.core.config, self._n_rows * plan.samples)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[NDArray[np.float32], Any]:
        """Return actions (W, J) for the env's present state, whatever was observed."""
        state = self._first_state() if state is None else state
        plans = self._planner.draw(state)
        self._planner.improve(state, plans, self._play(plans, state))
        limit = self._core.spec.joint_limit_rad
        return (self._planner.follow(state) / limit).astype(np.float32), state

    def _first_state(self) -> dict[str, FloatArray]:
        gait, n_worlds = self._gait, self._core.n_worlds
        wave = (gait.amplitude_rad, gait.frequency_rad_s, gait.phase_shift_rad)
        key = np.asarray((self._core.seeds + 1.0) * 1e5 + self._core.episode, dtype=np.float64)
        return {**self._planner.initial_state(n_worlds, *wave), KEY: key, COUNT: np.zeros(n_worlds)}

    def _play(self, plans: Plans, state: dict[str, FloatArray]) -> FloatArray:
        """Return what the plans are worth (W, K), some worlds at a time."""
        truth, n_worlds = self._core.get_state(), self._core.n_worlds
        if "faults" not in self._knows:
            truth |= faults_of_now(self._core.robot)
        n_plans = plans.frequency.shape[-1]
        worth = np.empty((n_worlds, n_plans))
        for first in range(0, n_worlds, self._n_rows):
            rows = np.minimum(np.arange(first, first + self._n_rows), n_worlds - 1)  # the last ones fill up
            chosen = Plans(*(values[rows] for values in plans))
            self._copies.set_state({name: np.repeat(v[rows], n_plans, axis=0) for name, v in truth.items()})
            worth[rows] = self._play_copies(chosen, {"phase": state["phase"][rows]})
        return worth

    def _play_copies(self, plans: Plans, state: dict[str, FloatArray]) -> FloatArray:
        copies, limit = self._copies, self._core.spec.joint_limit_rad
        task, worth = copies.task, Worth(self._planner, plans)
        for step in range(self._planner.n_steps):
            before, index = task.record["progress_m"].copy(), task.index.copy()
            copies.step(self._planner.reference(plans, state, step).reshape(copies.n_worlds, -1) / limit)
            worth.add(task.record["progress_m"] - before, task.index > index, "targets" not in self._knows)
        way = copies.goal.target_xy_w - copies.point_xy
        return worth.total(copies.robot.state.link_angle.mean(axis=1), way)


def faults_of_now(robot: Robot) -> dict[str, NDArray[Any]]:
    """Return the faults in an env's state as if those that act now acted for good, and no others came."""
    found: dict[str, NDArray[Any]] = {}
    for part, faults in (("fault", robot.faults), ("second_fault", robot.second_faults)):
        kind = np.where(acting(faults, robot.state.time_s), faults.kind, HEALTHY)
        never = np.full(kind.shape, math.inf)
        found |= {f"{part}/kind": kind, f"{part}/end_s": never, f"{part}/period_s": never}
    return found
