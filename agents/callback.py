"""SB3 callback of a training run: statistics of each step; log, evaluation, checkpoint and stop between rollouts.

Evaluation and logging draw no random numbers, and checkpoints hold the whole state of PPO. So neither their times nor a
kill and a resume in between change what PPO learns (on the CPU, bit for bit).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from snake_gym.benchmark.seed_ranges import EVALUATION
from snake_gym.config import ConfigError

from .config import TrainConfig
from .display import TrainingDisplay
from .metrics import EpisodeWindow, play_episodes, summarise
from .policy_writer import LearnerPolicy, PolicyWriter
from .run_folder import RunFolder, checkpoint_step, write_folder
from .sb3_internals import as_arrays, capture, current_learning_rate, env_of, find_divergence, restore

MakeEnv = Callable[[int, AutoresetMode], VectorEnv[Any, Any, Any]]
"""Maker of a vector env from a number of worlds and an autoreset mode."""
_KEPT = ("logged", "evaluated", "evaluation", "best_return")
"""Attributes of the callback that checkpoints hold."""


class RunCallback(BaseCallback):
    """Callback of the run in ``folder``: what is due by the run's settings is done at the beginning of a rollout.

    ``should_stop`` is asked then and during evaluations; a run that stops has saved its state, and is ``stopped``.
    """

    def __init__(
        self,
        config: TrainConfig,
        folder: RunFolder,
        model: BaseAlgorithm,
        display: TrainingDisplay,
        should_stop: Callable[[], bool],
        make_env: MakeEnv,
    ) -> None:
        super().__init__()
        self.init_callback(model)
        self.config, self.folder, self.display, self.should_stop = config, folder, display, should_stop
        self.venv = env_of(model)
        self.evaluation_env = make_env(config.eval.episodes, AutoresetMode.DISABLED)
        self.window = EpisodeWindow(self.venv, config.log_window)
        self.logged, self.evaluated, self.saved = 0, -1, -1
        """Steps of the last log, evaluation and checkpoint; -1 before the first."""
        self.evaluation: dict[str, float] = {}
        """Means of the last evaluation."""
        self.best_return = -np.inf
        self.stopped = False
        self._writer = PolicyWriter(config, folder) if hasattr(self.venv.env, "core") else None
        self._clock = (time.monotonic(), 0)

    def restore(self, checkpoint: Path) -> int:
        """Restore learner, env and statistics from a checkpoint and return its step. Raises ConfigError."""
        state = self.folder.read_checkpoint(checkpoint)
        try:
            restore(self.model, state["learner"])
            self.window.set_state(as_arrays(state["window"]))
            vars(self).update({name: state["progress"][name] for name in _KEPT})
        except (ValueError, KeyError, RuntimeError, TypeError) as error:
            reason = str(error).split("\n")[0]
            raise ConfigError(f"{checkpoint} does not fit the run's settings or this version ({reason})") from error
        self.saved = checkpoint_step(checkpoint)
        return self.saved

    def set_difficulty(self) -> None:
        """Let the episodes that begin from now on have the curriculum's difficulty, which follows from the step."""
        if self.config.curriculum is not None:
            self.venv.env_method("set_difficulty", self._difficulty)

    def check_finite(self) -> None:
        """Raise ConfigError unless the policy is finite; draws no random numbers."""
        fault = find_divergence(self.model)
        if fault is not None:
            kept = f"; the checkpoint of step {self.saved} is kept" if self.saved >= 0 else ""
            raise ConfigError(
                f"training diverged after {self.model.num_timesteps} steps: the policy's {fault} are no longer finite; "
                f"the likely cause is algorithm.learning_rate ({current_learning_rate(self.model):g}): begin a new run "
                f"with a lower one{kept}"
            )

    def _on_training_start(self) -> None:
        self._clock = (time.monotonic(), self.model.num_timesteps)

    def _on_rollout_start(self) -> None:
        step, config = self.model.num_timesteps, self.config
        self.set_difficulty()
        if _is_due(step, self.logged, config.log_every_steps):
            self._log()
        if not self.should_stop() and _is_due(step, self.evaluated, config.eval.every_steps or 0):
            self._evaluate()
        self.stopped = self.should_stop()
        if self.stopped or _is_due(step, max(self.saved, 0), config.checkpoint.every_steps):
            self._save()
        if getattr(self.model, "use_sde", False):  # SB3 has drawn this rollout's noise before the state was saved
            torch.manual_seed(int(np.random.SeedSequence([config.seed, step]).generate_state(1)[0]))
            self.model.policy.reset_noise(config.n_envs)  # type: ignore[operator]

    def _on_step(self) -> bool:
        if self.stopped:
            return False
        self.window.update()
        self.display.advance(self.num_timesteps)
        return True

    def _on_training_end(self) -> None:
        if self.stopped:
            return
        self._log()
        if self.evaluated < self.model.num_timesteps:
            self._evaluate()
        self._save()
        self.stopped = self.evaluated < self.model.num_timesteps
        if not self.stopped:
            self._save_policy("final")

    @property
    def _difficulty(self) -> float:
        assert self.config.curriculum is not None
        return self.config.curriculum.difficulty(self.model.num_timesteps / self.config.total_steps)

    def _log(self) -> None:
        step, logger = self.model.num_timesteps, self.model.logger
        if step == self.logged:
            return
        means = self.window.means()
        for name, value in means.items():
            logger.record(name if "/" in name else f"rollout/{name}", value)
        if self.config.curriculum is not None:
            logger.record("rollout/difficulty", self._difficulty)
        now, (before, step_before) = time.monotonic(), self._clock
        logger.record("time/fps", (step - step_before) / max(now - before, 1e-9))
        logger.dump(step)
        self._clock = (now, step)
        self.logged = step
        if "return" in means:
            self.display.note = _describe(means)

    def _evaluate(self) -> None:
        self.check_finite()
        step, policy = self.model.num_timesteps, LearnerPolicy(self.model)
        columns = play_episodes(policy, self.evaluation_env, EVALUATION.first, self.should_stop)
        if columns is None:
            return
        means = summarise(columns)
        for name, value in means.items():
            self.model.logger.record(f"eval/{name}", value)
        self.model.logger.dump(step)
        self.evaluated, self.evaluation = step, means
        self.folder.note_evaluation(step, means)
        # What has learned nothing yet is not kept as the best, however good the gait below it is.
        best = step > 0 and means["return"] > self.best_return
        if best:
            self.best_return = means["return"]
            self._save_policy("best")
        if not self.display.quiet:
            text = f"{step:,} steps: evaluation {_describe(means)}"
            self.display.say(text + ", the best trained so far" if best else text)

    def _save(self) -> None:
        step = self.model.num_timesteps
        if step == self.saved:
            return
        self.check_finite()
        progress = {name: getattr(self, name) for name in _KEPT}
        state = {"learner": capture(self.model), "window": self.window.get_state(), "progress": progress}
        self.folder.write_checkpoint(step, state, self._encode(), self.config.checkpoint.keep)
        self.saved = step

    def _save_policy(self, name: str) -> None:
        files = self._encode()
        if files:
            write_folder(self.folder.policies / name, files)

    def _encode(self) -> dict[str, bytes]:
        """Return the policy file's content, empty for an env of another package."""
        return {} if self._writer is None else self._writer.encode(self.model, self.evaluation)


def _describe(means: dict[str, float]) -> str:
    progress = f", progress {means['progress/all']:.2f} m" if "progress/all" in means else ""
    return f"return {means['return']:.1f}{progress}"


def _is_due(step: int, last: int, every: int) -> bool:
    """Return True if a multiple of ``every`` lies in (last, step]; never for every = 0."""
    return every > 0 and step // every > last // every
