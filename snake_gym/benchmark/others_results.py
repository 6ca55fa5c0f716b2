"""Results of other people: rows of an evaluation replayed, and several evaluations in one table.

An evaluation's folder holds its settings (``config.yaml``), a row for each episode (``episodes.csv``) and the numbers
(``results.json``). Whoever has the policy can play single rows again.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from snake_gym.benchmark.report import rows_csv, tables
from snake_gym.benchmark.runner import code_digest, play
from snake_gym.benchmark.scenarios import BenchmarkConfig, Entrant, Scenarios, make_scenarios
from snake_gym.config import ConfigError, build, load_yaml, read_json
from snake_gym.config.records import versions
from snake_gym.interface.policy import ZeroResidual, controller_action

TOLERANCE = 1e-3
"""Relative difference of numbers that count as equal. Another size of the batch, or another processor, rounds neural
networks otherwise, by 1e-7 in an action, and contacts and friction enlarge that."""
_SMALLEST = 1e-4
"""Absolute difference of numbers that count as equal, for those near 0."""
_ASIDE = ("policy", "kind", "episode")
"""Columns that are not results."""
Row = Mapping[str, str]


@dataclass(frozen=True)
class Results:
    """Content of an evaluation's folder."""

    folder: Path
    config: BenchmarkConfig
    scenarios: Scenarios
    summary: Mapping[str, Any]
    rows: Mapping[str, Sequence[Row]]
    """Rows of each policy, in the order of the file."""

    def notes(self) -> Iterator[str]:
        """Yield what may make a replay differ, and what does not fit in the folder itself."""
        if self.summary.get("scenarios") != self.scenarios.hash():
            yield "its config.yaml does not have the scenarios of its results.json, or this version reads it otherwise"
        if self.summary.get("code") != code_digest():
            yield "it was made by another version of the code"
        told, here = self.summary.get("versions", {}), versions(["numpy", "numba"])
        other = [f"{name} {told[name]} ({here[name]})" for name in here if told.get(name, here[name]) != here[name]]
        if other:
            yield f"it was made with other versions than here (in brackets): {', '.join(other)}"
        for name, policy in self.summary["policies"].items():
            rows = self.rows.get(name, [])
            if len(rows) != self.scenarios.episodes:
                yield f"{name} has {len(rows)} rows; expected {self.scenarios.episodes}"
                continue
            mean = math.fsum(_number(row["progress_m"]) for row in rows) / len(rows)
            if not _same(f"{mean:.9g}", f"{policy['mean']:.9g}"):
                yield f"the mean progress of {name} is {policy['mean']:.6g} in results.json, {mean:.6g} over its rows"


def read_results(folder: Path) -> Results:
    """Return the content of an evaluation's folder. Raises ConfigError for what is missing or no such file."""
    summary = read_summary(folder)
    settings = build(BenchmarkConfig, load_yaml(folder / "config.yaml"), str(folder / "config.yaml"))
    path = folder / "episodes.csv"
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file, strict=True))
    except (OSError, ValueError, csv.Error) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    rows: dict[str, list[Row]] = {}
    for line in lines:
        if None in line or None in line.values() or not {"policy", "seed", "progress_m"} <= line.keys():
            raise ConfigError(f"{path} has a row of another form than episodes.csv of an evaluation: {line}"[:200])
        rows.setdefault(line["policy"], []).append(line)
    return Results(folder, settings, make_scenarios(settings), summary, rows)


def read_summary(path: Path) -> dict[str, Any]:
    """Return the content of a results.json, or of that in a folder. Raises ConfigError."""
    file = path / "results.json" if path.is_dir() else path
    try:
        summary = read_json(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    keys = ("policies", "score", "scenarios", "code", "config", "versions")
    missing = [key for key in keys if key not in summary] if isinstance(summary, dict) else keys
    if missing:
        raise ConfigError(f"{file} has no {', '.join(missing)}; expected the results of an evaluation of this version")
    return summary


def recorded_controllers(results: Results) -> list[Entrant]:
    """Return the classical policies with the parameters that the results hold."""
    made = []
    for name, policy in results.summary["policies"].items():
        if policy["kind"] == "classical":
            action = {"action": controller_action(policy["controller"])}
            made.append(Entrant(name, "classical", action, lambda env: ZeroResidual(env.core.decoder.size), {}))
    return made


def check_rows(results: Results, entrant: Entrant, n: int, seed: int | None = None) -> Iterator[tuple[str, str | None]]:
    """Play ``n`` rows of a policy again, chosen at random; yield each with how it differs, None if it does not.

    Their names are texts such as "mine seed 1000003". ``seed`` of the choice; None: another one each time.
    """
    held = results.rows.get(entrant.name, [])
    if not held:
        raise ConfigError(
            f"{results.folder}/episodes.csv has no rows of {entrant.name}; it has {', '.join(results.rows)}"
        )
    chosen = np.sort(np.random.default_rng(seed).permutation(len(held))[:n])
    first, last = results.scenarios.seed, results.scenarios.seed + results.scenarios.episodes - 1
    seeds = [int(_number(held[i]["seed"])) if math.isfinite(_number(held[i]["seed"])) else -1 for i in chosen]
    inside = [seed for seed in seeds if first <= seed <= last]
    again: Iterator[dict[str, str]] = iter(())
    if inside:
        episodes = play(entrant, results.scenarios, rows=[seed - first for seed in inside])
        again = iter(csv.DictReader(rows_csv([episodes]).splitlines()))
    for i, number in zip(chosen, seeds, strict=True):
        name = f"{entrant.name} seed {held[i]['seed']}"
        if number not in inside:
            yield name, f"its seed is none of {first} to {last}"
            continue
        row, told = next(again), held[i]
        other = [key for key in row if key not in _ASIDE and key in told and not _same(told[key], row[key])]
        yield name, ", ".join(f"{key} {told[key] or '-'} ({row[key] or '-'})" for key in other) or None


def shared_table(paths: Sequence[Path]) -> list[Table | str]:
    """Return one table of the results of several evaluations, and notes on it.

    A policy that is in several of them with the same numbers stands there once; others of one name get the name of
    their folder. Raises ConfigError if the evaluations are not of the same scenarios.
    """
    read = {str(path): read_summary(path) for path in paths}
    (first, one), *others = read.items()
    for path, summary in others:
        if summary["scenarios"] != one["scenarios"] or summary["score"] != one["score"]:
            raise ConfigError(
                f"{first} and {path} are of different scenarios ({str(one['scenarios'])[:12]} and "
                f"{str(summary['scenarios'])[:12]}); expected one task, robot, settings and seeds, or a table for each"
            )
    policies: dict[str, Any] = {}
    for path, summary in read.items():
        place = Path(path) if Path(path).is_dir() else Path(path).parent
        for name, policy in summary["policies"].items():
            if name in policies and policies[name] != policy:
                name = f"{name} ({place})"
            policies[name] = policy
    try:
        shown: list[Table | str] = [*tables({**one, "policies": policies}, f"results of {len(read)} evaluations")]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"the results are not those of an evaluation of this version: {error!r}") from None
    notes = [f"note: {path}: {note}" for path, summary in read.items() for note in summary.get("notes", [])]
    if len({summary["code"] for summary in read.values()}) > 1:
        notes.append("note: the results were made by different versions of the code")
    return [*shown, *notes]


def _same(told: str, found: str) -> bool:
    one, other = _number(told), _number(found)
    if math.isnan(one) or math.isnan(other):
        return told == found
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=_SMALLEST)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
