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

Everything goes into the folder --out, a table to the terminal too. What is done is played again only after a change.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from snake_gym.benchmark.comparison import compare
from snake_gym.benchmark.oracle import oracle_entrant
from snake_gym.benchmark.own_policy import is_code, is_foreign, load_own
from snake_gym.benchmark.replay import read_results, recorded_controllers, replay_rows
from snake_gym.benchmark.report import tables, verdicts
from snake_gym.benchmark.runner import code_digest
from snake_gym.benchmark.scenarios import (
    ORACLES,
    BenchmarkConfig,
    Entrant,
    Scenarios,
    TrainedPolicy,
    classical_entrant,
    learned_entrant,
    make_scenarios,
    named_policies,
    resolve_benchmark,
)
from snake_gym.benchmark.trainings import training_names, training_paths
from snake_gym.benchmark.variants import variant_entrant
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
from snake_gym.controllers import CONTROLLERS
from snake_gym.controllers.tuned import tuned_file
from snake_gym.envs import EnvConfig
from snake_gym.interface import policy_file
from snake_gym.plugins import RESULT, add_plugin_option, check_plugins, is_result, load_plugins, take_plugins
from snake_gym.registry import find_task
from snake_gym.robot.difference import describe_changes, robot_note
from snake_gym.robot.presets import PRESETS
from snake_gym.tasks.task_settings import scenario_settings

DEMO = Path("configs", "benchmark", "demo.yaml")
_ROWS = 8
"""Rows of each policy that --replay plays."""
_SAY_WHICH = "say what to play: --env FILE (settings of an env, as configs/env/locked_joints.yaml) or --config FILE"


def main(argv: list[str] | None = None) -> int:
    """Run the program and return the exit code."""
    args = parse(argv)
    load_plugins(args.plugin)
    if args.replay is not None:
        return replay(args.replay, named_policies(args.policy or []), args.rows or _ROWS)
    names_all = args.env is not None and args.controllers is not None and args.config is None
    args.classical_only |= args.freeze or names_all
    config = read_config(args)
    scenarios = make_scenarios(config)
    if args.freeze:
        return freeze(args.config or DEMO, scenarios.hash())
    entrants = make_entrants(config, scenarios)
    if (note := frozen_note(config, args)) is not None:
        print(f"note: {note}", file=sys.stderr)
        config = replace(config, scenarios=None)  # what is written does not stand for those of the file
    pictures = not args.no_pictures
    summary = compare(config, scenarios, entrants, args.out, args.fresh, pictures, Console(stderr=True))
    shown: list[Table | str] = [
        *tables(summary, f"{scenarios.title()}, mean of each policy"),
        *verdicts(summary),
        *(f"note: {note}" for note in summary["notes"]),
        f"results, plots and replay.html are in {args.out}" if pictures else f"results are in {args.out}",
    ]
    show(shown)
    return 0


def frozen_note(config: BenchmarkConfig, args: argparse.Namespace) -> str | None:
    """Return a note if the command line makes ``config`` another benchmark than its file with frozen scenarios.

    Raises ConfigError as ``check_frozen`` does.
    """
    if config.scenarios is None:
        return None
    check_frozen(path := args.config or DEMO)
    if (here := make_scenarios(config).hash()) == config.scenarios:
        return None
    return (
        f"{path} stands for scenarios {config.scenarios[:12]}; these are {here[:12]}, of another benchmark: its "
        "numbers cannot be compared with those of the file"
    )


def check_frozen(path: Path) -> BenchmarkConfig:
    """Return the settings of a benchmark's file as it stands, those of its env written out.

    Raises ConfigError if it no longer has the scenarios that it is frozen to.
    """
    mapping = take_plugins(load_yaml(path), path)
    mapping.pop("plugins", None)
    config = resolve_benchmark(build(BenchmarkConfig, mapping, str(path)))
    here = make_scenarios(config).hash()
    if config.scenarios not in (None, here):
        raise ConfigError(
            f"{path} stands for scenarios {config.scenarios:.12}; these are {here[:12]}: the file or the code has "
            "changed; expected the same ones, or --freeze (new ones in the file), or --set scenarios=null (play them "
            "all the same)"
        )
    return config


