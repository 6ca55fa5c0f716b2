"""Grounds for spatial robots: flat, rough, steps and gaps, a pole to climb.

Rough grounds, steps and gaps are height fields; their random numbers follow from ``seed`` alone. Everything is flat at
height 0 within ``start_radius_m`` of the origin, where robots begin. Steps and gaps lie in rings around it, across
every way from there.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from snake_gym.config import Settings
from snake_gym.config.settings import Count, NonNegative, Positive
from snake_gym.obstacles.splitmix import GOLDEN, TO_UNIT, mix
from snake_gym.robot.recorded_body import Ground, Pole
from snake_gym.robot.spec import FloatArray

GroundKind = Literal["flat", "grass", "rocks", "steps", "gaps", "pole"]


class GroundSpec(Settings):
    """What a spatial robot moves on."""

    kind: GroundKind = "flat"
    """flat; grass: soft tufts, a smooth random field; rocks: random blocks; steps: terraces up and down; gaps:
    trenches; pole: an upright cylinder with round ends at the origin."""
    seed: Count = 0
    """Number that the random heights of grass and rocks follow from."""
    height_m: NonNegative = 0.04
    """Highest grass or rock; rise of a step; depth of a gap."""
    grain_m: Annotated[float, Field(ge=0.05, le=5.0)] = 0.25
    """Size of tufts and blocks; depth of steps; width of a gap."""
    start_radius_m: NonNegative = 0.0
    """Distance from the origin within which a field is flat at height 0."""
    size_m: Annotated[float, Field(ge=1.0, le=100.0)] = 16.0
    """Side of a height field, whose middle is the origin."""
    cell_m: Annotated[float, Field(ge=0.02, le=1.0)] = 0.08
    """Grid width of a height field."""
    radius_m: Positive = 0.2
    """Radius of a pole."""
    length_m: Positive = 10.0
    """Height of a pole."""


FIELD_KINDS = ("grass", "rocks", "steps", "gaps")


def make_ground(ground: GroundSpec) -> Ground:
    """Return the shapes of a ground."""
    if ground.kind in FIELD_KINDS:
        side = field_grid(ground)[0].shape[0]
        reach = (side - 1) * ground.cell_m
        return Ground(field_heights(ground), (reach, reach))
    if ground.kind == "pole":
        half = 0.5 * ground.length_m
        return Ground(poles=(Pole((0.0, 0.0, half), ground.radius_m, half),))
    return Ground()


def field_grid(ground: GroundSpec) -> tuple[FloatArray, FloatArray]:
    """Return x and y (n, n) [m] of a height field's grid."""
    n = max(round(ground.size_m / ground.cell_m), 4) + 1
    line = (np.arange(n) - 0.5 * (n - 1)) * ground.cell_m
    x, y = np.meshgrid(line, line)
    return x, y


def field_heights(ground: GroundSpec) -> FloatArray:
    """Return the heights (rows along y, columns along x) [m] of a height field, at least 0 but in gaps."""
    x, y = field_grid(ground)
    grain, way = ground.grain_m, np.hypot(x, y)
    if ground.kind == "grass":
        heights = ground.height_m * 0.5 * (_noise(x / grain, y / grain, ground.seed) + _noise(
            2.0 * x / grain + 100.0, 2.0 * y / grain, ground.seed + 1))  # fmt: skip
    elif ground.kind == "rocks":
        heights = ground.height_m * _random(np.floor(x / grain), np.floor(y / grain), ground.seed)
    elif ground.kind == "steps":
        step = np.floor(np.maximum(way - ground.start_radius_m, 0.0) / grain)
        heights = ground.height_m * np.abs((step + 4.0) % 8.0 - 4.0)
    else:
        since = np.maximum(way - ground.start_radius_m, 0.0) % (4.0 * grain)
        heights = np.where((since > grain) & (since <= 2.0 * grain), -ground.height_m, 0.0)
    rise = np.clip((np.hypot(x, y) - ground.start_radius_m) / (2.0 * ground.cell_m), 0.0, 1.0)
    return np.asarray(heights * rise if ground.start_radius_m > 0.0 else heights, np.float64)


def _random(i: FloatArray, j: FloatArray, seed: int) -> FloatArray:
    """Return a number in [0, 1) for each cell (i, j) of a grid."""
    with np.errstate(over="ignore"):
        key = mix((i.astype(np.int64) + 100_000).astype(np.uint64) * GOLDEN + np.uint64(seed))
        bits = mix(key + (j.astype(np.int64) + 100_000).astype(np.uint64) * GOLDEN)
    return (bits >> np.uint64(11)).astype(np.float64) * TO_UNIT


def _noise(x: FloatArray, y: FloatArray, seed: int) -> FloatArray:
    """Return smooth random numbers in [0, 1): cells' values, blended by a cubic."""
    i, j = np.floor(x), np.floor(y)
    u, v = x - i, y - j
    u, v = u * u * (3.0 - 2.0 * u), v * v * (3.0 - 2.0 * v)
    low = _random(i, j, seed) * (1.0 - u) + _random(i + 1.0, j, seed) * u
    high = _random(i, j + 1.0, seed) * (1.0 - u) + _random(i + 1.0, j + 1.0, seed) * u
    return low * (1.0 - v) + high * v
