"""Canvas with a camera: the strokes of pictures of robots, drawn with pygame.

Everything is drawn twice as large and scaled down later, which gives smooth edges. Frame: world x to the right, y up;
pixels count from the upper left corner. Colours are ``"#RRGGBB"``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from snake_gym.render import palette
from snake_gym.render.palette import blend, rgb
from snake_gym.robot.spec import FloatArray

_SHARE = 0.15
"""Share of the remaining way that the camera moves in one frame."""
_MIN_VIEW, _MAX_VIEW = 1.4, 3.5
"""Smallest and largest height of the view, in robot lengths."""
_MARGIN = 0.25
"""Margin around the objects kept in view, in robot lengths."""
_BARS_M = (10.0, 5.0, 2.0, 1.0, 0.5, 0.25, 0.1, 0.05, 0.01)


class Camera:
    """Map of the world to a picture of given pixels; it smoothly follows a robot of ``length_m`` and its target."""

    def __init__(self, pixels: tuple[int, int], length_m: float) -> None:
        self.pixels: FloatArray = np.array(pixels, dtype=np.float64)
        self._length = length_m
        self._aspect = pixels[0] / pixels[1]
        self._placed = False
        self.centre: FloatArray = np.zeros(2)
        """(2,) [m] world point in the middle of the picture."""
        self.view_m = length_m
        """Height of the view [m]."""
        self.fixed = False
        """True: the view stays where it is; ``cut`` moves it to the robot once."""
        self._zoom = 1.0

    def cut(self) -> None:
        """Forget the last view: the next one begins at the robot's position."""
        self._placed = False

    @property
    def pixel_per_m(self) -> float:
        return float(self.pixels[1]) / self.view_m

    def to_pixel(self, xy: FloatArray) -> FloatArray:
        """Return world points (..., 2) [m] as pixels."""
        offset = (xy - self.centre) * np.array([1.0, -1.0])
        return np.asarray(self.pixels / 2.0 + offset * self.pixel_per_m)

    def to_world(self, pixel: FloatArray) -> FloatArray:
        """Return pixels (..., 2) as world points [m]."""
        return np.asarray(self.centre + (pixel - self.pixels / 2.0) * np.array([1.0, -1.0]) / self.pixel_per_m)

    def widen(self, factor: float) -> None:
        """Show ``factor`` times as much of the world, now and later, within limits."""
        wider = min(max(self._zoom * factor, 0.1), 10.0)
        self.view_m *= wider / self._zoom
        self._zoom = wider

    def follow(self, body: FloatArray, target: FloatArray | None) -> None:
        """Move a part of the way towards the view of ``body`` (P, 2) and ``target`` (2,) [m].

        The first call, and one with a robot far from the last view, moves all the way. If the target is outside the
        largest view, the whole robot stays inside. A fixed camera does not move.
        """
        if self.fixed and self._placed:
            return
        points = body if target is None else np.vstack([body, target])
        margin = _MARGIN * self._length
        low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
        needed = max(float(high[1] - low[1]), float(high[0] - low[0]) / self._aspect)
        view = min(max(needed, _MIN_VIEW * self._length / min(self._aspect, 1.0)), _MAX_VIEW * self._length)
        view *= self._zoom
        centre = self._hold(body, (low + high) / 2.0, view)
        if not self._placed or float(np.hypot(*(centre - self.centre))) > 2.0 * self.view_m:
            self._placed, self.centre, self.view_m = True, centre, view
        else:
            self.view_m += _SHARE * (view - self.view_m)
            self.centre = self._hold(body, self.centre + _SHARE * (centre - self.centre), self.view_m)

    def _hold(self, body: FloatArray, centre: FloatArray, view: float) -> FloatArray:
        """Return ``centre`` (2,), moved so that a view of height ``view`` [m] holds the whole ``body`` (P, 2) [m]."""
        low, high = body.min(axis=0), body.max(axis=0)
        robot, room = (low + high) / 2.0, (high - low) / 2.0 + 0.1 * self._length
        half = np.array([self._aspect, 1.0]) * view / 2.0
        reach = np.maximum(half - room, 0.0)
        return np.asarray(np.clip(centre, robot - reach, robot + reach))


