"""A trained policy in the environment that it was trained in: whole episodes, the same as evaluation's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import snake_gym  # noqa: F401  (registers)
from snake_gym.benchmark.runner import play
from snake_gym.benchmark.scenarios import BenchmarkConfig, TrainedPolicy, learned_entrant, make_scenarios
from snake_gym.interface.policy_file import load_policy
from tests.agents.runs import run_to_end, small_config

SHIPPED = Path(__file__).parents[2] / "agents" / "pretrained" / "resilient_servo_locked_joints"
N_STEPS = 300
SEED = 1_000_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run whose first episodes were cut short."""
    path = tmp_path_factory.mktemp("runs") / "short"
    training = run_to_end(small_config(total_steps=256), path)
    training.folder.write_config(training.config)
    return path


def play_alone(policy: TrainedPolicy, env_id: str, seed: int) -> tuple[int, float, dict[str, Any]]:
    """Steps, return and last info of one episode of the single env that the policy asks for."""
    env = gym.make(env_id, config=policy.env_config)
    obs, info = env.reset(seed=seed)
    total, steps, ended = 0.0, 0, False
    while not ended:
        obs, reward, terminated, truncated, info = env.step(policy.predict(obs)[0])
        total, steps, ended = total + float(reward), steps + 1, terminated or truncated
    env.close()
    return steps, total, info


def test_the_shipped_policy_plays_the_whole_time_limit_as_evaluation_does() -> None:
    policy = load_policy(SHIPPED)
    settings = {name: value for name, value in policy.env_config.items() if name not in ("robot", "action")}
    config = BenchmarkConfig(robot=policy.env_config["robot"], env=settings, seed=SEED, episodes=2)
    scenarios = make_scenarios(config)
    expected = play(learned_entrant("shipped", policy, scenarios), scenarios)
    for world in range(2):
        steps, total, info = play_alone(policy, policy.env_id, SEED + world)
        assert steps == N_STEPS
        # One observation alone may round otherwise in a product than two together.
        np.testing.assert_allclose(total, expected.columns["return"][world], rtol=1e-6)
        np.testing.assert_allclose(info["progress_m"], expected.columns["progress_m"][world], rtol=1e-6)


def test_a_run_with_spread_ends_leaves_a_policy_that_plays_whole_episodes(run: Path) -> None:
    policy = load_policy(run)
    assert policy.env_id == "SnakeGym/Waypoints-v0"
    assert play_alone(policy, policy.env_id, 5)[0] == 20
