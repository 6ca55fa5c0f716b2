"""Shapes become features that lie where the shapes lie; impossible shapes are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from snake_gym.obstacles.shapes import Capsule, Circle, FloatArray, Polygon, Shape, features

RNG = np.random.default_rng(7)
POINTS = RNG.uniform(-3.0, 3.0, (400, 2))


def distance(feature: FloatArray, points: FloatArray) -> FloatArray:
    """Distance (p,) [m] from each of ``points`` (p, 2) to the nearest of the features (k, 6); < 0 within a radius."""
    gap, axis = points[:, None, :] - feature[None, :, :2], feature[None, :, 2:4]
    along = np.clip((gap * axis).sum(axis=2), 0.0, feature[:, 4])
    rest = gap - along[..., None] * axis
    return np.min(np.hypot(rest[..., 0], rest[..., 1]) - feature[:, 5], axis=1, initial=np.inf)


def outline(shape: Shape) -> FloatArray:
    """Points close together on the shape's surface, without the use of features."""
    t = np.linspace(0.0, 1.0, 4001)[:, None]
    if isinstance(shape, Circle):
        angle = 2.0 * np.pi * t
        return np.array([shape.x_m, shape.y_m]) + shape.radius_m * np.hstack([np.cos(angle), np.sin(angle)])
    if isinstance(shape, Polygon):
        corners = np.array(shape.points)
        return np.concatenate([a + t * (b - a) for a, b in zip(corners, np.roll(corners, -1, 0), strict=True)])
    a, b = np.array([shape.x0_m, shape.y0_m]), np.array([shape.x1_m, shape.y1_m])
    along = (b - a) / np.hypot(*(b - a))
    side = shape.radius_m * np.array([-along[1], along[0]])
    angle = math.atan2(along[1], along[0]) - 0.5 * math.pi + math.pi * t
    cap = shape.radius_m * np.hstack([np.cos(angle), np.sin(angle)])
    return np.concatenate([a + side + t * (b - a), a - side + t * (b - a), a - cap, b + cap])


SQUARE = Polygon(((1.0, 1.0), (2.0, 1.0), (2.0, 2.5), (1.0, 2.5)))
TRIANGLE = Polygon(((0.0, -2.0), (-1.0, -0.5), (1.5, -0.7)))


@pytest.mark.parametrize(
    "shape",
    [
        Circle(0.5, -0.2, 0.4),
        Capsule(-1.0, 0.3, 0.7, 1.1, 0.25),
        Capsule(1.0, -2.0, 1.0, -0.4, 0.1),
        Capsule(-2.0, -1.0, 1.0, 2.0),
        SQUARE,
        TRIANGLE,
    ],
)
def test_distances_are_those_to_the_surface(shape: Shape) -> None:
    surface = outline(shape)
    nearest = np.array([np.hypot(*(surface - point).T).min() for point in POINTS])
    found = distance(features(shape), POINTS)
    np.testing.assert_allclose(np.abs(found), nearest, atol=1e-3)
    assert (found > 0.0).sum() > 200


def test_a_polygon_knows_its_inside() -> None:
    assert SQUARE.contains(1.5, 2.0) and not SQUARE.contains(0.9, 2.0) and not SQUARE.contains(1.5, 2.6)
    clockwise = Polygon(SQUARE.points[::-1])
    assert clockwise.contains(1.5, 2.0) and not clockwise.contains(2.1, 1.5)
