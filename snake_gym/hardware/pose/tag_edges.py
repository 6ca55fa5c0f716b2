"""Corners of a tag to a few hundredths of a pixel: the lines of its four sides, cut with each other.

A corner itself is a poor place to measure, because blur rounds it. Along a side there are many pixels that all tell
where the edge from white to black is: for each of them the centroid of the grey level's slope across the side, then a
straight line through them, with those left out that are off it (something lies on the tag). The lens bends a side of
some tens of pixels by far less than the noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from snake_gym.robot.spec import FloatArray

_ENDS = 0.12
"""Share of a side that is left out at each corner."""
_PER_SIDE = 24
_LARGEST_REACH = 4.0
"""[pixels] a side is looked for at most so far to both sides of where it was found first."""
_STEP = 0.25
_OFF = 2.5
"""Points off the line by more than this many standard deviations are left out,"""
_EVEN = 0.1
"""[pixels] but none that is nearer."""


def refine_corners(image: NDArray[np.uint8], corners: FloatArray) -> FloatArray:
    """Better corners (4, 2) [pixels: x, y] of a dark square on white, from corners to within a few pixels.

    They are in the order given. Where a side cannot be found, the corners are as they were.
    """
    start, end = corners, np.roll(corners, -1, axis=0)
    along = end - start
    length = np.hypot(along[:, 0], along[:, 1])
    if length.min() < 4.0:
        return corners
    tangent = along / length[:, None]
    normal = np.stack([-tangent[:, 1], tangent[:, 0]], axis=1)
    # No further than to the first cells of the pattern inside, and the end of the margin outside: one cell of ten.
    reach = min(_LARGEST_REACH, 0.09 * float(length.min()))
    for _ in range(3):  # each time from better lines
        share = np.linspace(_ENDS, 1.0 - _ENDS, _PER_SIDE)
        points = start[:, None] + share[None, :, None] * along[:, None]
        offsets = np.arange(-reach, reach + 0.5 * _STEP, _STEP)
        grey = _sample(image, points[:, :, None] + offsets[None, None, :, None] * normal[:, None, None])
        slope = np.abs(np.diff(grey, axis=2))
        slope = np.maximum(slope - 0.2 * slope.max(axis=2, keepdims=True), 0.0)
        weight = slope.sum(axis=2)
        middle = 0.5 * (offsets[1:] + offsets[:-1])
        off = (slope * middle).sum(axis=2) / np.maximum(weight, 1e-9)
        lines = [_line(share * length[k], off[k], weight[k]) for k in range(4)]
        if any(line is None for line in lines):
            return corners
        begin = np.array([start[k] + line[0] * normal[k] for k, line in enumerate(lines) if line is not None])
        towards = np.array([tangent[k] + line[1] * normal[k] for k, line in enumerate(lines) if line is not None])
        found = np.array([_cross(begin[k - 1], towards[k - 1], begin[k], towards[k]) for k in range(4)])
        if not (np.isfinite(found).all() and (np.hypot(*(found - corners).T) < 2.0 * _LARGEST_REACH).all()):
            return corners
        start, end = found, np.roll(found, -1, axis=0)
        along = end - start
        length = np.hypot(along[:, 0], along[:, 1])
        tangent = along / length[:, None]
        normal = np.stack([-tangent[:, 1], tangent[:, 0]], axis=1)
    return start


def _sample(image: NDArray[np.uint8], at: FloatArray) -> FloatArray:
    """Grey levels at points (..., 2) [pixels], linearly between pixel centres."""
    x = np.clip(at[..., 0], 0.0, image.shape[1] - 1.001)
    y = np.clip(at[..., 1], 0.0, image.shape[0] - 1.001)
    column, row = x.astype(np.intp), y.astype(np.intp)
    fx, fy = x - column, y - row
    top = (1.0 - fx) * image[row, column] + fx * image[row, column + 1]
    low = (1.0 - fx) * image[row + 1, column] + fx * image[row + 1, column + 1]
    return np.asarray((1.0 - fy) * top + fy * low)


def _line(along: FloatArray, off: FloatArray, weight: FloatArray) -> tuple[float, float] | None:
    """Offset at the side's start and slope of the line through points (K,); None where there is no line."""
    good = weight > 0.25 * np.median(weight)
    for _ in range(3):
        if good.sum() < 0.4 * along.size:
            return None
        matrix = np.column_stack([np.ones(int(good.sum())), along[good]])
        (constant, slope), *_ = np.linalg.lstsq(matrix, off[good], rcond=None)
        away = np.abs(off - constant - slope * along)
        spread = float(np.sqrt((away[good] ** 2).mean()))
        good = good & (away <= max(_OFF * spread, _EVEN))
    return float(constant), float(slope)


def _cross(p: FloatArray, along_p: FloatArray, q: FloatArray, along_q: FloatArray) -> FloatArray:
    """Where two lines meet (2,); inf where they do not."""
    turn = along_p[0] * along_q[1] - along_p[1] * along_q[0]
    if abs(turn) < 0.05:
        return np.full(2, np.inf)
    gap = q - p
    return np.asarray(p + (gap[0] * along_q[1] - gap[1] * along_q[0]) / turn * along_p)
