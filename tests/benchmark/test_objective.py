"""What a search maximises: the task's own score, ties broken by time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from snake_gym.benchmark.tuning import Search, TuningConfig, objective, score_of

LIMIT = 60.0


def infos(success: list[bool], goal_s: list[float], share: list[float]) -> dict[str, Any]:
    return {
        "is_success": np.array(success), "time_to_goal_s": np.where(success, goal_s, np.inf),
        "episode_time_s": np.where(success, goal_s, LIMIT), "progress_m": 4.0 * np.array(share),
        "route_m": np.full(len(success), 4.0),
    }  # fmt: skip


def test_success_comes_first_then_the_time_then_the_way() -> None:
    worth = objective(
        infos([True, True, False, False, False], [20.0, 50.0, 60.0, 60.0, 60.0], [1.0, 1.0, 0.9, 0.2, -1.0]),
        "is_success", LIMIT,
    )  # fmt: skip
    assert (np.diff(worth) < 0.0).all()
    assert score_of(worth, "is_success") == {"mean": 0.4, "ci95": [0.1176, 0.7693], "episodes": 5}  # Wilson


def test_no_time_makes_up_for_one_success_in_the_largest_search() -> None:
    n = 100_000
    fast = objective(infos([True] * (n - 1) + [False], [1e-3] * n, [1.0] * n), "is_success", LIMIT)
    slow = objective(infos([True] * n, [LIMIT] * n, [1.0] * n), "is_success", LIMIT)
    assert slow.mean() > fast.mean()


SETTINGS: dict[str, Any] = {"n_threads": 1, "time_limit_s": 20.0, "field": {"goal_distance_m": 0.8, "difficulty": 0.2}}


@pytest.fixture(scope="module")
def in_field() -> Search:
    return Search(
        TuningConfig(
            env_id="SnakeGym/ObstacleField-v0", env=SETTINGS, generations=1, population=4, worlds=16,
            controller={"kind": "sjc"},
        )
    )  # fmt: skip


def test_a_search_in_the_field_maximises_success(in_field: Search) -> None:
    """A gait that reaches the goal is the better one, though another makes more way in the time of the episode."""
    in_field.advance()
    report = in_field.report()["tuning"]
    assert report["score"] == "is_success" and "progress_m" not in report
    assert set(report["is_success"]) == {"mean", "ci95", "episodes"}
    assert 0.0 <= report["is_success"]["ci95"][0] <= report["is_success"]["mean"] <= 1.0
    gaits = np.array([[0.4, 0.8, 0.2, 0.7], [0.0, 0.0, 0.5, 0.5], [0.4, 0.8, 0.2, 0.7], [0.0, 0.0, 0.5, 0.5]])
    worth = in_field.play(gaits, np.arange(2_000_000, 2_000_004))
    reached = in_field.env.core.task.infos()["is_success"].reshape(4, 4)
    assert reached[0].any() and not reached[1].any()
    np.testing.assert_array_equal(worth >= 1.0, reached)


def test_a_search_among_waypoints_maximises_progress() -> None:
    search = Search(TuningConfig(env={"n_threads": 1, "time_limit_s": 4.0}, population=4, worlds=8, generations=1))
    worth = search.play(np.full((4, 4), 0.5), np.arange(2_000_000, 2_000_002))
    np.testing.assert_array_equal(worth.ravel(), search.env.core.task.infos()["progress_m"])
    search.advance()
    report = search.report()["tuning"]
    assert report["score"] == "progress_m" and "is_success" not in report
