"""RecurrentPPO trains, and its policy file acts as its model does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from snake_gym.agents.export import export_policy
from snake_gym.agents.policy_writer import LearnerPolicy

from snake_gym.benchmark.evaluate import main as evaluate
from snake_gym.interface.policy_file import load_policy
from tests.agents.runs import RECURRENT, run_to_end, small_config

pytest.importorskip("sb3_contrib")


def test_the_policy_file_keeps_a_state_for_each_world(tmp_path: Path) -> None:
    config = small_config(algorithm=RECURRENT, total_steps=512)
    training = run_to_end(config, tmp_path / "run")
    assert training.evaluation
    export_policy(tmp_path / "run", tmp_path / "file")
    policy, learner = load_policy(tmp_path / "file"), LearnerPolicy(training.model)
    players: tuple[Any, Any] = (policy, learner)
    rng = np.random.default_rng(3)
    kept: tuple[Any, Any] = (None, None)
    differs = 0.0
    for step in range(12):
        obs = rng.normal(size=(5, policy.contract.observation.size)).astype(np.float32)
        starts = np.array([step == 0, step in (0, 4), step == 0, step in (0, 7), step == 0])
        (ours, a), (theirs, b) = (
            acting.predict(obs, state, starts, deterministic=True) for acting, state in zip(players, kept, strict=True)
        )
        kept = (a, b)
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-5)
        differs = max(differs, float(np.abs(ours - policy.predict(obs)[0]).max()))
    assert differs > 1e-3  # the state matters
    short = ["--episodes", "4", "--set", "resamples=100", "env.time_limit_s=4"]
    assert evaluate(["--policy", f"mine={tmp_path / 'file'}", *short, "--out", str(tmp_path / "report")]) == 0
