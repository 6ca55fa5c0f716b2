"""Overlap of spatial chains with themselves: how deep two links, capsules from joint to joint, lie in each other.

MuJoCo lets links pass through each other here; this says so. Left out are pairs that overlap also where the chain is
straight: neighbours, and links with short ones between them. A box counts as the capsule within it.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from snake_gym.robot.spec import FloatArray
from snake_gym.spatial.kinematics import Posture
from snake_gym.spatial.spec import SpatialSpec

_PARALLEL = 1e-12
"""Square of the sine of the angle between parallel links."""


def deepest_overlap(spec: SpatialSpec, shape: Posture) -> FloatArray:
    """Return the deepest overlap of two links (W,) [m] of robots in the posture ``shape``; 0: none.

    All sums are written out, so that a world alone and in a batch gives the same bits.
    """
    radius = 0.5 * min(spec.box_m) if spec.section == "box" else spec.radius_m
    half = spec.links("link_half_length_m")
    cut = np.zeros(spec.n_links)  # the robot's two ends are round within its length
    cut[0], cut[-1] = 0.5 * min(radius, 2.0 * half[0]), -0.5 * min(radius, 2.0 * half[-1])
    half -= np.abs(cut)
    first, last = _pairs(spec.n_links, 1 + math.ceil(2.0 * radius / spec.link_length_m))
    axis = np.moveaxis(shape.axis, -1, 0)
    middle = np.moveaxis(shape.middle, -1, 0) + cut * axis
    between = middle[:, :, last] - middle[:, :, first]
    near = _dot(between, between) < (half[first] + half[last] + 2.0 * radius) ** 2
    worlds, pairs = np.nonzero(near)
    deepest = np.zeros(len(shape.axis))
    if worlds.size:
        a, b = first[pairs], last[pairs]
        gap = _axis_distance(axis[:, worlds, a], axis[:, worlds, b], half[a], half[b], between[:, worlds, pairs])
        np.maximum.at(deepest, worlds, 2.0 * radius - gap)
    return deepest


@functools.lru_cache
def _pairs(n_links: int, apart: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the pairs (P,) of links that are ``apart`` places apart at least."""
    first, last = np.triu_indices(n_links, apart)
    return first, last


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


def _axis_distance(
    axis_a: FloatArray, axis_b: FloatArray, half_a: FloatArray, half_b: FloatArray, between: FloatArray
) -> FloatArray:
    """Return the distances (K,) [m] of K pairs of segments along unit axes (3, K), ``between`` (3, K) their middles.

    Of the nearest points of the two lines, one is held within its segment, the other follows it within its own.
    """
    cos, on_a, on_b = _dot(axis_a, axis_b), _dot(axis_a, between), _dot(axis_b, between)
    square_sine = 1.0 - cos * cos
    crossing = (on_a - cos * on_b) / np.maximum(square_sine, _PARALLEL)
    along_a = np.where(square_sine > _PARALLEL, np.clip(crossing, -half_a, half_a), 0.0)
    along_b = np.clip(cos * along_a - on_b, -half_b, half_b)
    along_a = np.clip(cos * along_b + on_a, -half_a, half_a)
    gap = between + along_b * axis_b - along_a * axis_a
    return np.asarray(np.sqrt(_dot(gap, gap)))
