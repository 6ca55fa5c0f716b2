"""Logged results of episodes: means over a window of training episodes, or over an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from snake_gym.benchmark.runner import INFO_COLUMNS, roll
from snake_gym.interface.policy import Policy

from .sb3_vec_env import Sb3VecEnv

Columns = dict[str, NDArray[np.float64]]
"""Quantities of episodes by name, each (M,)."""

_INFINITE = ("time_to_first_target_s", "last_target_time_s", "time_to_goal_s")
"""Infos that are infinite where nothing was reached, so that they have no mean."""
AT_END = tuple(name for name in INFO_COLUMNS if name not in _INFINITE)
"""Infos kept at the end of an episode, if the env reports them, beside the score."""
TERM = "reward/"
"""Prefix of the weighted reward terms in the infos; their sums over an episode add up to its return."""
SPEED = "speed_m_s"
FAILED = "n_failed_joints"
_MEAN_NAMES = {"is_success": "success_rate", "targets_reached": "targets"}
_BROKEN_DOWN = {"progress_m": "progress", "is_success": "success", "tracking": "tracking"}
"""Quantities of which there are also means by number of faults."""


def summarise(columns: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    """Return means by name.

    ``progress/<k>_failed`` is over the episodes that ended with k failed joints; so are ``success/...`` and
    ``tracking/...``.
    """
    means = {
        _MEAN_NAMES.get(name, name): float(values.mean())
        for name, values in columns.items()
        if values.size and name != FAILED
    }
    if "progress_m" in means:
        means["progress/all"] = means.pop("progress_m")
    for count in np.unique(columns[FAILED]) if FAILED in columns else ():
        chosen = columns[FAILED] == count
        for name, label in _BROKEN_DOWN.items():
            if name in columns:
                means[f"{label}/{int(count)}_failed"] = float(columns[name][chosen].mean())
    return means


def terms_off(env: Any) -> frozenset[str]:
    """Return the names in the infos of reward terms whose weight is 0."""
    core = getattr(env, "core", None)
    return frozenset() if core is None else frozenset(TERM + name for name, w in core.weights.items() if w == 0.0)


class Accumulator:
    """Sums over the running episodes of W worlds: each weighted reward term that is not ``off``, and the speed."""

    def __init__(self, n_worlds: int, off: Iterable[str] = ()) -> None:
        self.n_worlds = n_worlds
        self.off = frozenset(off)
        self.sums: Columns = {}

    def add(self, infos: Mapping[str, Any], counting: NDArray[np.bool_] | None = None) -> None:
        """Add one step of all worlds, or of the worlds in ``counting`` (W,)."""
        if not self.sums:
            names = [name for name in infos if (name.startswith(TERM) and name not in self.off) or name == SPEED]
            self.sums = {name: np.zeros(self.n_worlds) for name in names}
        for name, total in self.sums.items():
            total += infos[name] if counting is None else infos[name] * counting

    def close(self, worlds: NDArray[np.int64], lengths: NDArray[np.int64]) -> Columns:
        """Return columns of the episodes that ended in ``worlds`` (M,), and restart their sums at 0."""
        columns = {name: total[worlds] for name, total in self.sums.items()}
        if SPEED in columns:
            columns[SPEED] = columns[SPEED] / np.maximum(lengths, 1)
        for total in self.sums.values():
            total[worlds] = 0.0
        return columns


def score_of(env: Any) -> str:
    """Return the info by which the env's task compares policies; that of an env of another package is its progress."""
    core = getattr(env, "core", None)
    return "progress_m" if core is None else str(core.task.score)


def end_columns(infos: Mapping[str, Any], worlds: NDArray[np.int64], score: str) -> Columns:
    """Return the infos, and the ``score``, at the end of the episodes in ``worlds``."""
    names = [name for name in dict.fromkeys((*AT_END, score)) if name in infos]
    return {name: np.asarray(infos[name][worlds], dtype=np.float64) for name in names}


def play_episodes(
    policy: Policy,
    env: VectorEnv[Any, Any, Any],
    seed: int,
    should_stop: Callable[[], bool] = lambda: False,
) -> Columns | None:
    """Play one deterministic episode of every world; returns None if ``should_stop`` became true meanwhile.

    The autoreset mode of ``env`` is DISABLED; world i plays the scenario of seed ``seed + i``.
    """
    running = np.ones(env.num_envs, bool)
    total = np.zeros(env.num_envs)
    length = np.zeros(env.num_envs, np.int64)
    sums = Accumulator(env.num_envs, terms_off(env))
    infos: Mapping[str, Any] = {}
    for step, (reward, ended, infos) in enumerate(roll(policy, env, seed)):
        if should_stop() and not ended.all():
            return None
        if step > 0:
            total += reward * running
            length += running
            sums.add(infos, running)
        running = ~ended
    worlds = np.arange(env.num_envs)
    columns: Columns = {"return": total, "length": length.astype(np.float64)}
    return {**columns, **end_columns(infos, worlds, score_of(env)), **sums.close(worlds, length)}


class EpisodeWindow:
    """Newest ended episodes of a training env.

    Episodes that end while first episodes are cut short are left out: the cut ones are short, and of the others only
    early successes could end. For the same reason there are no means until every world has ended an episode that
    counts: where success ends an episode, the first ones to end are the successes.
    """

    def __init__(self, n_worlds: int, length: int) -> None:
        self.length = length
        self._kept: Columns = {}
        self._new: list[Columns] = []
        self._running = Accumulator(n_worlds)
        self._ended = np.zeros(n_worlds, bool)

    def update(self, venv: Sb3VecEnv) -> None:
        """Add the step that ``venv`` just made."""
        if not self._running.sums:
            self._running.off = terms_off(venv.env)
        ends = venv.ends
        if ends is None:
            self._running.add(venv.infos)
            return
        ended = np.zeros(venv.num_envs, bool)
        ended[ends.worlds] = True
        self._running.add(venv.infos, ~ended)
        self._running.add(ends.infos, ended)
        new = {"return": ends.returns, "length": ends.lengths.astype(np.float64)}
        new |= end_columns(ends.infos, ends.worlds, score_of(venv.env))
        new |= self._running.close(ends.worlds, ends.lengths)
        if not venv.had_cut_episodes:
            self._new.append(new)
            self._ended[ends.worlds] = True

    def means(self) -> dict[str, float]:
        """Return the means over the window; none until every world has ended an episode that counts."""
        return summarise(self.columns) if self._ended.all() else {}

    @property
    def columns(self) -> Columns:
        """Quantities of the episodes in the window, oldest first."""
        parts = [self._kept, *self._new] if self._kept else self._new
        if self._new:
            self._kept = {name: np.concatenate([part[name] for part in parts])[-self.length :] for name in parts[0]}
            self._new = []
        return self._kept

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return the whole state as arrays."""
        state: dict[str, NDArray[Any]] = {f"window/{name}": values.copy() for name, values in self.columns.items()}
        state["ended/worlds"] = self._ended.copy()
        return state | {f"running/{name}": values.copy() for name, values in self._running.sums.items()}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore a state from ``get_state``."""
        parts: dict[str, Columns] = {"window": {}, "running": {}, "ended": {}}
        for name, values in state.items():
            part, _, rest = name.partition("/")
            parts[part][rest] = np.array(values)
        self._kept, self._new, self._running.sums = parts["window"], [], parts["running"]
        self._ended[:] = parts["ended"]["worlds"]
