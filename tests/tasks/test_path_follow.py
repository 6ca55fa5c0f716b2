"""Paths, places on them, and what is counted, against circles, lines and numbers written by hand."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_gym.config import ConfigError, build, to_dict
from snake_gym.envs import SnakeVectorEnv
from snake_gym.interface.observations import find_column
from snake_gym.physics.state import ChainState, zero_state
from snake_gym.robot.catalogue import load_robot
from snake_gym.tasks.path_follow import FollowConfig, PathFollow, PathFollowConfig, PathRewardConfig
from snake_gym.tasks.paths import PathConfig
from tests.tasks.by_hand import begin, evaluate, mean_link_angle

SPEC = load_robot("resilient_servo")
STRAIGHT = {"max_turn_rad": 0.0}
PATH_FOLLOW = "SnakeGym/PathFollow-v0"
LAST: dict[int, Any] = {}
"""Where the tracked point of each task's robot was last (1, 2) [m]."""


def make(n_worlds: int = 1, heading: float = 0.0, follow: dict[str, Any] | None = None, **path: Any) -> PathFollow:
    sides = {"side": "left"} if path.get("kind") in ("circle", "square") else {}
    settings = build(PathConfig, {**STRAIGHT, **sides, **path})
    task = PathFollow(settings, build(FollowConfig, follow or {}), PathRewardConfig(), SPEC, n_worlds)
    begin(task, heading, path=settings)
    task.update_goal(np.zeros((n_worlds, 2)), slice(None))
    LAST[id(task)] = np.zeros((1, 2))
    return task


def step(task: PathFollow, xy: Any, time_s: float = 0.2, live: bool = True) -> tuple[dict[str, Any], bool]:
    state: ChainState = zero_state(1, SPEC.n_links)
    state.centre_xy[:] = xy
    state.time_s[:] = time_s
    before, LAST[id(task)] = LAST[id(task)], state.centre_xy.copy()
    terms, complete = evaluate(task, before, state, np.full((1, 9), 0.5), live=live)
    return {name: float(values[0]) for name, values in terms.items()}, bool(complete[0])


def on_circle(angle: float, radius: float, middle: float) -> list[float]:
    """The place on a circle about (0, middle), from below it counter-clockwise."""
    return [radius * np.sin(angle), middle - radius * np.cos(angle)]


def value(task: PathFollow, name: str) -> float:
    return float(task.record[name][0])


@pytest.mark.parametrize(("offset", "counts"), [(0.1, True), (-0.1, True), (0.2, False), (-0.2, False)])
def test_a_lap_off_a_circle(offset: float, counts: bool) -> None:
    """Left of a path that turns left is the side of the middle."""
    task = make(kind="circle", radius_m=1.5, follow={"tolerance_m": 0.15})
    complete, made, angles = False, 0.0, np.linspace(0.0, 2.0 * np.pi + 0.02, 200)
    LAST[id(task)][:] = on_circle(0.0, 1.5 - offset, 1.5)
    for i, angle in enumerate(angles):
        assert not complete
        terms, complete = step(task, on_circle(angle, 1.5 - offset, 1.5), 0.2 * (i + 1))
        assert value(task, "cross_track_error_m") == pytest.approx(offset, abs=2e-4)
        assert terms["cross_track"] == pytest.approx(abs(offset), abs=2e-4)
        assert value(task, "arc_m") == pytest.approx(1.5 * min(angle, 2.0 * np.pi), abs=0.01)
        made += terms["progress"]
    lap = 2.0 * np.pi * 1.5
    assert complete and value(task, "time_to_goal_s") == pytest.approx(40.0)
    assert value(task, "route_m") == pytest.approx(lap, rel=1e-4)
    assert made == pytest.approx(value(task, "progress_m")) == pytest.approx(lap if counts else 0.0, rel=1e-4)
    assert bool(value(task, "is_success")) is counts
    assert value(task, "rms_cross_track_m") == pytest.approx(abs(offset), abs=2e-4)
    task.update_goal(np.zeros((1, 2)), slice(None))
    assert not task.goal().active.any()


