"""Rays against a march along them with the exact distance to the obstacles."""

import numpy as np
import pytest

from snake_gym.obstacles.ray_casting import cast_rays
from snake_gym.obstacles.shapes import Capsule, Circle, features
from tests.obstacles.test_shapes import distance

AHEAD = np.zeros(1)


def ray(shapes: object, origin: tuple[float, float] = (0.0, 0.0), heading: float = 0.0) -> float:
    rows = features(shapes)  # type: ignore[arg-type]
    return float(cast_rays(rows[None], np.array([origin]), np.array([heading]), AHEAD, 5.0)[0, 0])


def test_walls_without_thickness_are_hit_from_either_side() -> None:
    assert ray(Capsule(2.0, -1.0, 2.0, 1.0)) == pytest.approx(2.0)
    assert ray(Capsule(2.0, -1.0, 2.0, 1.0), (4.0, 0.5), np.pi) == pytest.approx(2.0)
    assert ray(Capsule(2.0, 0.1, 2.0, 1.0)) == 5.0
    assert ray([Circle(3.0, 0.0, 0.5), Capsule(1.0, -1.0, 1.0, 1.0)]) == pytest.approx(1.0)


def test_random_scenes_agree_with_marching() -> None:
    rng = np.random.default_rng(0)
    n_worlds, n_features, reach = 40, 12, 2.0
    rows = np.zeros((n_worlds, n_features, 6))
    rows[..., :2] = rng.uniform(-2.0, 2.0, (n_worlds, n_features, 2))
    turn = rng.uniform(0.0, 2 * np.pi, (n_worlds, n_features))
    rows[..., 2], rows[..., 3] = np.cos(turn), np.sin(turn)
    rows[:, ::2, 4] = rng.uniform(0.1, 1.0, (n_worlds, n_features // 2))
    rows[..., 5] = rng.uniform(0.02, 0.2, (n_worlds, n_features))
    origin, heading = rng.uniform(-2.0, 2.0, (n_worlds, 2)), rng.uniform(-np.pi, np.pi, n_worlds)
    offset = np.linspace(-2.0, 2.0, 9)
    found = cast_rays(rows, origin, heading, offset, reach)
    hits = 0
    for world in range(n_worlds):
        for beam, t in enumerate(found[world]):
            direction = heading[world] + offset[beam]
            along = np.linspace(0.0, t, 400)[:, None] * [np.cos(direction), np.sin(direction)]
            gap = distance(rows[world], origin[world] + along)
            assert (gap[:-1] > -1e-9).all() or t == 0.0, "the ray goes through an obstacle"
            if t < reach:
                hits += 1
                assert abs(gap[-1]) < 1e-9 or (t == 0.0 and gap[0] <= 0.0), "the ray ends before the obstacle"
    assert hits > 100
