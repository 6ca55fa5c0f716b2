"""Program that trains a policy.

    snake-gym train --config configs/train/ppo.yaml
    snake-gym train --config configs/train/ppo.yaml --set algorithm.learning_rate=1e-4 env.faults.n_max=2 --seed 1
    snake-gym train --config configs/train/ppo.yaml --seeds 5
    snake-gym train --resume runs/demo

Ctrl-C or SIGTERM stops after the current rollout with everything saved, and --resume continues as if never stopped. A
second Ctrl-C interrupts at once, and --resume continues from the last checkpoint.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from snake_gym.config import OptionParser, add_set_option, require
from snake_gym.parallel import STOPPED, add_parallel_options
from snake_gym.plugins import add_plugin_option, load_plugins


def main(argv: list[str] | None = None) -> int:
    """Run the program and return the exit code."""
    arguments = parse(argv)
    load_plugins(arguments.plugin)
    require("training", "stable_baselines3", "tensorboard", "torch")
    from . import run_folder, seeds, train  # loads torch, which --help and a mistyped option need not wait for
    from .config import read_settings

    if arguments.seeds is not None:
        return seeds.train_seeds(arguments)
    assignments = arguments.set if arguments.seed is None else [*arguments.set, f"seed={arguments.seed}"]
    notes: tuple[str, ...] = ()
    if arguments.resume is not None:
        folder = run_folder.RunFolder(arguments.resume)
        config = folder.change_settings(assignments)
    else:
        config, notes = read_settings(arguments.config, assignments, arguments.plugin)
        folder = run_folder.RunFolder(arguments.run_dir or run_folder.new_path(arguments.config, config))
        folder.check_run(config)
    command = [*run_folder.PROGRAM.split(), *(sys.argv[1:] if argv is None else argv)]
    return 0 if train.train(config, folder, command, notes, arguments.quiet) else STOPPED


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the parsed command line. Raises ConfigError."""
    parser = OptionParser(prog="snake-gym train", description="Train a policy, or go on with a run.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--config", type=Path, metavar="FILE", help="settings of a new run (configs/train/*.yaml)")
    what.add_argument("--resume", type=Path, metavar="RUN", help="folder of a run to go on with")
    parser.add_argument("--run-dir", type=Path, metavar="RUN", help="folder of the new run (default: one in runs/)")
    add_set_option(parser)
    parser.add_argument("--seed", help="the run's seed")
    parser.add_argument(
        "--seeds", metavar="N", help="train several seeds side by side, in RUN/seed_0 ...: a number, or a list as 0,1,7"
    )
    add_parallel_options(parser)
    add_plugin_option(parser)
    parser.add_argument("--quiet", action="store_true", help="say only how it ended")
    arguments = parser.parse_args(argv)
    if arguments.resume is not None and arguments.run_dir is not None:
        parser.error("--run-dir names the folder of a new run; --resume names its own")
    if arguments.seeds is None and (arguments.jobs is not None or arguments.ray is not None):
        parser.error("--jobs and --ray go with --seeds")
    if arguments.seeds is not None and (arguments.resume is not None or arguments.seed is not None):
        parser.error("--seeds goes with neither --seed nor --resume: the same command goes on with its runs")
    return arguments
