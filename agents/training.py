"""Training run from its first step to its last, over any number of launches.

Logging, evaluation, checkpoints and stopping happen between SB3's rollouts. Evaluation and logging draw no random
numbers and checkpoints hold the whole state of PPO. So neither their times nor a kill and a resume in between change
what PPO learns (on the CPU, bit for bit).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from snake_gym.config import ConfigError, build, to_dict
from snake_gym.config.yaml_text import format_yaml
from snake_gym.envs import EnvConfig, SnakeVectorEnv
from snake_gym.registry import find_task

from .algorithms import find_algorithm, make_learner
from .checkpoint import checkpoint_step, list_checkpoints, newest_checkpoint, write_checkpoint, write_folder
from .config import TrainConfig
from .display import TrainingDisplay
from .metrics import EpisodeWindow, play_episodes, summarise
from .policy_writer import LearnerPolicy, PolicyWriter
from .run_folder import RunFolder
from .sb3_internals import (
    BetweenRollouts,
    ResumableTensorBoard,
    capture,
    current_learning_rate,
    find_divergence,
    restore,
    unwrap,
)
from .sb3_vec_env import Sb3VecEnv

MakeEnv = Callable[[int, AutoresetMode], VectorEnv[Any, Any, Any]]


class TrainingStopped(Exception):
    """Exception raised when the run was asked to stop; its state is saved."""


@dataclass
class Standing:
    """Progress of a run besides the learner itself."""

    logged: int = 0
    """Step of the last log."""
    evaluated: int = -1
    """Step of the last evaluation; -1 before the first."""
    saved: int = -1
    """Step of the last checkpoint; -1 before the first."""
    best_return: float = -np.inf
    evaluation: dict[str, float] | None = None
    """Result of the last evaluation."""


class Training:
    """Launch of a run with complete settings in a folder that the caller has locked.

    ``should_stop`` is called between rollouts and during evaluation. ``make_env`` makes the vector env for a number of
    worlds and an autoreset mode; None: the env of the config.
    """

    def __init__(
        self,
        config: TrainConfig,
        folder: RunFolder,
        display: TrainingDisplay,
        should_stop: Callable[[], bool] = lambda: False,
        make_env: MakeEnv | None = None,
    ) -> None:
        self.config = config
        self.folder = folder
        self.display = display
        self.should_stop = should_stop
        self.algorithm = find_algorithm(config.algorithm)
        self._make_env = make_env or make_envs(config)
        self._writer = None if make_env else PolicyWriter(config, folder)
        self.venv = self._make_venv()
        self.model = make_learner(self.algorithm, self.venv, config.seed, config.device)
        self.venv.seed(config.world_seed)
        self.window = EpisodeWindow(config.n_envs, config.log_window)
        self.standing = Standing()
        self._evaluation_env: VectorEnv[Any, Any, Any] | None = None
        self._clock = (time.monotonic(), 0)
        self._resumed_from: int | None = None
        self._difficulty: float | None = None
        self._period = config.eval.period(config.total_steps)

    def resume(self) -> int:
        """Restore the newest checkpoint and return its step. Raises ConfigError if there is no usable one."""
        path, step, snapshot = newest_checkpoint(self.folder.path, self.display.say)
        try:
            restore(self.model, snapshot)
            prefix = "metrics/"
            metrics = {k.removeprefix(prefix): v for k, v in snapshot.arrays.items() if k.startswith(prefix)}
            self.window.set_state(metrics)
            self.standing = Standing(**snapshot.plain["standing"])
            self.standing.best_return = float(self.standing.best_return)  # "-inf" in a JSON file
        except (ValueError, KeyError, RuntimeError, TypeError) as error:
            reason = str(error).split("\n")[0]
            raise ConfigError(f"{path} does not fit the run's settings or this version ({reason})") from error
        self._resumed_from = step
        return step

    def run(self) -> None:
        """Train to the end.

        Raises TrainingStopped (on request; the state is saved), ConfigError (it diverged; what was saved before is
        kept) or OSError (something could not be written).
        """
        with self.logging(), self._explaining_divergence():
            self.learn(self.config.total_steps)
            self._finish()

    @contextmanager
    def logging(self) -> Iterator[None]:
        """Keep the run's TensorBoard file open within the context."""
        writer = ResumableTensorBoard(self.folder.tensorboard, self._resumed_from)
        self.model.set_logger(Logger(str(self.folder.tensorboard), [writer]))
        if self._resumed_from is None:
            writer.writer.add_text("config", f"```\n{format_yaml(to_dict(self.config))}\n```", 0)
        try:
            yield
        except BaseException:
            with suppress(OSError):  # the error on its way says more
                writer.close()
            raise
        writer.close()

    def learn(self, until: int) -> None:
        """Train until at least the step ``until``, within ``logging``. Raises TrainingStopped."""
        model = self.model
        assert isinstance(model, BetweenRollouts)
        model.between_rollouts = self._between_rollouts
        self._clock = (time.monotonic(), model.num_timesteps)
        torch.set_num_threads(self.config.torch_threads)
        self._set_difficulty()  # the first episodes begin before the first rollout
        model.learn(
            max(until - model.num_timesteps, 0),
            callback=StepCallback(self.window, self.display),
            log_interval=None,  # type: ignore[arg-type]  # logging is ours: SB3 counts episodes or rollouts
            reset_num_timesteps=False,
        )

    def close(self) -> None:
        self.venv.close()
        if self._evaluation_env is not None:
            self._evaluation_env.close()

    def _between_rollouts(self) -> None:
        step, standing, config = self.model.num_timesteps, self.standing, self.config
        self._set_difficulty()
        if _is_due(step, standing.logged, config.log_every_steps):
            self._log()
        if not self.should_stop() and _is_due(step, standing.evaluated, self._period):
            self._evaluate()
        stop = self.should_stop()
        if stop or _is_due(step, max(standing.saved, 0), config.checkpoint.every_steps):
            self._save()
        if stop:
            raise TrainingStopped

    def _set_difficulty(self) -> None:
        """Let the episodes that begin from now on have the curriculum's difficulty, which follows from the step."""
        curriculum = self.config.curriculum
        if curriculum is None:
            return
        wanted = curriculum.difficulty(self.model.num_timesteps / self.config.total_steps)
        if wanted != self._difficulty:
            self.venv.env_method("set_difficulty", wanted)
            self._difficulty = wanted

    def _finish(self) -> None:
        self._log()
        if self.standing.evaluated < self.model.num_timesteps:
            self._evaluate()
        self._save()
        if self.standing.evaluated < self.model.num_timesteps:  # stopped on the way
            raise TrainingStopped
        self._save_policy("final")

    def _log(self) -> None:
        step, logger = self.model.num_timesteps, self.model.logger
        if step == self.standing.logged:
            return
        means = self.window.means()
        for name, value in means.items():
            logger.record(name if "/" in name else f"rollout/{name}", value)
        if self._difficulty is not None:
            logger.record("rollout/difficulty", self._difficulty)
        now, (before, step_before) = time.monotonic(), self._clock
        logger.record("time/fps", (step - step_before) / max(now - before, 1e-9))
        logger.dump(step)
        self._clock = (now, step)
        self.standing.logged = step
        if "return" in means:
            self.display.note = _describe(means)

    def _evaluate(self) -> None:
        self._check_finite()
        model, config, step = self.model, self.config, self.model.num_timesteps
        if self._evaluation_env is None:
            self._evaluation_env = self._make_env(config.eval.episodes, AutoresetMode.DISABLED)
        columns = play_episodes(LearnerPolicy(model), self._evaluation_env, config.eval.seed, self.should_stop)
        if columns is None:
            return
        means = summarise(columns)
        for name, value in means.items():
            model.logger.record(f"eval/{name}", value)
        model.logger.dump(step)
        self.standing.evaluated = step
        self.standing.evaluation = means
        self.folder.note_evaluation(step, means)
        # What has learned nothing yet is not kept as the best, however good the gait below it is.
        best = step > 0 and means["return"] > self.standing.best_return
        if best:
            self.standing.best_return = means["return"]
            self._save_policy("best")
        if not self.display.quiet:
            text = f"{step:,} steps: evaluation {_describe(means)}"
            self.display.say(text + ", the best so far" if best else text)

    def _save(self) -> None:
        step = self.model.num_timesteps
        if step == self.standing.saved:
            return
        self._check_finite()
        self.standing.saved = step
        snapshot = capture(self.model)
        snapshot.arrays |= {f"metrics/{name}": values for name, values in self.window.get_state().items()}
        snapshot.plain["standing"] = vars(self.standing)
        write_checkpoint(self.folder.path, step, snapshot, self._encode(), self.config.checkpoint.keep)

    def _save_policy(self, name: str) -> None:
        files = self._encode()
        if files:
            write_folder(self.folder.policies / name, files)

    def _encode(self) -> dict[str, bytes]:
        """Return the policy file's content, empty for an env of another package."""
        if self._writer is None:
            return {}
        try:
            return self._writer.encode(self.model, self.standing.evaluation)
        except FloatingPointError:
            raise self._divergence("actions") from None

    @contextmanager
    def _explaining_divergence(self) -> Iterator[None]:
        try:
            yield
        except ConfigError:
            raise
        except (ValueError, RuntimeError):  # of an action or a distribution that is not finite, most likely
            self._check_finite()
            raise

    def _check_finite(self) -> None:
        """Raise ConfigError unless the policy is finite; draws no random numbers."""
        fault = find_divergence(self.model)
        if fault is not None:
            raise self._divergence(fault)

    def _divergence(self, fault: str) -> ConfigError:
        kept = list_checkpoints(self.folder.path)
        return ConfigError(
            f"training diverged after {self.model.num_timesteps} steps: the policy's {fault} are no longer finite; the "
            f"likely cause is algorithm.learning_rate ({current_learning_rate(self.model):g}): begin a new run with a "
            "lower one" + (f"; the checkpoint of step {checkpoint_step(kept[0])} is kept" if kept else "")
        )

    def _make_venv(self) -> VecEnv:
        config = self.config
        venv: VecEnv = Sb3VecEnv(self._make_env(config.n_envs, AutoresetMode.SAME_STEP), config.stagger)
        wanted = config.normalise
        if wanted.observation or wanted.reward:
            gamma = float(self.algorithm.parameters.get("gamma", 0.99))
            venv = VecNormalize(
                venv, norm_obs=wanted.observation, norm_reward=wanted.reward, clip_obs=wanted.clip,
                clip_reward=wanted.clip, gamma=gamma,
            )  # fmt: skip
        return venv


