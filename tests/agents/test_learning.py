"""Learners learn: a task of known best return, through the whole machinery."""

from __future__ import annotations

from pathlib import Path

import pytest
from gymnasium.vector import AutoresetMode
from snake_gym.agents.metrics import play_episodes
from snake_gym.agents.policy_writer import LearnerPolicy

from snake_gym.interface.policy import ZeroResidual
from tests.agents.copy_env import CopyEnv
from tests.agents.runs import copy_envs, run_to_end, small_config

PPO = {"name": "PPO", "n_steps": 16, "batch_size": 128, "n_epochs": 5, "gamma": 0.0, "learning_rate": 3e-3,
       "network": {"net_arch": [32], "log_std_init": -1.0}}  # fmt: skip
IDLE = -0.64 * 2 / 3 * 10
"""Mean return of a policy that always answers 0."""


def test_copying_what_is_seen_is_learned(tmp_path: Path) -> None:
    config = small_config(algorithm=PPO, stagger=False, total_steps=20_480, eval={"every_steps": None, "episodes": 64})
    training = run_to_end(config, tmp_path / "run", make_env=copy_envs)
    columns = play_episodes(LearnerPolicy(training.model), CopyEnv(64, mode=AutoresetMode.DISABLED), seed=1)
    idle = play_episodes(ZeroResidual(2), CopyEnv(64, mode=AutoresetMode.DISABLED), seed=1)
    assert columns is not None and idle is not None
    assert idle["return"].mean() == pytest.approx(IDLE, rel=0.1)
    assert columns["return"].mean() > 0.1 * IDLE and training.best_return > 0.1 * IDLE
