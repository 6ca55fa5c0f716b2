"""What is around a robot, and what it senses of it: obstacles, route, beams of its scanner, contact forces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from snake_gym.envs.recording import RecordedSurroundings
from snake_gym.render import palette
from snake_gym.render.outlines import outline
from snake_gym.render.palette import blend, rgb
from snake_gym.render.sketch import Sketch
from snake_gym.robot.spec import GRAVITY_M_S2, FloatArray, RobotSpec

_ARROW_LENGTHS = 2.0
"""Length of the arrow of a very large force, in links."""
_HALF_WEIGHT = 0.2
"""Share of the robot's weight whose arrow is half as long as that."""


@dataclass(frozen=True)
class Surroundings:
    """One moment, world frame."""

    features: FloatArray
    """(k, 6) obstacles, see ``physics.state.Obstacles``."""
    route_xy: FloatArray
    """(r, 2) [m] the way to the goal."""
    aim_xy: FloatArray
    """(2,) [m] the place that the robot is told to go to."""
    beam_start_xy: FloatArray
    """(2,) [m] where the scanner is."""
    beam_end_xy: FloatArray
    """(B, 2) [m] how far each of its beams gets."""
    echo: FloatArray
    """(B,) 1 where the beam has met something."""
    arrow_xy: FloatArray
    """(N, 2) [m] contact force on each link, as the arrow's length."""


def surroundings_at(
    recorded: RecordedSurroundings, moment: int, head_xy: FloatArray, head_angle: float, spec: RobotSpec
) -> Surroundings:
    """One moment of a recording; head_xy (2,) [m] and head_angle [rad] are those of the head link then."""
    distance = recorded.range_m[moment]
    return Surroundings(
        features=recorded.features,
        route_xy=recorded.route_xy,
        aim_xy=recorded.aim_xy[moment],
        beam_start_xy=head_xy,
        beam_end_xy=beam_ends(head_xy, head_angle + recorded.beam_angle, distance),
        echo=distance < recorded.max_range_m,
        arrow_xy=force_arrows(recorded.force_w[moment], spec),
    )


def force_arrows(force: FloatArray, spec: RobotSpec) -> FloatArray:
    """Arrows (..., N, 2) [m] for forces (..., N, 2) [N]: in proportion while small, and never too long to be shown."""
    size = np.hypot(force[..., 0], force[..., 1])[..., None]
    half = _HALF_WEIGHT * GRAVITY_M_S2 * float(spec.links("link_mass_kg").sum())
    longest = _ARROW_LENGTHS * spec.length_m / spec.n_links
    return np.asarray(force * (longest / (size + half)))


def beam_ends(head_xy: FloatArray, direction: FloatArray, range_m: FloatArray) -> FloatArray:
    """Ends (..., B, 2) [m] of beams from head_xy (..., 2) in the directions (..., B) [rad], range_m (..., B) long."""
    along = np.stack([np.cos(direction), np.sin(direction)], axis=-1)
    return np.asarray(head_xy[..., None, :] + range_m[..., None] * along)


def draw_below(sketch: Sketch, around: Surroundings) -> None:
    """Beams, obstacles, route and aim: what lies below the robot."""
    pygame, canvas, to_pixel = sketch.pygame, sketch.canvas, sketch.camera.to_pixel
    faint, line = rgb(blend(palette.SKY, palette.PAPER, 0.35)), sketch.width(1.0)
    start = to_pixel(around.beam_start_xy)
    for end in to_pixel(around.beam_end_xy):
        pygame.draw.line(canvas, faint, start, end, line)
    body, edge = rgb(palette.ROCK), rgb(palette.MUTED)
    outlines = outline(around.features)
    for corners in outlines.polygons:
        pygame.draw.polygon(canvas, body, to_pixel(corners))
        pygame.draw.polygon(canvas, edge, to_pixel(corners), line)
    for inset, colour in ((0.0, edge), (2.0 * line, body)):
        for a, b, radius in outlines.bars:
            width = max(2.0 * radius * sketch.camera.pixel_per_m, sketch.width(3.0)) - inset
            sketch.capsule(to_pixel(a), to_pixel(b), max(width, 1.0), colour)
    for end in to_pixel(around.beam_end_xy[around.echo > 0.0]):
        pygame.draw.circle(canvas, rgb(palette.SKY), end, sketch.width(1.8))
    _draw_route(sketch, around)


def draw_above(sketch: Sketch, around: Surroundings, link_xy: FloatArray) -> None:
    """Arrows of the contact forces at the links' centres link_xy (N, 2) [m]: what lies above the robot."""
    for centre, arrow in zip(link_xy, around.arrow_xy, strict=True):
        start, end = sketch.camera.to_pixel(np.stack([centre, centre + arrow]))
        length = float(np.hypot(*(end - start)))
        if length < sketch.width(3.0):
            continue
        along = (end - start) / length
        side, head = np.array([-along[1], along[0]]), min(float(sketch.width(6.0)), length)
        colour = rgb(palette.FORCE)
        sketch.capsule(start, end - head * along, sketch.width(2.0), colour)
        corners = [end, end - head * along + 0.5 * head * side, end - head * along - 0.5 * head * side]
        sketch.pygame.draw.polygon(sketch.canvas, colour, corners)


def _draw_route(sketch: Sketch, around: Surroundings) -> None:
    colour, dash = rgb(blend(palette.GREEN, palette.PAPER, 0.6)), 6.0 * sketch.scale
    pixels = sketch.camera.to_pixel(around.route_xy)
    steps = np.hypot(*np.diff(pixels, axis=0).T)
    arc = np.concatenate([[0.0], np.cumsum(steps)])
    begins = np.arange(0.0, min(float(arc[-1]), 1000.0 * dash), 2.0 * dash)
    for start, end in zip(_along(pixels, arc, begins), _along(pixels, arc, begins + dash), strict=True):
        sketch.pygame.draw.line(sketch.canvas, colour, start, end, sketch.width(1.5))
    at = sketch.camera.to_pixel(around.aim_xy)
    sketch.pygame.draw.circle(sketch.canvas, rgb(palette.ORANGE), at, sketch.width(4.0), sketch.width(1.5))


def _along(points: FloatArray, arc: FloatArray, at: FloatArray) -> FloatArray:
    return np.stack([np.interp(at, arc, points[:, axis]) for axis in (0, 1)], axis=1)
