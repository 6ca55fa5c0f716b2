"""Program that searches the parameters of a controller for a robot and writes them to YAML.

    snake-gym tune --controller sjc --env configs/env/locked_joints.yaml

The result (by default ``configs/controllers/<robot>/<controller>.yaml``) holds the controller's settings, its score by
the env's task, and its robot and scenarios. ``{tuned: sjc}`` uses it wherever a controller of that robot is configured,
``{file: PATH}`` uses any result. ``--seeds 3`` searches three times and keeps the best.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from snake_gym.benchmark.tuning import TuningConfig, best_of, run_search
from snake_gym.config import (
    ConfigError,
    OptionParser,
    add_set_option,
    apply_overrides,
    build,
    dump_yaml,
    load_yaml,
    prepare_file,
    run_program,
)
from snake_gym.controllers import CONTROLLERS
from snake_gym.controllers.tuned import PROGRAM, TUNED
from snake_gym.parallel import read_seeds
from snake_gym.plugins import add_plugin_option, choose_registered, load_plugins
from snake_gym.robot.catalogue import load_robot


def main(argv: list[str] | None = None) -> int:
    """Tune one controller. Raises ConfigError for what the user has to correct."""
    arguments = _parse(argv)
    load_plugins(arguments.plugin)
    kind = choose_registered(arguments.controller, CONTROLLERS, "--controller")
    spec = load_robot(arguments.robot, "--robot")
    out = Path(arguments.out or TUNED / spec.name / f"{kind}.yaml")
    if out.suffix not in (".yaml", ".yml") or out.is_dir():
        raise ConfigError(f"--out is {str(out)!r}; expected a file name that ends in .yaml")
    if out.exists() and not arguments.overwrite:
        raise ConfigError(f"{out} exists already; give --overwrite to replace it, or --out for another file")
    config = build(TuningConfig, _settings(arguments, kind))
    seeds = [config.seed] if arguments.seeds is None else read_seeds(arguments.seeds)
    searches = [replace(config, seed=seed) for seed in seeds]  # refuses seeds before the first search
    prepare_file(out, "--out")
    reports = {search.seed: run_search(search) for search in searches}
    report = reports[config.seed] if arguments.seeds is None else best_of(replace(config, seed=max(reports)), reports)
    words = sys.argv[1:] if argv is None else argv
    report["tuning"] = {"command": shlex.join([*PROGRAM.split(), *words]), **report["tuning"]}
    dump_yaml(report, out)
    name = report["tuning"]["score"]
    score = report["tuning"][name]
    bounds = score["ci95"] or "[-]"
    print(f"{kind}: {name} {score['mean']} {bounds} in {score['episodes']} unseen scenarios; wrote {out}")
    return 0


def _settings(arguments: argparse.Namespace, kind: str) -> dict[str, Any]:
    fixed = [text.removeprefix("controller.") for text in arguments.set if text.startswith("controller.")]
    of_env = [text.removeprefix("env.") for text in arguments.set if not text.startswith("controller.")]
    settings = {
        "controller": {"kind": kind, **apply_overrides({}, fixed)},
        "env": apply_overrides(load_yaml(arguments.env) if arguments.env else {}, of_env),
        "generations": arguments.budget,
        **{name: getattr(arguments, name) for name in ("robot", "env_id", "population", "worlds", "seed")},
    }
    return {name: value for name, value in settings.items() if value is not None}


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = OptionParser(prog=PROGRAM, description="Search the parameters of a controller for a robot.")
    parser.add_argument(
        "--robot", default=TuningConfig.robot, help="preset or path of a robot's YAML file (%(default)s)"
    )
    parser.add_argument("--controller", required=True, help=", ".join(CONTROLLERS))
    parser.add_argument("--env-id", help="environment to tune it in (SnakeGym/Waypoints-v0)")
    parser.add_argument("--env", help="YAML file with the settings of the training scenarios")
    add_set_option(
        parser,
        "settings of the env (env.faults.n_max=3, or without env.), or of the controller, which stay as given "
        "(controller.weights=equal)",
    )
    parser.add_argument("--budget", type=int, help="generations (40)")
    parser.add_argument("--population", type=int, help="candidates in each generation (32)")
    parser.add_argument("--worlds", type=int, help="episodes in each generation, shared by its candidates (256)")
    one_or_more = parser.add_mutually_exclusive_group()
    one_or_more.add_argument("--seed", type=int, help="seed of the search (0)")
    one_or_more.add_argument("--seeds", metavar="N", help="search N times, or with seeds 0,1,7; keep the best")
    parser.add_argument("--out", help="result file (configs/controllers/<robot>/<controller>.yaml)")
    add_plugin_option(parser)
    parser.add_argument("--overwrite", action="store_true", help="replace a result file that exists")
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_program(main)
