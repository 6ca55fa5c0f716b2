"""Distances along rays to the nearest obstacle, W worlds at once.

Obstacles are features: the points within ``radius`` of a segment (see ``physics.state.Obstacles``; a disc where its
length is 0). A ray starts at ``o`` in the unit direction ``d``. It meets a disc of centre c at
``t = p - sqrt(r^2 - q^2)`` with ``p = (c - o) d`` and q the distance of c from the ray's line. It meets the body around
a segment where it crosses the face on its own side, if that lies between the ends, or else one of the two end discs.

Features that lie beyond the rays' reach are skipped, so that a large field costs little more than a small one.
"""

from __future__ import annotations

import math

import numpy as np

from snake_gym.compilation import cached_njit
from snake_gym.physics.state import FloatArray


def cast_rays(
    feature: FloatArray, origin_xy: FloatArray, heading: FloatArray, offset: FloatArray, max_range_m: float
) -> FloatArray:
    """Return the distance (M, B) [m] along each ray to the first obstacle, at most ``max_range_m``.

    Args:
        feature: (M, F, 6) [start_x, start_y, axis_x, axis_y, length, radius] [m], world frame.
        origin_xy: (M, 2) [m] start of each world's rays; an origin inside a feature gives distances of 0.
        heading: (M,) [rad] world frame; ray b of world w points to ``heading[w] + offset[b]``.
        offset: (B,) [rad] direction of each ray from the heading.
        max_range_m: > 0, returned where no obstacle is nearer.
    """
    reach = np.empty((origin_xy.shape[0], offset.size))
    _cast(feature, origin_xy, heading, np.cos(offset), np.sin(offset), float(max_range_m), reach)
    return reach


@cached_njit(inline="always")
def _meet_disc(x, y, radius, dx, dy):  # type: ignore[no-untyped-def]
    """Return the distance to a disc centred at (x, y) relative to the ray's start; inf where it is missed."""
    ahead, aside = x * dx + y * dy, x * dy - y * dx
    inside = radius * radius - aside * aside
    return ahead - math.sqrt(inside) if inside > 0.0 and ahead > 0.0 else np.inf


@cached_njit()
def _meet_segment(x, y, ax, ay, length, radius, dx, dy):  # type: ignore[no-untyped-def]
    """Return the distance to points within ``radius`` of a segment that starts at (x, y) from the ray's start."""
    gap = x * ay - y * ax  # from the segment's line to the ray's start, positive on the side of the normal (-ay, ax)
    side = 1.0 if gap >= 0.0 else -1.0
    along = -(x * ax + y * ay)  # the start's place along the axis
    if side * gap > radius:
        approach = side * (dx * ay - dy * ax)
        if approach <= 0.0:
            return np.inf
        t = (side * gap - radius) / approach
        along += t * (dx * ax + dy * ay)
        if 0.0 <= along <= length:
            return t
    shift = length if along > length else 0.0
    return _meet_disc(x + shift * ax, y + shift * ay, radius, dx, dy)


@cached_njit(nogil=True)
def _cast(feature, origin_xy, heading, cos_offset, sin_offset, max_range, reach):  # type: ignore[no-untyped-def]
    n_beams = cos_offset.size
    dx, dy = np.empty(n_beams), np.empty(n_beams)
    for w in range(origin_xy.shape[0]):
        c, s = math.cos(heading[w]), math.sin(heading[w])
        for b in range(n_beams):
            dx[b], dy[b] = c * cos_offset[b] - s * sin_offset[b], s * cos_offset[b] + c * sin_offset[b]
            reach[w, b] = max_range
        for i in range(feature.shape[1]):
            x, y = feature[w, i, 0] - origin_xy[w, 0], feature[w, i, 1] - origin_xy[w, 1]
            ax, ay, length, radius = feature[w, i, 2], feature[w, i, 3], feature[w, i, 4], feature[w, i, 5]
            along = min(max(-(x * ax + y * ay), 0.0), length)
            gap2 = (x + along * ax) * (x + along * ax) + (y + along * ay) * (y + along * ay)
            if gap2 >= (max_range + radius) ** 2:
                continue
            if gap2 < radius * radius:
                reach[w] = 0.0
                break
            if length == 0.0:
                for b in range(n_beams):
                    reach[w, b] = min(reach[w, b], _meet_disc(x, y, radius, dx[b], dy[b]))
            else:
                for b in range(n_beams):
                    t = _meet_segment(x, y, ax, ay, length, radius, dx[b], dy[b])
                    reach[w, b] = min(reach[w, b], t)
