"""``SnakeGym/ObstacleField-v0``: what it promises of fields, states and ranges."""

import numpy as np
import pytest

from snake_gym.envs import make_obstacle_field
from snake_gym.envs.checker import assert_same
from snake_gym.obstacles.shapes import distance
from tests.tasks.test_escape import body

MADE_UP: dict[str, tuple[str, float, str]] = {
    "cells that begin nowhere": ("obstacle/cell_start", 10**12, "obstacle/cell_start of world 1 does not follow"),
    "indices of no feature": ("obstacle/cell_item", 10**12, "obstacle/cell_item of world 1 does not follow"),
    "too many cells": ("obstacle/n_cells", 10**6, "obstacle/n_cells of world 1 does not follow"),
    "a grid elsewhere": ("obstacle/origin_xy", 3.0, "obstacle/origin_xy of world 1 does not follow"),
    "too many obstacles": ("n_features", 10**12, "n_features holds 1000000000000; expected at most"),
    "no obstacles": ("n_features", 0, "obstacle/feature of world 1 does not follow"),
    "obstacles without size": ("obstacle/feature", 0.0, "obstacle/feature holds .* at world 1; expected .*an axis"),
    "obstacles beyond all": ("obstacle/feature", 1e300, "obstacle/feature holds .* at world 1; expected"),
}


@pytest.mark.parametrize(("name", "value", "message"), MADE_UP.values(), ids=MADE_UP)
def test_a_state_whose_grid_is_not_that_of_its_obstacles_is_refused(name: str, value: float, message: str) -> None:
    """The kernels index memory by the grid."""
    env = make_obstacle_field(2)
    env.reset(seed=1)
    before, bad = env.get_state(), env.get_state()
    bad[name][1] = value
    with pytest.raises(ValueError, match=f"env state {message}"):
        env.set_state(bad)
    assert_same(env.get_state(), before, "after a refused state")


@pytest.mark.parametrize("kind", ["pegboard", "forest", "bends", "gates"])
def test_a_state_among_obstacles_is_taken_back_bit_for_bit(kind: str) -> None:
    env, other = (make_obstacle_field(3, {"field": {"kind": kind, "difficulty": 1.0}}) for _ in range(2))
    env.set_state(env.get_state())
    other.reset(seed=50)
    for seed in range(4):
        env.reset(seed=seed)
        kept = env.get_state()
        for one in (env, other):
            one.set_state({name: values.tolist() for name, values in kept.items()})
            assert_same(one.get_state(), kept, "taken back")
        action = 0.5 * env.action_space.sample()
        assert_same(env.step(action), other.step(action), "a step later")


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
