"""Policies that learn nothing, on the scenarios of a run's evaluations: what a learning curve is compared with.

``base`` is the gait below the residual alone. The tuned controllers are those whose files name the robot and the env.
Their rows are kept in the run's folder by the benchmark's runner, which plays them again where anything has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.benchmark.report import best_classical, score
from snake_gym.benchmark.runner import Episodes, play_all
from snake_gym.benchmark.scenarios import Entrant, Scenarios
from snake_gym.config import ConfigError, build, find_config
from snake_gym.controllers import resolve_controller
from snake_gym.controllers.tuned import TUNED, read_tuned
from snake_gym.envs import EnvConfig, SnakeVectorEnv
from snake_gym.interface.policy import ZeroResidual, controller_action
from snake_gym.registry import find_task

from .config import TrainConfig
from .metrics import AT_END, FAILED, HAS, Columns, summarise

BASE = "base"


@dataclass(frozen=True)
class References:
    """Results of the policies that learn nothing, each row a scenario of the evaluations."""

    base: Episodes | None
    """The gait below the residual alone; None: the actions are no residual."""
    best: Episodes | None
    """The tuned controller with the largest mean score; None: none was tuned for this robot and env."""

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
    env: EnvConfig = build(find_task(config.env_id), config.env, "env").without_privileged()
    scenarios = Scenarios(env, env.load_robot(), config.eval.seed, config.eval.episodes, config.env_id)
    base = _entrant(BASE, env.action.controller) if env.action.kind == "residual" else None
    tuned = list(_tuned_entrants(scenarios))
    entrants = [*([] if base is None else [base]), *tuned]
    results = play_all(entrants, scenarios, folder, lambda *_: on_step())
    return References(results.pop(0) if base is not None else None, best_classical(results))


def means_of(episodes: Episodes) -> dict[str, float]:
    """Return the means that an evaluation logs, as far as the rows have them."""
    columns: Columns = {
        name: np.asarray(episodes.columns[name], np.float64)
        for name in ("return", *AT_END)
        if name in episodes.columns and name != FAILED
    }
    texts = [{fault.partition(":")[2] for fault in str(text).split()} for text in episodes.columns["faults"]]
    for kind in sorted(set().union(*texts)):
        columns[HAS + kind] = np.array([kind in text for text in texts], np.float64)
    columns[FAILED] = np.asarray(episodes.columns[FAILED], np.float64)
    return summarise(columns)


def _tuned_entrants(scenarios: Scenarios) -> Iterator[Entrant]:
    """Yield the controllers that were tuned for a robot of that name in that env, the nearest file of each kind."""
    found: set[str] = set()
    paths = find_config(TUNED / scenarios.spec.name).rglob("*.yaml")
    for path in sorted(paths, key=lambda path: (len(path.parts), path)):
        try:
            _, tuning = read_tuned(path)
            if tuning is None or tuning.env_id != scenarios.env_id or path.stem in found:
                continue
            entrant = _entrant(path.stem, resolve_controller({"file": str(path)}, path.stem))
            scenarios.make_env(entrant, 1).close()
        except ConfigError:  # of another version or robot: no reference
            continue
        found.add(path.stem)
        yield entrant


def _entrant(name: str, controller: dict[str, Any]) -> Entrant:
    def make(env: SnakeVectorEnv) -> ZeroResidual:
        return ZeroResidual(env.core.decoder.size)

    return Entrant(name, "classical", {"action": controller_action(controller)}, make, {"controller": controller})


def scores_by_joint(values: NDArray[np.float64], failed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the means (J + 1,) over the episodes without a failed joint, then over those in which joint j failed.

    ``values`` are (W,), ``failed`` (W, J); NaN where there is no such episode.
    """
    chosen = np.column_stack([~failed.any(axis=1), failed])
    count = chosen.sum(axis=0)
    return np.where(count > 0, values @ chosen / np.maximum(count, 1), np.nan)
