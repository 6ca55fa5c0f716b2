"""Scenarios of ObstacleField: scored by success, with contacts and times to the goal, learned beside classical."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from snake_gym.benchmark.policy_fit import column_fault
from snake_gym.benchmark.report import rows_csv, summarise, tables, verdicts
from snake_gym.benchmark.runner import Episodes
from snake_gym.benchmark.scenarios import EntrantKind, policy_settings
from snake_gym.config import to_dict
from snake_gym.envs import ObstacleFieldConfig
from snake_gym.interface.observations import ObservationLayout
from snake_gym.robot.presets import RESILIENT_SERVO

ENV_ID = "SnakeGym/ObstacleField-v0"


def episodes(name: str, kind: EntrantKind, reached: list[bool]) -> Episodes:
    n = len(reached)
    success = np.array(reached)
    columns: dict[str, Any] = {
        "seed": np.arange(n), "faults": np.array([""] * n), "n_faults": np.zeros(n, np.int64),
        "n_failed_joints": np.zeros(n, np.int64), "progress_m": np.where(success, 4.0, 1.0), "is_success": success,
        "energy_j": np.full(n, 8.0), "episode_time_s": np.where(success, 20.0, 60.0), "return": np.ones(n),
        "route_m": np.full(n, 4.0), "time_to_goal_s": np.where(success, 20.0, np.inf),
        "contact_time_s": np.full(n, 6.0), "contact_impulse_ns": np.full(n, 30.0), "penetration_m": np.zeros(n),
    }  # fmt: skip
    return Episodes(name, kind, columns, np.array([0.0]), np.zeros((1, n), np.float32), "same", "is_success")


def test_policies_are_compared_by_how_often_they_get_through() -> None:
    results = [
        episodes("ppo", "learned", [True, True, True, False]),
        episodes("sjc", "classical", [True, False, False, False]),
        episodes("cc", "classical", [True, True, False, False]),
    ]
    summary = summarise(results, 200)
    assert (summary["score"], summary["best_classical"]) == ("is_success", "cc")
    ppo = summary["policies"]["ppo"]
    assert (ppo["ratio"], ppo["ahead"]) == pytest.approx((1.5, 0.25))
    assert (ppo["success"], ppo["mean"], ppo["time_to_goal_s"]) == (0.75, 3.25, 30.0)
    assert ppo["route_share"] == pytest.approx(3.25 / 4.0)
    assert ppo["contact_share"] == pytest.approx((3 * 0.3 + 0.1) / 4)
    assert ppo["contact_force_n"] == pytest.approx((3 * 1.5 + 0.5) / 4)
    assert "targets" not in ppo and "time_to_target_s" not in ppo
    assert "ppo makes 1.50" in verdicts(summary)[0]
    heads = [str(column.header) for column in tables(summary, "title")[0].columns]
    assert heads[:3] == ["policy", "success (95 %)", "progress [m] (95 %)"]
    assert "goal at\n[s]" in heads and "targets" not in heads
    assert "time_to_goal_s" in rows_csv(results).splitlines()[0]


def test_a_learned_policy_takes_its_senses_along() -> None:
    trained = to_dict(ObstacleFieldConfig())
    trained["range_scan"] |= {"n_beams": 5, "noise_m": 0.3}
    settings = policy_settings(trained)
    assert settings["range_scan"] == {
        "n_beams": 5, "field_of_view_rad": trained["range_scan"]["field_of_view_rad"], "max_range_m": 2.0
    }  # fmt: skip
    assert settings["contact_sensor"] == {"limit_n": trained["contact_sensor"]["limit_n"]}
    assert settings["faults"] == {"reveal": False}
    assert "field" not in settings


def layout(spec: Any = RESILIENT_SERVO, **changes: Any) -> ObservationLayout:
    return ObservationLayout(spec, 9, **{"has_phase": True, "point": "centre", **changes})


def test_columns_of_equal_number_that_mean_something_else_are_a_fault() -> None:
    with_forces, with_beams = layout(contact_limit_n=1.0), layout(n_beams=20)
    assert with_forces.size == with_beams.size
    fault = column_fault(with_forces, with_beams)
    assert fault is not None
    assert "is contact_force, here it is range" in fault
    assert column_fault(layout(), layout(has_phase=False)) is not None
