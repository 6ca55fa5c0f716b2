"""Results of other people: rows of an evaluation replayed, and several evaluations in one table.

An evaluation's folder holds its settings (``config.yaml``), a row for each episode (``episodes.csv``) and the numbers
(``results.json``). Whoever has the policy can play single rows again.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

import snake_gym
from snake_gym.benchmark.comparison import nominal_weight
from snake_gym.benchmark.distribution import SMALLEST, TOLERANCE
from snake_gym.benchmark.oracle import oracle_entrant
from snake_gym.benchmark.report import DEFINITIONS, rows_csv, summarise, tables
from snake_gym.benchmark.runner import Episodes, code_digest, play
from snake_gym.benchmark.scenarios import (
    MOST_EPISODES,
    ORACLES,
    BenchmarkConfig,
    Entrant,
    EntrantKind,
    Scenarios,
    make_scenarios,
    recorded_settings,
    zero_residual,
)
from snake_gym.benchmark.seed_ranges import seed_note, uses
from snake_gym.benchmark.step_check import check_step, step_check_note
from snake_gym.benchmark.trainings import training_names
from snake_gym.benchmark.variants import varied
from snake_gym.config import ConfigError, Settings, build, choose, differences, load_yaml, read_json, to_json
from snake_gym.config.errors import show
from snake_gym.config.files import LARGEST_RECORD_BYTES, read_file
from snake_gym.config.records import versions
from snake_gym.config.settings import Share
from snake_gym.interface.policy import controller_action

_ASIDE = ("policy", "kind", "episode", "training", "replicate")
"""Columns that are not results."""
_TEXTS = ("policy", "kind", "faults")
"""Columns that are not numbers."""
_NEEDED = {"policy", "seed", "progress_m", "is_success", "energy_j", "episode_time_s", "n_faults"}
"""Columns that every file of rows has."""
_MADE = ("scenarios", "code", "notes", "config", "versions", "definitions")
"""What a results.json holds that does not follow from the rows."""
_IDENTITY: dict[str, tuple[str, ...]] = {
    "learned": ("policy",), "classical": ("controller",), "oracle": ("oracle",),
    "reference": ("controller", "reveal", "dither_rad", "gaits"),
}  # fmt: skip
"""What it holds of a policy, by kind, that does not follow from the rows."""
_ABSENT = object()
_MOST_NAMED = 6
_CONTROL = re.compile(r"\\u00(?:[01][0-9a-f]|7f|[89][0-9a-f])")
"""Characters that would command a terminal, as JSON writes them."""
_FEWEST_WORLDS = 16
"""Number of worlds that are played at least: products with a matrix of few rows are rounded otherwise."""
_FEWEST = 4
"""Number of replayed rows from which on a difference in one direction is no chance."""
Row = Mapping[str, str]


@dataclass(frozen=True)
class _PolicyForm(Settings):
    """What is read of a policy in a results.json."""

    kind: EntrantKind = "learned"
    controller: dict[str, Any] | None = None
    reveal: bool = False
    dither_rad: Share = 0.0
    gaits: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class _Form(Settings):
    """Types of what is read of a results.json."""

    policies: dict[str, dict[str, Any]]
    score: str
    scenarios: str
    code: str
    config: dict[str, Any]
    versions: dict[str, str]
    notes: tuple[str, ...] = ()
    definitions: dict[str, str] = field(default_factory=dict)


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
        told = self.summary.get("versions", {})
        here = {"snake_gym": snake_gym.__version__, **versions(["numpy", "numba"])}
        other = [f"{name} {told[name]} ({here[name]})" for name in here if told.get(name, here[name]) != here[name]]
        if other:
            yield f"it was made with other versions than here (in brackets): {', '.join(other)}"

    def faults(self) -> Iterator[str]:
        """Yield what is wrong in the folder itself: other scenarios or settings, rows, numbers without their rows."""
        if self.summary["scenarios"] != self.scenarios.hash():
            yield "its config.yaml does not have the scenarios of its results.json, or this version reads it otherwise"
        score = self.scenarios.env.make_task(self.scenarios.spec, 1).score
        if self.summary["score"] != score:
            yield f"its score is {self.summary['score']}; {self.scenarios.env_id} is scored by {score}"
        for name in self.config.controllers:
            kind = (self.summary["policies"].get(name, {}).get("controller") or {}).get("kind", name)
            if "=" not in name and kind != name:
                yield f"{name} stands for the tuned controller of that name; its recorded settings are of kind {kind}"
        here = read_json(to_json(recorded_settings(self.config, self.scenarios)), "settings")
        absent = _absent(_differences(self.summary["config"], here))
        if any(absent):
            yield f"its config {_one_sided(*absent)}"
        for name, (told, found) in differences(self.summary["config"], here).items():
            if name.partition(".")[0] != "policies" and name not in (*absent[0], *absent[1]):  # paths may have moved
                yield f"config.{name} is {show(told)} in results.json, {show(found)} by its config.yaml"
        if not _same(str(self.summary.get("weight_n")), str(weight := nominal_weight(self.scenarios))):
            yield f"weight_n is {show(self.summary.get('weight_n'))} in results.json, {show(weight)} by its config.yaml"
        yield from disagreements(self.summary, self.rows)


def disagreements(summary: Mapping[str, Any], rows: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Yield how a ``results.json`` differs from what this version writes of the ``rows`` of each policy, as text.

    Raises ConfigError if its score is none of the rows' columns.
    """
    config, policies, found = summary["config"], summary["policies"], []
    first, episodes, replicates = config["seed"], config["episodes"], config["replicates"]
    kinds = entrant_kinds(config)
    if (told := {name: policy["kind"] for name, policy in policies.items()}) != kinds:
        yield f"its policies are {_named(told)} in results.json, {_named(kinds)} by its settings"
    if others := [name for name in rows if name not in policies]:
        yield f"episodes.csv has rows of {', '.join(others)}, which results.json does not have"
    kept: dict[str, dict[str, Any]] = {}
    for name in [*(name for name in kinds if name in policies), *(name for name in policies if name not in kinds)]:
        policy, held = policies[name], rows.get(name, [])
        trainings = _n_trainings(held)
        if len(held) != (expected := episodes * trainings * replicates):
            yield f"{name} has {len(held)} rows; expected {expected}"
            return
        if summary["score"] not in held[0]:
            raise ConfigError(f"results.json has the score {show(summary['score'])}; expected a column of episodes.csv")
        seen = Counter((*_play_of(row), _number(row["seed"])) for row in held)
        for play_and_seed in product(range(trainings), range(replicates), range(first, first + episodes)):
            if seen[play_and_seed] != 1:
                yield (
                    f"{name} has seed {play_and_seed[2]} {seen[play_and_seed]} times; expected {episodes} seeds from "
                    f"{first} on, once each"
                )
                break
        counted = all(_number(row.get("episode", "")) == _number(row["seed"]) - first for row in held)
        if not counted or {row.get("kind") for row in held} != {policy["kind"]}:
            yield f"{name} has rows of another kind or episode; expected {policy['kind']}, counted from seed {first} on"
        held = sorted(held, key=lambda row: (*_play_of(row), _number(row["seed"])))
        found.append(_episodes(name, policy["kind"], summary["score"], held))
        kept[name] = {key: policy[key] for key in (*_IDENTITY[policy["kind"]], "step_check") if key in policy}
        if trainings > 1:
            kept[name]["training_names"] = training_names(config["policies"].get(name, ()))
    for reference in config["references"]:
        choose(reference, [episodes.name for episodes in found], "results.json config.references")
    again = summarise(found, config["resamples"], config["references"], summary.get("weight_n"))
    again |= {key: summary[key] for key in _MADE if key in summary}
    again["seeds"] = {"first": first, "episodes": episodes, "for": uses(first, episodes)}
    again["policies"] = {name: policy | kept[name] for name, policy in again["policies"].items()}
    unlike = list(_differences(summary, again))
    more, less = _absent(unlike)
    less += [key for key in ("notes", "definitions") if key not in summary]
    less += [f"{name}.{key}" for name in kept for key in _IDENTITY[policies[name]["kind"]] if key not in policies[name]]
    if more or less:
        yield f"results.json {_one_sided(more, less)}"
    for place, told, here in unlike:
        if told is not _ABSENT and here is not _ABSENT:
            yield f"{place} is {show(told)} in results.json, {show(here)} over its rows"
    meanings = summary.get("definitions", {})
    if other := [name for name in {**meanings, **DEFINITIONS} if meanings.get(name) != DEFINITIONS.get(name)]:
        yield f"its definitions of {_some(other)} are not those of this version"


