"""The shipped policy outside the courses that it was trained on: no worse than the controller underneath."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_gym.benchmark.runner import play
from snake_gym.benchmark.scenarios import BenchmarkConfig, classical_entrant, learned_entrant, make_scenarios
from snake_gym.config import load_yaml, merge
from snake_gym.interface.policy_file import load_policy

ROOT = Path(__file__).parents[2]
POLICY = ROOT / "agents/pretrained/resilient_servo_locked_joints"

CHANGES: dict[str, dict[str, Any]] = {
    "legs of 15 to 20 m": {"course": {"min_distance_m": 15.0, "max_distance_m": 20.0}},
    "encoder noise of 0.01 rad": {"sensors": {"angle_noise_rad": 0.01}},
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_the_shipped_policy_stays_ahead_of_its_base(change: str) -> None:
    env = load_yaml(ROOT / "configs/env/locked_joints.yaml")
    del env["robot"]
    config = BenchmarkConfig(episodes=48, env=merge(env, CHANGES[change]))
    scenarios = make_scenarios(config)
    learned = play(learned_entrant("ppo", load_policy(POLICY), scenarios), scenarios)
    base = play(classical_entrant("fault_aware", config), scenarios)
    gain = learned.columns["progress_m"] - base.columns["progress_m"]
    assert gain.mean() > 3.0 * gain.std() / np.sqrt(gain.size)
