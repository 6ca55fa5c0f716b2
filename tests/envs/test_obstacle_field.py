"""``SnakeGym/ObstacleField-v0``: what it promises of fields, states and ranges."""

import numpy as np

from snake_gym.envs import SnakeVectorEnv
from snake_gym.obstacles.shapes import distance


def test_the_first_observation_holds_true_ranges() -> None:
    settings = {"range_scan": {"n_beams": 7, "max_range_m": 1.5}, "action": {"kind": "gait"}}
    env = SnakeVectorEnv("SnakeGym/ObstacleField-v0", 16, config=settings)
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
