"""The place on a polyline that is nearest to a point, W worlds at once.

A polyline is its pieces: start, unit direction and length, the arc length at its begin. On each piece the nearest place
is the foot of the perpendicular, moved into the piece and into the window of arc lengths that may be looked at.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def nearest_places(
    piece: FloatArray, begin_m: FloatArray, point_xy: FloatArray, last_m: FloatArray, reach_m: float
) -> FloatArray:
    """Arc length (M,) [m] of the place nearest to each point; the first of several that are equally near.

    Args:
        piece: (M, P, 5) [start_x, start_y, direction_x, direction_y, length] [m], world frame.
        begin_m: (M, P) [m] arc length at the begin of each piece, ascending.
        point_xy: (M, 2) [m].
        last_m: (M,) [m] only places within ``reach_m`` of this arc length are looked at.
    """
    found = np.empty(last_m.size)
    _find_nearest(piece, begin_m, point_xy, last_m, float(reach_m), found)
    return found


@njit(cache=True, error_model="numpy", nogil=True)
def _find_nearest(piece, begin, point, last, reach, found):  # type: ignore[no-untyped-def]
    for w in range(last.size):
        low, high = last[w] - reach, last[w] + reach
        best, found[w] = np.inf, last[w]
        for i in range(begin.shape[1]):
            length = piece[w, i, 4]
            if begin[w, i] + length < low:
                continue
            if begin[w, i] > high:
                break
            x, y = point[w, 0] - piece[w, i, 0], point[w, 1] - piece[w, i, 1]
            along = x * piece[w, i, 2] + y * piece[w, i, 3]
            along = min(max(along, 0.0, low - begin[w, i]), length, high - begin[w, i])
            x, y = x - along * piece[w, i, 2], y - along * piece[w, i, 3]
            gap2 = x * x + y * y
            if gap2 < best:
                best, found[w] = gap2, begin[w, i] + along
