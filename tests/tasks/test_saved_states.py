"""States of a task that no episode comes to are refused: schedules, counts, and ways and times of the past."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from snake_gym.envs.checker import assert_same
from snake_gym.envs.vector_env import SnakeVectorEnv

Change = Callable[[dict[str, Any]], Any]


def put(name: str, value: float) -> Change:
    """Let an array of the second world hold ``value``."""
    return lambda state: state[name][1].fill(value) if state[name].ndim > 1 else state[name].__setitem__(1, value)


def shuffle(name: str) -> Change:
    return lambda state: state[name][1].__setitem__(slice(None), state[name][1, ::-1].copy())


IMPOSSIBLE: dict[str, tuple[str, Change, str]] = {
    "negative index": ("Waypoints", put("target_index", -1), "target_index holds -1; expected >= 0"),
    "beyond the course": ("Waypoints", put("target_index", 99), "target_index holds 99 at [1]; expected in [0, "),
    "target before the start": (
        "Waypoints", put("last_target_time_s", -1.0), "last_target_time_s holds -1 at [1]; expected >= 0"
    ),
    "never, but before": (
        "Waypoints", put("time_to_first_target_s", -np.inf), "time_to_first_target_s holds -inf at [1]; expected"
    ),
    "descending begins": ("Velocity", shuffle("command_begin_s"), "command_begin_s holds"),
    "equal begins": ("Velocity", put("command_begin_s", 0.0), "command_begin_s holds 0 at [1, 1]; expected > 0"),
    "late first command": (
        "Velocity", lambda s: s["command_begin_s"].__iadd__(1.0),
        "command_begin_s holds 1 at [0]; expected 0, the first",
    ),
    "no speed": (
        "Velocity", put("command_speed_m_s", 0.0), "command_speed_m_s holds 0 at [1, 0]; expected in [0.05, 0.3]"
    ),
    "a later command": (
        "Velocity", put("command_now", 3), "command_now holds 3 at [1]; expected 0, the command of robot/time_s"
    ),
    "no such command": ("Velocity", put("command_now", 1000), "command_now holds 1000; expected < 9"),
    "more than all": ("Velocity", put("tracking", 1.5), "tracking holds 1.5 at [1]; expected in [0, 1]"),
    "commanded back": ("Velocity", put("commanded_m", -1.0), "commanded_m holds -1 at [1]; expected >= 0"),
    "negative mean": (
        "Velocity", put("mean_speed_error_m_s", -1.0), "mean_speed_error_m_s holds -1 at [1]; expected >= 0"
    ),
    "more steps": ("Velocity", put("command_steps", 4), "command_steps holds 4 at [1]; expected 3, as step_count"),
    "furthest behind the start": (
        "PathFollow", put("furthest_m", -0.5), "furthest_m holds -0.5 at [1]; expected in [0, "
    ),
    "passed beyond the furthest": ("PathFollow", put("passed_m", 3.0), "passed_m holds 3 at [1]; expected in [0, "),
    "progress beyond what is passed": (
        "PathFollow", put("progress_m", 3.0), "progress_m holds 3 at [1]; expected in [0, "
    ),
    "beyond the path": ("PathFollow", put("arc_m", 1e3), "arc_m holds 1000 at [1]; expected in [0, "),
    "shown beyond the path": ("PathFollow", put("shown_m", 1e3), "shown_m holds 1000 at [1]; expected in [0, "),
    "schedule beyond the path": (
        "PathFollow", put("schedule_m", 1e3), "schedule_m holds 1000 at [1]; expected in [0, "
    ),
    "more steps on a path": ("PathFollow", put("steps", 4), "steps holds 4 at [1]; expected 3, as step_count"),
    "another path": ("PathFollow", lambda s: s["path_xy"].__imul__(2.0), "path_xy is 40 m long at [0]; expected 20"),
    "negative root": ("PathFollow", put("rms_cross_track_m", -1.0), "rms_cross_track_m holds -1 at [1]; expected >= 0"),
    "two goals": ("ObstacleField", put("target_index", 2), "target_index holds 2 at [1]; expected in [0, 1]"),
    "behind the route": ("ObstacleField", put("progress_m", -1.0), "progress_m holds -1 at [1]; expected in [0, "),
    "beyond the route": ("Escape", put("progress_m", 1e3), "progress_m holds 1000 at [1]; expected in [0, "),
    "shown beyond the route": ("Escape", put("shown_m", 1e3), "shown_m holds 1000 at [1]; expected in [0, "),
    "time of contact": ("Escape", put("contact_time_s", -1.0), "contact_time_s holds -1 at [1]; expected >= 0"),
    "pulling contact": ("Escape", put("contact_force_n", -1.0), "contact_force_n holds -1 at [1]; expected >= 0"),
    "cold motor": ("Waypoints", put("cost_heat", -1.0), "cost_heat holds -1 at [1, 0]; expected >= 0"),
    "dear joint": ("Waypoints", put("cost/heat", 1.5), "cost/heat holds 1.5 at [1]; expected in [0, 1]"),
}  # fmt: skip


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_no_episode_comes_to_is_refused_before_anything_is_written(name: str) -> None:
    task, spoil, message = IMPOSSIBLE[name]
    env = SnakeVectorEnv(f"SnakeGym/{task}-v0", 2, costs={"heat_share": 0.5})
    env.reset(seed=3)
    for _ in range(3):
        env.step(0.3 * np.ones(env.action_space.shape))
    before, bad = env.get_state(), env.get_state()
    bad["robot/head_xy"][:] = 7.0
    spoil(bad)
    with pytest.raises(ValueError, match=f"^env state {re.escape(message)}"):
        env.set_state(bad)
    assert_same(env.get_state(), before, "after a refused state")


@pytest.mark.parametrize(
    ("task", "settings"),
    [
        ("Waypoints", {"course": {"kind": "paper"}}), ("Velocity", {"time_limit_s": 4.0}),
        ("PathFollow", {"path": {"kind": "circle", "radius_m": 0.1}, "follow": {"speed_m_s": 0.5}}),
        ("PathFollow", {"path": {"kind": "recorded", "points": [[0, 0], [1, 1], [3, 0]]}}),
        ("ObstacleField", {}), ("Escape", {"goal": {"guidance": "goal"}}),
    ],
)  # fmt: skip
def test_every_state_of_an_episode_is_taken_back(task: str, settings: dict[str, Any]) -> None:
    """Also before the first one, at each end, and beyond the time limit of the settings."""
    env = SnakeVectorEnv(f"SnakeGym/{task}-v0", 4, "SAME_STEP", max_episode_steps=90, config=settings)
    gait = SnakeVectorEnv(f"SnakeGym/{task}-v0", 4, "SAME_STEP", max_episode_steps=90, config={
        **settings, "action": {"kind": "gait"}, "faults": {"n_max": 0}})  # fmt: skip
    for one in (env, gait):
        one.set_state(one.get_state())
        one.reset(seed=8)
        action = np.tile(np.linspace(-1.0, 1.0, 4)[:, None], one.action_space.shape[1])
        for _ in range(110):
            one.set_state(one.get_state())
            one.step(action)
