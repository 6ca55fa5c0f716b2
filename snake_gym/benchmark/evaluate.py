"""The program that compares learned policies and classical controllers on the same scenarios.

    snake-gym evaluate                                     what configs/benchmark/demo.yaml says
    snake-gym evaluate --policy mine=runs/mine             in the env that it was trained in
    snake-gym evaluate --policy mine=runs/mine --env configs/env/locked_joints.yaml --episodes 256
    snake-gym evaluate --classical-only --set env.faults.n_max=5
    snake-gym evaluate --config FILE --freeze              from now on, other scenarios than today's are an error
    snake-gym evaluate --replay FOLDER --policy mine=PATH  rows of an evaluation, played again

Without --config, policies play on the robot and in the env that they were trained with (--env: in those settings),
against the classical controllers that are tuned for that robot. What differs from a policy's training or a gait's
tuning is noted with the results.

Everything goes into the folder --out, a table to the terminal too.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from snake_gym.benchmark.comparison import compare
from snake_gym.benchmark.oracle import oracle_entrant
from snake_gym.benchmark.policies import (
    TrainedPolicy,
    is_code,
    load_policy,
    named_policies,
    training_names,
    training_paths,
)
from snake_gym.benchmark.replay import read_results, recorded_controllers, replay_rows
from snake_gym.benchmark.report import tables, verdicts
from snake_gym.benchmark.scenarios import (
    ORACLES,
    BenchmarkConfig,
    Entrant,
    Scenarios,
    classical_entrant,
    learned_entrant,
    make_scenarios,
    resolve_benchmark,
    revealed_entrant,
)
from snake_gym.config import (
    ConfigError,
    OptionParser,
    add_set_option,
    apply_overrides,
    build,
    build_over,
    choose,
    find_config,
    load_yaml,
    merge,
    run_program,
    to_dict,
    write_atomic,
)
from snake_gym.controllers.tuned import tuned_kinds
from snake_gym.envs import EnvConfig
from snake_gym.interface.policy_file import fallback_note
from snake_gym.plugins import add_plugin_option, is_result, load_plugins, take_plugins
from snake_gym.registry import find_task
from snake_gym.robot.difference import describe_changes, robot_note
from snake_gym.robot.presets import PRESETS
from snake_gym.tasks.task_settings import scenario_settings

DEMO = Path("configs", "benchmark", "demo.yaml")
_SAY_WHICH = "say what to play: --env FILE (settings of an env, as configs/env/locked_joints.yaml) or --config FILE"


def main(argv: list[str] | None = None) -> int:
    """Run the program and return the exit code."""
    args = parse(argv)
    load_plugins(args.plugin)
    if args.replay is not None:
        return replay(args.replay, named_policies(args.policy or []), args.rows)
    if args.freeze:
        return freeze(find_config(args.config or DEMO))
    config = read_config(args)
    scenarios = make_scenarios(config)
    entrants = make_entrants(config, scenarios)
    if config.scenarios is not None:
        check_frozen(path := args.config or DEMO)
        if (here := scenarios.hash()) != config.scenarios:
            print(
                f"note: {path} stands for scenarios {config.scenarios[:12]}; these are {here[:12]}, of another "
                "benchmark: its numbers cannot be compared with those of the file",
                file=sys.stderr,
            )
            config = replace(config, scenarios=None)
    pictures = not args.no_pictures
    summary = compare(config, scenarios, entrants, args.out, pictures, Console(stderr=True))
    terminal = Console(highlight=False)
    if not terminal.is_terminal:
        terminal.width = 160
    for table in tables(summary, f"{scenarios.title()}, mean of each policy"):
        terminal.print(table)
    what = "results, plots and replay.html are" if pictures else "results are"
    notes = (f"note: {note}" for note in summary["notes"])
    for line in (*verdicts(summary), *notes, f"{what} in {args.out}"):
        terminal.print(line, soft_wrap=True, markup=False)
    return 0


def read_file(path: str | Path) -> dict[str, Any]:
    """Return the settings in a benchmark's file; import its plugins."""
    mapping = take_plugins(load_yaml(path), path)
    mapping.pop("plugins", None)
    return mapping


