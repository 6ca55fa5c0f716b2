"""Readings of joint angles, joint rates and the head's pose that are late, noisy and biased, for many worlds at once.

A reading of C = 2 J + 3 numbers holds angles (J) [rad], rates (J) [rad/s], the head's x, y [m] and angle [rad].
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_LOW = np.uint64(0xFFFF)
_MEAN = 2.0 * 65535.0
_SCALE = 1.0 / math.sqrt(4.0 * (65536.0**2 - 1.0) / 12.0)


@njit(error_model="numpy", inline="always")
def nearly_normal(bits):  # type: ignore[no-untyped-def]
    """Return a number of mean 0 and variance 1 for 64 random bits: a sum of four uniform ones, at most 3.5 in size."""
    total = np.uint64(0)
    for _ in range(4):
        total += bits & _LOW
        bits >>= np.uint64(16)
    return (float(total) - _MEAN) * _SCALE


@njit(error_model="numpy", cache=True)
def read_chains(  # type: ignore[no-untyped-def]
    ids, link_angle, link_rate, head_xy, past, newest, fresh, delay, noise, bits, bias, out
):
    """Write the readings of the worlds ``ids`` (M,) to ``out`` (M, C).

    Args:
        past: (W, D, C) true readings of the last D control steps, a ring with the last one at ``newest`` (W,); the
            present ones are added. D = 0: no reading is late.
        fresh: (W,) True where nothing has been read in this episode: it was always so; set to False.
        delay: (M, 2) of joints and of pose, in control steps, at most D - 2; between steps a straight line is read.
        noise: (W, 4) standard deviations of angles, rates, position, and the head's angle.
        bits: (M, C) random bits; (M, 0): no noise.
        bias: (W, C).
    """
    n_joints = link_angle.shape[1] - 1
    n_read, depth = out.shape[1], past.shape[1]
    for m in range(ids.shape[0]):
        w = ids[m]
        for i in range(n_joints):
            out[m, i] = link_angle[w, i] - link_angle[w, i + 1]
            out[m, n_joints + i] = link_rate[w, i] - link_rate[w, i + 1]
        out[m, n_read - 3], out[m, n_read - 2] = head_xy[w, 0], head_xy[w, 1]
        out[m, n_read - 1] = link_angle[w, n_joints]
        if depth > 0:
            newest[w] = (newest[w] + 1) % depth
            for d in range(depth):
                if fresh[w] or d == newest[w]:
                    past[w, d] = out[m]
            fresh[w] = False
            for part in range(2):
                whole = math.floor(delay[m, part])
                share = delay[m, part] - whole
                later, earlier = (newest[w] - whole) % depth, (newest[w] - whole - 1) % depth
                for c in range(n_read - 3 if part == 1 else 0, n_read if part == 1 else n_read - 3):
                    out[m, c] = past[w, later, c] + share * (past[w, earlier, c] - past[w, later, c])
        for c in range(bits.shape[1]):
            sort = min(c // n_joints, 2) + (c == n_read - 1)
            out[m, c] += noise[w, sort] * nearly_normal(bits[m, c])
        for c in range(n_read):
            out[m, c] += bias[w, c]
