"""Which benchmark is played: that of a file, or the one that a learned policy brings along.

A policy brings the robot and the env that it was trained in; its opponents are the controllers tuned for that robot.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from snake_gym.benchmark.policy_fit import env_of, tune_options
from snake_gym.benchmark.scenarios import (
    BenchmarkConfig,
    TrainedPolicy,
    make_scenarios,
    named_policies,
    resolve_benchmark,
)
from snake_gym.config import ConfigError, apply_overrides, build, load_yaml, merge, to_dict
from snake_gym.controllers import CONTROLLERS
from snake_gym.controllers.tuned import tuned_file, tuning_command
from snake_gym.envs import EnvConfig
from snake_gym.envs.task_settings import check_task, read_env_file, scenario_settings
from snake_gym.plugins import take_plugins
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.difference import describe_changes, robot_note

_SAY_WHICH = "say what to play: --env FILE (settings of an env, as configs/env/locked_joints.yaml) or --config FILE"


def read_benchmark(
    args: argparse.Namespace, demo: Path, load_policy: Callable[[str, str], TrainedPolicy]
) -> BenchmarkConfig:
    """The settings of the file, or of the policies' own training, with those of the command line laid over.

    Args:
        args: the command line of ``evaluate.py``.
        demo: the file where neither a file nor a policy is named.
        load_policy: loads a policy by its name and path.
    """
    policies = named_policies(args.policy or [])
    own = args.config is None and bool(policies)
    if own:
        trained = {name: load_policy(name, path) for name, path in policies.items()}
        mapping, where = own_benchmark(trained, with_env=args.env is None), f"policy {next(iter(policies))}"
    else:
        where = str(args.config or demo)
        mapping = take_plugins(load_yaml(where))
        mapping.pop("plugins", None)
    check_task(mapping, [*args.set, *([] if args.env is None else ["env_file=", "env="])], where)
    if args.env is not None:
        mapping |= {"env_file": args.env, "env": {}}
        if "robot" in read_env_file(args.env):
            mapping.pop("robot", None)
    given = {name: getattr(args, name) for name in ("robot", "episodes", "seed")}
    mapping |= {name: value for name, value in given.items() if value is not None}
    if args.controllers is not None:
        names = [name.strip() for name in args.controllers.split(",") if name.strip()]
        mapping["controllers"] = [] if names == ["none"] else names
    if policies or args.classical_only:
        mapping["policies"] = policies
    mapping = apply_overrides(mapping, args.set)
    config = resolve_benchmark(build(BenchmarkConfig, mapping, where))
    if own and "controllers" not in mapping:
        config = replace(config, controllers=tuned_opponents(config))
        if not config.controllers:
            print(f"note: {no_opponent_note(config)}", file=sys.stderr)
    return config


def own_benchmark(policies: Mapping[str, TrainedPolicy], with_env: bool = True) -> dict[str, Any]:
    """Settings of the benchmark that the policies, by name, were all trained for: env, robot and scenarios.

    Whether a policy is shown the faults is its own matter, and no setting of the scenarios.

    Args:
        with_env: False: the settings of the env come from elsewhere; then the first policy's robot and task are taken.

    Raises:
        ConfigError: the policies were trained in different scenarios or on different robots, or in an env that this
            version does not know.
    """
    found = {}
    for name, policy in policies.items():
        own = env_of(policy.env_config)
        if own is None:
            own_file = "a task of your own needs --plugin FILE.py"
            raise ConfigError(f"policy {name}: the env it was trained in is not known here; {own_file}; {_SAY_WHICH}")
        found[name] = own
    (first, (env_id, config)), *others = found.items()
    spec = config.load_robot()
    robot = config.robot if isinstance(config.robot, str) else to_dict(spec)
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


def tuned_opponents(config: BenchmarkConfig) -> tuple[str, ...]:
    """The classical controllers that were tuned for the benchmark's robot."""
    robot = resolve_benchmark(config).robot
    spec = load_robot("resilient_servo" if robot is None else robot)
    return tuple(kind for kind in CONTROLLERS if tuned_file(spec.name, kind).is_file())


def no_opponent_note(config: BenchmarkConfig) -> str:
    """What to say where there is no controller that was tuned for the benchmark's robot."""
    scenarios = make_scenarios(config)
    options = tune_options(scenarios.env.robot, config.env_id, scenarios.env)
    return (
        f"no controller is tuned for robot {scenarios.spec.name}, so there is no classical opponent; make one with "
        f"{tuning_command('fault_aware', scenarios.spec, options)}"
    )