class Sketch:
    """Canvas, camera and font of one picture of ``size`` (width, height) [pixel] of a robot of ``length_m``."""

    scale = 2
    """Number of pixels of the canvas for one of the picture, along each axis."""

    def __init__(self, pygame: Any, size: tuple[int, int], length_m: float) -> None:
        self.pygame = pygame
        pixels = size[0] * self.scale, size[1] * self.scale
        self.camera = Camera(pixels, length_m)
        self.canvas = pygame.Surface(pixels, depth=32)
        pygame.font.init()
        self.font = pygame.font.Font(None, 18 * self.scale)

    def width(self, points: float) -> int:
        """Return pixels of the canvas for ``points`` pixels of the picture, at least one."""
        return max(1, round(points * self.scale))

    def line(self, start: Any, end: Any, colour: str, points: float = 1.0) -> None:
        """Draw a line of ``points`` pixels of the picture between two pixels (2,)."""
        self.pygame.draw.line(self.canvas, rgb(colour), start, end, self.width(points))

    def circle(self, at: Any, radius: float, colour: str, width: int = 0) -> None:
        """Draw a disc around a pixel (2,), or a circle ``width`` pixels wide."""
        self.pygame.draw.circle(self.canvas, rgb(colour), at, radius, width)

    def polygon(self, corners: Any, colour: str, width: int = 0) -> None:
        """Draw a filled polygon, or its edge ``width`` pixels wide."""
        self.pygame.draw.polygon(self.canvas, rgb(colour), corners, width)

    def capsule(self, start: FloatArray, end: FloatArray, width: float, colour: str) -> None:
        """Draw a bar of ``width`` pixels with round ends between two pixels (2,)."""
        along = end - start
        length = float(np.hypot(*along))
        radius = width / 2.0
        if length > 0.0:
            side = np.array([-along[1], along[0]]) * radius / length
            self.polygon([start + side, end + side, end - side, start - side], colour)
        if radius >= 1.0:
            self.circle(start, radius, colour)
            self.circle(end, radius, colour)

    def grid(self) -> None:
        """Draw grid lines every half metre."""
        half = self.camera.pixels / 2.0 / self.camera.pixel_per_m
        for axis in (0, 1):
            first = math.floor(self.camera.centre[axis] - half[axis])
            for value in np.arange(first, self.camera.centre[axis] + half[axis] + 1.0, 0.5):
                ends = np.array([self.camera.centre - half, self.camera.centre + half])
                ends[:, axis] = value
                strong = value == round(value)
                colour = palette.GRID if strong else blend(palette.GRID, palette.PAPER, 0.45)
                start, end = self.camera.to_pixel(ends)
                self.line(start, end, colour)

    def point_at(self, target: FloatArray) -> None:
        """Draw an arrow at the edge towards a target that is out of view."""
        at = self.camera.to_pixel(target)
        if (at > 0.0).all() and (at < self.camera.pixels).all():
            return
        middle = self.camera.pixels / 2.0
        along = (at - middle) / float(np.hypot(*(at - middle)))
        reach = float(np.min((middle - 14.0 * self.scale) / np.maximum(np.abs(along), 1e-9)))
        side = np.array([-along[1], along[0]])
        tip, size = middle + reach * along, 11.0 * self.scale
        corners = [tip, tip - size * along + 0.6 * size * side, tip - size * along - 0.6 * size * side]
        self.polygon(corners, palette.ORANGE)

    def label(self, text: Any, at: tuple[float, float], before: float = 0.0) -> None:
        """Draw rendered ``text`` with its upper left corner ``at`` a pixel, on a pale background; ``before``: pixels
        to the left of it that are kept free for a sign."""
        pad = self.width(2.0)
        size = (text.get_width() + before + 2 * pad, text.get_height() + pad)
        ground = self.pygame.Surface(size)
        ground.fill(rgb(palette.PAPER))
        ground.set_alpha(200)
        self.canvas.blit(ground, (at[0] - before - pad, at[1] - pad))
        self.canvas.blit(text, at)

    def scale_bar(self) -> None:
        """Draw a bar of known length in the lower right corner."""
        length_m = next((m for m in _BARS_M if m <= self.camera.view_m / 3.0), _BARS_M[-1])
        length = length_m * self.camera.pixel_per_m
        right, bottom = (self.camera.pixels - 14 * self.scale).tolist()
        self.line((right - length, bottom), (right, bottom), palette.INK, 2.0)
        for x in (right - length, right):
            self.line((x, bottom - 4 * self.scale), (x, bottom + 3 * self.scale), palette.INK, 2.0)
        label = self.font.render(f"{length_m:g} m", True, rgb(palette.INK))
        self.label(label, (right - length / 2 - label.get_width() / 2, bottom - label.get_height() - self.width(2.0)))
