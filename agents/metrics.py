"""Logged results of episodes: means over a window of training episodes, or over an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from snake_gym.benchmark.runner import INFO_COLUMNS, roll
from snake_gym.interface.policy import Policy

from .sb3_vec_env import Ends, Sb3VecEnv

Columns = dict[str, NDArray[np.float64]]
"""Quantities of episodes by name, each (M,)."""

_INFINITE = ("time_to_first_target_s", "last_target_time_s", "time_to_goal_s")
"""Infos that are infinite where nothing was reached, so that they have no mean."""
AT_END = tuple(name for name in INFO_COLUMNS if name not in _INFINITE)
"""Infos kept at the end of an episode, if the env reports them, as is the score."""
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


class EpisodeSums:
    """Sums over the running episodes of the W worlds of ``env``: weighted reward terms and the speed."""

    def __init__(self, env: Any) -> None:
        core = getattr(env, "core", None)
        weights, score = ({}, "progress_m") if core is None else (core.weights, core.task.score)
        self._off = {TERM + name for name, weight in weights.items() if weight == 0.0}
        self._at_end = tuple(dict.fromkeys((*AT_END, score)))
        self._n_worlds = env.num_envs
        self.sums: Columns = {}

    def add(self, infos: Mapping[str, Any], counting: NDArray[np.bool_] | None = None) -> None:
        """Add one step of all worlds, or of the worlds in ``counting`` (W,)."""
        if not self.sums:
            names = [name for name in infos if (name.startswith(TERM) and name not in self._off) or name == SPEED]
            self.sums = {name: np.zeros(self._n_worlds) for name in names}
        for name, total in self.sums.items():
            total += infos[name] if counting is None else infos[name] * counting

    def close(self, ends: Ends) -> Columns:
        """Return columns of the episodes that ended, the env's score among them, and restart their sums at 0."""
        at_end = {name: np.asarray(ends.infos[name][ends.worlds], float) for name in self._at_end if name in ends.infos}
        sums = {name: total[ends.worlds] for name, total in self.sums.items()}
        if SPEED in sums:
            sums[SPEED] /= np.maximum(ends.lengths, 1)
        for total in self.sums.values():
            total[ends.worlds] = 0.0
        return {"return": ends.returns, "length": ends.lengths.astype(float), **at_end, **sums}


def play_episodes(
    policy: Policy, env: VectorEnv[Any, Any, Any], seed: int, should_stop: Callable[[], bool] = lambda: False
) -> Columns | None:
    """Play one deterministic episode of every world; returns None if ``should_stop`` became true meanwhile.

    The autoreset mode of ``env`` is DISABLED; world i plays the scenario of seed ``seed + i``.
    """
    running = np.ones(env.num_envs, bool)
    total = np.zeros(env.num_envs)
    length = np.zeros(env.num_envs, np.int64)
    sums = EpisodeSums(env)
    infos: Mapping[str, Any] = {}
    for step, (reward, ended, infos) in enumerate(roll(policy, env, seed)):
        if should_stop() and not ended.all():
            return None
        if step > 0:
            total += reward * running
            length += running
            sums.add(infos, running)
        running = ~ended
    return sums.close(Ends(np.arange(env.num_envs), total, length, infos))


class EpisodeWindow:
    """Newest ended episodes of the training env ``venv``, ``length`` of them.

    Episodes that end while first episodes are cut short are left out: the cut ones are short, and of the others only
    early successes could end. For the same reason there are no means until every world has ended an episode that
    counts: where success ends an episode, the first ones to end are the successes.
    """

    def __init__(self, venv: Sb3VecEnv, length: int) -> None:
        self.venv, self.length = venv, length
        self.columns: Columns = {}
        """Quantities of the episodes in the window, oldest first."""
        self._running = EpisodeSums(venv.env)
        self._ended = np.zeros(venv.num_envs, bool)

    def update(self) -> None:
        """Add the step that the env just made."""
        infos, ends = self.venv.infos, self.venv.ends
        if ends is None:
            self._running.add(infos)
            return
        ended = np.zeros(self.venv.num_envs, bool)
        ended[ends.worlds] = True
        self._running.add(infos, ~ended)
        self._running.add(ends.infos, ended)
        new = self._running.close(ends)
        if not self.venv.had_cut_episodes:
            before = self.columns or {name: values[:0] for name, values in new.items()}
            self.columns = {name: np.concatenate([before[name], new[name]])[-self.length :] for name in new}
            self._ended[ends.worlds] = True

    def means(self) -> dict[str, float]:
        """Return the means over the window; none until every world has ended an episode that counts."""
        return summarise(self.columns) if self._ended.all() else {}

    def get_state(self) -> dict[str, Any]:
        """Return the whole state: arrays, some of them in dicts."""
        return {"columns": self.columns, "running": self._running.sums, "ended": self._ended}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state from ``get_state``."""
        self.columns, self._running.sums = dict(state["columns"]), dict(state["running"])
        self._ended[:] = state["ended"]