def entrant_kinds(config: Mapping[str, Any]) -> dict[str, EntrantKind]:
    """Return the kind of each entrant of an evaluation with these settings, by name, in the order of its results."""
    kinds: dict[str, EntrantKind] = dict.fromkeys(config["policies"], "learned")
    for entry in config["controllers"]:
        kinds[entry.partition("=")[0]] = "oracle" if entry in ORACLES else "classical"
    for name, variant in config.get("variants", {}).items():
        if (policy := variant.get("policy")) is None or policy in config["policies"]:
            kinds[name] = "reference"
    return kinds


def _absent(unlike: Iterable[tuple[str, Any, Any]]) -> tuple[list[str], list[str]]:
    """Return the places that only the one told has, and those that only this version would write."""
    places = sorted(unlike, key=lambda each: each[0].count("."))
    return [name for name, _, here in places if here is _ABSENT], [name for name, told, _ in places if told is _ABSENT]


def _one_sided(more: Sequence[str], less: Sequence[str]) -> str:
    parts = [f"has {_some(more)} that this version would not write"] if more else []
    parts += [f"lacks {_some(less)}"] if less else []
    return f"{' and '.join(parts)}: another version made it, or somebody changed it"


def _named(kinds: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({kind})" for name, kind in kinds.items()) or "none"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _episodes(name: str, kind: EntrantKind, score: str, rows: Sequence[Row]) -> Episodes:
    """Return the episodes that rows tell of, without what happened on the way."""
    plays = _n_trainings(rows) > 1 or any(_play_of(row)[1] for row in rows)
    aside = [*_TEXTS, "episode", *(() if plays else ("training", "replicate"))]
    names = [column for column in rows[0] if column not in aside]
    values = {column: np.array([_number(row[column] or "inf") for row in rows]) for column in names}
    kept: dict[str, Any] = {"is_success": values["is_success"] > 0.5, "n_faults": values["n_faults"].astype(np.int64)}
    if "faults" in rows[0]:
        kept["faults"] = np.array([row["faults"] for row in rows])
    return Episodes(name, kind, {**values, **kept}, np.zeros(0), np.zeros((0, len(rows)), np.float32), "", score)


def _play_of(row: Row) -> tuple[int, int]:
    """Return the numbers of the training and of the replicate that a row is of; -1 for what is no such number."""
    training, replicate = (_number(row.get(name, "0")) for name in ("training", "replicate"))
    return tuple(int(each) if 0.0 <= each < MOST_EPISODES else -1 for each in (training, replicate))  # type: ignore[return-value]


def _n_trainings(rows: Sequence[Row]) -> int:
    return 1 + max((_play_of(row)[0] for row in rows), default=0)


def _differences(told: Any, here: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield place and values where ``told`` is not what is ``here``; ``_ABSENT`` for what only one of them has."""
    if isinstance(here, Mapping) and isinstance(told, Mapping):
        for key in dict.fromkeys([*here, *told]):
            name = f"{place}.{key}".removeprefix(".policies").removeprefix(".")
            yield from _differences(told.get(key, _ABSENT), here.get(key, _ABSENT), name)
    elif told == here and type(told) is type(here):
        return
    elif isinstance(here, list) and isinstance(told, list) and len(told) == len(here):  # of numbers
        if not all(_is_text(a) is _is_text(b) and _same(str(a), str(b)) for a, b in zip(told, here, strict=True)):
            yield place, told, here
    elif (
        isinstance(here, (Mapping, list))
        or None in (told, here)
        or _is_text(told) is not _is_text(here)
        or not _same(str(told), str(here))
    ):
        yield place, told, here


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def read_results(folder: Path) -> Results:
    """Return the content of an evaluation's folder. Raises ConfigError for what is missing or no such file."""
    summary = read_summary(folder)
    settings = build(BenchmarkConfig, load_yaml(folder / "config.yaml"), str(folder / "config.yaml"))
    return Results(folder, settings, make_scenarios(settings), summary, read_rows(folder / "episodes.csv"))


def read_rows(path: Path) -> dict[str, list[Row]]:
    """Return the rows of an ``episodes.csv`` by policy. Raises ConfigError if it is none."""
    try:
        text = read_file(path, LARGEST_RECORD_BYTES).decode()
        lines = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
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
    if not file.exists():
        raise ConfigError(f"{file} does not exist; expected the folder of an evaluation, which evaluate --out names")
    try:
        summary = read_json(read_file(file, LARGEST_RECORD_BYTES).decode(), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if _CONTROL.search(json.dumps(summary)):
        raise ConfigError(f"{file} has control characters in its text; expected the results of an evaluation")
    keys = ("policies", "score", "scenarios", "code", "config", "versions")
    missing = [key for key in keys if key not in summary] if isinstance(summary, dict) else keys
    if missing:
        raise ConfigError(f"{file} has no {', '.join(missing)}; expected the results of an evaluation of this version")
    form = build(_Form, {f.name: summary[f.name] for f in fields(_Form) if f.name in summary}, str(file))
    kept = ("seed", "episodes", "resamples", "replicates", "references", "controllers", "policies")
    build(BenchmarkConfig, {key: form.config.get(key) for key in kept}, f"{file} config")
    build(BenchmarkConfig, {"variants": form.config.get("variants", {})}, f"{file} config")
    optional = {f.name for f in fields(_PolicyForm)}
    for name, policy in form.policies.items():
        told = {key: policy.get(key) for key in policy.keys() & optional | {"kind", "controller"}}
        read = build(_PolicyForm, told, f"{file} policies.{name}")
        if read.kind not in ("learned", "oracle") and read.controller is None:
            raise ConfigError(f"{file} policies.{name} has no controller; expected its parameters")
    return summary


def recorded_controllers(results: Results) -> list[Entrant]:
    """Return the controllers, told the faults and shaken as they were, with the parameters that the results hold.

    Oracles are those of this version.
    """
    made = []
    for name, policy in results.summary["policies"].items():
        if policy["kind"] == "oracle":
            made.append(oracle_entrant(choose(name, ORACLES, "oracle"), results.scenarios))
        elif policy["kind"] != "learned":
            action = {"action": controller_action(policy["controller"])}
            entrant = Entrant(name, policy["kind"], action, zero_residual, {"controller": policy["controller"]})
            made.append(
                varied(
                    entrant,
                    *(policy.get(key, none) for key, none in (("reveal", False), ("dither_rad", 0.0), ("gaits", ()))),
                )
            )
    return made


class Replayed(NamedTuple):
    """A row that was played again."""

    name: str
    """Text such as "mine seed 1000003"."""
    difference: str | None
    """How it differs; None: it is equal."""
    excess: float = 0.0
    """Score that was told minus that found."""


def drift_note(name: str, replayed: Sequence[Replayed]) -> str | None:
    """Return a note if the scores told of a policy differ from those found in one direction in every row."""
    excess = np.array([row.excess for row in replayed])
    if len(excess) < _FEWEST or not ((excess > 0.0).all() or (excess < 0.0).all()):
        return None
    side = "above" if excess[0] > 0.0 else "below"
    return f"{name}: every score told is {side} the one found, by {np.abs(excess).mean():.2g} on average"


def check_step_told(results: Results, entrant: Entrant) -> Iterator[str]:
    """Yield how the ``step_check`` that the results have of a policy differs from what is found here."""
    policy = results.summary["policies"][entrant.name]
    if "step_check" not in policy or entrant.training > 0:
        return
    rows = sorted(results.rows[entrant.name], key=lambda row: (*_play_of(row), _number(row["seed"])))
    found = check_step(entrant, results.scenarios, _episodes(entrant.name, entrant.kind, "progress_m", rows))
    unlike = list(_differences(policy["step_check"], found, f"{entrant.name}.step_check"))
    if not unlike and (note := step_check_note(entrant.name, policy["step_check"])) not in results.summary.get(
        "notes", ()
    ):
        yield f"results.json has no note {note!r}"
    for place, told, here in unlike:
        told, here = ("nothing" if each is _ABSENT else show(each) for each in (told, here))
        yield f"{place} is {told} in results.json, {here} here"


def missing_notes(results: Results, entrants: Sequence[Entrant]) -> list[str]:
    """Return the notes that the results should have and do not, as far as they follow from what is here.

    ``entrants`` are those whose notes are known; those of controllers stand in the files that they were tuned into.
    """
    told: Sequence[str] = results.summary.get("notes", ())
    lacking: list[str] = []
    wanted = [seed_note(results.config.seed, results.config.episodes), results.scenarios.spec.step_note()]
    for name in results.summary["policies"]:
        still = sum(_number(row.get("stood_still", "0")) for row in results.rows.get(name, ()))
        if still > 0:
            wanted.append(f"{name}: {int(still)} solutions of physics steps did not settle; the robots stood still")
    lacking += [note for note in wanted if note is not None and note not in told]
    for entrant in entrants:
        for note in entrant.notes:
            about = [each.removesuffix(f": {note}").split(", ") for each in told if each.endswith(f": {note}")]
            lacking += [] if any(entrant.name in names for names in about) else [f"{entrant.name}: {note}"]
    return list(dict.fromkeys(lacking))


def check_rows(results: Results, entrant: Entrant, n: int) -> Iterator[Replayed]:
    """Play ``n`` rows of a policy's training again, chosen at random, and yield them."""
    everything = results.rows.get(entrant.name, [])
    held = [row for row in everything if _play_of(row)[0] == entrant.training]
    if not held:
        raise ConfigError(
            f"{results.folder}/episodes.csv has no rows of {entrant.name}; it has {', '.join(results.rows) or 'none'}"
        )
    chosen = np.sort(np.random.default_rng().permutation(len(held))[:n])
    first, last = results.scenarios.seed, results.scenarios.seed + results.scenarios.episodes - 1
    seeds = [int(_number(held[i]["seed"])) if math.isfinite(_number(held[i]["seed"])) else -1 for i in chosen]
    replicates = [_play_of(held[i])[1] for i in chosen]
    inside = [first <= seed <= last and replicate >= 0 for seed, replicate in zip(seeds, replicates, strict=True)]
    again: dict[int, dict[str, str]] = {}
    for replicate in sorted(set(replicates)):
        members = [k for k in range(len(chosen)) if inside[k] and replicates[k] == replicate]
        if members:
            rows = list(dict.fromkeys(seeds[k] - first for k in members))
            rows += [row for row in range(results.scenarios.episodes) if row not in rows][: _FEWEST_WORLDS - len(rows)]
            episodes = play(entrant, results.scenarios, rows=rows, replicate=replicate)
            played = dict(zip(rows, csv.DictReader(rows_csv([episodes]).splitlines()), strict=True))
            again |= {k: played[seeds[k] - first] for k in members}
    for k, i in enumerate(chosen):
        name = f"{entrant.name} seed {held[i]['seed']}"
        name += f" training {entrant.training}" if _n_trainings(everything) > 1 else ""
        name += f" replicate {replicates[k]}" if replicates[k] else ""
        if not inside[k]:
            yield Replayed(name, f"its seed is none of {first} to {last}")
            continue
        row, told = again[k], held[i]
        values = [(key, told.get(key, "no column"), row.get(key, "no column")) for key in {**row, **told}]
        other = [each for each in values if each[0] not in _ASIDE and not _same(*each[1:])]
        text = ", ".join(f"{key} {one or '-'} ({here or '-'})" for key, one, here in other) or None
        score = results.summary["score"]
        yield Replayed(name, text, _number(told[score]) - _number(row.get(score, "")))


def shared_table(paths: Sequence[Path]) -> list[Table | str]:
    """Return one table of the results of several evaluations, and notes on it.

    A policy that is in several of them with the same numbers stands there once; others of one name get the name of
    their folder. Raises ConfigError if the evaluations are not of the same scenarios.
    """
    read = {str(path): read_summary(path) for path in paths}
    faults: list[str] = []
    folders = {str(path): path if path.is_dir() else path.parent for path in paths}
    (first, one), *others = read.items()
    for path, summary in others:
        if summary["scenarios"] != one["scenarios"] or summary["score"] != one["score"]:
            if summary["scenarios"] == one["scenarios"]:
                raise ConfigError(
                    f"{first} is scored by {one['score']}, {path} by {summary['score']}; expected one score"
                )
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
            faults += [f"{path}: {fault}" for fault in disagreements(summary, read_rows(rows))]
    try:
        shown: list[Table | str] = [*tables({**one, "policies": policies}, f"results of {len(read)} evaluations")]
    except (KeyError, TypeError, ValueError, AttributeError):
        wrong = faults[0] if faults else "a number is missing or is none"
        raise ConfigError(f"the results are not those of an evaluation of this version: {wrong}") from None
    notes += [f"note: {fault}" for fault in faults]
    if len({summary["code"] for summary in read.values()}) > 1:
        notes.append("note: the results were made by different versions of the code")
    return [*shown, *notes]


def _same(told: str, found: str) -> bool:
    one, other = _number(told), _number(found)
    if math.isnan(one) or math.isnan(other):
        return told == found
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=SMALLEST)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
