"""A training run: env, model, callback, ``model.learn``, and the folder that it is kept in.

A run takes any number of launches, each of which goes on from the newest checkpoint. On the CPU, PPO then ends with the
same weights, bit for bit, as if it had never been stopped or killed.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence

import torch
from gymnasium.vector import AutoresetMode

from snake_gym.config import ConfigError, build
from snake_gym.envs import EnvConfig, SnakeVectorEnv
from snake_gym.parallel import stop_signals
from snake_gym.registry import find_task

from .algorithms import make_model
from .callback import MakeEnv, RunCallback
from .config import TrainConfig
from .display import TrainingDisplay
from .run_folder import RunFolder, resume_command
from .sb3_internals import open_tensorboard
from .sb3_vec_env import Sb3VecEnv


def train(config: TrainConfig, folder: RunFolder, command: Sequence[str], notes: Sequence[str], quiet: bool) -> bool:
    """Train to the end; False if SIGINT or SIGTERM stopped the run before, with its state saved.

    ``command`` and ``notes`` on the settings are noted in the folder. Raises ConfigError if another process trains in
    it, it is not writable, its checkpoint cannot be used, or the training diverged.
    """
    display = TrainingDisplay(config.total_steps, quiet)
    with folder.lock(), stop_signals(signal.SIGINT, signal.SIGTERM) as should_stop:
        if (done := folder.steps_done()) >= config.total_steps:
            display.say(f"{folder.path} is finished: {done:,} steps are done")
            return True
        for note in notes:
            display.say(f"note: {note}")
        begun = time.monotonic()
        try:
            run = learn(config, folder, display, should_stop, command, notes)
            folder.end_launch("stopped" if run.stopped else "finished", run.saved, time.monotonic() - begun)
        except OSError as error:
            file, reason = error.filename or folder.path, error.strerror or error
            then = f"make room, then continue with: {resume_command(folder.path)}"
            raise ConfigError(f"training stopped: {file} cannot be written: {reason}; {then}") from error
    if run.stopped:
        display.say(f"stopped after {run.saved:,} steps; continue with: {resume_command(folder.path)}")
    else:
        display.say(f"trained {run.saved:,} steps; the policy is in {folder.path}")
    return not run.stopped


def learn(
    config: TrainConfig,
    folder: RunFolder,
    display: TrainingDisplay,
    should_stop: Callable[[], bool] = lambda: False,
    command: Sequence[str] = (),
    notes: Sequence[str] = (),
    make_env: MakeEnv | None = None,
) -> RunCallback:
    """Train from the newest checkpoint in ``folder``, if there is one, to the end or until ``should_stop()``.

    ``make_env`` makes the vector env for a number of worlds and an autoreset mode; None: the env of the settings.
    Raises ConfigError if the checkpoint cannot be used or the training diverged, OSError if a file cannot be written.
    """
    make_env = make_env or snake_envs(config)
    venv = Sb3VecEnv(make_env(config.n_envs, AutoresetMode.SAME_STEP), config.stagger)
    model = make_model(config.algorithm, venv, config.seed, config.device)
    venv.seed(config.world_seed)
    run = RunCallback(config, folder, model, display, should_stop, make_env)
    checkpoints = folder.checkpoints()
    first = run.restore(checkpoints[0]) if checkpoints else None
    folder.begin_launch(config, command, notes)
    model.set_logger(open_tensorboard(folder.tensorboard, first, config))
    torch.set_num_threads(config.torch_threads)
    try:
        with display.progress:
            run.set_difficulty()  # the first episodes begin before the first rollout
            model.learn(
                max(config.total_steps - model.num_timesteps, 0), run, reset_num_timesteps=False,
                log_interval=None,  # type: ignore[arg-type]  # SB3 counts episodes or rollouts, the callback steps
            )  # fmt: skip
    except (ValueError, RuntimeError, FloatingPointError):  # most likely of actions that are not finite
        run.check_finite()
        raise
    finally:
        model.logger.close()
        run.evaluation_env.close()
        venv.close()
    return run


def snake_envs(config: TrainConfig) -> MakeEnv:
    """Return a maker of the run's envs; those of evaluations, which begin no episodes by themselves, tell no truth.

    The infos of training envs are lean: statistics need speed and reward terms of each step, and all else at ends.
    """
    settings: EnvConfig = build(find_task(config.env_id), config.env, "env")

    def make(n_worlds: int, mode: AutoresetMode) -> SnakeVectorEnv:
        evaluates = mode is AutoresetMode.DISABLED
        chosen = settings.without_privileged() if evaluates else settings
        return SnakeVectorEnv(config.env_id, n_worlds, mode, config=chosen, lean_infos=not evaluates)

    return make
