"""Broad phase: a uniform grid per world that lists the features that a link centred in a cell may touch.

A cell lists every feature with its segment within ``reach + radius`` of the cell's rectangle, reach being the half
length of a link plus its radius plus the skin (the distance it may move before its cell is looked up again). One
look-up then finds all features near a link in a field of any size; outside the grid nothing can be touched. The cells
are axis-aligned in the world frame. Each world has a grid of its own that fits its features, within fixed capacities:
features that do not fit are an error.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from snake_gym.compilation import cached_njit
from snake_gym.config import ConfigError
from snake_gym.physics.state import FloatArray, Obstacles

FAR_M = 1.0e6
_UNUSED = (FAR_M, FAR_M, 1.0, 0.0, 0.0, 0.0)
"""Unused row of ``feature``: a disc of radius 0 that nothing gets near."""
MAX_CELLS = 4_000_000
"""Most cells of one world's grid; more would take gigabytes for the worlds of a training."""


class FieldBounds(NamedTuple):
    """Bounds of every field made from one config."""

    max_features: int
    extent_m: float
    """Side of a square that holds all features of a world at any heading of the field."""
    total_length_m: float
    """Sum of the features' lengths."""
    max_radius_m: float
    """Largest radius of a feature."""
    max_segments: int = 0
    """Number of features that are longer than 0."""

    def with_ends(self) -> FieldBounds:
        """Return the bounds for features after the function ``with_ends``."""
        return self._replace(max_features=self.max_features + 2 * self.max_segments)


def empty_arrays(n_worlds: int, bounds: FieldBounds, reach_m: float, skin_m: float) -> Obstacles:
    """Return empty obstacle arrays for ``n_worlds`` worlds with fields within ``bounds``.

    ``reach_m`` is the largest half length of a link plus the largest link radius plus ``skin_m``, and a cell's side.
    """
    cell = reach_m
    side = math.ceil((bounds.extent_m + 2.0 * reach_m) / cell) + 1
    # A listed cell lies within reach + radius + its own diagonal of the segment: area bounds their number.
    far = reach_m + bounds.max_radius_m + math.sqrt(2.0) * cell
    area = 2.0 * far * bounds.total_length_m + bounds.max_features * math.pi * far * far
    n_items = min(math.ceil(area / cell**2), bounds.max_features * side * side)
    if max(side * side, n_items) > MAX_CELLS:
        raise ConfigError(
            f"field: its obstacles need a grid of {side * side:.3g} cells with {n_items:.3g} entries; expected at most "
            f"{MAX_CELLS} (a smaller goal_distance_m, width_m, gap_m, obstacle_radius_m or wall_radius_m)"
        )
    arrays = Obstacles(
        np.empty((n_worlds, max(bounds.max_features, 1), 6)),
        np.zeros((n_worlds, side * side + 1), np.int64),
        np.zeros((n_worlds, max(n_items, 1)), np.int64),
        np.zeros((n_worlds, 2)), np.zeros((n_worlds, 2), np.int64), float(cell), float(skin_m),
    )  # fmt: skip
    arrays.feature[:] = _UNUSED
    return arrays


def write_world(arrays: Obstacles, world: int, features: FloatArray, reach_m: float) -> None:
    """Replace the obstacles of one world by ``features`` (k, 6) [m], world frame; ``reach_m`` as for
    ``empty_arrays``. Raises ConfigError on overflow.
    """
    room = arrays.feature.shape[1]
    if len(features) > room:
        raise ConfigError(f"world {world} has {len(features)} features; expected at most {room} (the field's bounds)")
    full = _write(
        arrays.feature[world], arrays.cell_start[world], arrays.cell_item[world], arrays.origin_xy[world],
        arrays.n_cells[world], arrays.cell_m, float(reach_m), features,
    )  # fmt: skip
    if full:
        what, size = ("cells", arrays.cell_start.shape[1] - 1) if full == 1 else ("items", arrays.cell_item.shape[1])
        raise ConfigError(f"the features of world {world} need more than {size} grid {what}; too tight bounds")


def with_ends(features: FloatArray) -> FloatArray:
    """Return the features (k, 6), and after them a disc at each end of every segment: (m, 6), world frame.

    The physics tests segments against the ends of a link only, and discs against all of it: without the discs, a link
    could be pushed sideways over the end of a wall or the corner of a polygon. Where several segments end in one point
    with the same radius, there is one disc.
    """
    rows = np.empty((3 * len(features), 6))
    return rows[: _add_ends(np.ascontiguousarray(features, dtype=np.float64), rows)].copy()


@cached_njit()
def _add_ends(features, rows):  # type: ignore[no-untyped-def]
    k = features.shape[0]
    rows[:k] = features
    n = k
    for i in range(k):
        sx, sy, ax, ay, length, radius = features[i]
        for u in (0.0, length):
            x, y = sx + u * ax, sy + u * ay
            is_new = length > 0.0
            for j in range(k, n):
                same_place = abs(rows[j, 0] - x) < 1e-9 and abs(rows[j, 1] - y) < 1e-9
                is_new = is_new and not (same_place and rows[j, 5] == radius)
            if is_new:
                rows[n] = np.array((x, y, 1.0, 0.0, 0.0, radius))
                n += 1
    return n


