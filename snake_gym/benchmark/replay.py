"""Rows of an evaluation played again and compared.

An evaluation's folder holds its settings (``config.yaml``), a row for each episode (``episodes.csv``) and the numbers
(``results.json``). Whoever has the policies can play its rows again.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from snake_gym.benchmark.oracle import oracle_entrant
from snake_gym.benchmark.recovery import RECOVERY
from snake_gym.benchmark.report import rows_csv
from snake_gym.benchmark.runner import play
from snake_gym.benchmark.scenarios import (
    ORACLES,
    BenchmarkConfig,
    Entrant,
    Scenarios,
    make_scenarios,
    reveal_faults,
    zero_residual,
)
from snake_gym.config import ConfigError, build, choose, load_yaml, read_json
from snake_gym.interface.policy import controller_action

_NOT_COMPARED = ("policy", "kind", "episode", "training", RECOVERY)
"""Columns that name a row, and that of the time to a share of another policy's speed."""
_FEWEST_WORLDS = 16
"""Worlds in a batch at least: products with few rows are rounded otherwise."""
_TOLERANCE, _SMALLEST = 1e-3, 1e-4
"""Relative and absolute difference of numbers that count as equal. Another size of the batch, or another processor,
rounds neural networks otherwise, by 1e-7 in an action, and contacts and friction enlarge that."""


@dataclass(frozen=True)
class Results:
    """Content of an evaluation's folder."""

    scenarios: Scenarios
    summary: Mapping[str, Any]
    rows: list[dict[str, str]]


def read_results(folder: Path) -> Results:
    """Return the content of an evaluation's folder.

    Raises ConfigError for what is missing, and if its settings no longer give the scenarios of its results.
    """
    file = folder / "results.json"
    if not file.is_file():
        raise ConfigError(f"{file} does not exist; expected the folder of an evaluation, which evaluate --out names")
    summary = read_json(file.read_bytes(), str(file))
    scenarios = make_scenarios(build(BenchmarkConfig, load_yaml(folder / "config.yaml"), str(folder / "config.yaml")))
    if summary["scenarios"] != scenarios.hash():
        raise ConfigError(
            f"{folder} has results of scenarios {str(summary['scenarios'])[:12]}, but its config.yaml gives "
            f"{scenarios.hash()[:12]} here; expected the folder and the version of snake_gym that made it"
        )
    return Results(scenarios, summary, list(csv.DictReader((folder / "episodes.csv").read_text("utf-8").splitlines())))


def recorded_controllers(results: Results) -> list[Entrant]:
    """Return controllers with the parameters that the results hold, and this version's oracles."""
    made = []
    for name, policy in results.summary["policies"].items():
        if policy["kind"] == "oracle":
            made.append(oracle_entrant(choose(name, ORACLES, "oracle"), results.scenarios))
        elif policy["kind"] != "learned":
            action = {"action": controller_action(policy["controller"])}
            entrant = Entrant(name, policy["kind"], action, zero_residual, {"controller": policy["controller"]})
            made.append(reveal_faults(entrant) if policy.get("reveal") else entrant)
    return made


def replay_rows(results: Results, entrant: Entrant, n: int) -> Iterator[tuple[str, str | None]]:
    """Play ``n`` rows of a policy's training again, chosen at random.

    Yields the row's name ("mine seed 1000003") and how it differs; None: it is equal.
    """
    of_policy = [row for row in results.rows if row["policy"] == entrant.name]
    held = [row for row in of_policy if int(row.get("training", 0)) == entrant.training]
    chosen = [held[i] for i in np.sort(np.random.default_rng().permutation(len(held))[:n])]
    first, episodes = results.scenarios.seed, results.scenarios.episodes
    recorded = {int(row["seed"]) - first: row for row in chosen}
    worlds = [*recorded, *(i for i in range(episodes) if i not in recorded)]
    worlds = worlds[: max(_FEWEST_WORLDS, len(recorded))]
    played = rows_csv([play(entrant, results.scenarios, rows=worlds)])
    for i, here in zip(recorded, csv.DictReader(played.splitlines()), strict=False):
        pairs = {key: (recorded[i].get(key) or "-", here.get(key) or "-") for key in {**here, **recorded[i]}}
        unlike = (f"{k} {a} ({b})" for k, (a, b) in pairs.items() if k not in _NOT_COMPARED and not _same(a, b))
        name = f"{entrant.name} seed {first + i}"
        yield name + (f" training {entrant.training}" if entrant.training else ""), ", ".join(unlike) or None


def _same(recorded: str, found: str) -> bool:
    try:
        one, other = float(recorded), float(found)
    except ValueError:
        return recorded == found
    return math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_SMALLEST)
