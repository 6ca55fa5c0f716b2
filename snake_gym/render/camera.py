"""Which part of the world a picture shows: the robot and its current target, followed smoothly.

Frame: world x to the right, y up; pixels count from the upper left corner.
"""

from __future__ import annotations

import numpy as np

from snake_gym.robot.spec import FloatArray

_SHARE = 0.15
"""How much of the way to its goal the camera goes in one frame."""
_MIN_VIEW, _MAX_VIEW = 1.4, 3.5
"""Smallest and largest height of the view, in robot lengths."""
_MARGIN = 0.25
"""Room around what is kept in view, in robot lengths."""


class Camera:
    """Maps the world to pixels.

    Args:
        pixels: width and height of the picture.
        length_m: length of the robot.
    """

    def __init__(self, pixels: tuple[int, int], length_m: float) -> None:
        self.pixels: FloatArray = np.array(pixels, dtype=np.float64)
        self._length = length_m
        self._aspect = pixels[0] / pixels[1]
        self._placed = False
        self.centre: FloatArray = np.zeros(2)
        """(2,) [m] what is in the middle of the picture."""
        self.view_m = length_m
        """Height of what is shown [m]."""

    def cut(self) -> None:
        """Forget the last view: the next one begins where the robot then is."""
        self._placed = False

    @property
    def pixel_per_m(self) -> float:
        """Pixels to a metre."""
        return float(self.pixels[1]) / self.view_m

    def to_pixel(self, xy: FloatArray) -> FloatArray:
        """World points (..., 2) [m] as pixels."""
        offset = (xy - self.centre) * np.array([1.0, -1.0])
        return np.asarray(self.pixels / 2.0 + offset * self.pixel_per_m)

    def follow(self, body: FloatArray, target: FloatArray | None) -> None:
        """Move a part of the way towards the view of ``body`` (P, 2) and ``target`` (2,) [m].

        The first call, and one with a robot far from the last view, moves all the way. Where the target is out of reach
        of the largest view, the whole robot stays inside.
        """
        points = body if target is None else np.vstack([body, target])
        margin = _MARGIN * self._length
        low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
        needed = max(float(high[1] - low[1]), float(high[0] - low[0]) / self._aspect)
        view = min(max(needed, _MIN_VIEW * self._length / min(self._aspect, 1.0)), _MAX_VIEW * self._length)
        centre = self._hold(body, (low + high) / 2.0, view)
        if not self._placed or float(np.hypot(*(centre - self.centre))) > 2.0 * self.view_m:
            self._placed, self.centre, self.view_m = True, centre, view
        else:
            self.view_m += _SHARE * (view - self.view_m)
            self.centre = self._hold(body, self.centre + _SHARE * (centre - self.centre), self.view_m)

    def _hold(self, body: FloatArray, centre: FloatArray, view: float) -> FloatArray:
        """``centre`` (2,), moved so that a view of height ``view`` [m] holds the whole ``body`` (P, 2) [m]."""
        low, high = body.min(axis=0), body.max(axis=0)
        robot, room = (low + high) / 2.0, (high - low) / 2.0 + 0.1 * self._length
        half = np.array([self._aspect, 1.0]) * view / 2.0
        reach = np.maximum(half - room, 0.0)
        return np.asarray(np.clip(centre, robot - reach, robot + reach))
