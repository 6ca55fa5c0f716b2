"""What a path is: straight on, in a circle, or not from the spot; and how far off the line it ends.

All from the centre of mass once per gait period, so that the undulation has no part in it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from papers.irani2015.crawling import FINISH_M, PERIOD_S, SAMPLES_PER_PERIOD, Paths
from snake_gym.robot.spec import FloatArray

TURNS_BACK_RAD = math.pi
"""The paper's "turning back on itself": the course has turned by so much within the run."""
STALLS_M_S = 0.05
"""Slower than this is not moving forward: an eighth of the fastest gait."""


class Motion(NamedTuple):
    """R trials; (R,) each."""

    speed_m_s: FloatArray
    """Mean over the second half of the run, along the path."""
    turned_rad: FloatArray
    """Largest change of course from that of the first period."""
    turn_rate_rad: FloatArray
    """Change of course in one gait period, mean over the second half; positive: counter-clockwise."""
    diameter_m: FloatArray
    """Of the circle with that speed and turn rate."""
    course_rad: FloatArray
    """Direction of travel over the last third, against the direction in which the robot pointed at the start."""
    finish_y_m: FloatArray
    """y of the head where it first crosses the finish line, against its start; NaN: it never does."""

    @property
    def stalls(self) -> NDArray[np.bool_]:
        return self.speed_m_s < STALLS_M_S

    @property
    def turns_back(self) -> NDArray[np.bool_]:
        return ~self.stalls & (self.turned_rad >= TURNS_BACK_RAD)

    @property
    def goes_on(self) -> NDArray[np.bool_]:
        return ~self.stalls & ~self.turns_back


def judge(paths: Paths, backwards: FloatArray | None = None) -> Motion:
    """Motion of every path; at least four periods.

    ``backwards`` (R,) marks trials driven tail first: their course and finish count along -x.
    """
    front = np.zeros(paths.heading.shape[1]) if backwards is None else math.pi * np.asarray(backwards, dtype=np.float64)
    centre = paths.centre_xy[::SAMPLES_PER_PERIOD]
    moved = np.diff(centre, axis=0)
    course = np.unwrap(np.arctan2(moved[..., 1], moved[..., 0]), axis=0)
    length = np.hypot(moved[..., 0], moved[..., 1])
    half = len(length) // 2
    turn = (course[-1] - course[half]) / (len(length) - 1 - half)
    mean = length[half:].mean(axis=0)
    with np.errstate(divide="ignore"):
        diameter = 2.0 * mean / np.abs(turn)
    way = centre[-1] - centre[-1 - len(length) // 3]
    off = np.arctan2(way[:, 1], way[:, 0]) - front
    return Motion(
        speed_m_s=mean / PERIOD_S,
        turned_rad=np.abs(course - course[0]).max(axis=0),
        turn_rate_rad=turn,
        diameter_m=diameter,
        course_rad=np.remainder(off + math.pi, 2.0 * math.pi) - math.pi,
        finish_y_m=_finish(paths.head_xy, np.where(front > 0.0, -1.0, 1.0)),
    )


def _finish(head: FloatArray, sense: FloatArray) -> FloatArray:
    """y at the first crossing of the finish line, between samples by a straight line."""
    x = sense * (head[..., 0] - head[0, :, 0])
    y = sense * (head[..., 1] - head[0, :, 1])
    across = (x[:-1] < FINISH_M) & (x[1:] >= FINISH_M)
    first, rows = across.argmax(axis=0), np.arange(x.shape[1])
    before, after = x[first, rows], x[first + 1, rows]
    share = (FINISH_M - before) / np.where(after > before, after - before, 1.0)
    crossing = y[first, rows] + share * (y[first + 1, rows] - y[first, rows])
    return np.where(across.any(axis=0), crossing, np.nan)
