"""Scores in every suite: a random policy, the controllers, each suite's own rows, and learned policies.

    python benchmarks/suites.py                        all suites; learned policies keep their rows
    python benchmarks/suites.py --train 5              trains and plays five seeds of every recipe: days
    python benchmarks/suites.py --train 1 --only demo  trains what plays in one suite, one seed of each
    python benchmarks/suites.py --only resilience --learned --policy "mine=runs/mine/seed_*"
    python benchmarks/suites.py --only demo --oracle oracle_now 64     plays an oracle alone, in the first 64 scenarios

A suite is a file of configs/benchmark; learned_rows.yaml has the recipes. A policy (or a folder of its seeds) plays in
the suites of its task and robot. Writes docs/suites/NAME.csv (what each policy did in each scenario), NAME_oracles.json
(scores and speeds of oracles) and docs/suites.md, all of whose numbers follow from those. Suites that are not played
keep their rows, as do learned policies in the same scenarios. Play oracles first: recovery is measured to oracle_now.
"""

from __future__ import annotations

import argparse
import csv
import io
import itertools
import json
import math
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import snake_gym
from snake_gym.__main__ import main as snake_gym_main
from snake_gym.benchmark.evaluate import check_frozen, make_entrants
from snake_gym.benchmark.oracle import oracle_entrant
from snake_gym.benchmark.policies import TrainedPolicy, load_policy, named_policies, training_names, training_paths
from snake_gym.benchmark.recovery import RECOVERY, SPEEDS
from snake_gym.benchmark.report import mean_text, score_key, share_of, show_bounds, summarise, with_interval
from snake_gym.benchmark.runner import Episodes, join_plays, play, play_all
from snake_gym.benchmark.scenarios import (
    BOUND,
    ORACLES,
    BenchmarkConfig,
    Entrant,
    RandomPolicy,
    Scenarios,
    learned_entrant,
    make_scenarios,
)
from snake_gym.config import ConfigError, OptionParser, build, choose, load_yaml, run_program, write_atomic
from snake_gym.envs.tables import table
from snake_gym.registry import find_task

ROOT = Path(__file__).parents[1]
BENCHMARKS, TRAININGS = ROOT / "configs" / "benchmark", ROOT / "configs" / "train"
PAGE, ROWS = ROOT / "docs" / "suites.md", ROOT / "docs" / "suites"
FIRST = ("demo", "resilience", "estimator", "severe")
"""Suites at the top of the page; the others follow by name."""
CHECKS = ("course", "reflexes")
"""Suites at its end: nearly all reach the best score, so that they only tell when something breaks."""
RESAMPLES = 2_000
"""Bootstrap resamples of the page, which is worked out anew from the rows by every build of the site."""

LEARNED = load_yaml(Path(__file__).with_name("learned_rows.yaml"))
"""Recipes of trainings, and the recipes of each suite's rows."""
HEALTHY = " without faults"
"""End of the name of the row that was trained without faults by the recipe of the row before it."""
FEWEST = 10
"""Fewest episodes of any group, such as those with one joint's fault, of a table by such groups."""
CHANGES = ("n_changes", "change_loss_m")
"""Changes of ground, and the way lost at them."""
AFTER = "after_m_s"
"""Key, in the file of oracles, of their speeds after the last onset [m/s]."""


