"""Oracle: how deep links of a chain lie in each other, from the distances of all pairs of segments."""

from __future__ import annotations

import numpy as np

from snake_gym.robot.spec import FloatArray


def _to_segment(point: FloatArray, begin: FloatArray, end: FloatArray) -> FloatArray:
    """Distances of points from segments, all (..., 2)."""
    way = end - begin
    share = np.clip(((point - begin) * way).sum(axis=-1) / (way * way).sum(axis=-1), 0.0, 1.0)
    return np.asarray(np.hypot(*np.moveaxis(point - begin - share[..., None] * way, -1, 0)))


def _sides(begin: FloatArray, end: FloatArray, point: FloatArray) -> FloatArray:
    """Positive: the point is to the left of the line."""
    way, off = end - begin, point - begin
    return np.asarray(way[..., 0] * off[..., 1] - way[..., 1] * off[..., 0])


def deepest_overlaps(theta: FloatArray, half: FloatArray, radius: FloatArray) -> FloatArray:
    """Deepest overlap [m] (W,), negative: the least gap, of links at angles (W, N) with half lengths and radii (N,).

    Left out are pairs that overlap also where the chain is straight.
    """
    way = 2.0 * half[:, None] * np.stack([np.cos(theta), np.sin(theta)], axis=-1)
    end = np.cumsum(way, axis=1)
    begin, length = end - way, np.cumsum(2.0 * half)
    both = radius[:, None] + radius
    first, last = np.nonzero(np.triu(np.append(0.0, length[:-1]) - length[:, None] >= both, 2))
    a, b, c, d = begin[:, first], end[:, first], begin[:, last], end[:, last]
    apart = np.min([_to_segment(a, c, d), _to_segment(b, c, d), _to_segment(c, a, b), _to_segment(d, a, b)], axis=0)
    cross = (_sides(a, b, c) * _sides(a, b, d) < 0.0) & (_sides(c, d, a) * _sides(c, d, b) < 0.0)
    return np.asarray((both[first, last] - np.where(cross, 0.0, apart)).max(axis=1))
