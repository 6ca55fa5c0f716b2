"""Who plays: classical entrants by the law of their file, trainings of a recipe, and policies in envs that fit."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_gym.benchmark.policies import training_names, training_paths
from snake_gym.benchmark.policy_fit import column_fault
from snake_gym.benchmark.runner import roll
from snake_gym.benchmark.scenarios import BenchmarkConfig, classical_entrant, make_scenarios, policy_settings
from snake_gym.benchmark.seed_ranges import RANGES, seed_note
from snake_gym.config import ConfigError, dump_yaml, to_dict
from snake_gym.controllers import make_controller
from snake_gym.envs import ObstacleFieldConfig, SnakeVectorEnv
from snake_gym.interface.observations import ObservationLayout
from snake_gym.robot.presets import RESILIENT_SERVO

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


def test_a_glob_and_a_folder_stand_for_the_runs_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for seed in (2, 10, 1):
        (tmp_path / f"ppo_seed{seed}" / "policy" / "best").mkdir(parents=True)
        (tmp_path / f"ppo_seed{seed}" / "policy" / "best" / "policy.json").touch()
    expected = tuple(str(tmp_path / f"ppo_seed{seed}") for seed in (1, 2, 10))
    assert training_paths("ppo", str(tmp_path / "ppo_seed*")) == expected
    assert training_paths("ppo", str(tmp_path)) == expected
    assert training_paths("ppo", expected[:2]) == expected[:2]
    assert training_paths("ppo", expected[0]) == expected[:1]
    assert training_paths("ppo", "module:make") == ("module:make",)
    assert training_names(expected) == ["ppo_seed1", "ppo_seed2", "ppo_seed10"]
    assert training_names(["a/best", "b/best"]) == ["a/best", "b/best"]
    for given, fault in (("nothing_*", r"ppo=nothing_.* fits no path"), (("a", "a"), "expected each training once")):
        with pytest.raises(ConfigError, match=fault):
            training_paths("ppo", given)


def test_a_learned_policy_takes_its_senses_along() -> None:
    trained = to_dict(ObstacleFieldConfig())
    trained["range_scan"] |= {"n_beams": 5, "noise_m": 0.3}
    settings = policy_settings(trained)
    field_of_view = trained["range_scan"]["field_of_view_rad"]
    assert settings["range_scan"] == {"n_beams": 5, "field_of_view_rad": field_of_view, "max_range_m": 2.0}
    assert settings["contact_sensor"] == {"limit_n": trained["contact_sensor"]["limit_n"]}
    assert settings["faults"] == {"reveal": False}
    assert "field" not in settings


def test_columns_of_equal_number_with_another_meaning_are_a_fault() -> None:
    def layout(**changes: Any) -> ObservationLayout:
        return ObservationLayout(RESILIENT_SERVO, 9, **{"has_phase": True, "point": "centre", **changes})

    with_forces, with_beams = layout(contact_limit_n=1.0), layout(n_beams=20)
    assert with_forces.size == with_beams.size
    assert "is contact_force, here it is range" in str(column_fault(with_forces, with_beams))
    assert column_fault(layout(), layout(has_phase=False)) is not None
    assert column_fault(layout(), layout()) is None


def test_ranges_of_seeds_do_not_meet_and_seeds_of_another_use_are_named() -> None:
    assert RANGES[0].first == 0
    assert all(before.end == after.first for before, after in itertools.pairwise(RANGES))
    assert seed_note(499_999, 2) and seed_note(1_999_900, 101) and seed_note(1_999_900, 100) is None