class StepCallback(BaseCallback):
    """Callback that adds each step to the episode statistics and shows progress, by a few array operations."""

    def __init__(self, window: EpisodeWindow, display: TrainingDisplay) -> None:
        super().__init__()
        self._window = window
        self._display = display

    def _on_training_start(self) -> None:
        self._venv = unwrap(self.training_env)

    def _on_step(self) -> bool:
        self._window.update(self._venv)
        self._display.advance(self.num_timesteps)
        return True


def make_envs(config: TrainConfig) -> MakeEnv:
    """Return a maker of the run's envs; those of evaluations, which begin no episodes by themselves, tell no truth."""
    settings: EnvConfig = build(find_task(config.env_id), config.env, "env")
    plain = settings.without_privileged()

    def make(n_worlds: int, mode: AutoresetMode) -> SnakeVectorEnv:
        chosen = plain if mode is AutoresetMode.DISABLED else settings
        return SnakeVectorEnv(config.env_id, n_worlds, mode, config=chosen)

    return make


def _describe(means: dict[str, float]) -> str:
    progress = f", progress {means['progress/all']:.2f} m" if "progress/all" in means else ""
    return f"return {means['return']:.1f}{progress}"


def _is_due(step: int, last: int, every: int) -> bool:
    """Return True if a multiple of ``every`` lies in (last, step]; never for every = 0."""
    return every > 0 and step // every > last // every
