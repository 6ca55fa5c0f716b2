"""Progress, targets and courses."""

import numpy as np
import pytest

from snake_gym.envs import SnakeVectorEnv
from snake_gym.physics.state import zero_state
from snake_gym.tasks.waypoints import CourseConfig, Waypoints
from tests.tasks.by_hand import begin, evaluate, mean_link_angle


def advance(
    task: Waypoints, start: list[float], end: list[float], time_s: float = 0.2
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    state = zero_state(1, 3)
    state.centre_xy[:] = end
    state.time_s[:] = time_s
    terms, complete = evaluate(task, [start], state, np.full((1, 2), 0.5), 1.5)
    return terms, complete


def test_progress_counts_towards_the_target_of_the_step_and_targets_advance() -> None:
    course = CourseConfig(kind="list", targets=((1.0, 0.0), (1.0, 1.0)), radius_m=0.1)
    task = Waypoints(course, 1)
    begin(task, 0.0, course=course)
    terms, done = advance(task, [0.0, 0.0], [0.5, 0.0])
    assert (terms["progress"][0], terms["target"][0], done[0]) == (0.5, 0.0, False)
    terms, done = advance(task, [0.5, 0.0], [0.95, 0.0], 7.0)
    assert terms["target"][0] == 1.0 and task.index[0] == 1 and not done[0]
    assert terms["progress"][0] == pytest.approx(0.45)
    terms, done = advance(task, [0.95, 0.0], [1.0, 0.95], 9.0)
    assert terms["progress"][0] == pytest.approx(np.hypot(0.05, 1.0) - 0.05)
    assert done[0] and not task.goal().active[0]
    assert [task.record[name][0] for name in ("time_to_first_target_s", "last_target_time_s")] == [7.0, 9.0]
    before = task.record["progress_m"][0]
    terms, done = advance(task, [1.0, 0.95], [3.0, 3.0])
    assert terms["progress"][0] == 0.0 and done[0] and task.record["progress_m"][0] == before
    assert terms["effort"][0] == 0.5 and terms["energy"][0] == 1.5


def test_random_courses_keep_to_distances_and_turns() -> None:
    n = 500
    course = CourseConfig(n_targets=20, min_distance_m=1.0, max_distance_m=2.0, max_turn_rad=1.0)
    task = Waypoints(course, n)
    rng = np.random.default_rng(0)
    heading = rng.uniform(-3, 3, n)
    start = begin(task, heading, rng.random((n, task.n_random)), course=course)
    np.testing.assert_array_equal(start.head_angle, heading)
    legs = np.diff(np.concatenate([start.point_xy[:, None], task.targets_xy], axis=1), axis=1)
    length = np.linalg.norm(legs, axis=2)
    assert 1.0 <= length.min() < 1.05 and 1.95 < length.max() <= 2.0
    direction = np.concatenate([heading[:, None], np.arctan2(legs[..., 1], legs[..., 0])], axis=1)
    turn = np.abs((np.diff(direction, axis=1) + np.pi) % (2 * np.pi) - np.pi)
    assert 0.95 < turn.max() <= 1.0 + 1e-9


@pytest.mark.parametrize("point", ["centre", "head"])
def test_further_targets_are_shown_from_the_measured_pose(point: str) -> None:
    targets = [[0.0, 0.05], [0.1, 0.0], [0.5, -1.0], [-3.0, 4.0]]
    course = {"kind": "list", "targets": targets, "radius_m": 0.3, "tracked_point": point}
    settings = {"sensors": {"position_noise_m": 0.03, "heading_noise_rad": 0.05}, "faults": {"n_max": 3}}
    env, plain = (
        SnakeVectorEnv(
            "SnakeGym/Waypoints-v0", 3, "disabled", config={**settings, "course": {**course, "lookahead": n}}
        )
        for n in (2, 0)
    )
    obs, _ = env.reset(seed=0)
    without, _ = plain.reset(seed=0)
    reached = set()
    for i in range(12):
        np.testing.assert_array_equal(obs[:, : without.shape[1]], without)
        seen, layout = env.core.measurement, env.core.layout
        place = seen.head_xy_w if point == "head" else seen.centre_xy_w
        assert place is not None
        for ahead in (1, 2):
            now = np.minimum(env.core.task.index + ahead, 3)
            way = np.array(targets)[now] - place
            error = mean_link_angle(seen) - np.arctan2(way[:, 1], way[:, 0])
            far = np.minimum(np.hypot(*way.T) / 2.0, 1.0)
            expected = np.stack([np.sin(error), np.cos(error), far], axis=1)
            np.testing.assert_allclose(layout.read(obs, f"next_target_{ahead}"), expected, atol=1e-6)
        reached |= set(env.core.task.index.tolist())
        action = np.full(env.action_space.shape, 0.5 * np.sin(i), np.float32)
        obs, *_ = env.step(action)
        without, *_ = plain.step(action)
    assert len(reached) > 1 and env.observation_space.contains(obs)