def main(argv: list[str] | None = None) -> int:
    """Play and write. Raises ConfigError for what the user has to correct."""
    parser = OptionParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="SUITE", help="play this suite (repeatable)")
    parser.add_argument("--policy", action="append", default=[], metavar="NAME=PATH", help="run folder or policy file")
    parser.add_argument("--train", type=int, metavar="SEEDS", help="seeds of each suite's recipes to train first")
    parser.add_argument("--learned", action="store_true", help="play policies alone; controllers keep their rows")
    parser.add_argument("--oracle", nargs=2, metavar=("NAME", "N"), help="play this alone, in the first N scenarios")
    args = parser.parse_args(argv)
    names = suite_names()
    chosen = [choose(name, names, "--only") for name in args.only] or names
    learned = {name: load_trainings(name, path) for name, path in named_policies(args.policy).items()}
    played: set[str] = set()
    for name in chosen:
        config = suite_config(name)
        scenarios = make_scenarios(config)
        if args.oracle:
            play_oracle(name, config, choose(args.oracle[0], ORACLES, "--oracle"), int(args.oracle[1]))
            continue
        own = {key: trained for key, trained in learned.items() if fits(next(iter(trained.values())), scenarios)}
        if args.train:
            rows = LEARNED["suites"].get(name, {})
            own |= {row: load_trainings(row, str(train(recipe, args.train))) for row, recipe in rows.items()}
        played |= own.keys()
        entrants = entrants_of(config, scenarios, own, args.learned)
        if not entrants:
            continue
        print(f"{name}: {', '.join(entrant.name for entrant in entrants)}", file=sys.stderr)
        bound = read_oracles(name, scenarios.hash()).get(AFTER, {}).get(BOUND, [])
        bound_m_s = np.array([*bound, *[None] * (scenarios.episodes - len(bound))], float)
        results = play_all(entrants, scenarios, Console(stderr=True), bound_m_s)
        kept, labels = kept_rows(ROWS / f"{name}.csv", scenarios, own.keys(), args.learned)
        results = sorted(kept + results, key=lambda each: each.kind == "learned")
        about = {
            "env_id": config.env_id, "scenarios": scenarios.hash(), "score": results[0].score,
            "version": snake_gym.__version__, "policies": {each.name: each.kind for each in results},
            "trainings": {key: list(trained) for key, trained in own.items()} | labels,
        }  # fmt: skip
        write_atomic(ROWS / f"{name}.csv", rows_text(about, results))
    write_atomic(PAGE, page())
    if unfit := learned.keys() - played:
        raise ConfigError(
            f"policy {', '.join(sorted(unfit))} plays in none of {', '.join(chosen)}: other task or robot"
        )
    return 0


def play_oracle(name: str, config: BenchmarkConfig, oracle: str, n_scenarios: int) -> None:
    """Write an oracle's scores in the first scenarios of a suite, and its speeds ``AFTER``; other oracles' stay."""
    whole, n = make_scenarios(config).hash(), min(n_scenarios, config.episodes)
    known = read_oracles(name, whole) or {"scenarios": whole, "scores": {}, AFTER: {}}
    scenarios = make_scenarios(replace(config, episodes=n))
    played = play(oracle_entrant(oracle, scenarios), scenarios)
    for part, column in (("scores", played.score), (AFTER, AFTER)):
        values = [float(f"{value:.4g}") for value in played.columns[column]]
        known[part][oracle] = [value if math.isfinite(value) else None for value in values]
    write_atomic(ROWS / f"{name}_oracles.json", json.dumps(known, indent=1) + "\n")


def read_oracles(name: str, scenarios: str, folder: Path = ROWS) -> dict[str, Any]:
    """Return what ``play_oracle`` wrote of a suite; nothing where they played other scenarios."""
    file = folder / f"{name}_oracles.json"
    played: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return played if played.get("scenarios") == scenarios else {}


def kept_rows(
    path: Path, scenarios: Scenarios, played: Collection[str], controllers: bool
) -> tuple[list[Episodes], dict[str, list[str]]]:
    """Return the policies in ``path`` that did not play, ``controllers`` too if asked, and the names of trainings.

    Nothing where they played other scenarios.
    """
    if not path.exists():
        return [], {}
    about, stored = read_suite(path)
    if about["scenarios"] != scenarios.hash():
        return [], {}
    kept = [each for each in stored if each.name not in played and (controllers or each.kind == "learned")]
    return kept, {each.name: about["trainings"][each.name] for each in kept if each.name in about["trainings"]}


def suite_names() -> list[str]:
    """Return the names of the shipped suites, in the order of the page."""
    names = sorted(path.stem for path in BENCHMARKS.glob("*.yaml"))
    order = [*FIRST, *(name for name in names if name not in (*FIRST, *CHECKS)), *CHECKS]
    return sorted(names, key=order.index)


def suite_config(name: str) -> BenchmarkConfig:
    """Return the settings of a suite without its learned policies.

    Raises ConfigError if its file is frozen to other scenarios than it has.
    """
    return replace(check_frozen(BENCHMARKS / f"{name}.yaml"), policies={})


