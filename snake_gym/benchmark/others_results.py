"""Results of other people: rows of an evaluation replayed, and several evaluations in one table.

An evaluation's folder holds its settings (``config.yaml``), a row for each episode (``episodes.csv``) and the numbers
(``results.json``). Whoever has the policy can play single rows again.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from snake_gym.benchmark.report import rows_csv, summarise, tables
from snake_gym.benchmark.runner import Episodes, code_digest, play
from snake_gym.benchmark.scenarios import (
    BenchmarkConfig,
    Entrant,
    EntrantKind,
    Scenarios,
    make_scenarios,
    recorded_settings,
)
from snake_gym.config import ConfigError, Settings, build, differences, load_yaml, read_json, to_json
from snake_gym.config.errors import show
from snake_gym.config.records import versions
from snake_gym.interface.policy import ZeroResidual, controller_action

TOLERANCE = 1e-3
"""Relative difference of numbers that count as equal. Another size of the batch, or another processor, rounds neural
networks otherwise, by 1e-7 in an action, and contacts and friction enlarge that."""
_SMALLEST = 1e-4
"""Absolute difference of numbers that count as equal, for those near 0."""
_ASIDE = ("policy", "kind", "episode")
"""Columns that are not results."""
_TEXTS = ("policy", "kind", "faults")
"""Columns that are not numbers."""
_NEEDED = {"policy", "seed", "progress_m", "is_success", "energy_j", "episode_time_s", "n_faults"}
"""Columns that every file of rows has."""
Row = Mapping[str, str]


@dataclass(frozen=True)
class _PolicyForm(Settings):
    """What is read of a policy in a results.json."""

    kind: EntrantKind = "learned"
    controller: dict[str, Any] | None = None


@dataclass(frozen=True)
class _Form(Settings):
    """Types of what is read of a results.json."""

    policies: dict[str, dict[str, Any]]
    score: str
    scenarios: str
    code: str
    config: dict[str, Any]
    versions: dict[str, str]


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
        """Yield what is wrong in the folder itself: other scenarios or settings, rows, numbers without their rows."""
        if self.summary["scenarios"] != self.scenarios.hash():
            yield "its config.yaml does not have the scenarios of its results.json, or this version reads it otherwise"
        here = read_json(to_json(recorded_settings(self.config, self.scenarios)), "settings")
        for name, (told, found) in differences(self.summary["config"], here).items():
            if name.partition(".")[0] != "policies":  # paths, which may have moved
                yield f"config.{name} is {show(told)} in results.json, {show(found)} by its config.yaml"
        yield from disagreements(self.summary, self.rows)


def disagreements(summary: Mapping[str, Any], rows: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Yield which numbers of a ``results.json`` do not follow from the ``rows`` of each policy, as text.

    Raises ConfigError if its score is none of the rows' columns.
    """
    config, found = summary["config"], []
    first, episodes = config["seed"], config["episodes"]
    for name, policy in summary["policies"].items():
        held = rows.get(name, [])
        if len(held) != episodes:
            yield f"{name} has {len(held)} rows; expected {episodes}"
            return
        if summary["score"] not in held[0]:
            raise ConfigError(f"results.json has the score {show(summary['score'])}; expected a column of episodes.csv")
        seen = Counter(_number(row["seed"]) for row in held)
        for seed in range(first, first + episodes):
            if seen[seed] != 1:
                yield f"{name} has seed {seed} {seen[seed]} times; expected {episodes} seeds from {first} on, once each"
                break
        found.append(_episodes(name, policy["kind"], summary["score"], held))
    again = summarise(found, config["resamples"])
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
    elif isinstance(here, Sequence) and not isinstance(here, str):  # the only lists are intervals
        fits = isinstance(told, list) and len(told) == len(here)
        if not fits or not all(_same(str(a), str(b)) for a, b in zip(told, here, strict=True)):
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
        for column, text in line.items():
            if column not in _TEXTS and text and math.isnan(_number(text)):
                raise ConfigError(
                    f"{path} has {text!r} as {column} of {line['policy']}, seed {line['seed']}; expected a number"
                )
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
    form = build(_Form, {key: summary[key] for key in keys}, str(file))
    build(BenchmarkConfig, {key: form.config.get(key) for key in ("seed", "episodes", "resamples")}, f"{file} config")
    for name, policy in form.policies.items():
        read = build(_PolicyForm, {key: policy.get(key) for key in ("kind", "controller")}, f"{file} policies.{name}")
        if read.kind == "classical" and read.controller is None:
            raise ConfigError(f"{file} policies.{name} has no controller; expected its parameters")
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
    notes = [f"note: {path}: {note}" for path, summary in read.items() for note in summary.get("notes", [])]
    for path, summary in read.items():
        if (rows := folders[path] / "episodes.csv").is_file():
            faults = disagreements(summary, read_rows(rows))
            notes += [f"note: {path}: {fault}" for fault in faults]
    try:
        shown: list[Table | str] = [*tables({**one, "policies": policies}, f"results of {len(read)} evaluations")]
    except (KeyError, TypeError, ValueError, AttributeError):
        wrong = notes[-1].removeprefix("note: ") if notes else "a number is missing or is none"
        raise ConfigError(f"the results are not those of an evaluation of this version: {wrong}") from None
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
