"""Learners learn: a task of known best return, through the whole machinery."""

from __future__ import annotations

from pathlib import Path

import pytest
from gymnasium.vector import AutoresetMode
from snake_gym.agents.metrics import play_episodes
from snake_gym.agents.policy_writer import LearnerPolicy
from snake_gym.agents.run_folder import RunFolder

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


@pytest.mark.slow
def test_ppo_makes_the_snake_crawl_to_its_targets(tmp_path: Path) -> None:
    # The course of a run hangs on rounding, so no seed is sure of its result: 0 to 11 end at 2.3 to 3.8 m. With SB3's
    # default noise (standard deviation 1 on actions in [-1, 1]) seeds 0 to 3 end at 0.5 to 1.3 m.
    snake = {"action": {"kind": "gait"}, "time_limit_s": 30.0, "n_threads": 1}
    network = {"net_arch": [32], "log_std_init": -1.0}
    algorithm = {"name": "PPO", "n_steps": 32, "batch_size": 1024, "n_epochs": 5, "gamma": 0.95, "gae_lambda": 0.9,
                 "learning_rate": 1e-3, "network": network}  # fmt: skip
    config = small_config(
        env=snake, algorithm=algorithm, n_envs=64, total_steps=200_000, eval={"every_steps": 500_000, "episodes": 64}
    )
    run_to_end(config, tmp_path / "run")
    untrained, trained = RunFolder(tmp_path / "run").evaluations()
    assert abs(untrained["progress/all"]) < 0.5
    assert trained["progress/all"] > 1.5
