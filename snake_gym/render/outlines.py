"""Obstacles as a picture shows them: features (see ``physics.state.Obstacles``) turned into bars and polygons."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from snake_gym.robot.spec import FloatArray

_TOUCHING_M = 1e-6


class Outlines(NamedTuple):
    """What to draw."""

    bars: list[tuple[FloatArray, FloatArray, float]]
    """Start (2,), end (2,) and radius [m]: discs, capsules and walls."""
    polygons: list[FloatArray]
    """(k, 2) [m] corners."""


def outline(features: FloatArray) -> Outlines:
    """Outlines of features (k, 6); edges of radius 0 that follow each other around in a circle make a polygon."""
    bars: list[tuple[FloatArray, FloatArray, float]] = []
    polygons: list[FloatArray] = []
    chain: list[tuple[FloatArray, FloatArray]] = []
    for row in np.asarray(features, dtype=np.float64).reshape(-1, 6):
        start, end = row[:2], row[:2] + row[2:4] * row[4]
        is_edge = row[5] == 0.0 and row[4] > 0.0
        if chain and not (is_edge and _is_same(chain[-1][1], start)):
            bars += [(a, b, 0.0) for a, b in chain]
            chain = []
        if not is_edge:
            bars.append((start, end, float(row[5])))
            continue
        chain.append((start, end))
        if len(chain) > 2 and _is_same(end, chain[0][0]):
            polygons.append(np.array([a for a, _ in chain]))
            chain = []
    return Outlines(bars + [(a, b, 0.0) for a, b in chain], polygons)


def _is_same(a: FloatArray, b: FloatArray) -> bool:
    return bool(np.hypot(*(a - b)) < _TOUCHING_M)
