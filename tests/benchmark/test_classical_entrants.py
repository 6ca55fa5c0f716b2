"""A classical entrant plays by the law that its file says: as the controller does with the measurements themselves."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_gym.benchmark.runner import roll
from snake_gym.benchmark.scenarios import BenchmarkConfig, classical_entrant, make_scenarios
from snake_gym.config import dump_yaml
from snake_gym.controllers import make_controller
from snake_gym.envs import SnakeVectorEnv

EPISODES, SEED = 6, 700
NOISE = {"angle_noise_rad": 0.01, "rate_noise_rad_s": 0.05, "position_noise_m": 0.01, "heading_noise_rad": 0.02}


def driven_by_hand(config: BenchmarkConfig, settings: dict[str, Any]) -> np.ndarray:
    """Centres (W, 2) [m] at the end, with joint references that the controller gives for what the sensors measure."""
    env = SnakeVectorEnv(config.env_id, config.episodes, "DISABLED", config={**config.env, "robot": config.robot})
    env.reset(seed=config.seed)
    core = env.core
    limit = core.spec.joint_limit_rad
    controller = make_controller(settings, core.spec)
    state = controller.initial_state(config.episodes)
    for _ in range(core.n_steps):
        reference = controller.command(core.measurement, core.task.goal(), state, core.spec.control_dt_s)
        env.step(np.clip(reference, -limit, limit) / limit)
    return core.robot.state.centre_xy.copy()


@pytest.mark.parametrize(
    ("kind", "env_id", "point"),
    [("sjc", "SnakeGym/Waypoints-v0", "centre"), ("cc", "SnakeGym/ObstacleField-v0", "head"),
     ("cpg", "SnakeGym/Waypoints-v0", "head"), ("fault_aware", "SnakeGym/ObstacleField-v0", "centre")],
)  # fmt: skip
def test_a_classical_entrant_steers_by_what_its_file_says(kind: str, env_id: str, point: str, tmp_path: Path) -> None:
    settings = {"kind": kind, "tracked_point": point}
    dump_yaml({"controller": settings}, tmp_path / "gait.yaml")
    env = {"time_limit_s": 3.0, "faults": {"n_max": 2}, "sensors": NOISE}
    config = BenchmarkConfig(robot="resilient_servo", env_id=env_id, episodes=EPISODES, seed=SEED, env=env)
    scenarios = make_scenarios(config)
    entrant = classical_entrant(f"{kind}={tmp_path / 'gait.yaml'}", config)
    made = scenarios.make_env(entrant)
    for _ in roll(entrant.make_policy(made), made, SEED):
        pass
    np.testing.assert_allclose(made.core.robot.state.centre_xy, driven_by_hand(config, settings), atol=1e-9)
    assert np.abs(made.core.robot.state.centre_vel).max() > 1e-3
