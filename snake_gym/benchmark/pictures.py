"""Pictures of a comparison: figures, a replay page and a GIF of the same scenario played by different policies.

Needs the extra ``render``; nothing else in this package does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from snake_gym.benchmark.recovery import FIRST, onset_curve
from snake_gym.benchmark.report import best_classical, interval_of, score_key
from snake_gym.benchmark.runner import Episodes, roll
from snake_gym.benchmark.scenarios import Entrant, Scenarios
from snake_gym.envs.recording import Recorder, Recording
from snake_gym.render.animation import scene_gif
from snake_gym.render.palette import policy_colours
from snake_gym.render.plots import Curve, FaultSeries, plot_by_faults, plot_over_time, plot_paired
from snake_gym.render.replay import Scene, replay_page

_QUANTITIES = {
    "mean": ("progress", "mean progress [m]"),
    "success": ("success", "share of episodes that reach the goal"),
}
"""Mean of a score -> name of its file, and label of its axis."""
_SHOWN = 4
"""Largest number of scenarios in the replay."""


def record(entrant: Entrant, scenarios: Scenarios, worlds: Sequence[int]) -> list[Recording]:
    """Replay all scenarios exactly as ``play`` does, and return the motion in the given worlds."""
    with closing(scenarios.make_env(entrant)) as env:
        recorder = Recorder(env.core, worlds)
        for _ in roll(entrant.make_policy(env), env, scenarios.seed):
            recorder.take()
    return recorder.recordings(entrant.name, entrant.kind, scenarios.seed)


def draw_figures(results: Sequence[Episodes], summary: Mapping[str, Any], title: str) -> dict[str, bytes]:
    """Return PNG files by name."""
    chosen = dict(zip([e.name for e in results], policy_colours([e.kind for e in results]), strict=True))
    results = [_by_scenario(episodes) for episodes in results]
    curves = [Curve(e.name, chosen[e.name], e.sample_time_s, e.sample_progress_m) for e in results]
    files = {"progress_over_time.png": plot_over_time(curves, title)}
    around = [onset_curve(e.columns, e.sample_time_s, e.sample_progress_m) for e in results]
    known = [np.isfinite(speed).any(axis=1) for _, speed in around]
    if any(is_known.any() for is_known in known) and (results[0].columns[FIRST] > 0.0).any():
        speeds = [
            curve._replace(time_s=time_s[is_known], values=speed[is_known])
            for curve, (time_s, speed), is_known in zip(curves, around, known, strict=True)
        ]
        files["speed_around_onset.png"] = plot_over_time(speeds, title, "mean speed [m/s]", " from the onset of faults")
    for key in {"mean", score_key(summary["score"])}:
        name, quantity = _QUANTITIES.get(key, (key, key))
        series = [_series(e.name, chosen[e.name], summary["policies"][e.name]["by_faults"], key) for e in results]
        files[f"{name}_by_faults.png"] = plot_by_faults(series, title, quantity)
    sizes = {e.name: summary["policies"][e.name].get("by_size", {}) for e in results}
    for kind in dict.fromkeys(key.split()[0] for key in sizes[results[0].name]):
        keys = [key for key in sizes[results[0].name] if key.split()[0] == kind]
        series = [_series(name, chosen[name], {key: of[key] for key in keys}, "score") for name, of in sizes.items()]
        against = f"{kind}: {'shift [degrees]' if keys[0].endswith('deg') else 'lost share [%]'}"
        _, quantity = _QUANTITIES.get(score_key(summary["score"]), ("", summary["score"]))
        files[f"score_by_{kind}.png"] = plot_by_faults(series, title, quantity, against)
    pair = contestants(results)
    if len(pair) == 2:
        one, other = pair
        compared = one.score if one.score != "is_success" else "progress_m"
        what = "progress [m]" if compared == "progress_m" else compared.replace("_", " ")
        files["paired_scenarios.png"] = plot_paired(
            other.columns[compared], one.columns[compared], one.columns["n_faults"], (other.name, one.name),
            (chosen[other.name], chosen[one.name]), title, what,
        )  # fmt: skip
    return files


def _by_scenario(episodes: Episodes) -> Episodes:
    """Return one row for each scenario: means over trainings of what is drawn."""
    first, samples = _first_play(episodes), episodes.sample_progress_m
    names = {"progress_m", episodes.score} - {"is_success"}
    columns = {**first.columns, **{name: episodes.plays(name).mean(axis=0) for name in names}}
    samples = samples.reshape(len(samples), *episodes.shape).mean(axis=1)
    return replace(first, columns=columns, sample_progress_m=samples)


def _first_play(episodes: Episodes) -> Episodes:
    """Return the rows of the first training."""
    n = episodes.shape[1]
    columns = {name: values[:n] for name, values in episodes.columns.items() if name != "training"}
    return replace(episodes, columns=columns, sample_progress_m=episodes.sample_progress_m[:, :n])


def _series(name: str, colour: str, groups: Mapping[str, Mapping[str, Any]], key: str) -> FaultSeries:
    """Return means of ``key`` and their intervals by numbers of failed joints, or middles of sizes ("weak 20-40 %")."""
    places = [[int(number) for number in re.findall(r"\d+", group)] for group in groups]
    bounds = [interval_of(group, key) or [math.nan] * 2 for group in groups.values()]
    means = [group[key] for group in groups.values()]
    middles = [sum(place) // len(place) for place in places]
    return FaultSeries(name, colour, middles, means, *zip(*bounds, strict=True))


def draw_replay(
    entrants: Sequence[Entrant], results: Sequence[Episodes], scenarios: Scenarios, title: str, note: str
) -> dict[str, bytes]:
    """Return ``replay.html`` with a few scenarios, and ``replay.gif`` with that of the most failed joints."""
    pair = [_first_play(episodes) for episodes in contestants(results)]
    worlds = typical_scenarios(pair, _SHOWN)
    by_name = {entrant.name: entrant for entrant in entrants if entrant.training == 0}
    recordings = [record(by_name[episodes.name], scenarios, worlds) for episodes in pair]
    labels = [str(pair[0].columns["faults"][world]) or "no failed joint" for world in worlds]
    scenes = [Scene(label, tuple(each[i] for each in recordings)) for i, label in enumerate(labels)]
    note = f"{note} Shown: for each number of failed joints, the scenario nearest to the medians.".strip()
    page = replay_page(f"{' and '.join(episodes.name for episodes in pair)}: {title}", scenes, note)
    return {"replay.html": page.encode(), "replay.gif": scene_gif(scenes[-1])}


def contestants(results: Sequence[Episodes]) -> list[Episodes]:
    """Return the policies to show against each other: the first learned and the best classical one, or the best two."""
    learned = [episodes for episodes in results if episodes.kind == "learned"]
    best = best_classical(results)
    if learned and best is not None:
        return [learned[0], best]
    return sorted(results, key=lambda episodes: -episodes.plays(episodes.score).mean())[:2]


def typical_scenarios(pair: Sequence[Episodes], count: int) -> list[int]:
    """Return up to ``count`` scenarios: for a number of failed joints, the one in which every policy is nearest to its
    median progress there."""
    faults = pair[0].columns["n_faults"]
    groups = np.unique(faults)
    groups = groups[np.unique(np.linspace(0, groups.size - 1, min(count, groups.size)).round().astype(int))]
    chosen = []
    for group in groups:
        members = np.flatnonzero(faults == group)
        distance = np.zeros(members.size)
        for episodes in pair:
            values = episodes.columns["progress_m"][members]
            distance += np.abs(values - np.median(values)) / max(float(values.std()), 1e-9)
        chosen.append(int(members[distance.argmin()]))
    return chosen
