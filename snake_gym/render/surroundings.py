"""Surroundings of a robot and its sensing of them: obstacles, route, beams of its scanner, contact forces."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_gym.envs.recording import RecordedSurroundings
from snake_gym.render import palette
from snake_gym.render.palette import blend
from snake_gym.render.sketch import Sketch
from snake_gym.robot.chain import ChainSpec, FloatArray
from snake_gym.robot.spec import GRAVITY_M_S2

_ARROW_LENGTHS = 2.0
"""Length of the arrow of a very large force, in links."""
_HALF_WEIGHT = 0.2
"""Share of the robot's weight drawn as half of the longest arrow."""
_TOUCHING_M = 1e-6


class Surroundings(NamedTuple):
    """Surroundings at one moment, world frame."""

    features: FloatArray
    """(k, 6) obstacles, see ``physics.state.Obstacles``."""
    route_xy: FloatArray
    """(r, 2) [m] route to the goal."""
    aim_xy: FloatArray
    """(2,) [m] point to go to."""
    beam_start_xy: FloatArray
    """(2,) [m] position of the scanner."""
    beam_end_xy: FloatArray
    """(B, 2) [m] end of each beam."""
    echo: NDArray[np.bool_]
    """(B,) True for a beam that has met an obstacle."""
    arrow_xy: FloatArray
    """(N, 2) [m] contact force on each link, as an arrow."""


def surroundings_at(
    recorded: RecordedSurroundings, moment: int, head_xy: FloatArray, head_angle: float, spec: ChainSpec
) -> Surroundings:
    """Return one moment of a recording; head_xy (2,) [m] and head_angle [rad] are those of the head link then."""
    distance = recorded.range_m[moment]
    direction = head_angle + recorded.beam_angle
    ends = head_xy + distance[:, None] * np.stack([np.cos(direction), np.sin(direction)], axis=-1)
    arrows = force_arrows(recorded.force_w[moment], spec)
    met = distance < recorded.max_range_m
    return Surroundings(recorded.features, recorded.route_xy, recorded.aim_xy[moment], head_xy, ends, met, arrows)


def force_arrows(force: FloatArray, spec: ChainSpec) -> FloatArray:
    """Return arrows (..., N, 2) [m] for forces (..., N, 2) [N]: in proportion if small, and limited in length."""
    size = np.hypot(force[..., 0], force[..., 1])[..., None]
    half = _HALF_WEIGHT * GRAVITY_M_S2 * float(spec.links("link_mass_kg").sum())
    longest = _ARROW_LENGTHS * spec.length_m / spec.n_links
    return np.asarray(force * (longest / (size + half)))


def outline(features: FloatArray) -> tuple[list[tuple[FloatArray, FloatArray, float]], list[FloatArray]]:
    """Return the shapes of obstacles' features (k, 6), see ``physics.state.Obstacles``.

    Returns:
        Bars (discs, capsules and walls): start (2,), end (2,) and radius [m]; and polygons: corners (n, 2) [m]. Edges
        of radius 0 that follow each other around in a circle make a polygon.
    """
    bars: list[tuple[FloatArray, FloatArray, float]] = []
    polygons: list[FloatArray] = []
    chain: list[tuple[FloatArray, FloatArray]] = []
    for row in np.asarray(features, dtype=np.float64).reshape(-1, 6):
        start, end = row[:2], row[:2] + row[2:4] * row[4]
        is_edge = row[5] == 0.0 and row[4] > 0.0
        if chain and not (is_edge and _is_same(chain[-1][1], start)):
            bars += [(a, b, 0.0) for a, b in chain]
            chain = []
        if not is_edge:
            bars.append((start, end, float(row[5])))
            continue
        chain.append((start, end))
        if len(chain) > 2 and _is_same(end, chain[0][0]):
            polygons.append(np.array([a for a, _ in chain]))
            chain = []
    return bars + [(a, b, 0.0) for a, b in chain], polygons


def _is_same(a: FloatArray, b: FloatArray) -> bool:
    return bool(np.hypot(*(a - b)) < _TOUCHING_M)


def draw_below(sketch: Sketch, around: Surroundings) -> None:
    """Draw beams, obstacles, route and aim, which lie below the robot."""
    to_pixel, line = sketch.camera.to_pixel, sketch.width(1.0)
    start = to_pixel(around.beam_start_xy)
    for end in to_pixel(around.beam_end_xy):
        sketch.line(start, end, blend(palette.SKY, palette.PAPER, 0.35))
    bars, polygons = outline(around.features)
    for corners in polygons:
        sketch.polygon(to_pixel(corners), palette.ROCK)
        sketch.polygon(to_pixel(corners), palette.MUTED, line)
    for inset, colour in ((0.0, palette.MUTED), (2.0 * line, palette.ROCK)):
        for a, b, radius in bars:
            width = max(2.0 * radius * sketch.camera.pixel_per_m, sketch.width(3.0)) - inset
            sketch.capsule(to_pixel(a), to_pixel(b), max(width, 1.0), colour)
    for end in to_pixel(around.beam_end_xy[around.echo]):
        sketch.circle(end, sketch.width(1.8), palette.SKY)
    for ends in pairwise(to_pixel(around.route_xy)):
        sketch.line(*ends, blend(palette.GREEN, palette.PAPER, 0.6), 1.5)
    sketch.circle(to_pixel(around.aim_xy), sketch.width(4.0), palette.ORANGE, sketch.width(1.5))


def draw_above(sketch: Sketch, around: Surroundings, link_xy: FloatArray) -> None:
    """Draw arrows of the contact forces at the links' centres link_xy (N, 2) [m], which lie above the robot."""
    for centre, arrow in zip(link_xy, around.arrow_xy, strict=True):
        start, end = sketch.camera.to_pixel(np.stack([centre, centre + arrow]))
        length = float(np.hypot(*(end - start)))
        if length < sketch.width(3.0):
            continue
        along = (end - start) / length
        side, head = np.array([-along[1], along[0]]), min(float(sketch.width(6.0)), length)
        sketch.capsule(start, end - head * along, sketch.width(2.0), palette.FORCE)
        corners = [end, end - head * along + 0.5 * head * side, end - head * along - 0.5 * head * side]
        sketch.polygon(corners, palette.FORCE)
