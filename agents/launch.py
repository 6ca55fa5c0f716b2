"""Launch of a run: begin or continue it, and end it cleanly when the process is asked to stop.

A run takes any number of launches. The first SIGINT or SIGTERM lets the current rollout end, saves everything and
returns; a second one interrupts at once, and the next launch continues from the last checkpoint.
"""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from snake_gym.config import ConfigError, apply_overrides, build_over, load_yaml, to_dict
from snake_gym.parallel import stop_signals
from snake_gym.plugins import plugin_options, take_plugins

from .algorithms import find_algorithm
from .checkpoint import list_checkpoints
from .config import TrainConfig, check_same_run, launch_notes, resolve_env
from .display import TrainingDisplay
from .run_folder import RunFolder, new_run_path
from .training import Training, TrainingStopped

_SCRIPT = Path(__file__).resolve().parents[1] / "train.py"
PROGRAM = "python train.py" if Path(sys.argv[0]).resolve() == _SCRIPT else "snake-gym train"
"""Command that the user started, for messages."""


@dataclass(frozen=True)
class Launch:
    """Run to be launched, and its folder."""

    config: TrainConfig
    """Complete settings of the run."""
    folder: RunFolder
    resume: bool
    """True if the folder already holds this run."""
    notes: tuple[str, ...] = ()
    """Notes on the settings for the user."""


def plan_new(
    config_file: Path, assignments: Sequence[str] = (), run_dir: Path | None = None, plugins: Sequence[str] = ()
) -> Launch:
    """Return the run of a config file; one that its folder already holds is continued if ``if_exists`` says so.

    Raises ConfigError if the settings are wrong, or the folder holds a run that is not to be continued.
    """
    in_file = load_yaml(config_file)
    settings = take_plugins(apply_overrides(in_file, assignments), config_file, plugins)
    config = build_over(TrainConfig, in_file, settings, str(config_file))
    config, notes = resolve_env(config), launch_notes(config)
    find_algorithm(config.algorithm)  # says before there is a folder what is wrong
    path = run_dir or new_run_path(config_file, config)
    folder = RunFolder(path)
    folder.evaluations()  # says now, not after training, that it is damaged
    if not folder.holds_run():
        return Launch(config, folder, False, notes)
    if config.if_exists == "refuse":
        raise ConfigError(
            f"{path} holds a run already: continue it with {_resuming(path)}, or choose another --run-dir"
        )
    stored = folder.read_config()
    check_same_run(stored, config, str(path))
    return Launch(config, folder, True, notes)


def plan_resume(run_dir: Path, assignments: Sequence[str] = ()) -> Launch:
    """Return the run of a folder, with the settings changed that a resumed run may change. Raises ConfigError."""
    folder = RunFolder(run_dir)
    stored = folder.read_config()
    in_file = to_dict(stored)
    config = build_over(TrainConfig, in_file, apply_overrides(in_file, assignments), str(run_dir))
    check_same_run(stored, config, str(run_dir))
    folder.evaluations()  # says now, not after training, that it is damaged
    return Launch(config, folder, resume=True)


def run(launch: Launch, command: Sequence[str], quiet: bool = False) -> bool:
    """Train to the end; False if the run was stopped before, with its state saved. ``command`` is noted in the folder.

    Raises ConfigError if the folder's checkpoints cannot be used, another process trains in it, it is not writable,
    or the training diverged.
    """
    config, folder = launch.config, launch.folder
    begun = time.monotonic()
    with folder.lock(), stop_signals(signal.SIGINT, signal.SIGTERM) as should_stop:
        if launch.resume and folder.steps_done() >= config.total_steps:
            TrainingDisplay(0).say(f"{folder.path} is finished: {folder.steps_done():,} steps are done")
            return True
        display = TrainingDisplay(config.total_steps, quiet=quiet)
        training = Training(config, folder, display, should_stop)
        step = training.resume() if launch.resume and list_checkpoints(folder.path) else 0
        for note in launch.notes:
            display.say(f"note: {note}")
        try:
            folder.write_config(config)
            folder.begin_launch(command, step, launch.notes)
            with display.show(step):
                training.run()
        except TrainingStopped:
            step = training.model.num_timesteps
            folder.end_launch("stopped", step, time.monotonic() - begun)
            display.say(f"stopped after {step:,} steps; continue with: {_resuming(folder.path)}")
            return False
        except OSError as error:
            raise ConfigError(_describe_write_error(error, folder.path, training.model.num_timesteps)) from error
        finally:
            training.close()
        step = training.model.num_timesteps
        folder.end_launch("finished", step, time.monotonic() - begun)
        display.say(f"trained {step:,} steps; the policy is in {folder.path}")
        return True


def _resuming(run: Path) -> str:
    """Return the command that goes on with a run, for people to paste."""
    return " ".join([PROGRAM, "--resume", shlex.quote(str(run)), *plugin_options()])


def _describe_write_error(error: OSError, run: Path, step: int) -> str:
    return (
        f"training stopped after {step} steps: {error.filename or run} cannot be written: {error.strerror or error}; "
        f"make room, then continue with: {_resuming(run)}"
    )
