"""Compare learned policies and classical controllers on the same scenarios.

    python evaluate.py                                     what configs/benchmark/demo.yaml says
    python evaluate.py --policy mine=runs/mine             in the env that it was trained in
    python evaluate.py --policy mine=runs/mine --env configs/env/locked_joints.yaml --episodes 256
    python evaluate.py --classical-only --set env.faults.n_max=5
    python evaluate.py --config configs/benchmark/obstacle_field.yaml --sweep

Without --config, policies play on the robot and in the env that they were trained with (--env: in those settings),
against the classical controllers that are tuned for that robot. What differs from a policy's training or a gait's
tuning is noted beside the results.

Everything goes into the folder --out, a table to the terminal too. What is done is played again only after a change.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch is loaded: waiting threads leave the cores to others

import argparse
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from snake_gym.benchmark.comparison import compare, to_json
from snake_gym.benchmark.own_scenarios import read_benchmark
from snake_gym.benchmark.scenarios import (
    BenchmarkConfig,
    Scenarios,
    TrainedPolicy,
    classical_entrant,
    learned_entrant,
)  # fmt: skip
from snake_gym.benchmark.sweep import play_one, play_sweep
from snake_gym.config import ConfigError, OptionParser, prepare_file, run_program, write_atomic
from snake_gym.interface import policy_file
from snake_gym.plugins import add_plugin_option, load_object, load_plugins

DEMO = Path(__file__).parent / "configs" / "benchmark" / "demo.yaml"


def main(argv: list[str] | None = None) -> int:
    """Run the program; returns the exit code."""
    args = parse(argv)
    load_plugins(args.plugin)
    config = read_config(args)
    terminal = Console(stderr=args.json == "-", highlight=False)
    if not terminal.is_terminal:
        terminal.width = 160

    def play(config: BenchmarkConfig, scenarios: Scenarios, out: Path) -> dict[str, Any]:
        entrants = [learned_entrant(name, load_policy(name, path), scenarios) for name, path in config.policies.items()]
        entrants += [classical_entrant(entry, config) for entry in config.controllers]
        if args.json not in (None, "-"):
            prepare_file(args.json, "--json")
        return compare(config, scenarios, entrants, out, args.fresh, not args.no_pictures, Console(stderr=True))

    play_chosen = play_sweep if args.sweep else play_one
    results, shown = play_chosen(config, play, args.out, not args.no_pictures)
    for each in shown:
        terminal.print(each, soft_wrap=isinstance(each, str), markup=False)
    if args.json == "-":
        sys.stdout.write(to_json(results))
    elif args.json is not None:
        write_atomic(args.json, to_json(results))
    return 0


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = OptionParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--config", type=Path, help="settings (YAML); default: those of the policies, else of the demo")
    add("--env", metavar="FILE", help="settings of the scenarios (configs/env/*.yaml), in place of those of the config")
    add("--policy", action="append", metavar="NAME=PATH", help="run folder, checkpoint, policy file, or FILE.py:CLASS")
    add("--classical-only", action="store_true", help="without the config's learned policies")
    add("--controllers", metavar="A,B", help="classical controllers: sjc,cc,cpg or name=file.yaml; none for none")
    add("--robot", help="preset or YAML file")
    add("--episodes", type=int, help="scenarios for each policy")
    add("--seed", type=int, help="seed of the first scenario")
    add("--out", type=Path, default=Path("runs/evaluation"), help="folder for the results (default: %(default)s)")
    add("--json", metavar="FILE", help="write the results here too; - for standard output")
    add("--set", action="append", default=[], metavar="A.B=C", help="change one setting")
    add("--sweep", action="store_true", help="play every combination of the config's sweep, in a folder each")
    add("--fresh", action="store_true", help="play again what an earlier run has finished")
    add("--no-pictures", action="store_true", help="no plots and replays")
    add_plugin_option(parser)
    return parser.parse_args(argv)


def read_config(args: argparse.Namespace) -> BenchmarkConfig:
    """The settings of the file, or of the policies' own training, with those of the command line laid over."""
    return read_benchmark(args, DEMO, load_policy)


def load_policy(name: str, path: str) -> TrainedPolicy:
    """A trained policy; the libraries it needs are loaded now. A policy file needs numpy alone."""
    if ":" in path and not Path(path).exists():
        own: TrainedPolicy = load_object(path, f"policy {name}")()
        return own
    if policy_file.find_policy_file(path) is not None:
        return policy_file.load_policy(path)
    try:
        from agents import checkpoint
    except ModuleNotFoundError as error:
        missing = f"policy {name} needs {error.name}, which is missing: pip install 'snake_gym[train]'"
        raise ConfigError(missing) from None
    return checkpoint.load_policy(path)


if __name__ == "__main__":
    run_program(main)