def test_errors_off_a_line_and_their_means() -> None:
    heading = 2.5
    task = make(kind="line", length_m=5.0, heading=heading)
    rng, cos, sin = np.random.default_rng(1), np.cos(heading), np.sin(heading)
    along, aside = np.linspace(0.1, 4.9, 40), rng.uniform(-0.4, 0.4, 40)
    for i, (x, y) in enumerate(zip(along, aside, strict=True)):
        step(task, [cos * x - sin * y, sin * x + cos * y])
        assert value(task, "arc_m") == pytest.approx(x)
        assert value(task, "cross_track_error_m") == pytest.approx(y)
        assert value(task, "mean_cross_track_m") == pytest.approx(np.abs(aside[: i + 1]).mean())
        assert value(task, "rms_cross_track_m") == pytest.approx(np.sqrt(np.square(aside[: i + 1]).mean()))
    # What counts: places on the line that are near the way which the point has gone in the step.
    x, y = np.concatenate([[0.0], along]), np.concatenate([[0.0], aside])
    counted = 0.0
    for start, end in zip(np.stack([x, y], 1)[:-1], np.stack([x, y], 1)[1:], strict=True):
        way = start + np.linspace(0.0, 1.0, 201)[:, None] * (end - start)
        places = np.stack([np.linspace(start[0], end[0], 201), np.zeros(201)], axis=1)
        distance = np.hypot(*(places[:, None] - way).transpose(2, 0, 1)).min(axis=1)
        counted += (end[0] - start[0]) * (distance <= 0.15).mean()
    assert value(task, "progress_m") == pytest.approx(counted, rel=0.02)


def test_each_piece_of_the_path_counts_once() -> None:
    task = make(kind="line", length_m=5.0, follow={"success_share": 0.1})
    turn_off = 0.15 * np.hypot(0.3, 0.5) / 0.5  # where the way to (0.8, 0.5) is farther off than the tolerance
    ways = [(0.4, 0.0, 0.4), (0.1, 0.0, 0.0), (0.3, 0.0, 0.0), (0.5, 0.0, 0.1), (0.8, 0.5, turn_off), (0.6, 0.0, 0.0),
            (0.9, 0.1, 0.1)]  # fmt: skip
    for x, y, expected in ways:
        assert step(task, [x, y])[0]["progress"] == pytest.approx(expected, abs=0.5 * 0.3 / 8)
        assert bool(value(task, "is_success")) == (value(task, "progress_m") >= 0.5)
    before = value(task, "progress_m")
    terms, _ = step(task, [1.2, 0.0], live=False)
    assert set(terms.values()) == {0.0} and value(task, "progress_m") == before == pytest.approx(
        0.6 + turn_off, abs=0.02
    )
    assert step(task, [1.0, 0.0])[0]["effort"] == 9 * 0.25


def test_the_tip_of_a_hairpin_that_is_cut_off_never_counts() -> None:
    """Along y = 0.01 up to 0.77 m, then back: both legs are near, the last 0.13 m of each and the tip are not."""
    follow = {"tolerance_m": 0.1}
    task = make(kind="recorded", points=[[0.0, 0.0], [1.0, 0.0], [0.0, 0.02]], follow=follow)
    there = np.arange(0.01, 0.78, 0.02)
    complete = False
    for x in (*there, *there[::-1], -0.05):
        complete = complete or step(task, [x, 0.01])[1]
    assert value(task, "passed_m") == pytest.approx(2.0 * (0.77 + 0.1), abs=0.15)
    assert complete and not value(task, "is_success")


@pytest.mark.parametrize(
    ("path", "places", "arc", "error"),
    [
        # Up to (1, 0) and left to (1, 1), where the path ends; past that end by 0.12 m, and 0.05 m to its right.
        ({"kind": "recorded", "points": [[0, 0], [1, 0], [1, 1]]}, [(1, 0), (1, 0.9), (1.05, 1.12)], 2.0, -0.13),
        # A lap ends where it began: straight past that corner by 0.12 m, and 0.05 m along the first side.
        ({"kind": "square", "side_m": 1.0}, [(1, 0), (1, 1), (0, 1), (0, 0.2), (0.05, -0.12)], 4.0, -0.12),
    ],
)  # fmt: skip
def test_the_last_step_goes_past_the_end_and_tells_of_the_path_that_exists(
    path: dict[str, Any], places: list[tuple[float, float]], arc: float, error: float
) -> None:
    task = make(**path, follow={"speed_m_s": 1.0})
    corners, off = [(0.0, 0.0), *places], []
    for start, end in itertools.pairwise(corners):
        for share in (0.25, 0.5, 0.75, 1.0) if end != places[-1] else (1.0,):
            xy = [(1.0 - share) * a + share * b for a, b in zip(start, end, strict=True)]
            terms, complete = step(task, xy, time_s=1.0)
            off.append(value(task, "cross_track_error_m"))
            assert complete is (end == places[-1])
    assert value(task, "arc_m") == value(task, "furthest_m") == pytest.approx(arc)
    assert value(task, "arc_m") <= value(task, "route_m")
    assert off[-1] == pytest.approx(error)
    assert terms["cross_track"] == pytest.approx(abs(error))
    assert value(task, "mean_cross_track_m") == pytest.approx(abs(error) / len(off))
    assert value(task, "schedule_error_m") == pytest.approx(arc - 1.0) == terms["schedule"]