@cached_njit()
def _rectangle_gap2(sx, sy, ax, ay, length, x0, y0, x1, y1):  # type: ignore[no-untyped-def]
    """Return the squared distance [m^2] between a segment and an axis-aligned rectangle."""
    first, last = 0.0, length  # the part of the segment that lies within the rectangle (Liang and Barsky, 1984)
    for start, axis, low, high in ((sx, ax, x0, x1), (sy, ay, y0, y1)):
        if axis != 0.0:
            a, b = (low - start) / axis, (high - start) / axis
            first, last = max(first, min(a, b)), min(last, max(a, b))
        elif start < low or start > high:
            last = -1.0
    if first <= last:
        return 0.0
    best = np.inf  # apart: one end of the segment or one corner of the rectangle is nearest
    for u in (0.0, length):
        dx = sx + u * ax - min(max(sx + u * ax, x0), x1)
        dy = sy + u * ay - min(max(sy + u * ay, y0), y1)
        best = min(best, dx * dx + dy * dy)
    for px in (x0, x1):
        for py in (y0, y1):
            u = min(max((px - sx) * ax + (py - sy) * ay, 0.0), length)
            dx, dy = sx + u * ax - px, sy + u * ay - py
            best = min(best, dx * dx + dy * dy)
    return best


@cached_njit()
def _lay_out(features, origin, n_cells, cell, reach, room):  # type: ignore[no-untyped-def]
    """Choose a grid that holds all places within reach of the features; return False if ``room`` cells do not do."""
    low_x, low_y, high_x, high_y = np.inf, np.inf, -np.inf, -np.inf
    for i in range(features.shape[0]):
        sx, sy, ax, ay, length, radius = features[i]
        far = radius + reach
        low_x, high_x = min(low_x, sx + min(0.0, length * ax) - far), max(high_x, sx + max(0.0, length * ax) + far)
        low_y, high_y = min(low_y, sy + min(0.0, length * ay) - far), max(high_y, sy + max(0.0, length * ay) + far)
    origin[0], origin[1] = low_x, low_y
    n_x, n_y = np.ceil((high_x - low_x) / cell), np.ceil((high_y - low_y) / cell)
    if not n_x * n_y <= room:  # as numbers that do not overflow
        return False
    n_cells[0], n_cells[1] = int(n_x), int(n_y)
    return True


@cached_njit()
def _visit(row, i, origin, n_cells, cell, reach, listed, n):  # type: ignore[no-untyped-def]
    """Write the cells that list feature i, and i, from row n on as far as there is room; return the row after them."""
    sx, sy, ax, ay, length, radius = row
    far = reach + radius
    n_x, n_y = n_cells
    low = math.floor((sx + min(0.0, length * ax) - far - origin[0]) / cell)
    high = math.floor((sx + max(0.0, length * ax) + far - origin[0]) / cell)
    for ix in range(max(low, 0), min(high, n_x - 1) + 1):
        x0 = origin[0] + ix * cell
        first, last = 0.0, length  # the part of the segment that can matter to this column
        if ax != 0.0:
            a, b = (x0 - far - sx) / ax, (x0 + cell + far - sx) / ax
            first = min(max(min(a, b), 0.0), length)
            last = max(min(max(a, b), length), first)
        bottom = math.floor((sy + min(first * ay, last * ay) - far - origin[1]) / cell)
        top = math.floor((sy + max(first * ay, last * ay) + far - origin[1]) / cell)
        for iy in range(max(bottom, 0), min(top, n_y - 1) + 1):
            y0 = origin[1] + iy * cell
            # slightly more than reach, so that rounding cannot hide a feature
            if _rectangle_gap2(sx, sy, ax, ay, length, x0, y0, x0 + cell, y0 + cell) <= far * far * (1.0 + 1e-9):
                if n < len(listed):
                    listed[n, 0], listed[n, 1] = ix * n_y + iy, i
                n += 1
    return n


@cached_njit()
def _write(feature, cell_start, cell_item, origin, n_cells, cell, reach, features):  # type: ignore[no-untyped-def]
    """Fill one world's arrays; return 0, or 1 for too few cells, 2 for too few items, which leave the world empty."""
    n_cells[:] = 0
    k = features.shape[0]
    feature[:k] = features
    feature[k:] = np.array(_UNUSED)
    if k == 0:
        return 0
    if not _lay_out(features, origin, n_cells, cell, reach, cell_start.size - 1):
        return 1
    total, n = n_cells[0] * n_cells[1], 0
    listed = np.empty((cell_item.size, 2), np.int64)
    for i in range(k):
        n = _visit(features[i], i, origin, n_cells, cell, reach, listed, n)
    if n > cell_item.size:
        n_cells[:] = 0
        return 2
    cell_start[: total + 1] = 0
    for c in listed[:n, 0]:
        cell_start[c + 1] += 1
    for c in range(total):
        cell_start[c + 1] += cell_start[c]
    for c, i in listed[:n]:
        cell_item[cell_start[c]] = i
        cell_start[c] += 1
    for c in range(total, 0, -1):  # filling has moved every start to the next cell's
        cell_start[c] = cell_start[c - 1]
    cell_start[0] = 0
    return 0
