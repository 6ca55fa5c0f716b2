"""Compare learned policies and classical controllers on the same scenarios.

    python evaluate.py                                     what configs/benchmark/demo.yaml says
    python evaluate.py --policy mine=runs/mine --episodes 256 --out runs/mine/evaluation
    python evaluate.py --classical-only --set env.faults.n_max=5
    python evaluate.py --config configs/benchmark/obstacle_field.yaml --sweep

Everything goes into the folder --out, a table to the terminal too. What is done is played again only after a change.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch is loaded: waiting threads leave the cores to others

import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console

from snake_gym.benchmark.comparison import compare, to_json
from snake_gym.benchmark.scenarios import (
    BenchmarkConfig,
    Entrant,
    Scenarios,
    classical_entrant,
    learned_entrant,
    named_policies,
)  # fmt: skip
from snake_gym.benchmark.sweep import play_one, play_sweep
from snake_gym.config import ConfigError, apply_overrides, build, load_yaml, prepare_file, run_cli, write_atomic
from snake_gym.interface import policy_file

ROOT = Path(__file__).parent


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message} (see python evaluate.py --help)")


def main(argv: list[str] | None = None) -> int:
    """Run the program; returns the exit code."""
    args = parse(argv)
    config = read_config(args)
    terminal = Console(stderr=args.json == "-", highlight=False)
    if not terminal.is_terminal:
        terminal.width = 160

    def play(config: BenchmarkConfig, scenarios: Scenarios, out: Path) -> dict[str, Any]:
        entrants = [load_entrant(name, path, scenarios) for name, path in config.policies.items()]
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
    parser = _Parser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--config", type=Path, default=ROOT / "configs" / "benchmark" / "demo.yaml", help="settings (YAML)")
    add("--policy", action="append", metavar="NAME=PATH", help="run folder, checkpoint or policy file")
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
    return parser.parse_args(argv)


def read_config(args: argparse.Namespace) -> BenchmarkConfig:
    """The settings of the file, with those of the command line laid over."""
    mapping = load_yaml(args.config)
    for name in ("robot", "episodes", "seed"):
        if getattr(args, name) is not None:
            mapping[name] = getattr(args, name)
    if args.controllers is not None:
        names = [name.strip() for name in args.controllers.split(",") if name.strip()]
        mapping["controllers"] = [] if names == ["none"] else names
    if args.classical_only:
        mapping["policies"] = {}
    if args.policy:
        mapping["policies"] = named_policies(args.policy)
    return build(BenchmarkConfig, apply_overrides(mapping, args.set), str(args.config))


def load_entrant(name: str, path: str, scenarios: Scenarios) -> Entrant:
    """A trained policy; the libraries it needs are loaded now. A policy file needs numpy alone."""
    if policy_file.find_policy_file(path) is not None:
        return learned_entrant(name, policy_file.load_policy(path), scenarios)
    try:
        from agents.checkpoint import load_policy
    except ModuleNotFoundError as error:
        missing = f"policy {name} needs {error.name}, which is missing: pip install 'snake_gym[train]'"
        raise ConfigError(missing) from None
    return learned_entrant(name, load_policy(path), scenarios)


if __name__ == "__main__":
    run_cli(main)
