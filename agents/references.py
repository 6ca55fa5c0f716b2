"""Policies that learn nothing, on the scenarios of a run's evaluations: what a learning curve is compared with.

``base`` is the gait below the residual alone. The tuned controllers are those whose files name the robot and the
scenarios, or, where there are none, those in the folder of the file that names the nearest scenarios.
Their rows are kept in the run's folder by the benchmark's runner, which plays them again where anything has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.benchmark.report import best_classical, score
from snake_gym.benchmark.runner import Episodes, play_all
from snake_gym.benchmark.scenarios import Entrant, Scenarios, zero_residual
from snake_gym.config import ConfigError, build, differences, find_config, to_dict
from snake_gym.controllers import resolve_controller
from snake_gym.controllers.tuned import TUNED, Tuning, read_tuned
from snake_gym.envs import EnvConfig
from snake_gym.envs.task_settings import build_env, scenario_settings
from snake_gym.interface.policy import controller_action
from snake_gym.registry import find_task
from snake_gym.robot.catalogue import changed_settings, load_robot

from .config import TrainConfig
from .metrics import AT_END, FAILED, HAS, Columns, summarise

BASE = "base"


@dataclass(frozen=True)
class References:
    """Results of the policies that learn nothing, each row a scenario of the evaluations."""

    base: Episodes | None
    """The gait below the residual alone; None: the actions are no residual."""
    best: Episodes | None
    """The tuned controller with the largest mean score; None: none was tuned for this robot and task."""

    def by_name(self) -> dict[str, Episodes]:
        """Return those that there are, by the name that charts show."""
        named = {BASE: self.base, "" if self.best is None else f"best_{self.best.name}": self.best}
        return {name: episodes for name, episodes in named.items() if episodes is not None}

    def regret(self, columns: Columns) -> dict[str, float]:
        """Return by how much the best controller's score exceeds that of an evaluation, and how often."""
        if self.best is None or self.best.score not in columns:
            return {}
        lead = score(self.best) - columns[self.best.score]
        return {"regret": float(lead.mean()), "regret_share": float((lead > 0.0).mean())}


def play_references(config: TrainConfig, folder: Path, on_step: Callable[[], None]) -> References:
    """Play the evaluation's scenarios of a run with complete settings; ``on_step`` is called at each control step."""
    own: EnvConfig = build(find_task(config.env_id), config.env, "env")
    env = replace(own, observation=type(own.observation)())  # what gaits do not look at, such as their own suspicions
    scenarios = Scenarios(env, env.load_robot(), config.eval.seed, config.eval.episodes, config.env_id)
    base = _entrant(BASE, env.action.controller) if env.action.kind == "residual" else None
    tuned = list(tuned_entrants(scenarios))
    entrants = [*([] if base is None else [base]), *tuned]
    results = play_all(entrants, scenarios, folder, lambda *_: on_step())
    return References(results.pop(0) if base is not None else None, best_classical(results))


def tuned_entrants(scenarios: Scenarios) -> Iterator[Entrant]:
    """Yield the controllers that were tuned for the robot in these scenarios, or in the nearest ones that there are.

    A file counts if it has the name of its controller's kind: others beside it are parts of an oracle.
    """
    gaps: dict[Path, int] = {}
    paths = find_config(TUNED / scenarios.spec.name).rglob("*.yaml")
    for path in sorted(paths, key=lambda path: (len(path.parts), path)):
        try:
            settings, tuning = read_tuned(path)
            if tuning is not None and tuning.env_id == scenarios.env_id and settings.get("kind") == path.stem:
                gaps[path] = _n_changed(tuning, scenarios)
        except ConfigError:  # of another version: no reference
            continue
    fitting = [path for path, gap in gaps.items() if gap == 0]
    nearest = [path for path in gaps if path.parent == min(gaps, key=gaps.__getitem__).parent]
    for name, path in {path.stem: path for path in fitting or nearest}.items():
        try:
            entrant = _entrant(name, resolve_controller({"file": str(path)}, name))
            scenarios.make_env(entrant, 1).close()
        except ConfigError:  # for another robot of that name
            continue
        yield entrant


def means_of(episodes: Episodes) -> dict[str, float]:
    """Return the means that an evaluation logs, as far as the rows have them."""
    columns: Columns = {
        name: np.asarray(episodes.columns[name], np.float64)
        for name in dict.fromkeys(("return", *AT_END, episodes.score))
        if name in episodes.columns and name != FAILED
    }
    texts = [{fault.partition(":")[2] for fault in str(text).split()} for text in episodes.columns["faults"]]
    for kind in sorted(set().union(*texts)):
        columns[HAS + kind] = np.array([kind in text for text in texts], np.float64)
    columns[FAILED] = np.asarray(episodes.columns[FAILED], np.float64)
    return summarise(columns)


def _n_changed(tuning: Tuning, scenarios: Scenarios) -> int:
    """Return the number of settings of robot and scenarios that differ from those of a tuning. Raises ConfigError."""
    tuned_in = scenario_settings(build_env(scenarios.env_id, tuning.env))
    robots = changed_settings(to_dict(load_robot(tuning.robot)), to_dict(scenarios.spec))
    return len(robots) + len(differences(tuned_in, scenario_settings(scenarios.env)))


def _entrant(name: str, controller: dict[str, Any]) -> Entrant:
    action = {"action": controller_action(controller)}
    return Entrant(name, "classical", action, zero_residual, {"controller": controller})


def scores_by_joint(values: NDArray[np.float64], failed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the means (J + 1,) over the episodes without a failed joint, then over those in which joint j failed.

    ``values`` are (W,), ``failed`` (W, J); NaN where there is no such episode.
    """
    chosen = np.column_stack([~failed.any(axis=1), failed])
    count = chosen.sum(axis=0)
    return np.where(count > 0, values @ chosen / np.maximum(count, 1), np.nan)
