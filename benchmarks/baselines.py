"""Scores of a random policy and of the tuned controllers in every env, and of PPO where a run is given.

    python benchmarks/baselines.py --train                     trains PPO in every env first, 3 to 5 million steps each
    python benchmarks/baselines.py --policy ppo=agents/pretrained/resilient_servo_locked_joints
    python benchmarks/baselines.py --only Waypoints --policy ppo=runs/demo
    python benchmarks/baselines.py --episodes 16 --out runs/quick            a trial, which leaves docs/ alone

Each env plays the first file of configs/benchmark that names it; one that none names plays with its default settings.
Writes OUT/baselines.json and OUT/baselines.md, and pictures of the best controller at half time to OUT/images/envs.
Envs that are not played keep their rows. What is done is played again only after a change (runs/baselines).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from snake_gym.__main__ import main as snake_gym_main
from snake_gym.benchmark.comparison import compare
from snake_gym.benchmark.evaluate import load_policy, tuned_kinds
from snake_gym.benchmark.report import show_bounds
from snake_gym.benchmark.runner import roll
from snake_gym.benchmark.scenarios import (
    BenchmarkConfig,
    Entrant,
    Scenarios,
    classical_entrant,
    learned_entrant,
    make_scenarios,
    named_policies,
    resolve_benchmark,
)  # fmt: skip
from snake_gym.commands.env_options import full_id
from snake_gym.config import (
    ConfigError,
    OptionParser,
    build,
    load_yaml,
    make_folder,
    read_json,
    run_program,
    to_json,
    write_atomic,
)  # fmt: skip
from snake_gym.envs.tables import table
from snake_gym.registry import DEFAULT_ENV, TASKS

ROOT = Path(__file__).parents[1]
BENCHMARKS, TRAININGS = ROOT / "configs" / "benchmark", ROOT / "configs" / "train"
HEADS = ("success", "energy [J/m]")


class RandomPolicy:
    """Joint references drawn anew in every step, uniform over the action space; the same in every run."""

    def __init__(self, n_worlds: int, size: int) -> None:
        self._shape = (n_worlds, size)
        self._rng = np.random.default_rng(0)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[NDArray[np.float32], Any]:
        """Return actions (W, A)."""
        return self._rng.uniform(-1.0, 1.0, self._shape).astype(np.float32), state


def main(argv: list[str] | None = None) -> int:
    """Play and write. Raises ConfigError for what the user has to correct."""
    parser = OptionParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="ENV", help="play this env only (repeatable)")
    parser.add_argument("--policy", action="append", default=[], metavar="NAME=PATH", help="run folder or policy file")
    parser.add_argument("--train", action="store_true", help="train PPO in each env first (configs/train)")
    parser.add_argument("--episodes", type=int, help="scenarios for each policy (those of the benchmark)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder of the results (docs)")
    parser.add_argument("--no-pictures", action="store_true", help="no pictures of the envs")
    args = parser.parse_args(argv)
    chosen = [full_id(name) for name in args.only] or list(TASKS)
    make_folder(args.out)
    file = args.out / "baselines.json"
    known = read_json(file.read_text(), str(file)) if file.exists() else {}
    learned = {name: (path, load_policy(name, path)) for name, path in named_policies(args.policy).items()}
    for name, (_, policy) in learned.items():
        if policy.env_id not in chosen:
            raise ConfigError(f"policy {name} was trained in {policy.env_id}; expected one of {', '.join(chosen)}")
    for env_id in chosen:
        config, source = benchmark_of(env_id)
        if args.episodes is not None:
            config = build(BenchmarkConfig, {**vars(config), "episodes": args.episodes})
        own = {name: given for name, given in learned.items() if given[1].env_id == env_id}
        if args.train:
            run = train(env_id)
            own["ppo"] = str(run), load_policy("ppo", str(run))
        config = replace(config, policies={name: path for name, (path, _) in own.items()})
        scenarios = make_scenarios(config)
        entrants = [random_entrant(config.episodes)]
        entrants += [classical_entrant(entry, config) for entry in config.controllers]
        entrants += [learned_entrant(name, policy, scenarios) for name, (_, policy) in own.items()]
        print(f"{env_id}: {', '.join(entrant.name for entrant in entrants)}", file=sys.stderr)
        folder = Path("runs", "baselines", short_name(env_id))
        found = compare(config, scenarios, entrants, folder, pictures=False, progress=Console(stderr=True))
        known[env_id] = row(found, source)
        if not args.no_pictures:
            image = args.out / "images" / "envs" / f"{short_name(env_id)}.png"
            write_atomic(image, picture(entrants, found, scenarios))
        ordered = {name: known[name] for name in TASKS if name in known}
        write_atomic(file, to_json(ordered))
        write_atomic(args.out / "baselines.md", page(ordered))
    return 0


def short_name(env_id: str) -> str:
    """Return the name of an env's files: ``obstacle_field`` for ``SnakeGym/ObstacleField-v0``."""
    middle = env_id.rpartition("/")[2].rpartition("-v")[0]
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in middle).lstrip("_")


def benchmark_of(env_id: str) -> tuple[BenchmarkConfig, str]:
    """Return the shipped benchmark of an env without its policies, and the name of its file."""
    for path in sorted(BENCHMARKS.glob("*.yaml")):
        content = load_yaml(path)
        if content.get("env_id", DEFAULT_ENV) == env_id:
            config = build(BenchmarkConfig, {**content, "policies": {}, "sweep": {}}, str(path))
            return resolve_benchmark(config), f"configs/benchmark/{path.name}"
    config = resolve_benchmark(BenchmarkConfig(env_id=env_id))
    return replace(config, controllers=tuned_kinds(config)), "default settings"


