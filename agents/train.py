"""Program that trains a policy.

    snake-gym train --config configs/train/ppo.yaml
    snake-gym train --config configs/train/ppo.yaml --set algorithm.learning_rate=1e-4 env.faults.n_max=2 --seed 1
    snake-gym train --resume runs/demo

Ctrl-C or SIGTERM stops after the current rollout with everything saved; --resume continues as if never stopped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from snake_gym.config import OptionParser, add_set_option, require
from snake_gym.plugins import add_plugin_option, load_plugins

INTERRUPTED = 130
"""Exit code of a run that was stopped with its state saved."""


def main(argv: list[str] | None = None) -> int:
    """Run the program and return the exit code."""
    arguments = parse(argv)
    load_plugins(arguments.plugin)
    require("training", "stable_baselines3", "tensorboard", "torch")
    from . import export, launch  # loads torch, which --help and a mistyped option need not wait for

    seed = [] if arguments.seed is None else [f"seed={arguments.seed}"]
    if arguments.resume is not None:
        plan = launch.plan_resume(arguments.resume, [*arguments.set, *seed])
    else:
        plan = launch.plan_new(arguments.config, [*arguments.set, *seed], arguments.run_dir, arguments.plugin)
    command = [*launch.PROGRAM.split(), *(sys.argv[1:] if argv is None else argv)]
    if not launch.run(plan, command, arguments.quiet):
        return INTERRUPTED
    if arguments.export:
        print(export.export_policy(plan.folder.path).describe())
    return 0


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the parsed command line. Raises ConfigError."""
    parser = OptionParser(prog="snake-gym train", description="Train a policy, or go on with a run.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--config", type=Path, metavar="FILE", help="settings of a new run (configs/train/*.yaml)")
    what.add_argument("--resume", type=Path, metavar="RUN", help="folder of a run to go on with")
    parser.add_argument("--run-dir", type=Path, metavar="RUN", help="folder of the new run (default: one in runs/)")
    add_set_option(parser)
    parser.add_argument("--seed", help="the run's seed")
    add_plugin_option(parser)
    parser.add_argument("--export", action="store_true", help="at the end, write a policy file into RUN/export")
    parser.add_argument("--quiet", action="store_true", help="say only how it ended")
    arguments = parser.parse_args(argv)
    if arguments.resume is not None and arguments.run_dir is not None:
        parser.error("--run-dir names the folder of a new run; --resume names its own")
    return arguments
