"""Settings that no task can have, and files that are no path: one line names the setting."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from snake_gym.config import ConfigError, build
from snake_gym.envs import SnakeVectorEnv
from snake_gym.registry import find_task
from snake_gym.tasks.path_follow import PathFollowConfig

TWICE = [[0, 0], [1, 0], [1, 0]]

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("Waypoints", {"course": {"kind": "list"}}, "targets is empty"),
    ("Waypoints", {"course": {"kind": "paper", "targets": [[1, 1]]}}, "targets is given for course.kind paper"),
    ("Waypoints", {"course": {"n_targets": 4, "success_targets": 5}}, "success_targets is 5; expected <= 4"),
    ("Waypoints", {"robot": "resilient", "costs": {"torque_share": 0.5}}, "resilient has no torque limit"),
    ("Velocity", {"command": {"min_speed_m_s": 0.5}}, "min_speed_m_s is 0.5, max_speed_m_s 0.3"),
    ("Velocity", {"command": {"min_interval_s": 0.001}}, "min_interval_s is 0.001 for time_limit_s 60"),
    ("Escape", {"robot": {"link_radius_m": 0}}, "link_radius_m is 0; expected at least 0.001 among obstacles"),
    ("Escape", {"goal": {"distance_m": 0.1}}, "goal.distance_m is 0.1; expected at least half the robot's length"),
    ("PathFollow", {"path": {"kind": "recorded"}}, "path.points has 0 entries"),
    ("PathFollow", {"path": {"kind": "recorded", "points": TWICE}}, "points[1] is [1.0, 0.0], as the next one"),
    ("PathFollow", {"path": {"kind": "line", "closed": True}}, "path.closed is given for path.kind line"),
    ("PathFollow", {"path": {"length_m": 1e4, "bend_every_m": 1.0}}, "bend_every_m is 1 for length_m 10000"),
    (
        "PathFollow",
        {"path": {"kind": "recorded", "file": "no.csv"}},
        "(No such file or directory); expected a CSV",
    ),
]


@pytest.mark.parametrize(("task", "settings", "expected"), REFUSED)
def test_settings_that_no_task_can_have_are_refused_in_one_line(
    task: str, settings: dict[str, Any], expected: str
) -> None:
    env_id = f"SnakeGym/{task}-v0"
    with pytest.raises(ConfigError, match=re.escape(expected)) as refused:
        SnakeVectorEnv(env_id, 1, config=build(find_task(env_id), settings, "env"))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"0,0\n1,a\n", "line 2 is '1,a'; expected numbers x,y"),
        (b"0,0\nnan,0\n", "line 2 is 'nan,0'; expected numbers x,y of at most"),
        (b"\xff\xfe\x00", "expected a CSV file with lines x,y"),
        (b"0,0\n" * 1_100_000, "more than 4194304 bytes"),
    ],
    ids=["a word", "no number", "bytes", "large"],
)
def test_a_file_that_is_no_path_is_one_clear_error(content: bytes, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "walk.csv"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=expected):
        build(PathFollowConfig, {"path": {"kind": "recorded", "file": str(file)}}, "env")
