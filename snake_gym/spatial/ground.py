"""Grounds for spatial robots: flat, sloped, rough, stairs and gaps, a pole to climb, a pipe to crawl in.

Rough grounds, steps and gaps are height fields; their random numbers follow from ``seed`` alone. Everything is flat at
height 0 within ``start_radius_m`` of the origin, where robots begin. x is the way over stairs and gaps and up slopes,
unless they are ``around``.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field

from snake_gym.config import Settings
from snake_gym.config.settings import Count, NonNegative, Positive
from snake_gym.obstacles.splitmix import GOLDEN, TO_UNIT, mix
from snake_gym.robot.spec import FloatArray
from snake_gym.spatial.spec import Triple

GroundKind = Literal["flat", "slope", "grass", "rocks", "stairs", "steps", "gaps", "pole", "pipe"]


class GroundSpec(Settings):
    """What a spatial robot moves on."""

    kind: GroundKind = "flat"
    """flat; slope: it rises along x; grass: soft tufts, a smooth random field; rocks: random blocks; stairs: boxes up
    along x; steps: terraces up and down along x, as a height field; gaps: trenches across x; pole: an upright cylinder
    at the origin; pipe: a lying tube along x."""
    seed: Count = 0
    """Number that the random heights of grass and rocks follow from."""
    slope_rad: Annotated[float, Field(ge=-1.0, le=1.0)] = 0.1
    """Angle of a slope."""
    height_m: NonNegative = 0.04
    """Highest grass or rock; rise of a step or stair; depth of a gap."""
    grain_m: Annotated[float, Field(ge=0.05, le=5.0)] = 0.25
    """Size of tufts and blocks; depth of steps and stairs; width of a gap."""
    start_radius_m: NonNegative = 0.0
    """Distance from the origin within which a field is flat at height 0."""
    size_m: Annotated[float, Field(ge=1.0, le=100.0)] = 16.0
    """Side of a height field, whose middle is the origin."""
    cell_m: Annotated[float, Field(ge=0.02, le=1.0)] = 0.08
    """Grid width of a height field."""
    radius_m: Positive = 0.2
    """Radius of a pole, or the inner one of a pipe."""
    length_m: Positive = 10.0
    """Length of a pole or pipe."""
    around: bool = False
    """Whether steps and gaps lie in rings around the origin, across every way from it, not across x."""
    n_staves: Annotated[int, Field(ge=6, le=64)] = 16
    """Number of flat staves that a pipe is made of."""


class Box(NamedTuple):
    """Box that does not move, world frame."""

    middle: Triple
    half_size: Triple
    turn: Triple


class Pole(NamedTuple):
    """Cylinder or capsule that does not move, world frame."""

    middle: Triple
    radius: float
    half_length: float
    turn: Triple
    flat: bool
    """True for a cylinder; a capsule is the quicker and smoother partner of round links."""


class Ground(NamedTuple):
    """Shapes of a ground."""

    tilt: tuple[float, float, float, float]
    """Quaternion of the plane, where there is one."""
    heights_m: FloatArray | None
    """(rows along y, columns along x) [m] of a height field; None: a plane."""
    size_m: tuple[float, float]
    """Sides of the height field along x and y."""
    middle_m: tuple[float, float]
    boxes: tuple[Box, ...]
    poles: tuple[Pole, ...]
    span_m: tuple[float, float] | None = None
    """Lowest and highest height that the field may be given later; None: those that it has."""


LEVEL = (1.0, 0.0, 0.0, 0.0)
FIELD_KINDS = ("grass", "rocks", "steps", "gaps")


def make_ground(ground: GroundSpec) -> Ground:
    """Return the shapes of a ground."""
    plane = Ground(LEVEL, None, (0.0, 0.0), (0.0, 0.0), (), ())
    if ground.kind == "slope":
        return plane._replace(tilt=(math.cos(0.5 * ground.slope_rad), 0.0, -math.sin(0.5 * ground.slope_rad), 0.0))
    if ground.kind in FIELD_KINDS:
        side = _grid(ground)[0].shape[0]
        reach = (side - 1) * ground.cell_m
        return plane._replace(heights_m=field_heights(ground), size_m=(reach, reach))
    if ground.kind == "stairs":
        return plane._replace(boxes=tuple(_stairs(ground)))
    if ground.kind == "pole":
        half = 0.5 * ground.length_m
        return plane._replace(poles=(Pole((0.0, 0.0, half), ground.radius_m, half, (0.0, 0.0, 0.0), False),))
    if ground.kind == "pipe":
        return plane._replace(boxes=tuple(_staves(ground)))
    return plane


def _grid(ground: GroundSpec) -> tuple[FloatArray, FloatArray]:
    """Return x and y (n, n) [m] of a height field's grid."""
    n = max(round(ground.size_m / ground.cell_m), 4) + 1
    line = (np.arange(n) - 0.5 * (n - 1)) * ground.cell_m
    x, y = np.meshgrid(line, line)
    return x, y


def field_heights(ground: GroundSpec) -> FloatArray:
    """Return the heights (rows along y, columns along x) [m] of a height field, at least 0 but in gaps."""
    x, y = _grid(ground)
    grain, way = ground.grain_m, np.hypot(x, y) if ground.around else x
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
        heights = np.where(since > 3.0 * grain, -ground.height_m, 0.0)
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


def _stairs(ground: GroundSpec) -> list[Box]:
    n = max(1, int(ground.size_m / (2.0 * ground.grain_m)))
    begin = max(ground.start_radius_m, ground.grain_m)
    boxes = []
    for k in range(min(n, 24)):
        half = 0.5 * ground.height_m * (k + 1)
        middle = begin + (k + 0.5) * ground.grain_m
        boxes.append(Box((middle, 0.0, half), (0.5 * ground.grain_m, 0.5 * ground.size_m, half), (0.0, 0.0, 0.0)))
    return boxes


def _staves(ground: GroundSpec) -> list[Box]:
    """Return the staves of a tube along x whose lowest line lies at height 0."""
    thick = 0.05
    width = (ground.radius_m + thick) * math.tan(math.pi / ground.n_staves)
    staves = []
    for k in range(ground.n_staves):
        angle = 2.0 * math.pi * k / ground.n_staves
        reach = ground.radius_m + thick
        middle = (0.0, -reach * math.sin(angle), ground.radius_m - reach * math.cos(angle))
        staves.append(Box(middle, (0.5 * ground.length_m, width, thick), (-angle, 0.0, 0.0)))
    return staves
