"""Random numbers for W worlds at once: one independent stream per world, purpose and episode.

Streams are counter-based (``splitmix``): number c is ``mix(key + c * GOLDEN)``, key = mix of (world seed, purpose,
episode). Draws of one purpose do not change another: a scenario depends on the world's seed and episode alone.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.obstacles.splitmix import GOLDEN, TO_UNIT, mix
from snake_gym.physics.state import FloatArray, IntArray

UIntArray = NDArray[np.uint64]
_SCALE = 1.0 / math.sqrt(4.0 * (65536.0**2 - 1.0) / 12.0)
"""Inverse of the standard deviation of a sum of four 16-bit numbers."""


def to_unit(bits: UIntArray) -> FloatArray:
    """Return numbers in [0, 1) from 64-bit ones."""
    return (bits >> np.uint64(11)).astype(np.float64) * TO_UNIT


def nearly_normal(bits: UIntArray) -> FloatArray:
    """Return numbers of mean 0 and variance 1: sums of the four 16-bit parts of each number, at most 3.5 in size."""
    parts = [(bits >> np.uint64(16 * n)) & np.uint64(0xFFFF) for n in range(4)]
    total: FloatArray = np.asarray(np.sum(parts, axis=0, dtype=np.uint64), np.float64)
    return (total - 2.0 * 65535.0) * _SCALE


@cache
def _hash_of(purpose: str) -> UIntArray:
    """Return the hash (1,) of a purpose's name."""
    return mix(np.array([zlib.crc32(purpose.encode())], dtype=np.uint64))


class RandomStreams:
    """Streams of one purpose, one for each of W worlds; begin them before drawing."""

    def __init__(self, purpose: str, n_worlds: int) -> None:
        self.purpose = purpose
        self.key: UIntArray = np.zeros(n_worlds, np.uint64)
        self.counter: UIntArray = np.zeros(n_worlds, np.uint64)

    def begin(self, seeds: IntArray, episodes: IntArray, rows: Any = slice(None)) -> None:
        """Start the streams of ``rows`` for the given world seeds and episode numbers, one each."""
        begin_streams([self], seeds, episodes, rows)

    def branch(self, purpose: str, rows: Any = slice(None)) -> RandomStreams:
        """Return M streams of a purpose of its own within those of ``rows``, as they begin; drawing moves no other."""
        branch = RandomStreams(purpose, self.key[rows].size)
        branch.key[:] = mix(self.key[rows] * GOLDEN + _hash_of(purpose))
        return branch

    def state_arrays(self, name: str) -> dict[str, UIntArray]:
        """Return the arrays that later numbers depend on, not copies, by names that begin with ``name``."""
        return {f"{name}/key": self.key, f"{name}/counter": self.counter}

    def bits(self, count: int, rows: Any = slice(None)) -> UIntArray:
        """Return the next ``count`` 64-bit numbers of each stream of ``rows``: (M, count)."""
        state = self.key[rows] + self.counter[rows] * GOLDEN
        self.counter[rows] += np.uint64(count)
        return mix(state[:, None] + np.arange(1, count + 1, dtype=np.uint64) * GOLDEN)

    def uniform(self, count: int, rows: Any = slice(None)) -> FloatArray:
        """Return the next ``count`` numbers in [0, 1) of each stream of ``rows``: (M, count)."""
        return to_unit(self.bits(count, rows))

    def normal(self, count: int, rows: Any = slice(None)) -> FloatArray:
        """Return the next ``count`` standard normal numbers of each stream of ``rows``: (M, count) (Box-Muller)."""
        half = (count + 1) // 2
        u = self.uniform(2 * half, rows)
        radius = np.sqrt(-2.0 * np.log1p(-u[:, :half]))
        angle = 2.0 * np.pi * u[:, half:]
        return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)[:, :count]


def begin_streams(streams: Collection[RandomStreams], seeds: IntArray, episodes: IntArray, rows: Any) -> None:
    """Start the streams (M,) of ``rows``, of several purposes at once, for world seeds and episode numbers (M,)."""
    purposes = np.array([_hash_of(one.purpose) for one in streams])
    keys = mix(mix(seeds.astype(np.uint64) * GOLDEN + purposes) + episodes.astype(np.uint64) * GOLDEN)
    for one, key in zip(streams, keys, strict=True):
        one.key[rows], one.counter[rows] = key, 0
