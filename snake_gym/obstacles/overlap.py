"""Overlap of chains of links with obstacles, before the physics moves them."""

from __future__ import annotations

import math

import numpy as np

from snake_gym.compilation import cached_njit
from snake_gym.obstacles.passage import segment_gap
from snake_gym.physics.state import FloatArray


def deepest_overlaps(
    feature: FloatArray, link_angle: FloatArray, centre_xy: FloatArray, half_length: FloatArray, radius: FloatArray
) -> FloatArray:
    """Return the deepest overlap of any link with any feature (M,) [m]; 0 without one.

    Args:
        feature: (M, F, 6), world frame (see ``physics.state.Obstacles``).
        link_angle: (M, N) [rad].
        centre_xy: (M, N, 2) [m] centres of the links, world frame.
        half_length, radius: (M, N) [m].
    """
    overlap = np.zeros(len(feature))
    _find_deepest(feature, link_angle, centre_xy, half_length, radius, overlap)
    return overlap


@cached_njit()
def _find_deepest(feature, link_angle, centre_xy, half_length, radius, overlap):  # type: ignore[no-untyped-def]
    for w in range(feature.shape[0]):
        for i in range(link_angle.shape[1]):
            x, y, half, thick = centre_xy[w, i, 0], centre_xy[w, i, 1], half_length[w, i], radius[w, i]
            dx, dy = half * math.cos(link_angle[w, i]), half * math.sin(link_angle[w, i])
            for f in range(feature.shape[1]):
                sx, sy, ax, ay, length, own = feature[w, f]
                far = half + thick + own
                u = min(max((x - sx) * ax + (y - sy) * ay, 0.0), length)
                px, py = x - sx - u * ax, y - sy - u * ay
                if px * px + py * py < far * far:
                    gap = segment_gap(x - dx, y - dy, x + dx, y + dy, feature[w, f]) - thick
                    overlap[w] = max(overlap[w], -gap)
