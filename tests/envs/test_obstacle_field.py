"""``SnakeGym/ObstacleField-v0``: what it promises of fields, states and ranges."""

import numpy as np
import pytest

from snake_gym.envs import make_obstacle_field
from snake_gym.obstacles.shapes import distance
from tests.tasks.test_escape import body


@pytest.mark.parametrize("kind", ["pegboard", "forest", "corridor", "bends", "gates"])
def test_no_robot_starts_in_an_obstacle(kind: str) -> None:
    env = make_obstacle_field(64, {"field": {"kind": kind, "difficulty": 1.0}})
    env.reset(seed=5)
    core = env.core
    half, state = core.spec.links("link_half_length_m"), core.robot.state
    for world in range(64):
        points, rows = body(state.link_angle[world], state.head_xy[world], half), core.task.scenery(world).features
        assert distance(rows, points[::50]).min() > core.spec.links("link_radius_m").max()


def test_the_first_observation_holds_true_ranges() -> None:
    env = make_obstacle_field(16, {"range_scan": {"n_beams": 7, "max_range_m": 1.5}, "action": {"kind": "gait"}})
    obs, _ = env.reset(seed=0)
    seen = env.core.layout.read(obs, "range")
    assert seen.shape == (16, 7)
    scan = env.core.sensors.range_scan
    for world in range(16):
        rows = env.core.task.scenery(world).features
        direction = env.core.robot.state.link_angle[world, -1] + scan.beam_angles()
        ends = env.core.robot.state.head_xy[world] + seen[world][:, None] * np.stack(
            [np.cos(direction), np.sin(direction)], axis=1
        )
        gap = distance(rows, ends)
        hit = seen[world] < 1.4999
        np.testing.assert_allclose(gap[hit], 0.0, atol=1e-5)
        assert (gap[~hit] > -1e-5).all()
