"""Tasks without an env: their episodes begun and their steps made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from snake_gym.robot.measurement import Measurement
from snake_gym.robot.spec import FloatArray
from snake_gym.tasks.task import NewEpisodes, Start, Step, Task, begin_episodes

N_JOINTS = 9


def mean_link_angle(seen: Measurement) -> FloatArray:
    """Mean of the links' measured angles (W,) [rad], link by link from the head."""
    links = seen.head_angle[:, None] + np.cumsum(np.insert(seen.joint_angle[:, ::-1], 0, 0.0, axis=1), axis=1)
    return np.asarray(links.mean(axis=1))


def begin(task: Task, heading: Any, u: Any = None, rows: Any = None, **config: Any) -> Start:
    """Begin episodes in all worlds, or in ``rows``, of straight robots; ``config``: groups of the task's settings."""
    rows = task.rows if rows is None else np.asarray(rows)
    numbers = np.random.default_rng(0).random((rows.size, task.n_random)) if u is None else np.asarray(u)
    heading, bent = np.broadcast_to(heading, rows.shape), np.zeros((rows.size, N_JOINTS))
    return begin_episodes(task, NewEpisodes(rows, SimpleNamespace(**config), bent, heading, numbers))


def evaluate(task: Task, before_xy: Any, state: Any, action: FloatArray, work_j: float = 1.0, live: Any = True) -> Any:
    """Terms and complete worlds of a step that ends in ``state``."""
    n_worlds = task.rows.size
    point = state.head_xy if task.tracked_point == "head" else state.centre_xy
    work, moved = np.full(n_worlds, work_j), np.broadcast_to(live, n_worlds)
    return task.evaluate(Step(task.goal(), np.asarray(before_xy), point, state, action, work, moved))
