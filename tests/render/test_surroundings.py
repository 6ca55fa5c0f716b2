"""Obstacles, beams, route and contact forces in frames and replays."""

from __future__ import annotations

import numpy as np
import pytest

from snake_gym.envs import SnakeEnv
from snake_gym.envs.recording import RecordedSurroundings, Recorder, Recording
from snake_gym.obstacles.shapes import Capsule, Circle, Polygon, features
from snake_gym.render.animation import scene_gif
from snake_gym.render.frames import FrameRenderer, Picture, ends_of
from snake_gym.render.palette import FORCE, ORANGE, ROCK, SKY
from snake_gym.render.replay import Scene, replay_page
from snake_gym.render.surroundings import surroundings_at
from snake_gym.robot.presets import RESILIENT_SERVO as SPEC
from tests.render.test_frames import near
from tests.render.test_replay import Page, page_data

SHAPES = [
    Circle(1.0, 0.5, 0.2),
    Polygon(((0.4, -1.0), (0.9, -1.0), (0.9, -0.6), (0.4, -0.6))),
    Capsule(-1.0, 1.0, 1.0, 1.0),
    Capsule(-1.0, -1.0, 0.0, -1.0, 0.05),
    Polygon(((2.0, 2.0), (3.0, 2.0), (2.0, 3.0))),
]
N_TIMES = 3


def around(force: float = 30.0) -> RecordedSurroundings:
    forces = np.zeros((N_TIMES, 10, 2))
    forces[:, 9] = [0.0, force]
    ranges = np.full((N_TIMES, 3), 0.7)
    ranges[:, 2] = 2.0
    return RecordedSurroundings(
        features(SHAPES), np.array([[0.0, 0.0], [2.0, 0.0]]), np.full((N_TIMES, 2), 0.6), np.array([-1.0, 0.0, 1.0]),
        2.0, ranges, forces,
    )  # fmt: skip


def recording(name: str = "cc") -> Recording:
    time_s, still = 0.2 * np.arange(N_TIMES), np.zeros((N_TIMES, 2))
    return Recording(
        name, "classical", SPEC, 7, 0.1, np.array([[2.0, 0.0]]), time_s, np.zeros((N_TIMES, 10)), still, still,
        np.zeros(N_TIMES, np.int64), np.zeros(N_TIMES), np.zeros((N_TIMES, 9), np.int64), around(),
    )  # fmt: skip


def draw(surroundings: RecordedSurroundings | None) -> np.ndarray:
    seen = None if surroundings is None else surroundings_at(surroundings, 0, np.zeros(2), 0.0, SPEC)
    ends_xy = ends_of(SPEC, np.zeros(10), np.zeros(2))
    return FrameRenderer(SPEC).draw(Picture(ends_xy, np.array([[2.0, 0.0]]), around=seen))


def test_a_frame_shows_obstacles_where_they_are_and_forces_while_they_act() -> None:
    plain, full, calm = draw(None), draw(around()), draw(around(force=0.0))
    assert not near(plain, ROCK).any() and near(full, ROCK).sum() > 500
    assert near(full, SKY, 25).any()
    shaft = near(full, FORCE)
    assert shaft.sum() > 30 and not near(calm, FORCE).any()
    rock, arrow = np.argwhere(near(full, ROCK)), np.argwhere(shaft)
    assert rock[:, 0].min() < arrow[:, 0].min() < rock[:, 0].max()


def test_the_replay_holds_the_surroundings() -> None:
    data = page_data(Page(replay_page("t", [Scene("s", (recording(),))])))
    seen = data["scenes"][0]["policies"][0]["around"]
    assert [1000, 500, 1000, 500, 200] in seen["bars_mm"]
    assert len(seen["polygons_mm"]) == 2
    assert seen["range_mm"][0] == [700, 700, 2000] and seen["reach_mm"] == 2000
    assert seen["arrow_mm"][0][9][1] > 0


def test_a_recorder_joins_the_moments() -> None:
    env = SnakeEnv("SnakeGym/ObstacleField-v0")
    env.reset(seed=3)
    recorder = Recorder(env.core, [0])
    recorder.take()
    for _ in range(2):
        env.step(np.ones(env.action_space.shape, np.float32))
        recorder.take()
    (recorded,) = recorder.recordings("mine", "learned", 3)
    assert (recorded.seed, recorded.time_s.tolist()) == (3, pytest.approx([0.0, 0.2, 0.4]))
    np.testing.assert_array_equal(recorded.link_angle[-1], env.core.robot.state.link_angle[0])
    assert recorded.around is not None
    np.testing.assert_array_equal(recorded.around.range_m[-1], env.core.measurement.range_m[0])
    assert recorded.around.force_w.shape == (3, 10, 2)


@pytest.mark.parametrize("env_id", ["SnakeGym/PathFollow-v0", "SnakeGym/Velocity-v0"])
def test_paths_and_commands_are_recorded_and_drawn(env_id: str) -> None:
    env = SnakeEnv(env_id, render_mode="rgb_array")
    env.reset(seed=3)
    recorder = Recorder(env.core, [0])
    for _ in range(3):
        recorder.take()
        frame = env.render()
        env.step(np.ones(env.action_space.shape, np.float32))
    (recorded,) = recorder.recordings("mine", "learned", 3)
    assert recorded.around is not None and len(recorded.targets_xy) == 0
    goal = env.core.task.goal().target_xy_w[0]
    assert np.hypot(*(recorded.around.aim_xy[-1] - goal)) < 0.1 and recorded.around.aim_xy.shape == (3, 2)
    if env_id == "SnakeGym/PathFollow-v0":
        np.testing.assert_array_equal(recorded.around.route_xy, env.core.task.scenario["path_xy"][0])
    assert near(frame, ORANGE).sum() > (8 if "Path" in env_id else 30)  # a ring at the aim, or an arrow to it
    page = replay_page("title", [Scene("one", (recorded,))])
    assert '"targets_mm":[]' in page and '"aim_mm":[[' in page
    scene_gif(Scene("one", (recorded,)), duration_s=0.5)
    env.close()
