"""Complete comparison: play, summarise, and write everything into one folder.

``results.json`` (numbers and settings), ``episodes.csv`` (one line for each episode of each policy), ``config.yaml``,
``*.png``, ``replay.html`` and ``replay.gif`` (the same scenarios side by side).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

import snake_gym
from snake_gym.benchmark.report import rows_csv, summarise, verdicts
from snake_gym.benchmark.runner import play_all
from snake_gym.benchmark.scenarios import BenchmarkConfig, Entrant, Scenarios
from snake_gym.benchmark.seed_ranges import seed_note
from snake_gym.config import ConfigError, choose, dump_yaml, make_folder, require, to_dict, to_json, write_atomic
from snake_gym.config.records import versions
from snake_gym.robot.spec import GRAVITY_M_S2

_PACKAGES = ("numpy", "scipy", "numba", "gymnasium", "stable-baselines3", "torch")
"""Libraries that the numbers depend on."""


def compare(
    config: BenchmarkConfig,
    scenarios: Scenarios,
    entrants: Sequence[Entrant],
    out: Path,
    pictures: bool = True,
    progress: Console | None = None,
) -> dict[str, Any]:
    """Play every entrant in the ``scenarios`` of ``config``, and write the results into ``out``.

    ``pictures``: draw plots and replays (extra ``render``). ``progress``: console for a bar; None: no bar. Returns the
    content of ``results.json``.

    Raises ConfigError if entrants are missing or share a name, pictures cannot be drawn, or ``out`` cannot be made.
    """
    names = list(dict.fromkeys(entrant.name for entrant in entrants))
    if not names:
        raise ConfigError("there is nothing to compare; give at least one policy or controller")
    members = [(entrant.name, entrant.training) for entrant in entrants]
    for name in (name for name, training in members if members.count((name, training)) > 1):
        raise ConfigError(f"two policies are called {name!r}; give one of them another name with NAME=PATH")
    for reference in config.references:
        choose(reference, names, "references")
    if pictures:
        require("a comparison with pictures (--no-pictures: without)", "matplotlib", "PIL", "pygame")
    make_folder(out)
    general = seed_note(config.seed, config.episodes), scenarios.spec.step_note()
    notes = [*(note for note in general if note is not None), *entrant_notes(entrants)]
    results = play_all(entrants, scenarios, progress)
    weight_n = float(scenarios.spec.links("link_mass_kg").sum() * GRAVITY_M_S2)
    summary = {
        **summarise(results, config.resamples, config.references, weight_n),
        "scenarios": scenarios.hash(),
        "notes": notes,
        "config": {**to_dict(config), "env": to_dict(scenarios.env)},
        "versions": {"snake_gym": snake_gym.__version__, **versions(_PACKAGES)},
    }
    for name, episodes in zip(names, results, strict=True):
        trainings = [entrant for entrant in entrants if entrant.name == name]
        identity = to_dict(trainings[0].identity)
        if len(trainings) > 1:
            identity = {"policy": [each.identity.get("policy") for each in trainings]}
            identity["training_names"] = [each.training_name for each in trainings]
        summary["policies"][name] |= identity
        if (still := int(episodes.columns["stood_still"].sum())) > 0:
            notes.append(f"{name}: {still} solutions of physics steps did not settle; the robots stood still")
    write_atomic(out / "episodes.csv", rows_csv(results))
    write_atomic(out / "results.json", to_json(summary))
    dump_yaml(config, out / "config.yaml")
    if pictures:
        from snake_gym.benchmark.pictures import draw_figures, draw_replay

        title = f"{scenarios.spec.name}, {scenarios.title()}"
        files = draw_figures(results, summary, title)
        files |= draw_replay(entrants, results, scenarios, title, " ".join(verdicts(summary)))
        for name, data in files.items():
            write_atomic(out / name, data)
    return summary


def entrant_notes(entrants: Sequence[Entrant]) -> list[str]:
    """Return notes on the entrants, each note once, after the names of the entrants that it is about."""
    names: dict[str, list[str]] = {}
    for entrant in entrants:
        for note in entrant.notes:
            names.setdefault(note, []).append(entrant.name)
    return [f"{', '.join(about)}: {note}" for note, about in names.items()]
