"""Obstacles, beams, route and contact forces in frames and replays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from snake_gym.envs import SnakeEnv
from snake_gym.envs.recording import RecordedSurroundings, Recorder
from snake_gym.obstacles.shapes import Capsule, Circle, Polygon, features
from snake_gym.render.animation import scene_gif
from snake_gym.render.frames import FrameRenderer, Picture, ends_of
from snake_gym.render.palette import FORCE, ORANGE, ROCK, SKY
from snake_gym.render.replay import Scene, replay_page
from snake_gym.render.surroundings import surroundings_at
from snake_gym.robot.presets import RESILIENT_SERVO as SPEC
from tests.render.test_frames import near
from tests.render.test_replay import N_TIMES, Page, page_data, recording

SHAPES = [
    Circle(1.0, 0.5, 0.2),
    Polygon(((0.4, -1.0), (0.9, -1.0), (0.9, -0.6), (0.4, -0.6))),
    Capsule(-1.0, 1.0, 1.0, 1.0),
    Capsule(-1.0, -1.0, 0.0, -1.0, 0.05),
    Polygon(((2.0, 2.0), (3.0, 2.0), (2.0, 3.0))),
]


def around(force: float = 30.0) -> RecordedSurroundings:
    forces = np.zeros((N_TIMES, 10, 2))
    forces[:, 9] = [0.0, force]
    ranges = np.full((N_TIMES, 3), 0.7)
    ranges[:, 2] = 2.0
    return RecordedSurroundings(
        features(SHAPES), np.array([[0.0, 0.0], [2.0, 0.0]]), np.full((N_TIMES, 2), 0.6), np.array([-1.0, 0.0, 1.0]),
        2.0, ranges, forces,
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
    data = page_data(Page(replay_page("t", [Scene("s", (replace(recording(), around=around()),))])))
    seen = data["scenes"][0]["policies"][0]["around"]
    assert [1000, 500, 1000, 500, 200] in seen["bars_mm"]
    assert len(seen["polygons_mm"]) == 2
    assert seen["range_mm"][0] == [700, 700, 2000] and seen["reach_mm"] == 2000
    assert seen["arrow_mm"][0][9][1] > 0


@pytest.mark.parametrize("name", ["ObstacleField", "PathFollow", "Velocity"])
def test_moments_are_joined_and_what_a_task_shows_is_recorded_and_drawn(name: str) -> None:
    env = SnakeEnv(f"SnakeGym/{name}-v0", render_mode="rgb_array")
    env.reset(seed=3)
    recorder, core = Recorder(env.core, [0]), env.core
    recorder.take()
    for _ in range(2):
        env.step(np.ones(env.action_space.shape, np.float32))
        recorder.take()
    frame = env.render()
    (recorded,) = recorder.recordings("mine", "learned", 3)
    assert (recorded.seed, recorded.time_s.tolist()) == (3, pytest.approx([0.0, 0.2, 0.4]))
    np.testing.assert_array_equal(recorded.link_angle[-1], core.robot.state.link_angle[0])
    assert recorded.around is not None and recorded.around.force_w.shape == (3, 10, 2)
    assert np.hypot(*(recorded.around.aim_xy[-1] - core.task.goal().target_xy_w[0])) < 0.1
    assert near(frame, ORANGE).sum() > (30 if name == "Velocity" else 8)  # an arrow to the aim, or a ring at it
    if name == "ObstacleField":
        np.testing.assert_array_equal(recorded.around.range_m[-1], core.measurement.range_m[0])
        return
    assert len(recorded.targets_xy) == 0
    if name == "PathFollow":
        np.testing.assert_array_equal(recorded.around.route_xy, core.task.scenario["path_xy"][0])
    page = replay_page("title", [Scene("one", (recorded,))])
    assert '"targets_mm":[]' in page and '"aim_mm":[[' in page
    scene_gif(Scene("one", (recorded,)), duration_s=0.5)