Trainings = Mapping[str, TrainedPolicy]
"""Policies of one recipe, by the name of the training."""


def load_trainings(name: str, given: str) -> Trainings:
    """Return the policies that a path, a glob or a folder of runs stands for."""
    paths = training_paths(name, given)
    return {label: load_policy(name, path) for label, path in zip(training_names(paths), paths, strict=True)}


def entrants_of(
    config: BenchmarkConfig, scenarios: Scenarios, learned: Mapping[str, Trainings], alone: bool = False
) -> list[Entrant]:
    """Return all that play in a suite: joint references uniform over the action space, controllers, policies.

    ``alone``: policies only.
    """
    own = [
        replace(learned_entrant(name, policy, scenarios), training=i, training_name=label)
        for name, trained in learned.items()
        for i, (label, policy) in enumerate(trained.items())
    ]
    if alone:
        return own
    random = Entrant(
        "random", "reference", {"action": {"kind": "joint_reference"}},
        RandomPolicy,
        {"policy": "uniform joint references"},
    )  # fmt: skip
    return [random, *make_entrants(config, scenarios), *own]


def fits(policy: TrainedPolicy, scenarios: Scenarios) -> bool:
    """Return whether a policy was trained for the task and robot of the scenarios."""
    if policy.env_id != scenarios.env_id or policy.env_config is None:
        return False
    return build(find_task(policy.env_id), policy.env_config).load_robot().name == scenarios.spec.name


def train(name: str, n_seeds: int) -> Path:
    """Return the folder of the runs of a recipe, of ``n_seeds`` seeds; those that are finished are kept."""
    (file, *settings), folder = LEARNED["recipes"][name], Path("runs", "recipes", name)
    words = ["--config", str(TRAININGS / f"{file}.yaml"), "--seeds", str(n_seeds), "--run-dir", str(folder)]
    if snake_gym_main(["train", *words, *(["--set", *settings] if settings else [])]) != 0:
        raise ConfigError(f"the trainings in {folder} are not finished; the same command goes on with them")
    return folder


def measures(score: str) -> list[str]:
    """Return the columns that are kept of each policy."""
    return list(dict.fromkeys(("progress_m", "is_success", "energy_j", score, *CHANGES, *SPEEDS, RECOVERY)))


def rows_text(about: Mapping[str, Any], results: Sequence[Episodes]) -> str:
    """Return a suite's rows as CSV: a line for each scenario, after a comment that tells what was played."""
    buffer = io.StringIO()
    buffer.write(f"# {json.dumps(about)}\n")
    kept, first = measures(about["score"]), results[0].columns
    writer = csv.writer(buffer, lineterminator="\n")
    plays = [
        (f"{each.name}{f' {training}' if each.shape[0] > 1 else ''} {name}", each.plays(name)[training])
        for each in results
        for training in range(each.shape[0])
        for name in kept
        if name in each.columns and not np.isnan(each.plays(name)[training]).all()
    ]
    shared = ["seed", "n_faults", "faults", *(["fault_size"] if np.isfinite(first["fault_size"]).any() else [])]
    writer.writerow([*shared, *(head for head, _ in plays)])
    values = [column for _, column in plays]
    for i in range(results[0].shape[1]):
        numbers = [f"{column[i]:.4g}" for column in values]
        writer.writerow([*(first[name][i] for name in shared), *numbers])
    return buffer.getvalue()


def read_suite(path: Path) -> tuple[dict[str, Any], list[Episodes]]:
    """Return what ``rows_text`` wrote: about the suite, and its rows."""
    comment, *lines = path.read_text(encoding="utf-8").splitlines()
    about = json.loads(comment.removeprefix("# "))
    rows = list(csv.DictReader(lines))
    shared: dict[str, Any] = {name: np.array([int(row[name]) for row in rows]) for name in ("seed", "n_faults")}
    shared["faults"] = np.array([row["faults"] for row in rows])
    shared["fault_size"] = np.array([float(row.get("fault_size", "nan")) for row in rows])
    shared["episode_time_s"] = np.ones(len(rows))  # unused: no column that is a share of it is kept
    nothing = np.zeros((0, len(rows)), np.float32)
    results = []
    for name, kind in about["policies"].items():
        labels = about["trainings"].get(name, [""])
        played = []
        for training in range(len(labels)):
            head = f"{name}{f' {training}' if len(labels) > 1 else ''}"
            own = {
                key: np.array([float(row.get(f"{head} {key}", "nan")) for row in rows])
                for key in measures(about["score"])
            }
            own["is_success"] = own["is_success"] > 0.5
            played.append(Episodes(name, kind, {**shared, **own}, np.zeros(0), nothing, "", about["score"]))
        results.append(join_plays(played))
    return about, results


