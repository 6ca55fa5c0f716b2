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

from snake_gym.benchmark.report import rows_csv, summarise, tables
from snake_gym.benchmark.runner import Episodes, code_digest, play
from snake_gym.benchmark.scenarios import BenchmarkConfig, Entrant, EntrantKind, Scenarios, make_scenarios
from snake_gym.config import ConfigError, build, load_yaml, read_json
from snake_gym.config.errors import show
from snake_gym.config.records import versions
from snake_gym.interface.policy import ZeroResidual, controller_action

TOLERANCE = 1e-3
"""Relative difference of numbers that count as equal. Another size of the batch, or another processor, rounds neural
networks otherwise, by 1e-7 in an action, and contacts and friction enlarge that."""
_SMALLEST = 1e-4
"""Absolute difference of numbers that count as equal, for those near 0."""
_LOOSE = 0.5
"""Difference of the bounds of intervals that count as equal, as a share of their width."""
_ASIDE = ("policy", "kind", "episode")
"""Columns that are not results."""
_NEEDED = {"policy", "seed", "progress_m", "is_success", "energy_j", "episode_time_s", "n_faults"}
"""Columns that every file of rows has."""
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
        """Yield what may make a replay differ."""
        if self.summary.get("code") != code_digest():
            yield "it was made by another version of the code"
        told, here = self.summary.get("versions", {}), versions(["numpy", "numba"])
        other = [f"{name} {told[name]} ({here[name]})" for name in here if told.get(name, here[name]) != here[name]]
        if other:
            yield f"it was made with other versions than here (in brackets): {', '.join(other)}"

    def faults(self) -> Iterator[str]:
        """Yield what is wrong in the folder itself: other scenarios, missing rows, numbers without their rows."""
        if self.summary["scenarios"] != self.scenarios.hash():
            yield "its config.yaml does not have the scenarios of its results.json, or this version reads it otherwise"
        yield from disagreements(self.summary, self.rows, self.scenarios.episodes)


def disagreements(summary: Mapping[str, Any], rows: Mapping[str, Sequence[Row]], episodes: int) -> Iterator[str]:
    """Yield which numbers of a ``results.json`` do not follow from the ``rows`` of each policy, as text."""
    found = []
    for name, policy in summary["policies"].items():
        if len(rows.get(name, [])) != episodes:
            yield f"{name} has {len(rows.get(name, []))} rows; expected {episodes}"
            return
        found.append(_episodes(name, policy["kind"], summary["score"], rows[name]))
    again = summarise(found, summary["config"]["resamples"])
    for place, told, here in _differences(summary, again):
        yield f"{place} is {show(told)} in results.json, {show(here)} over its rows"


def _episodes(name: str, kind: EntrantKind, score: str, rows: Sequence[Row]) -> Episodes:
    """Return the episodes that rows tell of, without what happened on the way."""
    names = [column for column in rows[0] if column not in (*_ASIDE, "faults")]
    values = {column: np.array([_number(row[column] or "inf") for row in rows]) for column in names}
    kept = {"is_success": values["is_success"] > 0.5, "n_faults": values["n_faults"].astype(np.int64)}
    return Episodes(name, kind, {**values, **kept}, np.zeros(0), np.zeros((0, len(rows)), np.float32), "", score)


def _differences(told: Any, here: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield place and values where ``told`` is not what is ``here``; it may hold more."""
    if isinstance(here, Mapping):
        for key, value in here.items():
            known = told.get(key) if isinstance(told, Mapping) else None
            yield from _differences(known, value, f"{place}.{key}".removeprefix(".policies").removeprefix("."))
    elif isinstance(here, Sequence) and not isinstance(here, str):
        # The only lists are intervals; with few episodes, rounding in the rows moves them by a part of their width.
        near = _LOOSE * (here[1] - here[0]) + _SMALLEST
        fits = isinstance(told, list) and len(told) == len(here)
        if not fits or any(not abs(a - b) <= near for a, b in zip(told, here, strict=True)):
            yield place, told, here
    elif told != here and not (told is not None and here is not None and _same(str(told), str(here))):
        yield place, told, here


def read_results(folder: Path) -> Results:
    """Return the content of an evaluation's folder. Raises ConfigError for what is missing or no such file."""
    summary = read_summary(folder)
    settings = build(BenchmarkConfig, load_yaml(folder / "config.yaml"), str(folder / "config.yaml"))
    return Results(folder, settings, make_scenarios(settings), summary, read_rows(folder / "episodes.csv"))


def read_rows(path: Path) -> dict[str, list[Row]]:
    """Return the rows of an ``episodes.csv`` by policy. Raises ConfigError if it is none."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file, strict=True))
    except (OSError, ValueError, csv.Error) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    rows: dict[str, list[Row]] = {}
    for line in lines:
        if None in line or None in line.values() or not line.keys() >= _NEEDED:
            raise ConfigError(f"{path} has a row of another form than episodes.csv of an evaluation: {line}"[:200])
        rows.setdefault(line["policy"], []).append(line)
    return rows


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


def check_rows(results: Results, entrant: Entrant, n: int) -> Iterator[tuple[str, str | None]]:
    """Play ``n`` rows of a policy again, chosen at random; yield each with how it differs, None if it does not.

    Their names are texts such as "mine seed 1000003".
    """
    held = results.rows.get(entrant.name, [])
    if not held:
        raise ConfigError(
            f"{results.folder}/episodes.csv has no rows of {entrant.name}; it has {', '.join(results.rows)}"
        )
    chosen = np.sort(np.random.default_rng().permutation(len(held))[:n])
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
    folders = {str(path): path if path.is_dir() else path.parent for path in paths}
    (first, one), *others = read.items()
    for path, summary in others:
        if summary["scenarios"] != one["scenarios"] or summary["score"] != one["score"]:
            raise ConfigError(
                f"{first} and {path} are of different scenarios ({str(one['scenarios'])[:12]} and "
                f"{str(summary['scenarios'])[:12]}); expected one task, robot, settings and seeds, or a table for each"
            )
    policies: dict[str, Any] = {}
    for path, summary in read.items():
        for name, policy in summary["policies"].items():
            if name in policies and policies[name] != policy:
                name = f"{name} ({folders[path]})"
            policies[name] = policy
    try:
        shown: list[Table | str] = [*tables({**one, "policies": policies}, f"results of {len(read)} evaluations")]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"the results are not those of an evaluation of this version: {error!r}") from None
    notes = [f"note: {path}: {note}" for path, summary in read.items() for note in summary.get("notes", [])]
    for path, summary in read.items():
        if (rows := folders[path] / "episodes.csv").is_file():
            faults = disagreements(summary, read_rows(rows), summary["config"]["episodes"])
            notes += [f"note: {path}: {fault}" for fault in faults]
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