def train(env_id: str) -> Path:
    """Return the run folder of PPO trained in an env as its shipped configuration says; a finished run is kept.

    Raises ConfigError if no configuration is shipped.
    """
    for path in sorted(TRAININGS.glob("*.yaml")):
        content = load_yaml(path)
        if content.get("env_id", DEFAULT_ENV) == env_id and content["algorithm"]["name"] == "PPO":
            run = Path("runs", "baselines", f"{short_name(env_id)}_ppo")
            snake_gym_main(["train", "--config", str(path), "--run-dir", str(run), "--set", "if_exists=continue"])
            return run
    raise ConfigError(f"no training of PPO in {env_id} is shipped; leave --train out, or name others with --only")


def random_entrant(episodes: int) -> Entrant:
    """Return the random policy."""
    settings = {"action": {"kind": "joint_reference"}}
    identity = {"policy": "uniform joint references, seed 0"}
    make = lambda env: RandomPolicy(episodes, env.core.decoder.size)  # noqa: E731
    return Entrant("random", "classical", settings, make, identity)


def row(found: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return what is kept of a comparison's results."""
    kept = ("kind", "mean", "ci95", "success", "success_ci95", "energy_j_per_m", "lead", "lead_ci95")
    policies = {name: {key: policy[key] for key in kept if key in policy} for name, policy in found["policies"].items()}
    if found["score"] in found["policies"][next(iter(policies))]:  # a record, which stands beside the progress
        for name, policy in found["policies"].items():
            policies[name] |= {"mean": policy[found["score"]], "ci95": policy[f"{found['score']}_ci95"]}
    return {
        "scenarios": source, "score": found["score"], "episodes": found["seeds"]["episodes"],
        "first_seed": found["seeds"]["first"], "best_classical": found["best_classical"], "policies": policies,
        "version": found["versions"]["snake_gym"],
    }  # fmt: skip


def page(rows: Mapping[str, Any]) -> str:
    """Return the page of all baselines as Markdown."""
    parts = [
        "# Baselines",
        "<!-- made by: python benchmarks/baselines.py -->",
        "Every env's shipped benchmark, played by a policy of random joint references and by the classical controllers "
        "that are tuned for it, and by PPO trained as configs/train says (seed 0). Means over the scenarios, with 95 % "
        "intervals, which do not cover other seeds of the training. Leads are paired: both play each scenario. "
        "`python benchmarks/baselines.py --train` makes this page anew; `--policy NAME=RUN` adds a policy of yours.",
    ]
    for env_id, found in rows.items():
        parts += [f"## {env_id}", section(found)]
    return "\n\n".join(parts) + "\n"


def section(found: Mapping[str, Any]) -> str:
    """Return one env's scenarios and scores as Markdown, best first."""
    by_success = found["score"] == "is_success"
    ranked = sorted(found["policies"].items(), key=lambda item: -(item[1]["success" if by_success else "mean"] or 0.0))
    lines = [(name, *cells(policy)) for name, policy in ranked]
    told = f"{found['episodes']} scenarios from seed {found['first_seed']} on ({found['scenarios']})."
    score = "progress [m]" if by_success or found["score"] == "progress_m" else found["score"].replace("_", " ")
    parts = [told, table(("policy", score, *HEADS), lines).rstrip("\n")]
    leads = [lead(name, policy, found) for name, policy in ranked if policy.get("lead_ci95")]
    return "\n\n".join([*parts, *leads])


def lead(name: str, policy: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Return how far a learned policy is ahead of the best classical one, scenario by scenario."""
    scale, spec, unit = (100.0, "+.1f", " percentage points of success")
    if found["score"] != "is_success":
        scale, spec, unit = 1.0, "+.2f", " m" if found["score"] == "progress_m" else f" of {found['score']}"
    bounds = show_bounds([scale * bound for bound in policy["lead_ci95"]], spec)
    return f"Lead of {name} over {found['best_classical']}: {scale * policy['lead']:{spec}} {bounds}{unit}."


def cells(policy: Mapping[str, Any]) -> Sequence[str]:
    success = policy.get("success")
    share = "-" if success is None else f"{success:.0%} {show_bounds(policy['success_ci95'], '.0%')}"
    energy = policy.get("energy_j_per_m")
    mean = f"{policy['mean']:.2f} {show_bounds(policy['ci95'], '.2f')}"
    return mean, share, "-" if energy is None else f"{energy:.0f}"


def picture(entrants: Sequence[Entrant], found: Mapping[str, Any], scenarios: Scenarios) -> bytes:
    """Return a PNG of the first scenario at half its time, played by the best of the entrants."""
    from PIL import Image

    from snake_gym.render.frames import WorldView

    key = "success" if found["score"] == "is_success" else "mean"
    best = max(entrants, key=lambda entrant: found["policies"][entrant.name][key] or 0.0)
    env = scenarios.make_env(best, 1)
    view = WorldView(env.core, 0, "rgb_array")
    frames = [view.draw() for _ in roll(best.make_policy(env), env, scenarios.seed)]
    stream = BytesIO()
    Image.fromarray(frames[len(frames) // 2]).quantize(64).save(stream, "PNG", optimize=True)
    return stream.getvalue()


if __name__ == "__main__":
    run_program(main)