def check_frozen(path: Path) -> BenchmarkConfig:
    """Return the settings of a benchmark's file as it stands, those of its env written out.

    Raises ConfigError if it no longer has the scenarios that it is frozen to.
    """
    config = resolve_benchmark(build(BenchmarkConfig, read_file(path), str(path)))
    here = make_scenarios(config).hash()
    if config.scenarios not in (None, here):
        raise ConfigError(
            f"{path} stands for scenarios {config.scenarios:.12}; these are {here[:12]}: the file or the code has "
            "changed; expected the same ones, or --freeze (new ones in the file), or --set scenarios=null (play them "
            "all the same)"
        )
    return config


def freeze(path: Path) -> int:
    """Write the hash of its scenarios into a benchmark's file, all else as it is; print it."""
    scenarios = make_scenarios(build(BenchmarkConfig, read_file(path), str(path)))
    text, line = path.read_text(encoding="utf-8"), f"scenarios: {scenarios.hash()}"
    changed, n = re.subn(r"^scenarios:.*$", line, text, flags=re.MULTILINE)
    write_atomic(path, changed if n else f"{text.rstrip()}\n{line}\n")
    print(f"{path}: {line}")
    return 0


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = OptionParser(prog="snake-gym evaluate", description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--config", type=Path, help="settings (YAML); default: those of the policies, else of the demo")
    add("--env", metavar="FILE", help="settings of the scenarios (configs/env/*.yaml), in place of the config's")
    add("--policy", action="append", metavar="NAME=PATH", help="run folder, checkpoint, policy file or its name, "
        "policy.onnx, FILE.py:CLASS or module:FACTORY")  # fmt: skip
    add("--classical-only", action="store_true", help="without the config's learned policies")
    add("--controllers", metavar="A,B", help="sjc,cc,cpg, name=file.yaml, or oracle,oracle_next; none for none")
    add("--robot", help="preset or YAML file")
    add("--episodes", type=int, help="scenarios for each policy")
    add("--seed", type=int, help="seed of the first scenario")
    add("--out", type=Path, default=Path("runs/evaluation"), help="folder for the results (default: %(default)s)")
    add_set_option(parser)
    add("--freeze", action="store_true", help="write the hash of its scenarios into the config, and stop")
    add("--no-pictures", action="store_true", help="no plots and replays")
    add("--replay", type=Path, metavar="FOLDER", help="play some rows of an evaluation again (with --policy, --rows)")
    add("--rows", type=int, default=8, metavar="N", help="rows of each policy that --replay plays (%(default)s)")
    add_plugin_option(parser)
    args = parser.parse_args(argv)
    given = {name for name in vars(args) if vars(args)[name] != parser.get_default(name)}
    for name, partners in (("freeze", {"config"}), ("replay", {"rows", "policy"})):
        if name in given and (others := given - partners - {name, "plugin"}):
            parser.error(f"--{name} does not go with --{min(others).replace('_', '-')}")
    return args


def replay(folder: Path, given: Mapping[str, str], n_rows: int) -> int:
    """Play ``n_rows`` rows of each policy of an evaluation's folder again; return 1 unless all are equal.

    ``given``: paths of its learned policies, by name.
    """
    results = read_results(folder)
    entrants = recorded_controllers(results)
    recorded = results.summary["policies"]
    learned = [name for name, policy in recorded.items() if policy["kind"] == "learned"]
    for name in given:
        choose(name, learned, "--policy")
    for name in learned:
        if name not in given:
            raise ConfigError(f"policy {name} of {folder} is missing: give --policy {name}=PATH")
        digests = recorded[name]["policy"]
        for training, path in enumerate(training_paths(name, given[name])):
            entrant = learned_entrant(name, load_policy(name, path), results.scenarios)
            if entrant.identity["policy"] not in (digests if isinstance(digests, list) else [digests]):
                raise ConfigError(f"{path} is another policy than {name} of {folder}, by its digest")
            entrants.append(replace(entrant, training=training))
    found = []
    for entrant in entrants:
        for row, difference in replay_rows(results, entrant, n_rows):
            print(f"{row}: {'equal' if difference is None else f'not equal, here in brackets: {difference}'}")
            found.append(difference is None)
    print(f"{sum(found)} of {len(found)} rows are equal")
    return 0 if found and all(found) else 1


def make_entrants(config: BenchmarkConfig, scenarios: Scenarios) -> list[Entrant]:
    """Return what plays in a benchmark: learned policies, controllers and oracles, and the rows that it declares."""
    entrants: list[Entrant] = []
    for name, given in config.policies.items():
        paths = training_paths(name, given)
        for i, (path, label) in enumerate(zip(paths, training_names(paths), strict=True)):
            entrant = learned_entrant(name, load_policy(name, path), scenarios)
            entrants.append(replace(entrant, training=i, training_name=label))
    for entry in config.controllers:
        entrants.append(oracle_entrant(entry, scenarios) if entry in ORACLES else classical_entrant(entry, config))
    return entrants + [revealed_entrant(name, controller, config) for name, controller in config.revealed.items()]


def read_config(args: argparse.Namespace) -> BenchmarkConfig:
    """Return the settings of the file, or of the policies' own training, overridden by those of the command line."""
    policies = {name: training_paths(name, given) for name, given in named_policies(args.policy or []).items()}
    own = args.config is None and bool(policies)
    if own:
        trained = [(name, load_policy(name, path)) for name, paths in policies.items() for path in paths]
        mapping, where = own_benchmark(trained, with_env=args.env is None), f"policy {next(iter(policies))}"
    else:
        where = str(args.config or DEMO)
        mapping = read_file(where)
    in_file = dict(mapping)
    if args.env is not None:
        mapping |= {"env_file": args.env, "env": {}}
        if "robot" in load_yaml(args.env):
            mapping.pop("robot", None)
    given = {name: getattr(args, name) for name in ("robot", "episodes", "seed")}
    mapping |= {name: value for name, value in given.items() if value is not None}
    if args.controllers is not None:
        names = [name.strip() for name in args.controllers.split(",") if name.strip()]
        mapping["controllers"] = [] if names == ["none"] else names
    names_all = args.env is not None and args.controllers is not None and args.config is None
    if policies or args.classical_only or names_all:
        mapping["policies"] = policies
    mapping = apply_overrides(mapping, args.set)
    config = resolve_benchmark(build_over(BenchmarkConfig, in_file, mapping, where))
    found = {name: training_paths(name, given) for name, given in config.policies.items()}
    config = replace(config, policies={name: one[0] if len(one) == 1 else one for name, one in found.items()})
    for name, path in ((name, path) for name, paths in found.items() for path in paths):
        if not policies and is_result(where) and is_code(path):
            asked = shlex.quote(f"{name}={path}")
            raise ConfigError(f"{where} names the class {path}, not imported unasked: give --policy {asked}")
        if (note := fallback_note(path)) is not None:
            print(f"note: policy {name}: {note}", file=sys.stderr)
    if own and "controllers" not in mapping:
        spec = make_scenarios(config).spec
        config = replace(config, controllers=tuple(tuned_kinds(spec)))
        if not config.controllers:
            note = f"no controller is tuned for robot {spec.name}, so there is no classical opponent (snake-gym tune)"
            print(f"note: {note}", file=sys.stderr)
    return config


def own_benchmark(policies: Sequence[tuple[str, TrainedPolicy]], with_env: bool = True) -> dict[str, Any]:
    """Return settings of the benchmark that all ``policies``, with their names, were trained for.

    Policies may differ in being shown the faults, and those that do not say in which env they were trained play in
    that of the others. Without ``with_env``, only the first one's robot and task count.

    Raises ConfigError if they were trained in different scenarios or on different robots, or in an env that this
    version does not know.
    """
    found = []
    for name, policy in policies:
        if policy.env_id is not None:
            task = find_task(policy.env_id, f"policy {name}: env_id")
            config = build(task, policy.env_config or {}, f"policy {name}: env ({_SAY_WHICH})")
            found.append((name, policy.env_id, config))
    if not found:
        if with_env:
            raise ConfigError(f"the env to play in is unknown for {' and '.join(dict(policies))}; {_SAY_WHICH}")
        return {}
    (first, env_id, config), *others = found
    spec = config.load_robot()
    robot = spec.name if PRESETS.get(spec.name) == spec else to_dict(spec)
    if not with_env:
        return {"env_id": env_id, "robot": robot}
    for name, other_id, other in others:
        note = other_id if other_id != env_id else robot_note(spec, other.load_robot())
        note = note or describe_changes(_blind(config), _blind(other))
        if note is not None:
            raise ConfigError(
                f"policies {first} and {name} were trained for different scenarios ({name}: {note}); {_SAY_WHICH}"
            )
    return {"env_id": env_id, "robot": robot, "env": {**_blind(config), "reward": to_dict(config)["reward"]}}


def _blind(config: EnvConfig) -> dict[str, Any]:
    return merge(scenario_settings(config), {"faults": {"reveal": False}})


if __name__ == "__main__":
    run_program(main)
