"""Shapes, paths, fields and thickets that cannot be: one line names the setting."""

from __future__ import annotations

from typing import Any

import pytest

from snake_gym.config import ConfigError, build
from snake_gym.obstacles.fields import FieldConfig, FieldMaker
from snake_gym.obstacles.polyline import Path
from snake_gym.obstacles.shapes import Capsule, Polygon
from snake_gym.obstacles.thicket import ThicketConfig, ThicketMaker
from tests.obstacles.test_fields import ROBOT
from tests.obstacles.test_thicket import ROBOT as LONG_ROBOT

AROUND_START = [[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]]
LINE = [[0.0, 0.0], [1.0, 0.0]]


def circle(x_m: float, y_m: float) -> dict[str, float]:
    return {"x_m": x_m, "y_m": y_m, "radius_m": 0.1}


FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"goal_distance_m": 1.0}, r"field.goal_distance_m is 1; expected more than 1.21"),
    ({"kind": "gates", "gap_m": 0.3}, r"field.gap_m is 0.3; expected at least 0.36 .*clearance_m"),
    ({"kind": "gates", "n_turns": 20}, "field.n_turns is 20: the turns are .* apart; expected at least"),
    ({"gap_m": 1e-6, "obstacle_radius_m": 1e-3}, "room for .* obstacles; expected at most 20000 .*gap_m"),
    ({"kind": "forest", "density_m2": 30.0}, "field.density_m2 is 30; expected at most"),
    ({"kind": "list", "shapes": [{"points": LINE}]}, r"field.shapes\[0\].points is"),
    ({"kind": "list", "shapes": [{"points": AROUND_START}]}, r"field.shapes\[0\] stands where"),
    ({"kind": "list", "goal_m": [0, 3], "shapes": [circle(0, 3)]}, r"field.shapes leave no way to the goal \[0, 3\]"),
]


@pytest.mark.parametrize(("settings", "expected"), FIELDS)
def test_an_impossible_field_is_refused_in_one_line(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected) as refused:
        FieldMaker(build(FieldConfig, settings, "field"), ROBOT)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("shape", "arguments", "expected"),
    [
        (Capsule, (1.0, 2.0, 1.0, 2.0), "two different ends"),
        (Polygon, ([(0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (1.0, 1.0)],), "convex polygon"),
        (
            lambda gap_m: ThicketMaker(ThicketConfig(gap_m=gap_m), LONG_ROBOT, 10, 3.0),
            (0.07,),
            "expected at least 0.072",
        ),
        (Path, ([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0]],), r"points_xy\[1\] is \[1.0, 0.0\], as the next one"),
    ],
)
def test_an_impossible_shape_is_refused(shape: Any, arguments: tuple[Any, ...], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        shape(*(tuple(map(tuple, value)) if isinstance(value, list) else value for value in arguments))
