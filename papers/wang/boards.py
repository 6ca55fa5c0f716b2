"""Random pegboards crossed in ``SnakeGym/ObstacleField-v0``: seeded, each guaranteed passable for the robot's wave.

Crossed: the head comes within 0.15 m of the goal, three robot lengths from the start and behind all pegs, in time. The
way shown to the controller is a point of the route a third of a robot length ahead (see ``tasks.obstacle_field``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import build
from snake_gym.envs import ObstacleFieldConfig
from snake_gym.envs.core import SnakeCore
from snake_gym.robot.presets import PEGBOARD
from snake_gym.robot.spec import FloatArray

TIME_LIMIT_S = 120.0
_TRACED = 4
"""Boards whose runs are kept whole."""


@dataclass(frozen=True)
class Trace:
    """One run over a board."""

    features: FloatArray
    """(k, 6) obstacles, see ``physics.state.Obstacles``."""
    route_xy: FloatArray
    """(r, 2) [m]."""
    time_s: FloatArray
    """(T,)."""
    centre_xy: FloatArray
    """(T, 2) [m]."""
    head_xy: FloatArray
    """(T, 2) [m]."""
    link_angle: FloatArray
    """(T, N) [rad]."""
    force_n: FloatArray
    """(T, N) contact force on each link, mean over the control step."""


@dataclass(frozen=True)
class Crossings:
    """B boards of one difficulty."""

    difficulty: float
    crossed: NDArray[np.bool_]
    """(B,)."""
    time_s: FloatArray
    """(B,) inf where not crossed."""
    penetration_m: FloatArray
    """(B,) deepest, any sub-step."""
    energy_gain_j: FloatArray
    """(B,) largest gain of kinetic energy in a control step beyond the positive work of the joints."""
    contact_share: FloatArray
    """(B,) of the time with at least one contact."""
    most_contacts: FloatArray
    """(B,) at a time, mean over a control step."""
    peak_force_n: FloatArray
    """(B,) on one link, mean over a control step."""
    traces: tuple[Trace, ...]


def cross_boards(
    n_boards: int,
    difficulty: float,
    seed: int,
    controller: Mapping[str, Any],
    advance: Callable[[float], None],
    robot: str | Mapping[str, Any] = PEGBOARD.name,
) -> Crossings:
    """Run ``controller`` over boards ``seed .. seed + n_boards - 1`` of ``difficulty`` in [0, 1], all side by side."""
    settings = {
        "robot": robot if isinstance(robot, str) else dict(robot),
        "time_limit_s": TIME_LIMIT_S,
        "action": {"kind": "residual", "controller": dict(controller)},
        "field": {"kind": "pegboard", "difficulty": difficulty},
        "n_threads": 1,
    }
    core = SnakeCore(build(ObstacleFieldConfig, settings, "env"), n_boards)
    core.reset(seed + np.arange(n_boards))
    still = np.zeros(core.action.shape)
    gain = np.full(n_boards, -np.inf)
    most, peak, age = np.zeros(n_boards), np.zeros(n_boards), np.zeros(n_boards)
    samples: list[tuple[FloatArray, ...]] = []
    kept = slice(0, min(n_boards, _TRACED))
    energy, work = core.robot.kinetic_energy(), core.robot.state.work_j.copy()
    while core.live.any():
        live = core.live.copy()
        core.step(still)
        state = core.robot.state
        now = core.robot.kinetic_energy()
        gain = np.where(live, np.maximum(gain, now - energy - (state.work_j - work)), gain)
        energy, work = now, state.work_j.copy()
        force = np.hypot(state.contact_force[..., 0], state.contact_force[..., 1])
        most = np.where(live, np.maximum(most, state.n_contacts), most)
        peak = np.where(live, np.maximum(peak, force.max(axis=1)), peak)
        age = np.where(live, state.time_s, age)
        parts = (state.time_s, state.centre_xy, state.head_xy, state.link_angle, force)
        samples.append(tuple(part[kept].copy() for part in parts))
        advance(float(age.max()) / TIME_LIMIT_S)
    infos = core.task.infos()
    return Crossings(
        difficulty, infos["is_success"], infos["time_to_goal_s"], infos["penetration_m"], gain,
        infos["contact_time_s"] / age, most, peak,
        tuple(_trace(core, samples, world, age[world]) for world in range(kept.stop)),
    )  # fmt: skip


def _trace(core: SnakeCore, samples: list[tuple[FloatArray, ...]], world: int, end_s: float) -> Trace:
    steps = round(float(end_s) / core.spec.control_dt_s)
    scenery = core.task.scenery(world)
    assert scenery is not None
    columns = (np.stack([sample[part][world] for sample in samples[:steps]]) for part in range(5))
    return Trace(scenery.features, scenery.route_xy, *columns)
