"""Rate and acceleration of a command that comes sample by sample, for servos commanded in all three.

Model: liu2024, section 3.3. A polynomial through five samples is differentiated at each of them (eq. 35-40); the same
on the rates gives the acceleration (eq. 41-45). The window slides. When sample k arrives, it gives

    S1  rate k      one-sided (eq. 40), for use now,
    S2  rate k-1    (eq. 39), better,
    S3  rate k-2    centred (eq. 38), settled,
    S4  acceleration at the newest rate, one-sided (eq. 45),
    S5  acceleration k-4, centred on settled rates (eq. 43), settled.

S4 is printed with the rates k-6 to k-2, which would give the acceleration at k-2: a misprint. The authors' program
takes the rates k-4 to k, as is done here, of which the last two are not settled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from snake_gym.robot.spec import FloatArray

N_POINTS = 5
FIRST = 8
"""Number of the first sample k, from 0, with a full window of settled rates behind it."""


class Derivatives(NamedTuple):
    """Results for the samples k from ``FIRST`` on, each (T - FIRST, J)."""

    rate: FloatArray
    """Rate [1/s] of the newest sample k."""
    acceleration: FloatArray
    """Acceleration [1/s^2] of sample k."""
    settled_rate: FloatArray
    """Rate [1/s] of sample k-2."""
    settled_acceleration: FloatArray
    """Acceleration [1/s^2] of sample k-4."""


def differentiate(position: FloatArray, dt_s: float) -> Derivatives:
    """Return what is known of the signals (T, J), ``dt_s`` [s] apart, when each sample has just arrived."""
    slope = differentiation_matrix(dt_s * np.arange(float(N_POINTS))[None])[0]
    rate = sliding_window_view(position, N_POINTS, axis=0) @ slope[2:].T  # of k-2, k-1, k as known at k = 4, 5, ...
    settled = rate[..., 0]
    recent = np.concatenate([settled[:-2, :, None], settled[1:-1, :, None], rate[2:]], axis=2)  # k-4 to k, k = 6, ...
    return Derivatives(
        rate[4:, :, 2], (recent @ slope[4])[2:], settled[4:], sliding_window_view(settled, N_POINTS, axis=0) @ slope[2]
    )


def differentiation_matrix(times_s: FloatArray) -> FloatArray:
    """Return the matrix (W, P, P) [1/s] from values at P times to derivatives of their polynomial there (eq. 35).

    ``times_s`` is (W, P) [s], all different in each row.
    """
    n = times_s.shape[1]
    gap = times_s[:, :, None] - times_s[:, None, :]
    gap[:, np.arange(n), np.arange(n)] = 1.0
    scale = gap.prod(axis=2)  # prod_{j != i} (t_i - t_j)
    matrix = scale[:, :, None] / (scale[:, None, :] * gap)
    inverse = 1.0 / gap
    inverse[:, np.arange(n), np.arange(n)] = 0.0
    matrix[:, np.arange(n), np.arange(n)] = inverse.sum(axis=2)
    return np.asarray(matrix, dtype=np.float64)
