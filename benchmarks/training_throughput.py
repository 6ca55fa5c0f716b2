"""How fast training is, and what it costs to train on our env instead of one that costs nothing, for throughput.py.

The same learner, settings, adapter and callbacks (configs/train/ppo.yaml) train on the snake env and on a zero-cost
env of the same shapes and episode length, taking turns, so that both meet the same machine; the ratio is the median
over the rounds. Both update between rollouts, in float32; a third run overlaps them, in bfloat16, as the file says.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import torch
from gymnasium.vector import AutoresetMode
from snake_gym.agents.algorithms import make_model
from snake_gym.agents.callback import MakeEnv, RunCallback
from snake_gym.agents.config import CheckpointConfig, EvaluationConfig, TrainConfig, complete
from snake_gym.agents.display import TrainingDisplay
from snake_gym.agents.run_folder import RunFolder
from snake_gym.agents.sb3_internals import open_tensorboard
from snake_gym.agents.sb3_vec_env import Sb3VecEnv
from snake_gym.agents.train import snake_envs
from zero_cost_env import ZeroCostEnv

from snake_gym.config import build, load_yaml
from snake_gym.envs import WaypointsConfig, make_waypoints

ROOT = Path(__file__).parents[1]


class EndlessCallback(RunCallback):
    """Callback of a run that goes on a stretch at a time: nothing is written at the end of one."""

    def _on_training_end(self) -> None: ...


class Trainee:
    """A training run that goes on a stretch at a time."""

    def __init__(self, config: TrainConfig, folder: Path, zero_cost: bool) -> None:
        torch.set_num_threads(config.torch_threads)
        make_env = zero_cost_envs(config) if zero_cost else snake_envs(config)
        venv = Sb3VecEnv(make_env(config.n_envs, AutoresetMode.SAME_STEP), config.stagger and not zero_cost)
        self._model = make_model(config.algorithm, venv, config.seed)
        self._model.set_logger(open_tensorboard(folder, None, config))
        display, files = TrainingDisplay(config.total_steps, quiet=True), RunFolder(folder)
        self._run = EndlessCallback(config, files, self._model, display, lambda: False, make_env)

    def measure(self, steps: int) -> float:
        """Train for ``steps`` more; env steps per second."""
        model, begun, start = self._model, self._model.num_timesteps, time.perf_counter()
        model.learn(steps, self._run, log_interval=None, reset_num_timesteps=False)
        return (model.num_timesteps - begun) / (time.perf_counter() - start)


def zero_cost_envs(config: TrainConfig) -> MakeEnv:
    """Makes zero-cost envs, which spread no ends, with the shapes and episode length of the config's env."""
    settings = build(WaypointsConfig, config.env, "env")
    core = make_waypoints(1, settings).core
    n_obs, n_actions, n_steps = core.layout.size, core.decoder.size, settings.n_steps(core.spec)
    return lambda n_worlds, mode: ZeroCostEnv(n_worlds, n_obs, n_actions, n_steps)


def training_config() -> TrainConfig:
    """Settings of configs/train/ppo.yaml without evaluation and checkpoints, which the rates leave out.

    Nor is anything mirrored: a zero-cost env does not look like anything in a mirror.
    """
    with chdir(ROOT):  # the config names files of the repository
        config, _ = complete(build(TrainConfig, load_yaml("configs/train/ppo.yaml"), "ppo.yaml"))
    threads = len(os.sched_getaffinity(0))
    return replace(
        config, eval=EvaluationConfig(every_steps=None), checkpoint=CheckpointConfig(every_steps=0),
        env={**config.env, "n_threads": threads}, algorithm={**config.algorithm, "mirror": 0.0},
    )  # fmt: skip


def measure_training(quick: bool) -> tuple[int, list[tuple[float, ...]]]:
    """The number of worlds, and env steps per second in each round: on our env, the zero-cost env, as the file says."""
    config = training_config()
    rollout = config.n_envs * int(config.algorithm["n_steps"])
    rounds, steps = (3, 4 * rollout) if quick else (7, 12 * rollout)
    plain = replace(config, algorithm={**config.algorithm, "overlap": False, "bfloat16": False})
    with tempfile.TemporaryDirectory() as folder:
        ours, zero_cost = (Trainee(plain, Path(folder) / str(zero), zero) for zero in (False, True))
        as_said = Trainee(config, Path(folder) / "as_said", False)
        trainees = (ours, zero_cost, as_said)
        for trainee in trainees:
            trainee.measure(rollout)
        return config.n_envs, [
            (ours.measure(steps), zero_cost.measure(steps), as_said.measure(steps)) for _ in range(rounds)
        ]
