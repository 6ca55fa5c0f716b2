"""A canvas with a camera: the strokes that pictures of robots are made of, drawn with pygame.

Everything is drawn twice as large and scaled down later, which gives smooth edges.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from snake_gym.render import palette
from snake_gym.render.camera import Camera
from snake_gym.render.palette import blend, rgb
from snake_gym.robot.spec import FloatArray

Rgb = tuple[int, int, int]

_SUPERSAMPLING = 2
_BARS_M = (10.0, 5.0, 2.0, 1.0, 0.5, 0.25, 0.1, 0.05, 0.01)


class Sketch:
    """Canvas, camera and font of one picture.

    Args:
        pygame: the library.
        size: width and height of the finished picture [pixel].
        length_m: length of the robot.
    """

    def __init__(self, pygame: Any, size: tuple[int, int], length_m: float) -> None:
        self.pygame = pygame
        self.scale = _SUPERSAMPLING
        """Pixels of the canvas to one of the picture."""
        pixels = size[0] * self.scale, size[1] * self.scale
        self.camera = Camera(pixels, length_m)
        self.canvas = pygame.Surface(pixels, depth=32)
        pygame.font.init()
        self.font = pygame.font.Font(None, 18 * self.scale)

    def width(self, points: float) -> int:
        """Pixels of the canvas for ``points`` pixels of the picture, at least one."""
        return max(1, round(points * self.scale))

    def grid(self) -> None:
        """Lines every half metre."""
        half = self.camera.pixels / 2.0 / self.camera.pixel_per_m
        for axis in (0, 1):
            first = math.floor(self.camera.centre[axis] - half[axis])
            for value in np.arange(first, self.camera.centre[axis] + half[axis] + 1.0, 0.5):
                ends = np.array([self.camera.centre - half, self.camera.centre + half])
                ends[:, axis] = value
                strong = value == round(value)
                colour = rgb(palette.GRID if strong else blend(palette.GRID, palette.PAPER, 0.45))
                start, end = self.camera.to_pixel(ends)
                self.pygame.draw.line(self.canvas, colour, start, end, self.width(1.0))

    def dashed(self, start: FloatArray, end: FloatArray, colour: Rgb) -> None:
        """A dashed line between two pixels (2,)."""
        length = float(np.hypot(*(end - start)))
        dash = 6.0 * self.scale
        for along in np.arange(0.0, min(length, 400.0 * dash), 2.0 * dash):
            a, b = start + (end - start) * along / length, start + (end - start) * min(along + dash, length) / length
            self.pygame.draw.line(self.canvas, colour, a, b, self.width(1.0))

    def capsule(self, start: FloatArray, end: FloatArray, width: float, colour: Rgb) -> None:
        """A bar of ``width`` pixels with round ends between two pixels (2,)."""
        along = end - start
        length = float(np.hypot(*along))
        radius = width / 2.0
        if length > 0.0:
            side = np.array([-along[1], along[0]]) * radius / length
            corners = [start + side, end + side, end - side, start - side]
            self.pygame.draw.polygon(self.canvas, colour, corners)
        if radius >= 1.0:
            self.pygame.draw.circle(self.canvas, colour, start, radius)
            self.pygame.draw.circle(self.canvas, colour, end, radius)

    def point_at(self, target: FloatArray) -> None:
        """An arrow at the edge towards a target that is out of view."""
        at = self.camera.to_pixel(target)
        if (at > 0.0).all() and (at < self.camera.pixels).all():
            return
        border = 14.0 * self.scale
        middle = self.camera.pixels / 2.0
        ray = at - middle
        along = ray / float(np.hypot(*ray))
        reach = float(np.min((middle - border) / np.maximum(np.abs(along), 1e-9)))
        side = np.array([-along[1], along[0]])
        tip, size = middle + reach * along, 11.0 * self.scale
        corners = [tip, tip - size * along + 0.6 * size * side, tip - size * along - 0.6 * size * side]
        self.pygame.draw.polygon(self.canvas, rgb(palette.ORANGE), corners)

    def label(self, text: Any, at: tuple[float, float], before: float = 0.0) -> None:
        """Rendered ``text`` with its upper left corner ``at`` a pixel, readable on anything.

        Args:
            before: pixels to the left of it that are kept free for a sign.
        """
        pad = self.width(2.0)
        size = (text.get_width() + before + 2 * pad, text.get_height() + pad)
        ground = self.pygame.Surface(size)
        ground.fill(rgb(palette.PAPER))
        ground.set_alpha(200)
        self.canvas.blit(ground, (at[0] - before - pad, at[1] - pad))
        self.canvas.blit(text, at)

    def scale_bar(self) -> None:
        """How long a metre is, in the lower right corner."""
        length_m = next((m for m in _BARS_M if m <= self.camera.view_m / 3.0), _BARS_M[-1])
        length = length_m * self.camera.pixel_per_m
        right, bottom = (self.camera.pixels - 14 * self.scale).tolist()
        pygame, ink, width = self.pygame, rgb(palette.INK), self.width(2.0)
        pygame.draw.line(self.canvas, ink, (right - length, bottom), (right, bottom), width)
        for x in (right - length, right):
            pygame.draw.line(self.canvas, ink, (x, bottom - 4 * self.scale), (x, bottom + 3 * self.scale), width)
        label = self.font.render(f"{length_m:g} m", True, ink)
        self.label(label, (right - length / 2 - label.get_width() / 2, bottom - label.get_height() - width))
