"""The numbers of haghshenas2022, section 3."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from papers.haghshenas2022.runs import PathName
from snake_gym.robot.spec import FloatArray


class Published(NamedTuple):
    """Speed and muscle lengths on one path."""

    mean_m_s: float
    least_m_s: float
    most_m_s: float
    """Of the settled oscillation."""
    source: str
    shortest_mm: FloatArray
    """(J, 2) [mm] left, right."""
    longest_mm: FloatArray
    """(J, 2) [mm]."""
    table: str


def _left_right(right_left: list[float]) -> FloatArray:
    """The tables' rows run m1 right, m1 left, m2 right ..."""
    return np.array(right_left).reshape(-1, 2)[:, ::-1]


PUBLISHED: dict[PathName, Published] = {
    "circle": Published(
        0.277, 0.264, 0.290, "Section 3.1, Fig. 4",
        _left_right([82.0, 81.0, 82.2, 81.6, 85.0, 83.8, 85.4, 84.5, 83.6, 82.7]),
        _left_right([110.3, 110.0, 110.1, 109.9, 109.5, 109.1, 109.3, 109.0, 109.8, 109.6]), "Table 1",
    ),
    "square": Published(
        0.28, 0.268, 0.292, "Section 3.2, Fig. 8",
        _left_right([80.6, 76.0, 81.8, 75.2, 85.4, 79.1, 86.4, 80.4, 83.2, 77.4]),
        # printed 11.2, which is no length of a 100 mm muscle
        _left_right([111.2, 110.4, 111.3, 110.1, 110.7, 109.0, 110.4, 108.6, 111.0, 109.7]), "Table 2",
    ),
}  # fmt: skip
RISE_S = 5.0
CORNER_M = 0.9
FORCE_N = (0.2, 0.6)
"""Section 3.2: most of the way."""
CORNER_FORCE_N = 10.0
"""Section 3.2: order of magnitude round the corners."""