@pytest.mark.parametrize(
    ("last", "xy", "before", "arc", "tolerance"),
    [((2.0, 0.1), (1.75, 0.30), 1.7, 1.75, 0.5), ((1.9, 0.05), (1.75, 0.10), 1.8, 1.75, 0.15)],
)
def test_a_robot_next_to_a_short_last_piece_is_not_at_the_end(
    last: tuple[float, float], xy: tuple[float, float], before: float, arc: float, tolerance: float
) -> None:
    """It is to the left of (0, 0) to (2, 0), the longer piece, and nearer to what would follow beyond the end."""
    task = make(kind="recorded", points=[[0, 0], [2, 0], last], follow={"tolerance_m": tolerance})
    for values in (task.record["arc_m"], task.record["furthest_m"], task.record["passed_m"], task.shown_m):
        values[:] = before  # all of it up to there is passed
    LAST[id(task)][:] = [before, 0.0]
    terms, complete = step(task, xy)
    assert not complete and value(task, "arc_m") == pytest.approx(arc)
    assert value(task, "cross_track_error_m") == pytest.approx(xy[1]) == terms["cross_track"]
    assert value(task, "passed_m") == pytest.approx(max(before, arc))
    task.update_goal(np.array([xy]), slice(None))
    assert task.signals()["path_xy"][0] == pytest.approx([arc, 0.0])
    assert task.goal().target_xy_w[0] == pytest.approx(task.routes.place(np.array([arc + SPEC.length_m / 3.0]))[0])


def test_a_schedule_limits_progress_and_commands_the_speed() -> None:
    task = make(kind="line", length_m=5.0, follow={"speed_m_s": 0.2})
    off = []
    for i, x in enumerate((0.1, 0.2, 0.3, 0.4, 0.4, 0.4)):
        time_s = 0.5 * (i + 1)
        terms, _ = step(task, [x, 0.0], time_s)
        off.append(x - 0.2 * time_s)
        assert value(task, "schedule_error_m") == pytest.approx(off[-1], abs=1e-12)
        assert terms["schedule"] == pytest.approx(abs(off[-1]), abs=1e-12)
        assert value(task, "progress_m") == pytest.approx(min(x, 0.2 * time_s))
    assert value(task, "mean_schedule_error_m") == pytest.approx(np.abs(off).mean())
    for measured, speed in ((0.4, 0.2 + 0.2 / 5.0), (0.8, 0.2 - 0.2 / 5.0), (5.0, 0.0)):
        for _ in range(12):
            task.update_goal(np.array([[measured, 0.0]]), slice(None))
        assert task.goal().speed_m_s == pytest.approx([speed])
    assert make(kind="line").goal().speed_m_s is None


def test_the_target_goes_ahead_of_the_measured_place_also_beyond_the_end() -> None:
    for kind, far in (("line", [5.6, 0.0]), ("square", [1.6, 0.0])):
        size = {"length_m": 5.0} if kind == "line" else {"side_m": 1.0}
        task = make(kind=kind, **size, follow={"lookahead_m": 0.6})  # type: ignore[arg-type]
        assert task.goal().target_xy_w[0] == pytest.approx([0.6, 0.0])
        step(task, [0.0, 0.0])
        task.update_goal(np.array([[0.3, 0.05]]), slice(None))
        assert task.goal().target_xy_w[0] == pytest.approx([0.9, 0.0])
        if kind == "line":
            for _ in range(12):
                task.update_goal(np.array([[5.0, -0.1]]), slice(None))
            assert task.goal().target_xy_w[0] == pytest.approx(far)
    places = [[1.0, 0.4], [0.6, 1.0], [0.0, 0.6], [0.0, 0.1]]
    for xy, target in zip(places, [[1.0, 1.0], [0.0, 1.0], [0.0, 0.0], [0.5, 0.0]], strict=True):
        for _ in range(3):
            task.update_goal(np.array([xy]), slice(None))
        assert task.goal().target_xy_w[0] == pytest.approx(target, abs=1e-12)


def test_splines_are_smooth_as_long_as_they_say_and_random() -> None:
    size = {"length_m": 12.0, "bend_every_m": 1.5, "max_bend_rad": 1.0}
    task = make(300, heading=1.0, **size, max_turn_rad=0.5)  # type: ignore[arg-type]
    path = task.scenario["path_xy"]
    step_xy = np.diff(path, axis=1)
    length = np.hypot(step_xy[..., 0], step_xy[..., 1])
    assert length.sum(axis=1) == pytest.approx(np.full(300, 12.0))
    direction = np.unwrap(np.arctan2(step_xy[..., 1], step_xy[..., 0]), axis=1)
    assert (path[:, 0] == 0.0).all() and 0.45 < np.abs(direction[:, 0] - 1.0).max() <= 0.51
    curvature = np.abs(np.diff(direction, axis=1)) / length[:, 1:]
    assert 0.9 < curvature.max() <= 1.5 * 1.0 / 1.5 * 1.001
    assert len(np.unique(path[:, -1, 0])) == 300
    alone = make(300, heading=1.0, **size, max_turn_rad=0.5)  # type: ignore[arg-type]
    u = np.random.default_rng(0).random((300, alone.n_random))
    begin(alone, 1.0, u[7:8], [3], path=build(PathConfig, {**size, "max_turn_rad": 0.5}))
    np.testing.assert_array_equal(alone.scenario["path_xy"][3], path[7])


