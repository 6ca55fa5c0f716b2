"""Playing scenarios: the same ones for every policy, one row each."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pytest

from snake_gym.benchmark.report import ROW_COLUMNS, rows_csv
from snake_gym.benchmark.runner import INFO_COLUMNS, play, play_all
from snake_gym.benchmark.scenarios import BenchmarkConfig, Entrant, Scenarios, make_scenarios
from snake_gym.envs import SnakeVectorEnv
from snake_gym.envs.tables import INFO_NOTES
from snake_gym.registry import find_task
from snake_gym.robot.presets import RESILIENT_SERVO

ENV = {"time_limit_s": 4.0, "course": {"radius_m": 0.3}, "faults": {"n_max": 3, "kinds": ["locked", "free"]}}


class Still:
    """Keeps every action at one value."""

    def __init__(self, env: SnakeVectorEnv, value: float = 0.0) -> None:
        self.action = np.full(env.action_space.shape, value, dtype=np.float32)

    def predict(self, obs: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False) -> Any:
        assert deterministic
        return self.action, state


def entrant(name: str = "still", kind: str = "joint_reference", value: float = 0.0, **more: Any) -> Entrant:
    settings = {"action": {"kind": kind}, **more}
    return Entrant(name, "classical", settings, lambda env: Still(env, value), {"value": value})


@pytest.fixture
def scenarios() -> Scenarios:
    return make_scenarios(BenchmarkConfig(episodes=24, seed=500, env=ENV))


def test_every_policy_gets_the_same_scenarios_whatever_its_action_space(scenarios: Scenarios) -> None:
    told = entrant("told", faults={"reveal": True})
    entrants = (entrant("one"), entrant("other", "residual"), entrant("third", "gait"), told)
    played = [play(each, scenarios) for each in entrants]
    assert len({episodes.scenario for episodes in played}) == 1
    for episodes in played[1:]:
        for name in ("seed", "faults", "n_faults"):
            assert episodes.columns[name].tolist() == played[0].columns[name].tolist()
    assert played[0].columns["seed"].tolist() == list(range(500, 524))
    assert set(played[0].columns["n_faults"].tolist()) == {0, 1, 2, 3}
    assert played[0].columns["progress_m"].tolist() != played[1].columns["progress_m"].tolist()


def test_rows_hold_the_end_of_the_episode(scenarios: Scenarios) -> None:
    episodes = play(entrant(kind="residual"), scenarios)
    assert episodes.sample_time_s[0] == 0.0
    assert episodes.sample_time_s[-1] == 4.0
    assert episodes.sample_progress_m.shape == (21, 24)
    np.testing.assert_allclose(episodes.sample_progress_m[-1], episodes.columns["progress_m"], rtol=1e-6)
    assert np.abs(episodes.columns["progress_m"]).max() > 0.05
    rows = list(csv.DictReader(io.StringIO(rows_csv([episodes]))))
    task = find_task("SnakeGym/Waypoints-v0")().make_task(RESILIENT_SERVO, 1)
    of_other_tasks = set(INFO_COLUMNS) - set(INFO_NOTES) - set(task.records)
    assert {"route_m", "tracking"} <= of_other_tasks
    assert tuple(rows[0]) == tuple(name for name in ROW_COLUMNS if name not in {*of_other_tasks, "recovery_s"})
    assert [int(row["seed"]) for row in rows] == list(range(500, 524))
    assert [len(row["faults"].split()) for row in rows] == episodes.columns["n_faults"].tolist()
    assert {row["time_to_first_target_s"] for row in rows if row["targets_reached"] == "0"} == {""}


def test_an_episode_that_ends_early_keeps_its_last_values() -> None:
    """A course of one target next to the start is complete at once in some worlds; all curves reach the time limit."""
    env = {"time_limit_s": 4.0, "course": {"kind": "list", "targets": [[0.05, 0.0]], "radius_m": 0.2}}
    episodes = play(entrant(), make_scenarios(BenchmarkConfig(episodes=3, env=env)))
    assert episodes.columns["is_success"].all()
    assert (episodes.columns["episode_time_s"] < 4.0).all()
    assert episodes.sample_time_s[-1] == 4.0
    assert (episodes.sample_progress_m[-1] == episodes.sample_progress_m[1]).all()


def test_policies_of_different_scenarios_are_refused(scenarios: Scenarios) -> None:
    with pytest.raises(RuntimeError, match="same scenarios"):
        play_all([entrant("one"), entrant("two", course={"max_distance_m": 3.0})], scenarios)
