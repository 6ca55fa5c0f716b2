"""Sweep of a benchmark over settings: every combination of the values of a few axes.

An axis sets the same value at one or more keys of the benchmark's settings: ``env.field.difficulty``, or the smallest
and the largest number of failed joints together. Each combination is a comparison of its own, in a folder of its own
below the sweep's, on scenarios with the same seeds; ``sweep.json`` and ``sweep.csv`` hold them side by side.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from snake_gym.benchmark.report import show_bounds, tables, verdicts
from snake_gym.benchmark.scenarios import BenchmarkConfig, Scenarios, make_scenarios
from snake_gym.config import ConfigError, build, to_dict, to_json, write_atomic

Play = Callable[[BenchmarkConfig, Scenarios, Path], dict[str, Any]]
"""Function that plays one benchmark on its scenarios, writes into a folder, and returns the summary."""
COLUMNS = (
    "success", "success_ci95", "mean", "ci95", "time_to_goal_s", "energy_j_per_m", "episodes", "lead", "lead_ci95",
    "tracking", "tracking_ci95", "cross_track_m", "speed_error_m_s", "heading_error_rad", "iqm", "iqm_ci95",
    "worst_tenth", "worst_tenth_ci95", "cost_of_transport", "noise",
)  # fmt: skip
"""Keys of each policy's summary that are kept; see ``report.DEFINITIONS``."""


class Combination(NamedTuple):
    """Set of values, one for each axis."""

    values: dict[str, Any]
    """Value by name of the axis."""
    config: BenchmarkConfig
    folder: str
    """Name of its folder."""


def combinations(config: BenchmarkConfig) -> list[Combination]:
    """Return all combinations, the last axis changing fastest. Raises ConfigError without axes or for unknown keys."""
    axes = config.sweep
    if not axes:
        raise ConfigError("sweep is empty; expected at least one axis, as in configs/benchmark/obstacle_field.yaml")
    made = []
    for values in itertools.product(*(axis.values for axis in axes.values())):
        settings = to_dict(config)
        settings["sweep"] = {}
        for axis, value in zip(axes.values(), values, strict=True):
            for key in axis.keys:
                _put(settings, key, value)
        chosen = dict(zip(axes, values, strict=True))
        folder = ",".join(f"{name.replace(' ', '_')}={_plain(value)}" for name, value in chosen.items())
        made.append(Combination(chosen, build(BenchmarkConfig, settings, folder), folder))
    return made


def play_one(
    config: BenchmarkConfig, play: Play, out: Path, pictures: bool = True
) -> tuple[dict[str, Any], list[Table | str]]:
    """Play the benchmark itself; return the result of ``play``, with ``pictures`` or not, and the tables to show."""
    scenarios = make_scenarios(config)
    summary = play(config, scenarios, out)
    title = f"{scenarios.title()}, mean of each policy"
    shown: list[Table | str] = [
        *tables(summary, title),
        *verdicts(summary),
        *(f"note: {note}" for note in summary["notes"]),
        f"results, plots and replay.html are in {out}" if pictures else f"results are in {out}",
    ]
    return summary, shown


def play_sweep(
    config: BenchmarkConfig, play: Play, out: Path, pictures: bool = True
) -> tuple[dict[str, Any], list[Table | str]]:
    """Play every combination of the config's sweep; return all rows and the tables to show. See ``play_one``."""
    made = combinations(config)
    scenarios = [make_scenarios(each.config) for each in made]  # a wrong setting is named before anything is played
    pairs = zip(made, scenarios, strict=True)
    summaries = [play(each.config, scenario, out / each.folder) for each, scenario in pairs]
    rows = sweep_rows(made, summaries)
    results = {"sweep": to_dict(config.sweep), "rows": rows}
    write_atomic(out / "sweep.json", to_json(results))
    write_atomic(out / "sweep.csv", sweep_csv(rows))
    title = f"{scenarios[0].title()} for each line, 95 % intervals"
    pairs_of = zip(made, summaries, strict=True)
    said = [f"{each.folder}: {sentence}" for each, summary in pairs_of for sentence in verdicts(summary)]
    notes = dict.fromkeys(note for summary in summaries for note in summary["notes"])
    shown = [
        *said,
        *(f"note: {note}" for note in notes),
        f"results are in {out}, plots and replays in its folders" if pictures else f"results are in {out}",
    ]
    return results, [sweep_table(made, summaries, title), *shown]


def sweep_rows(made: Sequence[Combination], summaries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each policy of each combination: its values, the policy, and ``COLUMNS``."""
    return [
        {**one.values, "policy": name, **{column: policy[column] for column in COLUMNS if column in policy}}
        for one, summary in zip(made, summaries, strict=True)
        for name, policy in summary["policies"].items()
    ]


def sweep_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return ``sweep_rows`` as text; an interval becomes two columns, ``_low`` and ``_high``."""
    flat = []
    for row in rows:
        line: dict[str, Any] = {}
        for name, value in row.items():
            if name.endswith("ci95"):
                low, high = value or (math.nan, math.nan)
                line |= {f"{name}_low": low, f"{name}_high": high}
            else:
                line[name] = value
        flat.append(line)
    names = list(dict.fromkeys(name for line in flat for name in line))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _plain(value) for name, value in line.items()} for line in flat)
    return buffer.getvalue()


def sweep_table(made: Sequence[Combination], summaries: Sequence[Mapping[str, Any]], title: str) -> Table:
    """Return the score of every policy with its 95 % interval, one line for each combination."""
    score = summaries[0]["score"]
    shown = Table(title=Text(title), title_justify="left", title_style="", box=SIMPLE_HEAD, header_style="bold")
    for name in (*made[0].values, *summaries[0]["policies"]):
        shown.add_column(Text(name), justify="right")
    for one, summary in zip(made, summaries, strict=True):
        cells = [_score(policy, score) for policy in summary["policies"].values()]
        shown.add_row(*(_plain(value) for value in one.values.values()), *cells)
    return shown


def _score(policy: Mapping[str, Any], score: str) -> str:
    if score == "is_success":
        bounds = [100.0 * bound for bound in policy["success_ci95"]]
        return f"{100.0 * policy['success']:.1f} {show_bounds(bounds, '.1f')} %"
    if score == "progress_m":
        return f"{policy['mean']:.2f} {show_bounds(policy['ci95'], '.2f')} m"
    return f"{policy[score]:.3f} {show_bounds(policy[f'{score}_ci95'], '.3f')}"


def _put(settings: dict[str, Any], key: str, value: Any) -> None:
    *groups, last = key.split(".")
    for group in groups:
        settings = settings.setdefault(group, {})
    settings[last] = value


def _plain(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