def page() -> str:
    """Return the page of all suites as Markdown, from their rows."""
    parts = [
        "# Suites",
        "<!-- made by: python benchmarks/suites.py -->",
        "What do random, classical and learned policies score in each env? The suites of `configs/benchmark` answer "
        "that: random joint references, the tuned controllers, `mpc` ([a "
        "planner](comparing.md#opponents-that-plan), with its defaults), the suite's own rows (`revealed`), and "
        "learned policies (recipes: benchmarks/learned_rows.yaml). Means over scenarios and training seeds, with 95 % "
        "intervals over both. *Of oracle_now* is the score over that of a planner that knows what has failed, not "
        "what will; its mean and number of scenarios stand in the heading. [Speed after / "
        "before](comparing.md#recovery) is about the onsets of faults. Leads are "
        "paired. Gaits were tuned with links that pass through each other, and play with links that touch, as "
        "policies do. `python benchmarks/suites.py` makes "
        "this page anew, `--policy NAME=RUNS` adds a policy of yours. All numbers follow from the rows in docs/suites.",
    ]
    for name in suite_names():
        if (path := ROWS / f"{name}.csv").exists():
            parts += [f"## {name}", purpose(name), section(path)]
    return "\n\n".join(parts) + "\n"


def purpose(name: str) -> str:
    """Return the text at the top of a suite's file, below the line with its schema."""
    _, *lines = (BENCHMARKS / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    comment = itertools.takewhile(lambda line: line.startswith("#"), lines)
    return " ".join(line.removeprefix("#").strip() for line in comment).replace("*", "\\*")


def section(path: Path) -> str:
    """Return a suite's scenarios and scores as Markdown, best first."""
    about, results = read_suite(path)
    specialists = [name for name in about["policies"] if name.endswith(HEALTHY)]
    found = summarise(results, RESAMPLES, specialists)
    called = {name: f"{name} ({len(of)} seed{'s' * (len(of) > 1)})" for name, of in about["trainings"].items()}
    key = score_key(about["score"])
    ranked = sorted(found["policies"].items(), key=lambda item: -(item[1][key] or 0.0))
    seeds = results[0].columns["seed"]
    played = f"{results[0].shape[1]} scenarios of {about['env_id']} from seed {seeds[0]} on, {about['scenarios'][:12]}."
    score = "progress [m]" if key in ("success", "mean") else key.replace("_", " ")
    shown = "mean" if key == "success" else key
    oracles = shares(path, about, results)
    changed = any(policy["loss_per_change_m"] is not None for _, policy in ranked)
    heads = ["success", "energy [J/m]", *(["lost at a change [m]"] if changed else []), *(head for head, _ in oracles)]
    lines = [
        (called.get(name, name), *cells(policy, shown, changed), *(texts[name] for _, texts in oracles))
        for name, policy in ranked
    ]
    parts = [played, table(("policy", score, *heads), lines)]
    parts += [
        f"Seeds of {name}: {', '.join(mean_text(mean, key) for mean in policy['seed_means'])}."
        for name, policy in ranked
        if len(policy["seed_means"]) > 1
    ]
    parts += [lead(name, policy, found) for name, policy in ranked if "ratio" in policy]
    parts += recoveries(ranked)
    titles = {"by_faults": "faults", "by_kind": "all faults", "by_joint": "the one joint", "by_size": "the one fault"}
    for group, title in titles.items():
        groups = next(iter(found["policies"].values())).get(group, {})
        keys = [each for each in groups if groups[each]["episodes"] >= FEWEST]
        if len(keys) > 1 and len(keys) == len(groups):
            keys = sorted(keys, key=lambda each: (int(each) if each.isdigit() else 0, each))
            what = key if group == "by_faults" else "score"
            lines = [(name, *(mean_text(policy[group][each][what], key) for each in keys)) for name, policy in ranked]
            parts.append(table((title, *keys), lines))
    return "\n\n".join(part.rstrip("\n") for part in parts)


def shares(path: Path, about: Mapping[str, Any], results: Sequence[Episodes]) -> list[tuple[str, dict[str, str]]]:
    """Return columns of scores over those of oracles that have played these scenarios: heads, and texts by policy."""
    played, key = read_oracles(path.stem, about["scenarios"], path.parent).get("scores", {}), score_key(about["score"])
    found = []
    for oracle in reversed([name for name in ORACLES if name in played]):
        best, n = np.array(played[oracle]), len(played[oracle])
        of = {
            each.name: share_of(each.plays(about["score"])[:, :n], best, each.columns["n_faults"], RESAMPLES)
            for each in results
        }
        head = f"of {oracle} ({mean_text(best.mean(), key)} in {n})"
        found.append((head, {name: share_text(share, "share") for name, share in of.items()}))
        if oracle == BOUND and any(share["severe"] not in (None, share["share"]) for share in of.values()):
            severe = {name: share_text(share, "severe") for name, share in of.items()}
            found.append(("of that with 3 faults and more", severe))
    return found


def recoveries(ranked: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Return what each policy regains of its speed after the last onset, as Markdown; nothing where it is unknown."""
    known = [
        (name, policy)
        for name, policy in ranked
        if name != "random" and policy.get("recovery", {"episodes": 0})["episodes"] >= FEWEST
    ]
    counts = [n for n in known[0][1]["by_faults"] if n != "0"] if known else []
    heads = ("policy", "speed after / before", *(f"with {n}" for n in counts), "dip", "80 % of oracle_now [s] (in)")
    lines = []
    for name, policy in known:
        of, by = policy["recovery"], policy["by_faults"]
        time = "never" if of["time_s"] is None else f"{of['time_s']:.1f}"
        time = "-" if of["recovered"] is None else f"{time} ({of['recovered']:.0%})"
        each = (f"{by[n]['recovery']['speed_share']:.2f}" if "recovery" in by[n] else "-" for n in counts)
        lines.append((name, share_text(of, "speed_share"), *each, share_text(of, "dip"), time))
    return [table(heads, lines)] if lines else []


def share_text(group: Mapping[str, Any], key: str) -> str:
    """Return a share and its interval as text."""
    share, ends = group[key], group[f"{key}_ci95"]
    return "-" if share is None else f"{share:.2f} {show_bounds(ends, '.2f')}"


def lead(name: str, policy: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Return how far a learned policy is ahead of the best classical one, and its healthy tax (docs/comparing.md)."""
    scale, spec, unit = (100.0, "+.1f", " percentage points of success")
    if found["score"] != "is_success":
        scale, spec, unit = 1.0, "+.2f", " m" if found["score"] == "progress_m" else f" of {found['score']}"
    compared = policy["against"][found["best_classical"]]
    bounds = show_bounds([scale * bound for bound in compared["lead_ci95"]], spec)
    text = f"Lead of {name} over {found['best_classical']}: {scale * compared['lead']:{spec}} {bounds}{unit}."
    of = policy["against"].get(f"{name}{HEALTHY}", {"healthy_tax": None})
    return text if of["healthy_tax"] is None else f"{text} Healthy tax: {share_text(of, 'healthy_tax')}."


def cells(policy: Mapping[str, Any], key: str, changed: bool) -> Sequence[str]:
    """Return a policy's score, success, energy and, where the ground ``changed``, the way lost at that."""
    energy = policy["energy_j_per_m"]
    return (
        with_interval(policy, key),
        with_interval(policy, "success"),
        "-" if energy is None else f"{energy:.0f}",
        *([with_interval(policy, "loss_per_change_m")] if changed else []),
    )


if __name__ == "__main__":
    run_program(main)