def freeze(path: Path, found: str) -> int:
    """Write the hash of its scenarios into a benchmark's file, all else as it is; print it."""
    path = find_config(path)
    text = path.read_text(encoding="utf-8")
    line = f"scenarios: {found}"
    changed, n = re.subn(r"^scenarios:.*$", line, text, flags=re.MULTILINE)
    write_atomic(path, changed if n else f"{text.rstrip()}\n{line}\n")
    print(f"{path}: {line}")
    return 0


def show(shown: Iterable[Table | str]) -> None:
    """Print tables and lines, wide where there is no terminal."""
    terminal = Console(highlight=False)
    if not terminal.is_terminal:
        terminal.width = 160
    for each in shown:
        terminal.print(each, soft_wrap=isinstance(each, str), markup=False)


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = OptionParser(prog="snake-gym evaluate", description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--config", type=Path, help="settings (YAML); default: those of the policies, else of the demo")
    add("--env", metavar="FILE", help="settings of the scenarios (configs/env/*.yaml), in place of those of the config")
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
    add("--fresh", action="store_true", help="play again what an earlier run has finished")
    add("--no-pictures", action="store_true", help="no plots and replays")
    add("--replay", type=Path, metavar="FOLDER", help="play some rows of an evaluation again (with --policy, --rows)")
    add("--rows", type=int, metavar="N", help=f"rows of each policy that --replay plays (default: {_ROWS})")
    add_plugin_option(parser)
    args = parser.parse_args(argv)
    if args.freeze and (args.set or args.env or args.robot or args.policy or args.episodes or args.seed is not None):
        parser.error("--freeze takes the config as it stands; expected no other option than --config")
    given = {name for name in vars(args) if vars(args)[name] != parser.get_default(name)}
    if args.replay is not None and (others := given - {"replay", "rows", "policy", "plugin"}):
        parser.error(f"--replay does not go with --{min(others).replace('_', '-')}")
    if args.rows is not None and args.replay is None:
        parser.error("--rows goes with --replay")
    if args.rows is not None and args.rows < 1:
        parser.error(f"--rows is {args.rows}; expected at least 1")
    return args


def replay(folder: Path, given: Mapping[str, str], n_rows: int) -> int:
    """Play ``n_rows`` rows of each policy of an evaluation's folder again; return 1 unless all are equal.

    ``given``: paths of its learned policies, by name.
    """
    results = read_results(folder)
    if results.summary["code"] != code_digest():
        print("note: it was made by another version of the code")
    entrants = recorded_controllers(results)
    learned = [name for name, each in results.summary["policies"].items() if each["kind"] == "learned"]
    for name in given:
        choose(name, learned, "--policy")
    for name in learned:
        if name not in given:
            raise ConfigError(f"policy {name} of {folder} is missing: give --policy {name}=PATH")
        digests = results.summary["policies"][name].get("policy")
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


def load_policy(name: str, path: str) -> TrainedPolicy:
    """Return the policy of a policy file, or of another kind.

    Raises ConfigError too for the policy of a run that was trained with plugins which are not imported.
    """
    if is_foreign(path):
        return load_own(name, path)
    file = policy_file.find_policy_file(path)
    for run_config in [] if file is None else [folder / RESULT for folder in file.parents[:4]]:
        if run_config.is_file():
            check_plugins(load_yaml(run_config).get("plugins") or (), str(run_config))
            break
    return policy_file.load_policy(path)


def make_entrants(config: BenchmarkConfig, scenarios: Scenarios) -> list[Entrant]:
    """Return what plays in a benchmark: learned policies, controllers and oracles, and the rows that it declares."""
    entrants: list[Entrant] = []
    for name, given in config.policies.items():
        paths = training_paths(name, given)
        labels = training_names(paths)
        for i, path in enumerate(paths):
            entrant = learned_entrant(name, load_policy(name, path), scenarios)
            entrants.append(replace(entrant, training=i, training_name=labels[i]))
    for entry in config.controllers:
        entrants.append(oracle_entrant(entry, scenarios) if entry in ORACLES else classical_entrant(entry, config))
    return entrants + [variant_entrant(name, variant, config) for name, variant in config.variants.items()]


def read_config(args: argparse.Namespace) -> BenchmarkConfig:
    """Return the settings of the file, or of the policies' own training, overridden by those of the command line."""
    policies = named_policies(args.policy or [])
    own = args.config is None and bool(policies)
    if own:
        found = [(name, training_paths(name, given)) for name, given in policies.items()]
        trained = {
            name if len(paths) == 1 else f"{name} ({path})": load_policy(name, path)
            for name, paths in found
            for path in paths
        }
        mapping, where = own_benchmark(trained, with_env=args.env is None), f"policy {next(iter(policies))}"
    else:
        where = str(args.config or DEMO)
        mapping = take_plugins(load_yaml(where), where)
        mapping.pop("plugins", None)
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
    if policies or args.classical_only:
        mapping["policies"] = policies
    mapping = apply_overrides(mapping, args.set)
    config = resolve_benchmark(build_over(BenchmarkConfig, in_file, mapping, where))
    paths = {name: training_paths(name, given) for name, given in config.policies.items()}
    config = replace(config, policies={name: one[0] if len(one) == 1 else one for name, one in paths.items()})
    for name, path in ((name, path) for name, several in paths.items() for path in several):
        if not policies and is_result(where) and is_code(path):
            asked = shlex.quote(f"{name}={path}")
            raise ConfigError(f"{where} names the class {path}, not imported unasked: give --policy {asked}")
        if not is_foreign(path) and (note := policy_file.fallback_note(path)) is not None:
            print(f"note: policy {name}: {note}", file=sys.stderr)
    if own and "controllers" not in mapping:
        kinds = tuned_kinds(config)
        config = replace(config, controllers=kinds)
        if not kinds:
            robot = make_scenarios(config).spec.name
            note = f"no controller is tuned for robot {robot}, so there is no classical opponent (snake-gym tune)"
            print(f"note: {note}", file=sys.stderr)
    return config


def own_benchmark(policies: Mapping[str, TrainedPolicy], with_env: bool = True) -> dict[str, Any]:
    """Return settings of the benchmark that all policies, by name, were trained for: env, robot and scenarios.

    Policies may differ in being shown the faults, and those that do not say in which env they were trained play in
    that of the others. Without ``with_env``, only the first one's robot and task count.

    Raises ConfigError if they were trained in different scenarios or on different robots, or in an env that this
    version does not know.
    """
    found = {}
    for name, policy in policies.items():
        if policy.env_id is None or policy.env_config is None:
            continue
        task = find_task(policy.env_id, f"policy {name}: env_id")
        try:
            found[name] = policy.env_id, build(task, policy.env_config)
        except ConfigError as error:
            reason = f"the env it was trained in is not known to this version; {_SAY_WHICH}"
            raise ConfigError(f"policy {name}: {reason} ({error})") from None
    if not found:
        if with_env:
            raise ConfigError(f"nothing tells in which env to play {' and '.join(policies)}; {_SAY_WHICH}")
        return {}
    (first, (env_id, config)), *others = found.items()
    spec = config.load_robot()
    robot = spec.name if PRESETS.get(spec.name) == spec else to_dict(spec)
    if not with_env:
        return {"env_id": env_id, "robot": robot}
    for name, (other_id, other) in others:
        note = other_id if other_id != env_id else robot_note(spec, other.load_robot())
        note = note or describe_changes(_blind(config), _blind(other))
        if note is not None:
            raise ConfigError(
                f"policies {first} and {name} were trained for different scenarios ({name}: {note}); {_SAY_WHICH}"
            )
    return {"env_id": env_id, "robot": robot, "env": {**_blind(config), "reward": to_dict(config)["reward"]}}


def _blind(config: EnvConfig) -> dict[str, Any]:
    return merge(scenario_settings(config), {"faults": {"reveal": False}})


def tuned_kinds(config: BenchmarkConfig) -> tuple[str, ...]:
    """Return the classical controllers that were tuned for the benchmark's robot."""
    robot = make_scenarios(config).spec.name
    return tuple(kind for kind in CONTROLLERS if tuned_file(robot, kind).is_file())


if __name__ == "__main__":
    run_program(main)