def test_circles_go_round_to_either_side() -> None:
    task = make(200, kind="circle", radius_m=1.0, side="random")
    top = task.scenario["path_xy"][:, :, 1]
    left = top.max(axis=1) > 1.9
    assert 60 < left.sum() < 140 and (top[~left].min(axis=1) < -1.9).all()


def test_recorded_points_are_laid_before_the_robot(tmp_path: Path) -> None:
    file = tmp_path / "walk.csv"
    file.write_text("x,y\n# from the corner\n5.0,5.0\n\n5.0, 7.0\n4.0,7.0\n")
    task = make(kind="recorded", file=str(file), heading=np.pi)
    path = task.scenario["path_xy"][0]
    np.testing.assert_allclose(path, [[0.0, 0.0], [-2.0, 0.0], [-2.0, -1.0]], atol=1e-12)
    config = build(PathFollowConfig, {"path": {"kind": "recorded", "file": str(file)}})
    file.unlink()
    assert config.path.points == ((5.0, 5.0), (5.0, 7.0), (4.0, 7.0))
    assert build(PathFollowConfig, to_dict(config)) == config  # whatever becomes of the file
    closed = make(kind="recorded", points=[[0, 0], [1, 0], [1, 1]], closed=True)
    assert value(closed, "route_m") == pytest.approx(2.0 + np.sqrt(2.0))


def test_what_is_seen_of_a_line_comes_from_the_measured_pose() -> None:
    """Cross-track error and directions of a line from the origin, by hand from the measurement."""
    config = {
        "path": {"kind": "line", "max_turn_rad": 1.0}, "sensors": {"position_noise_m": 0.05, "heading_noise_rad": 0.1},
        "follow": {"preview_m": [0.0, 2.0], "speed_m_s": 0.1, "tracked_point": "head"}, "faults": {"n_max": 3},
    }  # fmt: skip
    env = SnakeVectorEnv(PATH_FOLLOW, 5, "disabled", config=config)
    obs, _ = env.reset(seed=3)
    end = env.core.task.scenario["path_xy"][:, -1]
    direction = np.arctan2(end[:, 1], end[:, 0])
    for i in range(8):
        obs, *_, infos = env.step(np.full(env.action_space.shape, 0.3 * np.sin(i)))
        seen, read = env.core.measurement, env.core.layout.read
        cos, sin, (x, y) = np.cos(direction), np.sin(direction), seen.head_xy_w.T
        aside = np.where(cos * x + sin * y > 0.0, cos * y - sin * x, np.copysign(np.hypot(x, y), cos * y - sin * x))
        np.testing.assert_allclose(read(obs, "cross_track")[:, 0], aside, atol=1e-6)
        assert np.abs(aside - infos["cross_track_error_m"]).max() > 1e-3
        error = mean_link_angle(seen) - direction
        for name in ("path_direction_1", "path_direction_2"):
            np.testing.assert_allclose(read(obs, name), np.stack([np.sin(error), np.cos(error)], axis=1), atol=1e-6)
        behind = 0.1 * 0.2 * (i + 1) - np.maximum(cos * x + sin * y, 0.0)
        np.testing.assert_allclose(read(obs, "behind_schedule")[:, 0], behind, atol=1e-6)
    assert env.observation_space.contains(obs)


def test_columns_of_tasks_are_known_where_only_a_policy_is_loaded() -> None:
    program = "from snake_gym.interface.observations import find_column as f; f('cross_track', 'x'); f('velocity', 'x')"
    subprocess.run([sys.executable, "-c", program], check=True)
    with pytest.raises(ConfigError, match=r"x is 'cross_trak'; expected one of .*; did you mean 'cross_track'"):
        find_column("cross_trak", "x")


@pytest.mark.parametrize("content", [b"0,0\n1,a\n", b"0,0\nnan,0\n", b"\xff\xfe\x00"])
def test_a_file_that_is_no_path_is_named(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "walk.csv"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"path.file.*expected"):
        build(PathFollowConfig, {"path": {"kind": "recorded", "file": str(file)}}, "env")
